package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Maxima are found by the kernels of a forward pass and of samples with other arithmetic. In a
// filled one an input whose cell is missing has the largest number of each unit, its mode, in
// place of 1; in one of the largest terms a unit of a sum also has the largest of its terms in
// place of their sum, and a row takes the operand of the largest. Values keep the form of
// a forward pass: a mantissa with an exponent for each row, and marked rows in log space.
//
// A largest term is not a sum of products, so tensor cores do not find it: each costs a
// multiplication and a comparison, 6.4 MFLOP a row for 784 sums of 64 units over 64. What a
// launch reads and writes is what the forward pass does, but for tables of modes.

// Filled is the name of the filled kernel that does what another does: of KernelLeaf,
// KernelStored, KernelForward and KernelLogForward. It is launched and listed as the other,
// after KernelModes.
func Filled(kernel string) string { return kernel + "_filled" }

// Largest is the name of the kernel that does by largest terms what another does by sums:
// of KernelForward, KernelLogForward and KernelSample; otherwise as Filled.
func Largest(kernel string) string { return kernel + "_largest" }

const (
	// KernelModes finds the modes of tables: listed as KernelLeafMove, inputs that own tables.
	KernelModes = "table_modes"
	// KernelModeCodes writes the codes of modes to missing cells: listed as KernelSampleLeaf,
	// after Largest of KernelSample; y = ceil(rows/SampleRows).
	KernelModeCodes = "mode_codes"
)

func (v Variant) maxima() []*ptx.Kernel {
	list := []*ptx.Kernel{v.modesOfTables(), v.modeCodes()}
	v.filled = true
	list = append(list, v.leaf(), v.stored(), v.forward(), v.logForward())
	v.most = true
	return append(list, v.forward(), v.logForward(), v.sample())
}

// modesOfTables finds the largest number of each unit in a table, and its first code. A warp has
// every fourth code; units that do not exist have 0.
func (v Variant) modesOfTables() *ptx.Kernel {
	l := v.leafBlock(KernelModes, ArgParams, ArgModes)
	most, first := l.Mov(ptx.F32, 0), l.Mov(ptx.U32, 0)
	raise := func(x, code, better ptx.Value) {
		l.Into(most).Select(better, x, most)
		l.Into(first).Select(better, code, first)
	}
	table, exps := l.column(ArgParams, 4, InputTable), l.field(InputExps)
	l.eachCode(func(c, ok ptx.Value) []ptx.Value {
		x, own := l.existing(ptx.F32, ok, table.at(c)), l.Mov(ptx.F32, 0)
		l.Guard(l.And(ok, l.Ne(exps, 0)), func() { l.Into(own).Load(ptx.F32, l.At(table.at(c), exps, 4), 0) })
		return []ptx.Value{l.Mul(x, l.pow2(l.Cvt(ptx.S32, own, "rzi")))}
	}, func(c, _ ptx.Value, read []ptx.Value) { raise(read[0], c, l.Gt(read[0], most)) })
	mine := l.At(l.parts, l.Special("%tid.x"), 8)
	l.Store(ptx.F32, mine, 0, most)
	l.Store(ptx.U32, mine, 4, first)
	l.Sync()
	for w := range leafWarps {
		at := l.At(l.parts, l.lane, 8)
		x, code := l.Load(ptx.F32, at, 8*32*w), l.Load(ptx.U32, at, 8*32*w+4)
		raise(x, code, l.Or(l.Gt(x, most), l.And(l.Eq(x, most), l.Lt(code, first))))
	}
	to := l.modesAt(l.in, InputModes)
	unit := l.At(to, l.unit, 4)
	l.If(l.And(l.Eq(l.warp, 0), l.Lt(l.unit, l.width)), func() {
		l.Guard(l.Eq(l.unit, 0), func() { l.Store(ptx.U32, to, 0, l.codes) })
		l.Store(ptx.F32, unit, 4*ModesHead, most)
		l.Store(ptx.U32, l.At(unit, l.width, 4), 4*ModesHead, first)
	})
	return l.Kernel()
}

