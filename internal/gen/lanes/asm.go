package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Registers that routines hand on to each other.
var (
	code = reg.RSI // the operation at hand: address of the routine, offsets of the operands
	file = reg.RDI // the registers of the warp
	mask = reg.EDX // the lanes that run
)

// operands are the registers that hold where the destination and the operands lie.
var operands = [4]reg.GPPhysical{reg.RAX, reg.RBX, reg.RCX, reg.R10}

// instBytes is the size of an Inst: an address and four offsets.
const instBytes = 24

// asm emits routines for AVX-512 (wide) or AVX2 with FMA and F16C.
type asm struct {
	*build.Context
	wide   bool
	form   string
	tables map[string]Mem
	labels int
}

type vec = reg.VecVirtual

// routine emits a function that only this file knows.
func (a *asm) routine(name string, body func()) {
	a.Function(static + name)
	a.Attributes(attr.NOSPLIT | attr.NOFRAME)
	a.SignatureExpr("func()")
	body()
}

// begin loads where the operands lie.
func (a *asm) begin(form string) {
	a.form = form
	for i := range form {
		a.MOVL(Mem{Base: code, Disp: 8 + 4*i}, operands[i].(reg.GPPhysical).As32())
	}
}

// next jumps to the next operation.
func (a *asm) next() {
	a.MOVQ(Mem{Base: code, Disp: instBytes}, reg.R8)
	a.ADDQ(Imm(instBytes), code)
	a.jump(reg.R8)
}

// jump goes to the address in a register. avo knows jumps to labels alone. What
// routines hand on counts as read here, so that none of them uses it for something else.
func (a *asm) jump(to reg.GPPhysical) {
	keeps := []Op{to, code, file, mask, a.nan()}
	if a.wide {
		keeps = append(keeps, reg.K1, reg.K2, reg.K3, reg.K4)
	}
	a.Instruction(&ir.Instruction{Opcode: "JMP", Operands: []Op{to}, Inputs: keeps, IsTerminal: true})
}

// Operands by their place in the form.
const (
	dst = iota
	opA
	opB
	opC
)

// lanes32 is the number of lanes of 32 bits in a vector.
func (a *asm) lanes32() int {
	if a.wide {
		return 16
	}
	return 8
}

// mem is vector i of an operand, whose vectors have a number of bytes.
func (a *asm) mem(o, i, bytes int) Mem {
	return Mem{Base: file, Index: operands[o], Scale: 1, Disp: i * bytes}
}

// bytes is the size of a vector.
func (a *asm) bytes() int { return 4 * a.lanes32() }

// vec returns a new vector register.
func (a *asm) vec() vec {
	if a.wide {
		return a.ZMM()
	}
	return a.YMM()
}

// load reads vector i of an operand.
func (a *asm) load(o, i int) vec {
	v := a.vec()
	a.VMOVUPS(a.mem(o, i, a.bytes()), v)
	return v
}

// nan is the register with the one NaN of f32.
func (a *asm) nan() reg.VecPhysical {
	if a.wide {
		return reg.Z31
	}
	return reg.Y15
}

// others32 and others64 are the masks of the lanes that do not run (wide).
func (a *asm) others32(i int) reg.OpmaskPhysical { return a.others64(2 * i) }
func (a *asm) others64(i int) reg.OpmaskPhysical {
	return [...]reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4}[i]
}

// maskMem is where the words of the lanes lie (AVX2): in the first bytes of the file.
func (a *asm) maskMem(off int) Mem { return Mem{Base: file, Disp: off} }

// store32 writes vector i of the destination, lanes of 32 bits, in the lanes that run.
func (a *asm) store32(v vec, i int) { a.storeTo(dst, v, i) }

// storeTo is store32 for any operand.
func (a *asm) storeTo(o int, v vec, i int) {
	to := a.mem(o, i, a.bytes())
	if a.wide {
		a.VMOVDQU32(to, a.others32(i), v)
	} else {
		m, old := a.YMM(), a.YMM()
		a.VMOVDQU(a.maskMem(32*i), m)
		a.VMOVDQU(to, old)
		a.VBLENDVPS(m, v, old, v)
	}
	a.VMOVUPS(v, to)
}

// store64 writes vector i of the destination, lanes of 64 bits.
func (a *asm) store64(v vec, i int) {
	to := a.mem(dst, i, a.bytes())
	if a.wide {
		a.VMOVDQU64(to, a.others64(i), v)
	} else {
		m, old := a.YMM(), a.YMM()
		a.VPMOVSXDQ(a.maskMem(16*i), m)
		a.VMOVDQU(to, old)
		a.VBLENDVPD(m, v, old, v)
	}
	a.VMOVUPS(v, to)
}

// each32 and each64 repeat body for the vectors of a register.
func (a *asm) each32(body func(i int)) {
	for i := range 32 / a.lanes32() {
		body(i)
	}
}

func (a *asm) each64(body func(i int)) {
	for i := range 64 / a.lanes32() {
		body(i)
	}
}

// canonical gives NaN its one form.
func (a *asm) canonical(v vec) {
	if a.wide {
		k := a.K()
		a.VCMPPS(Imm(3), v, v, k)
		a.VMOVDQA32(a.nan(), k, v)
		return
	}
	m := a.YMM()
	a.VCMPPS(Imm(3), v, v, m)
	a.VBLENDVPS(m, a.nan(), v, v)
}

// table returns 32 bytes of memory with eight words.
func (a *asm) table(name string, word func(j int) uint32) Mem {
	if m, ok := a.tables[name]; ok {
		return m
	}
	m := a.StaticGlobal(name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for j := range 8 {
		a.AppendDatum(U32(word(j)))
	}
	if a.tables == nil {
		a.tables = map[string]Mem{}
	}
	a.tables[name] = m
	return m
}

// splat returns a vector of a word.
func (a *asm) splat(w uint32) vec {
	v := a.vec()
	a.VBROADCASTSS(a.table(fmt.Sprintf("c%08x", w), func(int) uint32 { return w }), v)
	return v
}

// splat64 returns a vector of a word of 64 bits.
func (a *asm) splat64(w uint64) vec {
	v := a.vec()
	a.VBROADCASTSD(a.table(fmt.Sprintf("d%016x", w), func(j int) uint32 { return uint32(w >> (32 * (j & 1))) }), v)
	return v
}

// zero returns a vector of zeros.
func (a *asm) zero() vec {
	v := a.vec()
	a.VXORPS(v, v, v)
	return v
}

// label returns a new label.
func (a *asm) label(what string) string {
	a.labels++
	return fmt.Sprintf("%s%d", what, a.labels)
}
