package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// routines lists all operations.
func routines() []routine {
	var all []routine
	for _, list := range [][]routine{moves(), integers32(), integers64(), floats32(), floats64(), conversions(), comparisons(), predicates()} {
		all = append(all, list...)
	}
	return all
}

// unary makes a routine of 32 or 64 bits a lane from what it does to a vector.
func unary(name, form string, do func(a *asm, x vec)) routine {
	return routine{name: name, form: form, emit: func(a *asm) {
		a.all(form, func(i int) vec {
			x := a.load(opA, i)
			do(a, x)
			return x
		})
	}}
}

// binary makes one of two operands: do computes x from x and y, in this order, and
// writes to d.
func binary(name, form string, do func(a *asm, x vec, y Mem)) routine {
	return routine{name: name, form: form, emit: func(a *asm) {
		a.all(form, func(i int) vec {
			x := a.load(opA, i)
			do(a, x, a.mem(opB, i, a.bytes()))
			return x
		})
	}}
}

// all stores the vectors that body makes.
func (a *asm) all(form string, body func(i int) vec) {
	if form[0] == 'r' {
		a.each32(func(i int) { a.store32(body(i), i) })
		return
	}
	a.each64(func(i int) { a.store64(body(i), i) })
}

// moves copy and choose.
func moves() []routine {
	nothing := func(*asm, vec) {}
	return []routine{
		unary("mov.b32", "rr", nothing),
		unary("mov.b64", "dd", nothing),
		{name: "selp.b32", form: "rrrp", emit: func(a *asm) { choose(a, "r") }},
		{name: "selp.b64", form: "dddp", emit: func(a *asm) { choose(a, "d") }},
		{name: "split.b64", form: "rrd", emit: func(a *asm) {
			// Two destinations: the low and the high halves.
			a.each32(func(i int) {
				lo, hi := a.halves(i)
				a.storeTo(0, lo, i)
				a.storeTo(1, hi, i)
			})
		}},
		{name: "join.b64", form: "drr", emit: func(a *asm) {
			a.each64(func(i int) {
				lo, hi := a.widen(opA, i, false), a.widen(opB, i, false)
				a.VPSLLQ(Imm(32), hi, hi)
				a.or(hi, lo)
				a.store64(lo, i)
			})
		}},
	}
}

// or does x |= y.
func (a *asm) or(y, x vec) {
	if a.wide {
		a.VPORD(y, x, x)
	} else {
		a.VPOR(y, x, x)
	}
}

// and does x &= y.
func (a *asm) and(y Op, x vec) {
	if a.wide {
		a.VPANDD(y, x, x)
	} else {
		a.VPAND(y, x, x)
	}
}

// xor does x ^= y.
func (a *asm) xor(y Op, x vec) {
	if a.wide {
		a.VPXORD(y, x, x)
	} else {
		a.VPXOR(y, x, x)
	}
}

// choose takes operand a where the predicate holds, b elsewhere.
func choose(a *asm, class string) {
	p := a.GP32()
	a.MOVL(Mem{Base: file, Index: operands[3], Scale: 1}, p)
	one := func(i int) vec {
		v := a.load(opB, i)
		from := a.mem(opA, i, a.bytes())
		if a.wide {
			k := a.K()
			a.KMOVW(p, k)
			if class == "r" {
				a.VMOVDQU32(from, k, v)
				a.SHRL(Imm(16), p)
			} else {
				a.VMOVDQU64(from, k, v)
				a.SHRL(Imm(8), p)
			}
			return v
		}
		// A word of ones for each lane of the predicate.
		bits, other := a.YMM(), a.YMM()
		x := a.XMM()
		a.VMOVD(p, x)
		a.VMOVDQU(from, other)
		if class == "r" {
			a.VPBROADCASTD(x, bits)
			a.VPSLLVD(a.table("top32", func(j int) uint32 { return uint32(31 - j) }), bits, bits)
			a.VBLENDVPS(bits, other, v, v)
			a.SHRL(Imm(8), p)
		} else {
			a.VPBROADCASTQ(x, bits)
			a.VPSLLVQ(a.table("top64", func(j int) uint32 { return uint32((63 - j/2) * (1 - j&1)) }), bits, bits)
			a.VBLENDVPD(bits, other, v, v)
			a.SHRL(Imm(4), p)
		}
		return v
	}
	a.all(class, one)
}

