package spn

import (
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// maxDirect is the most integers between the breaks of a variable's histograms for which
// numbers are looked up in a table, not searched for.
const maxDirect = 1 << 12

// column is what leaves over one variable share.
type column struct {
	leaves  []int32 // operations: those that a class tells apart
	numbers bool    // others are Gaussian
	x       simt.Value
	there   simt.Value // the cell is not missing
	class   simt.Value // of a finite or histogram variable: the place in leaves' tables
	// points has a number of each class, NaN of that of missing cells.
	points  []float64
	breaks  []float64 // of histograms: those of all leaves
	classes []uint64  // of the intervals between breaks, or of the places of bytes; nil: each has its own
	last    int       // of bytes: cells above are like it
}

// columns collects the leaves of each variable.
func (c *code) columns(numVars int) []column {
	cols := make([]column, numVars)
	for i := range c.ops {
		switch o := &c.ops[i]; {
		case !o.used || o.kind != circuit.Input:
		case o.gaussian:
			cols[o.variable].numbers = true
		default:
			cols[o.variable].leaves = append(cols[o.variable].leaves, int32(i))
		}
	}
	return cols
}

// at returns the value in linear space of a table or histogram leaf at a number, that of a missing cell at NaN.
func (o *op) at(x float64) float64 {
	// Below the least normal number the table has lost digits, or all, that the logarithm has, and lifted the value may be a normal number.
	if o.logs != nil && x == x && o.table[int(x)] < 0x1p-1022 {
		return math.Exp2(o.logs[int(x)]+float64(o.lift)) * o.factor
	}
	return o.density(x) * math.Ldexp(o.factor, o.lift) // which is in range where that of the density and the factor may not be
}

// density returns the probability of a number by a table or histogram leaf, 1 at NaN.
func (o *op) density(x float64) float64 {
	if x != x {
		return 1
	}
	if !o.histograms {
		return o.table[int(x)]
	}
	if i := o.histogram.Bin(x); i >= 0 {
		return o.table[i]
	}
	return o.histogram.Floor
}

// logAt returns the value of a table or histogram leaf in log space, which is not lifted.
func (o *op) logAt(x float64) float64 {
	if o.logs != nil && x == x {
		return o.logs[int(x)] + math.Log2(o.factor)
	}
	return math.Log2(o.density(x)) + math.Log2(o.factor)
}

// plan finds the classes of a variable, without instructions.
func (e *emitter) plan(col *column) {
	if len(col.leaves) == 0 {
		return
	}
	first := &e.c.ops[col.leaves[0]]
	switch {
	case e.bytes:
		e.planBytes(col)
	case first.histograms:
		e.histogramBreaks(col)
		col.classes = e.classes(col)
		col.points = append(col.points, math.NaN())
	default:
		for k := range first.table {
			col.points = append(col.points, float64(k))
		}
		col.points = append(col.points, math.NaN())
	}
}

// open loads a variable and finds a row's class.
func (e *emitter) open(col *column, variable int) {
	e.span(spanClass, nil, func() simt.Value { e.openCell(col, variable); return simt.None })
}

func (e *emitter) openCell(col *column, variable int) {
	b := e.b
	if e.bytes {
		e.openBytes(col, variable)
		return
	}
	x := b.Load(0, variable)
	col.there = b.Binary(simt.Eq, x, x)
	if col.numbers {
		col.x = b.Select(col.there, b.Convert(e.t, x), b.Float(e.t, 0))
	}
	if len(col.leaves) == 0 {
		return
	}
	// What a missing cell's class is before it is chosen does not matter.
	class := simt.None
	if e.c.ops[col.leaves[0]].histograms {
		class = e.classOf(col, x)
	} else {
		class = b.Convert(simt.I32, x)
	}
	col.class = b.Select(col.there, class, b.Int(simt.I32, int64(len(col.points)-1)))
}

// histogramBreaks collects the breaks of a variable's histograms.
func (e *emitter) histogramBreaks(col *column) {
	for _, leaf := range col.leaves {
		col.breaks = append(col.breaks, e.c.ops[leaf].histogram.Cuts()...)
	}
	slices.Sort(col.breaks)
	col.breaks = slices.Compact(col.breaks)
}

// classOf returns the class of x: that of the interval which is counted by the breaks that are at most x.
func (e *emitter) classOf(col *column, x simt.Value) simt.Value {
	b, breaks, classes := e.b, col.breaks, col.classes
	lo, hi := breaks[0], breaks[len(breaks)-1]
	whole := !slices.ContainsFunc(breaks, func(x float64) bool { return x != math.Trunc(x) })
	if whole && hi-lo <= maxDirect && math.Abs(lo) < 1<<23 && math.Abs(hi) < 1<<23 {
		x = b.Binary(simt.Min, b.Binary(simt.Max, x, b.Float(simt.F32, lo-1)), b.Float(simt.F32, hi))
		place := b.Sub(b.Convert(simt.I32, b.Unary(simt.Floor, x)), b.Int(simt.I32, int64(lo)-1))
		table := make([]uint64, int(hi-lo)+2)
		for i := range table {
			n, _ := slices.BinarySearch(breaks, lo-1+float64(i)+0.5)
			table[i] = classes[n]
		}
		return b.Gather(b.Table(simt.I32, table), place)
	}
	// A search that halves what is left, in as many steps for every lane: count is how many
	// breaks are known to be at most x.
	wide, size := b.Convert(simt.F64, x), 1
	for size <= len(breaks) {
		size *= 2
	}
	padded := make([]float64, size)
	for i := range padded {
		padded[i] = math.Inf(1)
		if i < len(breaks) {
			padded[i] = breaks[i]
		}
	}
	table := b.FloatTable(simt.F64, padded)
	count := b.Int(simt.I32, 0)
	for step := size / 2; step > 0; step /= 2 {
		next := b.Add(count, b.Int(simt.I32, int64(step)))
		below := b.Gather(table, b.Sub(next, b.Int(simt.I32, 1)))
		count = b.Select(b.Binary(simt.Le, below, wide), next, count)
	}
	return b.Gather(b.Table(simt.I32, classes), count)
}

// classes joins intervals on which every leaf of the variable is the same, and returns the class of each. The
// one below all breaks comes last: what is outside of histograms is the floor in all leaves, so that tables
// end alike.
func (e *emitter) classes(col *column) []uint64 {
	known := map[string]int{}
	table := make([]uint64, len(col.breaks)+1)
	for k := range table {
		i := (k + 1) % len(table)
		x := math.Inf(-1)
		if i > 0 {
			x = col.breaks[i-1]
		}
		var key []byte
		for _, leaf := range col.leaves {
			bits := math.Float64bits(e.c.ops[leaf].at(x))
			for k := range 8 {
				key = append(key, byte(bits>>(8*k)))
			}
		}
		class, ok := known[string(key)]
		if !ok {
			class = len(col.points)
			known[string(key)] = class
			col.points = append(col.points, x)
		}
		table[i] = uint64(class)
	}
	return table
}

// opened returns a variable that is loaded.
func (e *emitter) opened(variable int) *column {
	col := &e.cols[variable]
	if col.there == simt.None && col.class == simt.None {
		e.open(col, variable)
	}
	return col
}

// leaf emits a leaf.
func (e *emitter) leaf(o *op) simt.Value {
	col := e.opened(o.variable)
	return e.span(spanLeaf, o, func() simt.Value { return e.leafOf(o, col) })
}

// leafOf emits a leaf over a variable that is opened.
func (e *emitter) leafOf(o *op, col *column) simt.Value {
	b := e.b
	if !o.gaussian {
		table := make([]float64, len(col.points))
		for i, x := range col.points {
			if table[i] = o.at(x); e.space != Linear {
				table[i] = o.logAt(x)
			}
		}
		return b.Gather(b.FloatTable(e.t, table), col.class)
	}
	// log2 of the density is c - (z·s)² with z = (x - mean)/sd and s² = log2(e)/2.
	d, shrunk := e.distance(col.x, o)
	z := b.Mul(d, b.Float(e.t, math.Sqrt(math.Log2E/2)/o.sd/shrunk))
	v := b.FMA(b.Unary(simt.Neg, z), z, b.Float(e.t, -math.Log2(o.sd*math.Sqrt(2*math.Pi))))
	if e.space == Linear {
		return b.Select(col.there, b.Exp2(v), b.Float(e.t, 1))
	}
	return b.Select(col.there, v, b.Float(e.t, 0))
}

// inSpace returns a probability in the space of the code.
func (e *emitter) inSpace(p float64) float64 {
	if e.space == Linear {
		return p
	}
	return math.Log2(p)
}
