package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// leafThreads is the number of threads of a block of the kernels on leaves.
const leafThreads = 128

// A function leaf reads a number x as y, with a term that all units share:
//
//	Gaussian     y = x      term = 0
//	log-normal   y = ln x   term = log2 x; of x <= 0 it is +Inf, and y = 0
//	Poisson      y = x      term = log2 x!
//
// The log2 density of a unit is then c - ((y-a)·b)² - term of a Gaussian and a
// log-normal, y·b + c - term of a Poisson.

// density is what the log2 density of a unit of a function leaf needs.
type density struct {
	a, b, c ptx.Value
	peak    ptx.Value // in a filled kernel: the largest log2 density, which a missing cell has
}

// isGaussian reports whether an input, whose record is at in, is Gaussian or
// log-normal; the other function leaf is a Poisson.
func (k *kernel) isGaussian(in ptx.Value) ptx.Value {
	family := k.Load(ptx.U32, in, InputFamily)
	return k.Or(k.Eq(family, FamilyGaussian), k.Eq(family, FamilyLogNormal))
}

// logCell returns ln x of a positive x, else 0, and whether x is positive. Of NaN it
// is NaN.
func (k *kernel) logCell(x ptx.Value) (y, positive ptx.Value) {
	positive = k.Gt(x, 0)
	y = k.Select(k.IsNaN(x), x, k.log(k.Select(positive, x, 1.0)))
	return y, positive
}

// leafCell returns how the leaf whose record is at in reads x, F64, and the term.
func (k *kernel) leafCell(in, gaussian, x ptx.Value) (y, term ptx.Value) {
	y, term = k.Var(ptx.F64), k.Mov(ptx.F64, 0)
	k.Set(y, x)
	k.IfElse(gaussian, func() {
		k.If(k.Eq(k.Load(ptx.U32, in, InputFamily), FamilyLogNormal), func() {
			log, positive := k.logCell(x)
			k.Set(y, log)
			k.Set(term, k.Select(positive, k.Mul(log, math.Log2E), math.Inf(1)))
		})
	}, func() { k.Into(term).Mul(k.logFactorial(x), math.Log2E) })
	return y, term
}

// leafDensity reads the parameters of a unit; gaussian is what isGaussian says of
// in, the address of an input's record.
func (k *kernel) leafDensity(in, gaussian, unit ptx.Value) density {
	d := density{a: k.Var(ptx.F64), b: k.Var(ptx.F64), c: k.Var(ptx.F64)}
	if k.filled {
		d.peak = k.peak(in, unit)
	}
	at := k.element(ArgParams, k.Add(k.Load(ptx.U64, in, InputParams), k.Cvt(ptx.U64, unit)))
	first := k.Cvt(ptx.F64, k.Load(ptx.F32, at, 0))
	k.IfElse(gaussian, func() {
		sigma := k.Cvt(ptx.F64, k.Load(ptx.F32, k.At(at, k.Load(ptx.U32, in, InputWidth), 4), 0))
		k.Set(d.a, first)
		k.Into(d.b).Mul(k.Rcp(sigma), math.Sqrt(math.Log2E/2))
		k.Into(d.c).FMA(k.log(sigma), -math.Log2E, -0.5*math.Log2(2*math.Pi))
	}, func() {
		k.Set(d.a, 0.0)
		k.Into(d.b).Mul(k.log(first), math.Log2E)
		k.Into(d.c).Mul(first, -math.Log2E)
	})
	return d
}

// log2 is the log2 density at y, with the term; of NaN it is NaN, or the peak in a filled kernel.
func (k *kernel) log2(d density, gaussian, y, term ptx.Value) ptx.Value {
	l := k.Var(ptx.F64)
	k.IfElse(gaussian, func() {
		z := k.Mul(k.Sub(y, d.a), d.b)
		k.Into(l).Sub(k.FMA(k.Neg(z), z, d.c), term)
	}, func() {
		k.Into(l).Add(k.Mul(y, d.b), k.Sub(d.c, term))
	})
	if k.filled {
		return k.Select(k.IsNaN(y), d.peak, l)
	}
	return l
}

// leafLog2 returns the log2 density of a unit of a function leaf at x, a float32:
// a float64, where the cell is missing 0, or the peak in a filled kernel. in is the
// address of the input's record. The kernel takes ArgParams.
func (k *kernel) leafLog2(in, x, unit ptx.Value) ptx.Value {
	gaussian := k.isGaussian(in)
	d := k.leafDensity(in, gaussian, unit)
	y, term := k.leafCell(in, gaussian, k.Cvt(ptx.F64, x))
	l := k.log2(d, gaussian, y, term)
	if k.filled {
		return l
	}
	return k.Select(k.IsNaN(x), 0.0, l)
}

// leastOwn is the exponent below which a value that has one of its own is 0, so that
// sums of exponents have room.
const leastOwn = -1 << 28