// widen reads half a vector of 32 bits a lane as one of 64.
func (a *asm) widen(o, i int, signed bool) vec {
	v := a.vec()
	m := a.mem(o, i, a.bytes()/2)
	if signed {
		a.VPMOVSXDQ(m, v)
	} else {
		a.VPMOVZXDQ(m, v)
	}
	return v
}

// halves reads two vectors of 64 bits a lane, operand b, as the low and the high
// words.
func (a *asm) halves(i int) (lo, hi vec) {
	if a.wide {
		lo, hi = a.ZMM(), a.ZMM()
		x, y, z := a.YMM(), a.YMM(), a.ZMM()
		for k, to := range []vec{lo, hi} {
			a.VMOVDQU64(a.mem(2, 2*i, 64), z)
			if k == 1 {
				a.VPSRLQ(Imm(32), z, z)
			}
			a.VPMOVQD(z, x)
			a.VMOVDQU64(a.mem(2, 2*i+1, 64), z)
			if k == 1 {
				a.VPSRLQ(Imm(32), z, z)
			}
			a.VPMOVQD(z, y)
			a.VINSERTI64X4(Imm(1), y, x.AsZ(), to)
		}
		return lo, hi
	}
	x, y := a.YMM(), a.YMM()
	lo, hi = a.YMM(), a.YMM()
	a.VMOVUPS(a.mem(2, 2*i, 32), x)
	a.VMOVUPS(a.mem(2, 2*i+1, 32), y)
	a.VSHUFPS(Imm(0x88), y, x, lo)
	a.VSHUFPS(Imm(0xdd), y, x, hi)
	a.VPERMQ(Imm(0xd8), lo, lo)
	a.VPERMQ(Imm(0xd8), hi, hi)
	return lo, hi
}

// integers32 are the operations on integers of 32 bits.
func integers32() []routine {
	return []routine{
		binary("add.b32", "rrr", func(a *asm, x vec, y Mem) { a.VPADDD(y, x, x) }),
		{name: "add.sat.s32", form: "rrr", emit: func(a *asm) { saturated(a, false) }},
		{name: "sub.sat.s32", form: "rrr", emit: func(a *asm) { saturated(a, true) }},
		binary("sub.b32", "rrr", func(a *asm, x vec, y Mem) { a.VPSUBD(y, x, x) }),
		binary("mul.lo.b32", "rrr", func(a *asm, x vec, y Mem) { a.VPMULLD(y, x, x) }),
		{name: "mad.lo.b32", form: "rrrr", emit: func(a *asm) {
			a.each32(func(i int) {
				x := a.load(opA, i)
				a.VPMULLD(a.mem(opB, i, a.bytes()), x, x)
				a.VPADDD(a.mem(opC, i, a.bytes()), x, x)
				a.store32(x, i)
			})
		}},
		binary("and.b32", "rrr", func(a *asm, x vec, y Mem) { a.and(y, x) }),
		binary("or.b32", "rrr", func(a *asm, x vec, y Mem) {
			if a.wide {
				a.VPORD(y, x, x)
			} else {
				a.VPOR(y, x, x)
			}
		}),
		binary("xor.b32", "rrr", func(a *asm, x vec, y Mem) { a.xor(y, x) }),
		unary("not.b32", "rr", func(a *asm, x vec) { a.xor(a.splat(^uint32(0)), x) }),
		unary("neg.b32", "rr", func(a *asm, x vec) { a.VPSUBD(x, a.zero(), x) }),
		unary("abs.s32", "rr", func(a *asm, x vec) { a.VPABSD(x, x) }),
		binary("shl.b32", "rrr", func(a *asm, x vec, y Mem) { a.VPSLLVD(y, x, x) }),
		binary("shr.b32", "rrr", func(a *asm, x vec, y Mem) { a.VPSRLVD(y, x, x) }),
		binary("shr.s32", "rrr", func(a *asm, x vec, y Mem) { a.VPSRAVD(y, x, x) }),
		binary("min.b32", "rrr", func(a *asm, x vec, y Mem) { a.VPMINUD(y, x, x) }),
		binary("min.s32", "rrr", func(a *asm, x vec, y Mem) { a.VPMINSD(y, x, x) }),
		binary("max.b32", "rrr", func(a *asm, x vec, y Mem) { a.VPMAXUD(y, x, x) }),
		binary("max.s32", "rrr", func(a *asm, x vec, y Mem) { a.VPMAXSD(y, x, x) }),
		{name: "bfe.u32", form: "rrrr", emit: func(a *asm) {
			byte0, one := a.splat(255), a.splat(1)
			a.each32(func(i int) {
				x, at, n := a.load(opA, i), a.load(opB, i), a.load(opC, i)
				a.and(byte0, at)
				a.and(byte0, n)
				a.VPSRLVD(at, x, x)
				a.VPSLLVD(n, one, n)
				a.VPSUBD(one, n, n)
				a.and(n, x)
				a.store32(x, i)
			})
		}},
	}
}

