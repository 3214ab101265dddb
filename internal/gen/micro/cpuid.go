package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func cpuRoutines(wide bool) []routine {
	if !wide {
		return nil
	}
	return []routine{
		{"vendor", "() (b, d, c uint32)", "returns the twelve letters of the CPU's vendor, four in each word.", vendor},
		{"extensions", "() uint32", "returns the last word of the CPU's extended features, 0 where there is none.", extensions},
	}
}

func vendor(a *asm) {
	a.XORL(reg.EAX, reg.EAX)
	a.XORL(reg.ECX, reg.ECX)
	a.CPUID()
	a.Store(reg.EBX, a.ReturnIndex(0))
	a.Store(reg.EDX, a.ReturnIndex(1))
	a.Store(reg.ECX, a.ReturnIndex(2))
	a.RET()
}

func extensions(a *asm) {
	a.XORL(reg.EAX, reg.EAX)
	a.XORL(reg.ECX, reg.ECX)
	a.CPUID()
	a.XORL(reg.EDX, reg.EDX)
	a.CMPL(reg.EAX, operand.Imm(7))
	a.JLT(operand.LabelRef("none"))
	a.MOVL(operand.U32(7), reg.EAX)
	a.XORL(reg.ECX, reg.ECX)
	a.CPUID()
	a.Label("none")
	a.Store(reg.EDX, a.ReturnIndex(0))
	a.RET()
}