// leaf evaluates function inputs: densities scaled so that the largest of a row is
// 1 at most and above one half, also where the row's exponent is Lost. Threads have a
// row each while they look for the largest, then a unit each.
func (v Variant) leaf() *ptx.Kernel {
	k := v.begin(KernelLeaf, leafThreads, 4, ArgControl, ArgParams, ArgValues, ArgVal, ArgExp, ArgInputs, ArgList)
	const chunk = leafThreads // units whose densities are in shared memory at a time
	each := 24                // bytes of a density
	if k.filled {
		each = 32
	}
	densities := k.Shared("densities", 8, chunk*each)
	cells := k.Shared("cells", 8, LeafRows*24) // y, term, exponent
	tops := k.Shared("tops", 8, leafThreads*8)
	tid, lane := k.Special("%tid.x"), k.Special("%laneid")
	in := k.record(ArgInputs, k.entry(k.Special("%ctaid.x")), InputSize)
	first := k.Mul(k.Special("%ctaid.y"), LeafRows)
	rows := k.Min(k.Sub(k.control(ptx.U32, ControlRows), first), LeafRows)
	units, width := k.Load(ptx.U32, in, InputUnits), k.Load(ptx.U32, in, InputWidth)
	gaussian := k.isGaussian(in)

	row, half := k.And(tid, LeafRows-1), k.Shr(tid, 6)
	at := k.Add(k.Load(ptx.U32, in, InputAt), k.Add(first, k.Min(row, k.Sub(rows, 1))))
	cell, term := k.leafCell(in, gaussian, k.Cvt(ptx.F64, k.Load(ptx.F32, k.At(k.arg(ArgValues), at, 4), 0)))
	top := k.Mov(ptx.F64, math.Inf(-1))
	k.For(ptx.U32, 0, units, chunk, func(base ptx.Value) {
		d := k.leafDensity(in, gaussian, k.Min(k.Add(base, tid), k.Sub(units, 1)))
		k.Sync()
		mine := k.At(densities, tid, each)
		k.Store(ptx.F64, mine, 0, d.a)
		k.Store(ptx.F64, mine, 8, d.b)
		k.Store(ptx.F64, mine, 16, d.c)
		if k.filled {
			k.Store(ptx.F64, mine, 24, d.peak)
		}
		k.Sync()
		k.For(ptx.U32, half, k.Min(k.Sub(units, base), chunk), leafThreads/LeafRows, func(u ptx.Value) {
			p := k.At(densities, u, each)
			d := density{a: k.Load(ptx.F64, p, 0), b: k.Load(ptx.F64, p, 8), c: k.Load(ptx.F64, p, 16)}
			if k.filled {
				d.peak = k.Load(ptx.F64, p, 24)
			}
			k.Into(top).Max(top, k.log2(d, gaussian, cell, term))
		})
	})
	k.Store(ptx.F64, k.At(tops, tid, 8), 0, top)
	k.Sync()
	k.If(k.Lt(tid, rows), func() {
		top := k.Max(top, k.Load(ptx.F64, k.At(tops, tid, 8), LeafRows*8))
		exp := k.Cvt(ptx.F64, top, "rpi")
		exp = k.Select(k.Lt(exp, Lost), top, exp) // far down the two may differ by more than 1
		var none ptx.Value
		if k.filled {
			none = k.Eq(top, math.Inf(-1))
		} else {
			none = k.Or(k.IsNaN(cell), k.Eq(top, math.Inf(-1))) // NaN is larger than -Inf for no Max
		}
		p := k.At(cells, tid, 24)
		k.Store(ptx.F64, p, 0, cell)
		k.Store(ptx.F64, p, 8, term)
		k.Store(ptx.F64, p, 16, k.Select(none, math.Inf(1), exp))
		out := k.Add(k.Load(ptx.U32, in, InputExp), k.Add(first, tid))
		held := k.Min(k.Max(exp, Lost), Most)
		k.Store(ptx.S32, k.At(k.arg(ArgExp), out, 4), 0, k.Cvt(ptx.S32, k.Select(none, 0.0, held), "rzi"))
	})
	k.Sync()

	const share = LeafRows / (leafThreads / 32)
	from := k.Mul(k.Shr(tid, 5), share)
	to := k.Min(k.Add(from, share), rows)
	k.For(ptx.U32, 0, width, 32, func(base ptx.Value) {
		unit := k.Add(base, lane)
		d := k.leafDensity(in, gaussian, k.Min(unit, k.Sub(units, 1)))
		real, inside := k.Lt(unit, units), k.Lt(unit, width)
		out := k.Add(k.Load(ptx.U64, in, InputVal), k.MadWide(k.Add(first, from), width, k.Cvt(ptx.U64, unit)))
		out = k.element(ArgVal, out)
		exps := k.Load(ptx.U32, in, InputExps)
		k.For(ptx.U32, from, to, 1, func(r ptx.Value) {
			p := k.At(cells, r, 24)
			x := k.Load(ptx.F64, p, 0)
			l := k.Sub(k.log2(d, gaussian, x, k.Load(ptx.F64, p, 8)), k.Load(ptx.F64, p, 16))
			y, own := k.Mov(ptx.F32, k.Cvt(ptx.F32, k.exp2(l), "rn")), k.Mov(ptx.F32, 0)
			k.If(k.And(k.Ne(exps, 0), k.And(k.Lt(y, 0x1p-126), k.Ge(l, leastOwn))), func() {
				whole := k.Cvt(ptx.F64, l, "rmi")
				k.Into(y).Cvt(ptx.F32, k.exp2(k.Sub(l, whole)), "rn")
				k.Into(own).Cvt(ptx.F32, whole, "rn")
			})
			some := real
			if !k.filled {
				some = k.And(real, k.Not(k.IsNaN(x)))
			}
			own = k.Select(some, own, 0)
			if !k.filled {
				y = k.Select(k.IsNaN(x), 1, y)
			}
			y = k.Select(real, y, 0)
			k.Guard(inside, func() { k.Store(ptx.F32, out, 0, y) })
			k.Guard(k.And(inside, k.Ne(exps, 0)), func() { k.Store(ptx.F32, k.At(out, exps, 4), 0, own) })
			k.Into(out).MadWide(width, 4, out)
		})
	})
	return k.Kernel()
}
