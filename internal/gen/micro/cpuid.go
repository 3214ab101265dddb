package main

import (
	"github.com/mmcloughlin/avo/reg"
)

func cpuRoutines(wide bool) []routine {
	if !wide {
		return nil
	}
	return []routine{{"vendor", "() (b, d, c uint32)", "returns the twelve letters of the CPU's vendor, four in each word.", vendor}}
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