// saturated adds or takes away. Where the result has not the sign that the operands
// ask for, it is the largest number of the sign of the first.
func saturated(a *asm, minus bool) {
	most := a.splat(1<<31 - 1)
	a.each32(func(i int) {
		x, y, s, over := a.load(opA, i), a.load(opB, i), a.vec(), a.vec()
		a.VMOVAPS(x, over)
		a.xor(y, over) // the sign bit: operands differ
		if minus {
			a.VPSUBD(y, x, s)
		} else {
			a.VPADDD(y, x, s)
			a.xor(a.splat(^uint32(0)), over)
		}
		changed := a.vec()
		a.VMOVAPS(x, changed)
		a.xor(s, changed)
		a.and(changed, over)
		a.VPSRAD(Imm(31), x, x)
		a.xor(most, x)
		// All bits of words that are too large.
		a.VPSRAD(Imm(31), over, over)
		a.xor(s, x)
		a.and(over, x)
		a.xor(x, s)
		a.store32(s, i)
	})
}

// integers64 are those on integers of 64 bits.
func integers64() []routine {
	shift := func(name string, do func(a *asm, x, n vec)) routine {
		return routine{name: name, form: "ddr", emit: func(a *asm) {
			a.each64(func(i int) {
				x := a.load(opA, i)
				do(a, x, a.widen(opB, i, false))
				a.store64(x, i)
			})
		}}
	}
	wide := func(name string, signed bool) routine {
		return routine{name: name, form: "drrd", emit: func(a *asm) {
			a.each64(func(i int) {
				x, y := a.widen(opA, i, signed), a.widen(opB, i, signed)
				if signed {
					a.VPMULDQ(y, x, x)
				} else {
					a.VPMULUDQ(y, x, x)
				}
				a.VPADDQ(a.mem(opC, i, a.bytes()), x, x)
				a.store64(x, i)
			})
		}}
	}
	return []routine{
		binary("add.b64", "ddd", func(a *asm, x vec, y Mem) { a.VPADDQ(y, x, x) }),
		binary("sub.b64", "ddd", func(a *asm, x vec, y Mem) { a.VPSUBQ(y, x, x) }),
		{name: "mul.lo.b64", form: "ddd", emit: func(a *asm) {
			a.each64(func(i int) { a.store64(a.product64(i), i) })
		}},
		{name: "mad.lo.b64", form: "dddd", emit: func(a *asm) {
			a.each64(func(i int) {
				x := a.product64(i)
				a.VPADDQ(a.mem(opC, i, a.bytes()), x, x)
				a.store64(x, i)
			})
		}},
		binary("and.b64", "ddd", func(a *asm, x vec, y Mem) { a.and(y, x) }),
		binary("or.b64", "ddd", func(a *asm, x vec, y Mem) {
			if a.wide {
				a.VPORD(y, x, x)
			} else {
				a.VPOR(y, x, x)
			}
		}),
		binary("xor.b64", "ddd", func(a *asm, x vec, y Mem) { a.xor(y, x) }),
		unary("not.b64", "dd", func(a *asm, x vec) { a.xor(a.splat(^uint32(0)), x) }),
		shift("shl.b64", func(a *asm, x, n vec) { a.VPSLLVQ(n, x, x) }),
		shift("shr.b64", func(a *asm, x, n vec) { a.VPSRLVQ(n, x, x) }),
		shift("shr.s64", func(a *asm, x, n vec) {
			if a.wide {
				a.VPSRAVQ(n, x, x)
				return
			}
			sign := a.zero()
			a.VPCMPGTQ(x, sign, sign)
			a.xor(sign, x)
			a.VPSRLVQ(n, x, x)
			a.xor(sign, x)
		}),
		wide("mad.wide.u32", false),
		wide("mad.wide.s32", true),
	}
}

