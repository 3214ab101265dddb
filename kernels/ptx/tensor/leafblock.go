package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// leafWarps is the number of warps of a block of the kernels on leaves.
const leafWarps = leafThreads / 32

// LeafParts is how many blocks of threads share the codes of a run of 32 units at most,
// where one would take too long: for tables of masses of more than PartedCodes codes.
const (
	LeafParts   = 16
	PartedCodes = 4096
)

// LeafPart is what a list has for one of 2^shift parts, at least two, of a run of 32 units
// of an input: with w warps in each, part p has the codes w·p to w·p+w-1 modulo w·2^shift.
func LeafPart(run, part, shift uint32) uint32 { return shift<<shiftAt | part<<partAt | run }

// Where the numbers stand that LeafPart puts together.
const (
	partAt  = 16
	shiftAt = 24
)

// leafBlock is a block of threads that works on a run of 32 units of an owning
// input, a unit to a lane.
type leafBlock struct {
	*kernel
	in     ptx.Value // U64, address of its record
	family ptx.Value // U32
	codes  ptx.Value // U32
	width  ptx.Value // U32
	lane   ptx.Value // U32
	warp   ptx.Value // U32
	unit   ptx.Value // U32, of the input
	exists ptx.Value // Pred: the lane has a unit
	place  ptx.Value // U32, of the unit in node space
	shift  ptx.Value // U32: there are 2^shift parts of the codes, of which it does one
	part   ptx.Value // U32
	first  ptx.Value // U32: the warp's first code
	stride ptx.Value // U32: from one of its codes to the next, a power of two
	parts  ptx.Value // U32, shared memory for sum
	grid   ptx.Value // F32, the unit of counts
	fine   ptx.Value // F32, from which on counts lie on the grid
}

// leafArgs are the arguments that all kernels on owning inputs take.
var leafArgs = []string{ArgControl, ArgInputs, ArgList}

// leafBlock starts a kernel on owning inputs.
func (v Variant) leafBlock(name string, args ...string) *leafBlock {
	l := &leafBlock{kernel: v.begin(name, leafThreads, 4, append(args, leafArgs...)...)}
	l.lane, l.warp = l.Special("%laneid"), l.Shr(l.Special("%tid.x"), 5)
	pair := l.LoadN(ptx.U32, 2, l.At(l.arg(ArgList), l.Special("%ctaid.x"), 8), 0)
	l.in = l.record(ArgInputs, pair[0], InputSize)
	l.unit = l.Mad(l.Bfe(pair[1], 0, partAt), 32, l.lane)
	l.part, l.shift = l.Bfe(pair[1], partAt, shiftAt-partAt), l.Shr(pair[1], shiftAt)
	l.first = l.Mad(l.part, leafWarps, l.warp)
	l.stride = l.Shl(l.Mov(ptx.U32, leafWarps), l.shift)
	l.family, l.codes = l.field(InputFamily), l.field(InputCodes)
	l.width = l.field(InputWidth)
	l.exists = l.Lt(l.unit, l.field(InputUnits))
	l.place = l.Add(l.field(InputUnit), l.unit)
	l.grid, l.fine = l.control(ptx.F32, ControlGrid), l.control(ptx.F32, ControlFine)
	l.parts = l.Shared("parts", 8, leafStats*leafThreads*8)
	return l
}

// field reads a number of the input's record.
func (l *leafBlock) field(offset int) ptx.Value { return l.Load(ptx.U32, l.in, offset) }

// is reports whether the input is of a family.
func (l *leafBlock) is(family int) ptx.Value { return l.Eq(l.family, family) }

// constant reads constant i, a Go number or a U32, of the input's family.
func (l *leafBlock) constant(i any) ptx.Value {
	at := l.At(l.arg(ArgConstants), l.Add(l.field(InputConstant), i), 8)
	return l.Load(ptx.F64, at, 0)
}

// existing loads a value for a lane that has a unit, if ok holds, and 0 for others:
// addresses of others may not exist.
func (l *leafBlock) existing(t ptx.Type, ok, addr ptx.Value) ptx.Value {
	x := l.Mov(t, 0)
	l.Guard(ok, func() { l.Into(x).Load(t, addr, 0) })
	return x
}

// put stores a value where ok holds.
func (l *leafBlock) put(t ptx.Type, ok, addr, x ptx.Value) {
	l.Guard(ok, func() { l.Store(t, addr, 0, x) })
}

