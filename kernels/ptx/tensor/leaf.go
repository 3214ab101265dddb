package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// leafThreads is the number of threads of a block of the kernels on leaves.
const leafThreads = 128

// A function leaf reads a number x as y, with a term that all units share:
//
//	Gaussian     y = x             term = 0
//	log-normal   y = ln x          term = log2 x; of x <= 0 it is +Inf, and y = 0
//	Poisson      y = x             term = log2 x!
//	histogram    y = the bin of x  term = 0; y is the number of bins where none has x
//
// The log2 density of a unit is then c - ((y-a)·b)² - term of a Gaussian and a
// log-normal, y·b + c - term of a Poisson, and that of the parameter of bin y of unit a, at
// least c, of a histogram with breaks of its own.

// function is an input without codes: the address of its record, and what family it is of; a Poisson
// is neither.
type function struct {
	in               ptx.Value // U64
	gaussian, breaks ptx.Value // Pred: Gaussian or log-normal; histogram with breaks of its own
}

// density is what the log2 density of a unit of a function leaf needs.
type density struct {
	a, b, c ptx.Value
	peak    ptx.Value // in a filled kernel: the largest log2 density, which a missing cell has
}

// function returns the function leaf whose record is at in.
func (k *kernel) function(in ptx.Value) function {
	family := k.Load(ptx.U32, in, InputFamily)
	return function{in, k.Or(k.Eq(family, FamilyGaussian), k.Eq(family, FamilyLogNormal)), k.Eq(family, FamilyRealHistogram)}
}

// logCell returns ln x of a positive x, else 0, and whether x is positive. Of NaN it
// is NaN.
func (k *kernel) logCell(x ptx.Value) (y, positive ptx.Value) {
	positive = k.Gt(x, 0)
	y = k.Select(k.IsNaN(x), x, k.log(k.Select(positive, x, 1.0)))
	return y, positive
}

// leafCell returns how a leaf reads x, F64, and the term.
func (k *kernel) leafCell(f function, x ptx.Value) (y, term ptx.Value) {
	y, term = k.Var(ptx.F64), k.Mov(ptx.F64, 0)
	k.Set(y, x)
	k.IfElse(f.gaussian, func() {
		k.If(k.Eq(k.Load(ptx.U32, f.in, InputFamily), FamilyLogNormal), func() {
			log, positive := k.logCell(x)
			k.Set(y, log)
			k.Set(term, k.Select(positive, k.Mul(log, math.Log2E), math.Inf(1)))
		})
	}, func() {
		k.IfElse(f.breaks, func() { k.Set(y, k.bin(f, x)) }, func() { k.Into(term).Mul(k.logFactorial(x), math.Log2E) })
	})
	return y, term
}

// bin returns the bin of x, F64: the number of bins where none has it, NaN of NaN. It halves
// the breaks until one is left.
func (k *kernel) bin(f function, x ptx.Value) ptx.Value {
	breaks := k.At(k.arg(ArgConstants), k.Add(k.Load(ptx.U32, f.in, InputConstant), 1), 8)
	bins := k.Load(ptx.U32, f.in, InputStats)
	upTo, beyond := k.Mov(ptx.U32, 0), k.Mov(ptx.U32, k.Add(bins, 1)) // breaks up to x lie below upTo, others from beyond on
	k.While(func() ptx.Value { return k.Lt(upTo, beyond) }, func() {
		at := k.Shr(k.Add(upTo, beyond), 1)
		reached := k.Le(k.Load(ptx.F64, k.At(breaks, at, 8), 0), x)
		k.Set(upTo, k.Select(reached, k.Add(at, 1), upTo))
		k.Set(beyond, k.Select(reached, beyond, at))
	})
	bin := k.Select(k.Eq(upTo, 0), bins, k.Sub(upTo, 1)) // beyond the last break that is bins, too
	return k.Select(k.IsNaN(x), x, k.Cvt(ptx.F64, bin, "rn"))
}

// leafDensity reads the parameters of a unit of a function leaf.
func (k *kernel) leafDensity(f function, unit ptx.Value) density {
	d := density{a: k.Var(ptx.F64), b: k.Var(ptx.F64), c: k.Var(ptx.F64)}
	if k.filled {
		d.peak = k.peak(f.in, unit)
	}
	at := k.element(ArgParams, k.Add(k.Load(ptx.U64, f.in, InputParams), k.Cvt(ptx.U64, unit)))
	first := k.Cvt(ptx.F64, k.Load(ptx.F32, at, 0))
	k.IfElse(f.gaussian, func() {
		sigma := k.Cvt(ptx.F64, k.Load(ptx.F32, k.At(at, k.Load(ptx.U32, f.in, InputWidth), 4), 0))
		k.Set(d.a, first)
		k.Into(d.b).Mul(k.Rcp(sigma), math.Sqrt(math.Log2E/2))
		k.Into(d.c).FMA(k.log(sigma), -math.Log2E, -0.5*math.Log2(2*math.Pi))
	}, func() {
		k.Set(d.a, 0.0)
		k.IfElse(f.breaks, func() {
			k.Set(d.a, k.Cvt(ptx.F64, unit, "rn"))
			k.Set(d.b, 0.0)
			floor := k.At(k.arg(ArgConstants), k.Load(ptx.U32, f.in, InputConstant), 8)
			k.Set(d.c, k.Load(ptx.F64, floor, 0))
		}, func() {
			k.Into(d.b).Mul(k.log(first), math.Log2E)
			k.Into(d.c).Mul(first, -math.Log2E)
		})
	})
	return d
}