// modeCodes writes the first code of the mode of the unit that a row takes to missing
// cells, a row to a thread.
func (v Variant) modeCodes() *ptx.Kernel {
	k := v.begin(KernelModeCodes, SampleRows, 0, ArgControl, ArgCodes, ArgTaken, ArgInputs, ArgModes, ArgList)
	in := k.record(ArgInputs, k.Load(ptx.U32, k.At(k.arg(ArgList), k.Special("%ctaid.x"), 8), 0), InputSize)
	row := k.Mad(k.Special("%ctaid.y"), SampleRows, k.Special("%tid.x"))
	k.ReturnIf(k.Ge(row, k.control(ptx.U32, ControlRows)))
	unit := k.Load(ptx.U32, k.At(k.arg(ArgTaken), k.Add(k.Load(ptx.U32, in, InputTaken), row), 4), 0)
	k.ReturnIf(k.Eq(unit, 0)) // the block of another input may be writing the cell
	cell := k.At(k.codeAt(k.Load(ptx.U32, in, InputAt)), row, k.codeBytes())
	modes := k.modesAt(in, InputModes)
	k.ReturnIf(k.Not(k.isMissing(k.Load(k.codeType(), cell, 0), modes)))
	first := k.At(modes, k.Load(ptx.U32, in, InputWidth), 4) // of the codes, less the head
	k.storeCode(cell, k.Load(ptx.U32, k.At(first, k.Sub(unit, 1), 4), 4*ModesHead))
	return k.Kernel()
}

// modesAt is the address of modes, given by the word in a record where they begin.
func (k *kernel) modesAt(record ptx.Value, offset int) ptx.Value {
	return k.At(k.arg(ArgModes), k.Load(ptx.U32, record, offset), 4)
}

// isMissing reports whether a code of a table, given by the address of its modes, is that
// of a missing cell.
func (k *kernel) isMissing(code, modes ptx.Value) ptx.Value {
	return k.Eq(code, k.Load(ptx.U32, modes, 0))
}

// orMode returns the address of a unit's number in a table, or of its mode where the code is
// that of a missing cell, and whether it is. factor is the address of the factor's record.
// Without maxima a missing cell has a row in the table.
func (k *kernel) orMode(factor, code, unit, at ptx.Value) (address, missing ptx.Value) {
	if !k.filled {
		return at, missing
	}
	modes := k.modesAt(factor, FactorModes)
	missing = k.isMissing(code, modes)
	return k.Select(missing, k.At(k.Add(modes, 4*ModesHead), unit, 4), at), missing
}

// unlessMode returns where the exponent of a number stands, which a mode, as missing says,
// does not have.
func (k *kernel) unlessMode(missing, exps ptx.Value) ptx.Value {
	if !k.filled {
		return exps
	}
	return k.Select(missing, 0, exps)
}

// peak returns the log2 of the largest density of a unit of a function, given by the address
// of its input's record.
func (k *kernel) peak(in, unit ptx.Value) ptx.Value {
	at := k.At(k.modesAt(in, InputModes), unit, 8)
	return k.Mul(k.Load(ptx.F64, at, 0), math.Log2E)
}

// logMost returns the log of the largest term of output i of a group.
func (f *logForward) logMost(sum, group, i ptx.Value) logValue {
	most := logValue{f.Mov(ptx.S32, none), f.Mov(ptx.F32, 0)}
	f.eachWeight(sum, group, i, func(m, exp, rest ptx.Value) {
		l := f.logOf(exp, f.Add(rest, f.Lg2(m)))
		above := f.And(f.Eq(l.whole, most.whole), f.Gt(l.rest, most.rest))
		better := f.Or(f.Gt(l.whole, most.whole), above)
		f.Into(most.whole).Select(better, l.whole, most.whole)
		f.Into(most.rest).Select(better, l.rest, most.rest)
	})
	return most
}

// largest returns the first number below n whose term is the largest. A lane looks at a run of
// terms, as draw.
func (s *sampler) largest(n ptx.Value, term func(i ptx.Value) ptx.Value) ptx.Value {
	each := s.Shr(s.Add(n, 31), 5)
	lo := s.Mul(s.lane, each)
	pick, own := s.Mov(ptx.U32, lo), s.Mov(ptx.F64, -1)
	s.For(ptx.U32, lo, s.Min(s.Add(lo, each), n), 1, func(i ptx.Value) {
		x := term(i)
		better := s.Gt(x, own)
		s.Into(own).Select(better, x, own)
		s.Into(pick).Select(better, i, pick)
	})
	most := s.Mov(ptx.F64, own)
	for by := 16; by > 0; by /= 2 {
		s.Into(most).Max(most, s.shuffle("bfly", most, by))
	}
	return s.Shuffle("idx", pick, s.lowest(s.Ballot(s.Eq(own, most))))
}
