package asm

import "encoding/binary"

// Code is a sequence of instructions.
type Code struct {
	bytes  []byte
	labels []int // where each is; -1: not yet
	fixes  []fix
}

// fix is a distance to a label that is still to be written.
type fix struct {
	at    int // of the 32-bit distance, which counts from behind it
	label Label
}

// Label is a place to jump to.
type Label int

// Len returns the size of the code so far in bytes.
func (c *Code) Len() int { return len(c.bytes) }

// Label returns a label that is at no place yet.
func (c *Code) Label() Label {
	c.labels = append(c.labels, -1)
	return Label(len(c.labels) - 1)
}

// Here puts a label at the end of the code so far.
func (c *Code) Here(l Label) { c.labels[l] = len(c.bytes) }

// Bytes returns the code. Every label that is jumped to has a place.
func (c *Code) Bytes() []byte {
	for _, f := range c.fixes {
		to := c.labels[f.label]
		if to < 0 {
			panic("BUG: asm: a jump to a label without a place")
		}
		binary.LittleEndian.PutUint32(c.bytes[f.at:], uint32(int32(to-f.at-4)))
	}
	c.fixes = c.fixes[:0]
	return c.bytes
}

func (c *Code) word(x uint32) { c.bytes = binary.LittleEndian.AppendUint32(c.bytes, x) }

func (c *Code) jump(l Label) {
	c.fixes = append(c.fixes, fix{len(c.bytes), l})
	c.word(0)
}

// Condition is the condition of a jump.
type Condition uint8

// The conditions.
const (
	Below   Condition = 2 // unsigned
	Zero    Condition = 4
	NotZero Condition = 5
)

// Jump appends a jump.
func (c *Code) Jump(l Label) {
	c.bytes = append(c.bytes, 0xE9)
	c.jump(l)
}

// JumpIf appends a jump that is taken where a condition holds.
func (c *Code) JumpIf(on Condition, l Label) {
	c.bytes = append(c.bytes, 0x0F, 0x80|byte(on))
	c.jump(l)
}

// Ret appends a return.
func (c *Code) Ret() { c.bytes = append(c.bytes, 0xC3) }

// VZeroUpper appends VZEROUPPER.
func (c *Code) VZeroUpper() { c.bytes = append(c.bytes, 0xC5, 0xF8, 0x77) }

// legacy appends an instruction of general registers, 64 bits wide unless narrow.
func (c *Code) legacy(narrow bool, reg uint8, o Operand, opcode ...byte) {
	rex := byte(0x40)
	if !narrow {
		rex |= 8
	}
	if reg&8 != 0 {
		rex |= 4
	}
	b, x, _ := o.high()
	if x {
		rex |= 2
	}
	if b {
		rex |= 1
	}
	if rex != 0x40 {
		c.bytes = append(c.bytes, rex)
	}
	c.bytes = append(c.bytes, opcode...)
	c.modRM(reg, &o, 1)
}

// Load appends a load of 64 bits.
func (c *Code) Load(dst GPR, from Operand) { c.legacy(false, uint8(dst), from, 0x8B) }

// Address puts the address of memory into a register, and leaves the flags alone.
func (c *Code) Address(dst GPR, of Operand) { c.legacy(false, uint8(dst), of, 0x8D) }

// LoadNarrow appends a load of 32 bits, with zeros above.
func (c *Code) LoadNarrow(dst GPR, from Operand) { c.legacy(true, uint8(dst), from, 0x8B) }

// LoadByte appends a load of 8 bits, with zeros above: of memory, or of a register from R8 on, whose lowest byte every prefix names.
func (c *Code) LoadByte(dst GPR, from Operand) { c.legacy(true, uint8(dst), from, 0x0F, 0xB6) }

// LoadWord appends a load of 16 bits, with zeros above.
func (c *Code) LoadWord(dst GPR, from Operand) { c.legacy(true, uint8(dst), from, 0x0F, 0xB7) }

// MoveNarrow appends a move of 32 bits, with zeros above.
func (c *Code) MoveNarrow(dst, src GPR) { c.legacy(true, uint8(src), G(dst), 0x89) }

// Shr appends a shift to the right.
func (c *Code) Shr(dst GPR, by uint8) {
	c.legacy(false, 5, G(dst), 0xC1)
	c.bytes = append(c.bytes, by)
}

// Store appends a store of 64 bits.
func (c *Code) Store(to Operand, src GPR) { c.legacy(false, uint8(src), to, 0x89) }

// Add appends dst += src.
func (c *Code) Add(dst GPR, src Operand) { c.legacy(false, uint8(dst), src, 0x03) }

// Cmp appends a comparison of a with b.
func (c *Code) Cmp(a GPR, b Operand) { c.legacy(false, uint8(a), b, 0x3B) }

// AddImm appends dst += x for a small x.
func (c *Code) AddImm(dst GPR, x int8) {
	c.legacy(false, 0, G(dst), 0x83)
	c.bytes = append(c.bytes, byte(x))
}

// SubImm appends dst -= x for a small x, and sets the condition Zero.
func (c *Code) SubImm(dst GPR, x int8) {
	c.legacy(false, 5, G(dst), 0x83)
	c.bytes = append(c.bytes, byte(x))
}

// SubMem appends [m] -= x for a small x, and sets the condition Zero.
func (c *Code) SubMem(m Operand, x int8) {
	c.legacy(false, 5, m, 0x83)
	c.bytes = append(c.bytes, byte(x))
}

// StoreImm appends a store of x as 64 bits.
func (c *Code) StoreImm(to Operand, x int32) {
	c.legacy(false, 0, to, 0xC7)
	c.word(uint32(x))
}

// Mul appends dst = src · x.
func (c *Code) Mul(dst GPR, src Operand, x int32) {
	c.legacy(false, uint8(dst), src, 0x69)
	c.word(uint32(x))
}

// Test appends a test of the low 32 bits of a register, which sets the condition Zero.
func (c *Code) Test(g GPR) { c.legacy(true, uint8(g), G(g), 0x85) }
