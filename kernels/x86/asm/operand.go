package asm

// Reg is the number of a vector register, 0 to 31; with VEX 0 to 15.
type Reg uint8

// Mask is the number of a mask register. As the mask of an instruction K0 means all lanes.
type Mask uint8

// GPR is the number of a general register of 64 bits.
type GPR uint8

// The general registers.
const (
	AX GPR = iota
	CX
	DX
	BX
	SP
	BP
	SI
	DI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// Width is the size of a vector.
type Width uint8

// The widths.
const (
	X Width = iota // 16 bytes
	Y              // 32 bytes
	Z              // 64 bytes
)

// Bytes returns the size in bytes.
func (w Width) Bytes() int { return 16 << w }

// Mem is memory at Base + Index·Scale + Disp. Scale 0 means no index. The index is a vector
// register in gathers, where Vector is set, else a general register other than SP.
type Mem struct {
	Base   GPR
	Index  uint8
	Scale  uint8 // 0, 1, 2, 4, 8
	Vector bool
	Disp   int32
}

// Operand is what the r/m field of an instruction names: a register, or memory.
type Operand struct {
	reg   uint8
	isMem bool
	each  bool // of memory: it is one element for all lanes
	mem   Mem
}

// R returns a vector register as an operand.
func R(r Reg) Operand { return Operand{reg: uint8(r)} }

// G returns a general register as an operand.
func G(g GPR) Operand { return Operand{reg: uint8(g)} }

// IsReg reports whether the operand is a register.
func (o Operand) IsReg() bool { return !o.isMem }

// Reg returns the vector register that the operand is.
func (o Operand) Reg() Reg { return Reg(o.reg) }

// Shift returns the operand, which is memory, a number of bytes further.
func (o Operand) Shift(bytes int32) Operand {
	o.mem.Disp += bytes
	return o
}

// Each returns the operand, which is memory, as one element for all lanes of an EVEX instruction that Broadcasts.
func (o Operand) Each() Operand {
	o.each = true
	return o
}

// M returns memory as an operand.
func M(m Mem) Operand { return Operand{isMem: true, mem: m} }

// At returns the memory at a distance from a register.
func At(base GPR, disp int32) Operand { return M(Mem{Base: base, Disp: disp}) }

// high returns bits 3 and 4 of the numbers in the operand: of a register, or of base and index.
func (o *Operand) high() (b, x, v bool) {
	if !o.isMem {
		return o.reg&8 != 0, o.reg&16 != 0, false
	}
	b = o.mem.Base&8 != 0
	if o.mem.Scale != 0 {
		x, v = o.mem.Index&8 != 0, o.mem.Index&16 != 0
	}
	return b, x, v
}

// modRM appends the ModRM byte, and for memory SIB and displacement. reg is the other operand, or
// the digit of an opcode. Displacements that are multiples of unit take a byte where the quotient
// fits one: unit is 1 but for EVEX.
func (c *Code) modRM(reg uint8, o *Operand, unit int32) {
	reg = reg & 7 << 3
	if !o.isMem {
		c.bytes = append(c.bytes, 0xC0|reg|o.reg&7)
		return
	}
	m := &o.mem
	base := uint8(m.Base) & 7
	mod, disp := uint8(0x80), m.Disp
	switch {
	case disp == 0 && base != uint8(BP): // a base of BP or R13 has a displacement in any case
		mod = 0
	case disp%unit == 0 && disp/unit >= -128 && disp/unit <= 127:
		mod, disp = 0x40, disp/unit
	}
	if m.Scale == 0 && base != uint8(SP) {
		c.bytes = append(c.bytes, mod|reg|base)
	} else {
		index, scale := uint8(SP), uint8(0)
		if m.Scale != 0 {
			index = m.Index & 7
			if !m.Vector && m.Index == uint8(SP) {
				panic("BUG: asm: SP cannot be an index")
			}
			for 1<<scale < m.Scale {
				scale++
			}
		}
		c.bytes = append(c.bytes, mod|reg|4, scale<<6|index<<3|base)
	}
	switch mod {
	case 0x40:
		c.bytes = append(c.bytes, byte(disp))
	case 0x80:
		c.word(uint32(disp))
	}
}
