package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// comparisons are setp. Those that ask for more than less, for greater and such, are
// these with their operands exchanged.
func comparisons() []routine {
	var all []routine
	for _, form := range []string{"prr", "pdd"} {
		size := map[string]int{"prr": 32, "pdd": 64}[form]
		for _, c := range []struct {
			name   string
			number uint64 // of VPCMP
			signed bool
		}{
			{fmt.Sprint("setp.eq.b", size), 0, true},
			{fmt.Sprint("setp.ne.b", size), 4, true},
			{fmt.Sprint("setp.lt.s", size), 1, true},
			{fmt.Sprint("setp.le.s", size), 2, true},
			{fmt.Sprint("setp.lt.u", size), 1, false},
			{fmt.Sprint("setp.le.u", size), 2, false},
		} {
			all = append(all, routine{name: c.name, form: form, emit: func(a *asm) {
				if a.wide {
					compareMasks(a, form, c.number, c.signed)
				} else {
					compareWords(a, form, c.number, c.signed)
				}
			}})
		}
		for _, c := range []struct {
			name   string
			number uint64 // of VCMP
		}{
			{"eq", 0}, {"ne", 0xc}, {"lt", lessThan}, {"le", 0x12},
			{"equ", 8}, {"neu", 4}, {"ltu", 0x19}, {"leu", 0x1a}, {"num", 7}, {"nan", notNumber},
		} {
			all = append(all, routine{name: fmt.Sprintf("setp.%s.f%d", c.name, size), form: form, emit: func(a *asm) {
				compareFloats(a, form, c.number)
			}})
		}
	}
	return all
}

// collect joins the masks of the vectors, each of a few lanes, and stores them.
func (a *asm) collect(form string, one func(i int) reg.Register, invert bool) {
	n, bits := 32/a.lanes32(), a.lanes32()
	if form == "pdd" {
		n, bits = 2*n, bits/2
	}
	var m reg.Register
	for i := range n {
		part := one(i)
		if i == 0 {
			m = part
			continue
		}
		a.SHLL(Imm(uint64(i*bits)), part)
		a.ORL(part, m)
	}
	if invert {
		a.NOTL(m)
	}
	a.storePredicate(m)
}

// fromMask is a mask register as a number.
func (a *asm) fromMask(form string, k reg.Register) reg.Register {
	part := a.GP32()
	if form == "pdd" {
		a.KMOVB(k, part)
	} else {
		a.KMOVW(k, part)
	}
	return part
}

// compareMasks compares integers (wide).
func compareMasks(a *asm, form string, number uint64, signed bool) {
	a.collect(form, func(i int) reg.Register {
		x, y, k := a.load(opA, i), a.mem(opB, i, 64), a.K()
		switch {
		case form == "prr" && signed:
			a.VPCMPD(Imm(number), y, x, k)
		case form == "prr":
			a.VPCMPUD(Imm(number), y, x, k)
		case signed:
			a.VPCMPQ(Imm(number), y, x, k)
		default:
			a.VPCMPUQ(Imm(number), y, x, k)
		}
		return a.fromMask(form, k)
	}, false)
}

// compareWords compares integers (AVX2), which knows equal and greater of signed
// numbers: others exchange operands, turn the result round, or move numbers without
// sign by half their range.
func compareWords(a *asm, form string, number uint64, signed bool) {
	var half vec
	if !signed && form == "prr" {
		half = a.splat(1 << 31)
	} else if !signed {
		half = a.splat64(1 << 63)
	}
	a.collect(form, func(i int) reg.Register {
		x, y := a.load(opA, i), a.load(opB, i)
		if !signed {
			a.xor(half, x)
			a.xor(half, y)
		}
		switch {
		case number == 1: // x < y
			x, y = y, x
			fallthrough
		case number == 2: // not x > y
			if form == "prr" {
				a.VPCMPGTD(y, x, x)
			} else {
				a.VPCMPGTQ(y, x, x)
			}
		case form == "prr":
			a.VPCMPEQD(y, x, x)
		default:
			a.VPCMPEQQ(y, x, x)
		}
		return a.signs(form, x)
	}, number == 2 || number == 4)
}

// signs is the mask of the signs of a vector (AVX2).
func (a *asm) signs(form string, x vec) reg.Register {
	part := a.GP32()
	if form == "prr" {
		a.VMOVMSKPS(x, part)
	} else {
		a.VMOVMSKPD(x, part)
	}
	return part
}

func compareFloats(a *asm, form string, number uint64) {
	a.collect(form, func(i int) reg.Register {
		x, y := a.load(opA, i), a.mem(opB, i, a.bytes())
		if a.wide {
			k := a.K()
			if form == "prr" {
				a.VCMPPS(Imm(number), y, x, k)
			} else {
				a.VCMPPD(Imm(number), y, x, k)
			}
			return a.fromMask(form, k)
		}
		if form == "prr" {
			a.VCMPPS(Imm(number), y, x, x)
		} else {
			a.VCMPPD(Imm(number), y, x, x)
		}
		return a.signs(form, x)
	}, false)
}