// column is one unit's column of an area: [rows, units].
type column struct {
	l     *leafBlock
	base  ptx.Value // address of row 0: U64 in global memory, U32 in shared memory
	pitch any       // bytes from row to row
}

// column returns the unit's column of the parameters' area whose offset is in a
// field of the input's record, in an array of elements of size bytes that has the
// parameters' places.
func (l *leafBlock) column(arg string, size, field int) column {
	first := l.Add(l.Load(ptx.U64, l.in, field), l.Cvt(ptx.U64, l.unit))
	return column{l, l.At(l.arg(arg), first, size), l.Mul(l.width, size)}
}

// at is the address of row i, a U32.
func (c column) at(i ptx.Value) ptx.Value {
	if c.base.Type == ptx.U32 {
		return c.l.Mad(i, c.pitch, c.base)
	}
	return c.l.MadWide(i, c.pitch, c.base)
}

// sum adds up values, F32 or F64 and at most leafStats, over the warps in their
// order, for all of them. Before and after, it waits for all threads.
func (l *leafBlock) sum(xs ...ptx.Value) []ptx.Value {
	tid := l.Special("%tid.x")
	size := xs[0].Type.Bytes()
	mine, first := l.At(l.parts, tid, size), l.At(l.parts, l.lane, size)
	l.Sync()
	for i, x := range xs {
		l.Store(x.Type, mine, i*size*leafThreads, x)
	}
	l.Sync()
	sums := make([]ptx.Value, len(xs))
	for i, x := range xs {
		sums[i] = l.Load(x.Type, first, i*size*leafThreads)
		for w := 1; w < leafWarps; w++ {
			sums[i] = l.Add(sums[i], l.Load(x.Type, first, (i*leafThreads+w*32)*size))
		}
	}
	return sums
}

// eachCode goes through the codes from the warp's on, below codes, in the order in
// which warps own them: those of a warp are a stride apart. It emits do for
// several at a time; read emits the loads of all of them before the first do.
func (l *leafBlock) eachCode(read func(c, ok ptx.Value) []ptx.Value, do func(c, ok ptx.Value, read []ptx.Value)) {
	l.several(l.first, l.codes, l.stride, read, do)
}

// leafAhead is how many counts or codes of a lane are read at a time.
const leafAhead = 4

// several does what eachCode does for the numbers from first on, below end and a stride
// apart. ok says whether the lane has a unit and the number is below end.
func (l *leafBlock) several(first, end, stride ptx.Value, read func(i, ok ptx.Value) []ptx.Value, do func(i, ok ptx.Value, read []ptx.Value)) {
	l.For(ptx.U32, first, end, l.Mul(stride, leafAhead), func(base ptx.Value) {
		var is, oks [leafAhead]ptx.Value
		var reads [leafAhead][]ptx.Value
		for n := range is {
			is[n], oks[n] = base, l.exists
			if n > 0 {
				is[n] = l.Mad(stride, n, base)
				oks[n] = l.And(l.exists, l.Lt(is[n], end))
			}
			reads[n] = read(is[n], oks[n])
		}
		for n := range is {
			do(is[n], oks[n], reads[n])
		}
	})
}

// addAll returns the sum of what read reads for the numbers of several, in their order.
func (l *leafBlock) addAll(first, end, stride ptx.Value, read func(i, ok ptx.Value) ptx.Value) ptx.Value {
	total := l.Mov(ptx.F32, 0)
	l.several(first, end, stride, func(i, ok ptx.Value) []ptx.Value { return []ptx.Value{read(i, ok)} },
		func(_, _ ptx.Value, read []ptx.Value) { l.Into(total).Add(total, read[0]) })
	return total
}

// tally is memory for the counts of an input: in shared memory, or for large tables
// in global memory. A warp reads and writes its own codes without waiting.
type tally struct{ column }

// tallied emits do for counts in either memory.
func (l *leafBlock) tallied(do func(t tally)) {
	shared := tally{column{l, l.At(l.Shared("tally", 16, SharedCodes*32*4), l.lane, 4), 32 * 4}}
	l.IfElse(l.Le(l.codes, SharedCodes), func() { do(shared) }, func() {
		do(tally{l.column(ArgCounts, 4, InputCounts)})
	})
}

// get reads the count of a code.
func (t tally) get(c, ok ptx.Value) ptx.Value { return t.l.existing(ptx.F32, ok, t.at(c)) }

// set writes the count of a code.
func (t tally) set(c, ok, x ptx.Value) { t.l.put(ptx.F32, ok, t.at(c), x) }