// log2 is the log2 density at y, with the term; of NaN it is NaN, or the peak in a filled kernel.
func (k *kernel) log2(f function, d density, y, term ptx.Value) ptx.Value {
	l := k.Var(ptx.F64)
	k.IfElse(f.gaussian, func() {
		z := k.Mul(k.Sub(y, d.a), d.b)
		k.Into(l).Sub(k.FMA(k.Neg(z), z, d.c), term)
	}, func() {
		k.IfElse(f.breaks, func() { k.Set(l, k.binLog2(f, d, y)) }, func() {
			k.Into(l).Add(k.Mul(y, d.b), k.Sub(d.c, term))
		})
	})
	if k.filled {
		return k.Select(k.IsNaN(y), d.peak, l)
	}
	return l
}

// binLog2 is the log2 density of bin y, the floor of the number of bins, NaN of NaN.
func (k *kernel) binLog2(f function, d density, y ptx.Value) ptx.Value {
	bins := k.Load(ptx.U32, f.in, InputStats)
	bin := k.Min(k.Cvt(ptx.U32, y, "rzi"), k.Sub(bins, 1))
	unit := k.Cvt(ptx.U64, k.Cvt(ptx.U32, d.a, "rzi"))
	at := k.MadWide(bin, k.Load(ptx.U32, f.in, InputWidth), k.Add(k.Load(ptx.U64, f.in, InputParams), unit))
	p := k.Cvt(ptx.F64, k.Load(ptx.F32, k.element(ArgParams, at), 0))
	p = k.Max(d.c, k.Select(k.Lt(y, k.Cvt(ptx.F64, bins, "rn")), p, 0.0))
	some := k.Gt(p, 0.0)
	l := k.Select(some, k.Mul(k.log(k.Select(some, p, 1.0)), math.Log2E), math.Inf(-1))
	return k.Select(k.IsNaN(y), y, l)
}

// leafLog2 returns the log2 density of a unit of a function leaf at x, a float32:
// a float64, where the cell is missing 0, or the peak in a filled kernel. in is the
// address of the input's record. The kernel takes ArgParams and ArgConstants.
func (k *kernel) leafLog2(in, x, unit ptx.Value) ptx.Value {
	f := k.function(in)
	d := k.leafDensity(f, unit)
	y, term := k.leafCell(f, k.Cvt(ptx.F64, x))
	l := k.log2(f, d, y, term)
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
	k := v.begin(KernelLeaf, leafThreads, 8, ArgControl, ArgParams, ArgValues, ArgVal, ArgExp, ArgInputs, ArgConstants, ArgList)
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
	f := k.function(in)

	row, half := k.And(tid, LeafRows-1), k.Shr(tid, 6)
	at := k.Add(k.Load(ptx.U32, in, InputAt), k.Add(first, k.Min(row, k.Sub(rows, 1))))
	cell, term := k.leafCell(f, k.Cvt(ptx.F64, k.Load(ptx.F32, k.At(k.arg(ArgValues), at, 4), 0)))
	top := k.Mov(ptx.F64, math.Inf(-1))
	k.For(ptx.U32, 0, units, chunk, func(base ptx.Value) {
		d := k.leafDensity(f, k.Min(k.Add(base, tid), k.Sub(units, 1)))
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
			k.Into(top).Max(top, k.log2(f, d, cell, term))
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
		d := k.leafDensity(f, k.Min(unit, k.Sub(units, 1)))
		real, inside := k.Lt(unit, units), k.Lt(unit, width)
		out := k.Add(k.Load(ptx.U64, in, InputVal), k.MadWide(k.Add(first, from), width, k.Cvt(ptx.U64, unit)))
		out = k.element(ArgVal, out)
		exps := k.Load(ptx.U32, in, InputExps)
		k.For(ptx.U32, from, to, 1, func(r ptx.Value) {
			p := k.At(cells, r, 24)
			x := k.Load(ptx.F64, p, 0)
			l := k.Sub(k.log2(f, d, x, k.Load(ptx.F64, p, 8)), k.Load(ptx.F64, p, 16))
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