// product64 is the low half of the product of operands a and b.
func (a *asm) product64(i int) vec {
	x := a.load(opA, i)
	if a.wide {
		a.VPMULLQ(a.mem(opB, i, 64), x, x)
		return x
	}
	y := a.load(opB, i)
	cross, other := a.YMM(), a.YMM()
	a.VPSRLQ(Imm(32), x, cross)
	a.VPMULUDQ(y, cross, cross)
	a.VPSRLQ(Imm(32), y, other)
	a.VPMULUDQ(x, other, other)
	a.VPADDQ(other, cross, cross)
	a.VPSLLQ(Imm(32), cross, cross)
	a.VPMULUDQ(y, x, x)
	a.VPADDQ(cross, x, x)
	return x
}

// floats32 are the operations on f32. NaN has one form.
func floats32() []routine {
	two := func(name string, do func(a *asm, x vec, y Mem)) routine {
		return binary(name, "rrr", func(a *asm, x vec, y Mem) {
			do(a, x, y)
			a.canonical(x)
		})
	}
	return []routine{
		two("add.rn.f32", func(a *asm, x vec, y Mem) { a.VADDPS(y, x, x) }),
		two("sub.rn.f32", func(a *asm, x vec, y Mem) { a.VSUBPS(y, x, x) }),
		two("mul.rn.f32", func(a *asm, x vec, y Mem) { a.VMULPS(y, x, x) }),
		two("div.rn.f32", func(a *asm, x vec, y Mem) { a.VDIVPS(y, x, x) }),
		{name: "fma.rn.f32", form: "rrrr", emit: func(a *asm) {
			a.each32(func(i int) {
				x, z := a.load(opA, i), a.load(opC, i)
				a.VFMADD231PS(a.mem(opB, i, a.bytes()), x, z)
				a.canonical(z)
				a.store32(z, i)
			})
		}},
		{name: "min.f32", form: "rrr", emit: func(a *asm) { extreme(a, false) }},
		{name: "max.f32", form: "rrr", emit: func(a *asm) { extreme(a, true) }},
		unary("abs.f32", "rr", func(a *asm, x vec) { a.and(a.splat(0x7fffffff), x) }),
		unary("neg.f32", "rr", func(a *asm, x vec) { a.xor(a.splat(0x80000000), x) }),
		unary("sqrt.rn.f32", "rr", func(a *asm, x vec) {
			a.VSQRTPS(x, x)
			a.canonical(x)
		}),
		unary("rcp.rn.f32", "rr", func(a *asm, x vec) {
			a.VDIVPS(x, a.splat(0x3f800000), x)
			a.canonical(x)
		}),
	}
}

// Comparisons of floats, by number.
const (
	lessThan  = 0x11
	atLeast   = 0x1d
	notNumber = 3
	isNumber  = 7
)

// roundDown says that floats round to integers below them.
const roundDown = 9

