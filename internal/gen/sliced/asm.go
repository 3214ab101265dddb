package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// asm emits one routine.
type asm struct {
	*build.Context
	consts map[string]Mem
}

type (
	gp  = reg.GPVirtual
	vec = reg.VecPhysical
)

// setBytes is the size of a set of the rows of a block.
const setBytes = 64

// v is a vector register. They are named, because trees need all there are.
func (a *asm) v(i int) vec {
	return [...]vec{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}[i]
}

// param loads a parameter.
func (a *asm) param(name string) gp {
	r := a.GP64()
	a.Load(a.Param(name), r)
	return r
}

// constant returns read-only memory of words.
func (a *asm) constant(name string, words ...uint32) Mem {
	if m, ok := a.consts[name]; ok {
		return m
	}
	m := a.StaticGlobal(name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, w := range words {
		a.AppendDatum(U32(w))
	}
	if a.consts == nil {
		a.consts = map[string]Mem{}
	}
	a.consts[name] = m
	return m
}

// splat sets all words of a register.
func (a *asm) splat(w uint32, to vec) {
	a.VPBROADCASTD(a.constant(fmt.Sprintf("c%08x", w), w), to)
}

// ret ends the routine.
func (a *asm) ret() {
	a.VZEROUPPER()
	a.RET()
}

// halves repeats body for the vectors of a set of rows, as many halves as the parameter
// says. It advances the registers by a vector each time.
func (a *asm) halves(body func(), advance ...gp) {
	n := a.param("halves")
	a.Label("half")
	body()
	for _, r := range advance {
		a.ADDQ(Imm(32), r)
	}
	a.DECQ(n)
	a.JNZ(LabelRef("half"))
}