// extreme is min or max of f32: the number where one operand is NaN, and of zeros
// the one whose sign says so.
func extreme(a *asm, most bool) {
	a.each32(func(i int) {
		x, y, d := a.load(opA, i), a.load(opB, i), a.vec()
		a.VMOVAPS(x, d)
		if most {
			a.and(y, d)
		} else {
			a.or(y, d)
		}
		// Where y is the one, and then where x is: x goes first if both are NaN.
		for _, pick := range [2][2]vec{{y, x}, {x, y}} {
			v, other := pick[0], pick[1]
			for _, how := range []uint64{lessThan, notNumber} {
				low, high := v, other
				switch {
				case how == notNumber:
					low, high = other, other
				case most:
					low, high = other, v
				}
				if a.wide {
					k := a.K()
					a.VCMPPS(Imm(how), high, low, k)
					a.VMOVDQA32(v, k, d)
				} else {
					m := a.YMM()
					a.VCMPPS(Imm(how), high, low, m)
					a.VBLENDVPS(m, v, d, d)
				}
			}
		}
		a.canonical(d)
		a.store32(d, i)
	})
}

// floats64 are the operations on f64.
func floats64() []routine {
	return []routine{
		binary("add.rn.f64", "ddd", func(a *asm, x vec, y Mem) { a.VADDPD(y, x, x) }),
		binary("sub.rn.f64", "ddd", func(a *asm, x vec, y Mem) { a.VSUBPD(y, x, x) }),
		binary("mul.rn.f64", "ddd", func(a *asm, x vec, y Mem) { a.VMULPD(y, x, x) }),
		binary("div.rn.f64", "ddd", func(a *asm, x vec, y Mem) { a.VDIVPD(y, x, x) }),
		{name: "fma.rn.f64", form: "dddd", emit: func(a *asm) {
			a.each64(func(i int) {
				x, z := a.load(opA, i), a.load(opC, i)
				a.VFMADD231PD(a.mem(opB, i, a.bytes()), x, z)
				a.store64(z, i)
			})
		}},
		unary("abs.f64", "dd", func(a *asm, x vec) { a.and(a.splat64(1<<63-1), x) }),
		unary("neg.f64", "dd", func(a *asm, x vec) { a.xor(a.splat64(1<<63), x) }),
	}
}

// conversions are cvt of the types that kernels convert most.
func conversions() []routine {
	grow := func(name string, signed bool) routine {
		return routine{name: name, form: "dr", emit: func(a *asm) {
			a.each64(func(i int) { a.store64(a.widen(opA, i, signed), i) })
		}}
	}
	return []routine{
		grow("cvt.u64.u32", false),
		grow("cvt.s64.s32", true),
		unary("cvt.u32.u16", "rr", func(a *asm, x vec) { a.and(a.splat(0xffff), x) }),
		unary("cvt.rna.tf32.f32", "rr", func(a *asm, x vec) {
			// NaN is known before, as adding may make another number of it.
			if a.wide {
				k := a.K()
				a.VCMPPS(Imm(notNumber), x, x, k)
				a.VPADDD(a.splat(0x1000), x, x)
				a.and(a.splat(^uint32(0x1fff)), x)
				a.VMOVDQA32(a.nan(), k, x)
				return
			}
			m := a.YMM()
			a.VCMPPS(Imm(notNumber), x, x, m)
			a.VPADDD(a.splat(0x1000), x, x)
			a.and(a.splat(^uint32(0x1fff)), x)
			a.VBLENDVPS(m, a.nan(), x, x)
		}),
		unary("cvt.rn.f32.s32", "rr", func(a *asm, x vec) { a.VCVTDQ2PS(x, x) }),
		{name: "cvt.rn.f32.u32", form: "rr", wide: true, emit: func(a *asm) {
			a.each32(func(i int) {
				x := a.load(opA, i)
				a.VCVTUDQ2PS(x, x)
				a.store32(x, i)
			})
		}},
		{name: "cvt.rn.f64.u32", form: "dr", emit: func(a *asm) {
			a.each64(func(i int) {
				if a.wide {
					x := a.vec()
					a.VCVTUDQ2PD(a.mem(opA, i, 32), x)
					a.store64(x, i)
					return
				}
				// The low half of the fraction of 2^52 counts ones.
				x, base := a.widen(opA, i, false), a.splat64(0x43300000<<32)
				a.or(base, x)
				a.VSUBPD(base, x, x)
				a.store64(x, i)
			})
		}},
		unary("cvt.rzi.s32.f32", "rr", func(a *asm, x vec) {
			// What does not fit becomes the least number here; of great numbers all bits
			// but the sign are wanted, of no number none.
			d, limit := a.vec(), a.splat(0x4f000000)
			if a.wide {
				great, number := a.K(), a.K()
				a.VCMPPS(Imm(atLeast), limit, x, great)
				a.VCMPPS(Imm(isNumber), x, x, number)
				a.VCVTTPS2DQ_Z(x, number, d)
				a.VPTERNLOGD(Imm(0x55), d, d, great, d)
				a.VMOVDQA32(d, x)
				return
			}
			great, number := a.YMM(), a.YMM()
			a.VCMPPS(Imm(atLeast), limit, x, great)
			a.VCMPPS(Imm(isNumber), x, x, number)
			a.VCVTTPS2DQ(x, d)
			a.VPXOR(great, d, d)
			a.VPAND(number, d, x)
		}),
		unary("cvt.rmi.f64.f64", "dd", func(a *asm, x vec) {
			if a.wide {
				a.VRNDSCALEPD(Imm(roundDown), x, x)
				return
			}
			a.VROUNDPD(Imm(roundDown), x, x)
		}),
		{name: "cvt.f64.f32", form: "dr", emit: func(a *asm) {
			a.each64(func(i int) {
				x := a.vec()
				a.VCVTPS2PD(a.mem(opA, i, a.bytes()/2), x)
				a.store64(x, i)
			})
		}},
		{name: "cvt.rn.f32.f64", form: "rd", emit: func(a *asm) {
			a.each32(func(i int) {
				v := a.vec()
				if a.wide {
					x, y := a.YMM(), a.YMM()
					a.VCVTPD2PS(a.mem(opA, 2*i, 64), x)
					a.VCVTPD2PS(a.mem(opA, 2*i+1, 64), y)
					a.VINSERTF64X4(Imm(1), y, x.AsZ(), v)
				} else {
					x, y := a.XMM(), a.XMM()
					a.VCVTPD2PSY(a.mem(opA, 2*i, 32), x)
					a.VCVTPD2PSY(a.mem(opA, 2*i+1, 32), y)
					a.VINSERTF128(Imm(1), y, x.AsY(), v)
				}
				a.canonical(v)
				a.store32(v, i)
			})
		}},
	}
}

// predicates are operations on predicates: masks of lanes.
func predicates() []routine {
	logic := func(name, form string, do func(a *asm, x reg.Register, y Mem)) routine {
		return routine{name: name, form: form, emit: func(a *asm) {
			x := a.GP32()
			a.MOVL(Mem{Base: file, Index: operands[opA], Scale: 1}, x)
			do(a, x, Mem{Base: file, Index: operands[opB], Scale: 1})
			a.storePredicate(x)
		}}
	}
	return []routine{
		logic("mov.pred", "pp", func(*asm, reg.Register, Mem) {}),
		logic("not.pred", "pp", func(a *asm, x reg.Register, _ Mem) { a.NOTL(x) }),
		logic("and.pred", "ppp", func(a *asm, x reg.Register, y Mem) { a.ANDL(y, x) }),
		logic("or.pred", "ppp", func(a *asm, x reg.Register, y Mem) { a.ORL(y, x) }),
		logic("xor.pred", "ppp", func(a *asm, x reg.Register, y Mem) { a.XORL(y, x) }),
	}
}

// storePredicate writes a mask to the destination, in the lanes that run.
func (a *asm) storePredicate(x reg.Register) {
	to := Mem{Base: file, Index: operands[dst], Scale: 1}
	old := a.GP32()
	a.MOVL(to, old)
	a.XORL(old, x)
	a.ANDL(mask, x)
	a.XORL(old, x)
	a.MOVL(x, to)
}
