package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Posteriors are written by two kernels, after a forward pass and the flows of a backward
// pass. What flows into a unit of an input is the probability that the row takes the
// unit. KernelPosterior multiplies these, [rows, units], by tables, [units, codes];
// KernelPosteriorUnits copies those of inputs without a table. Both divide by what flows
// into all inputs of the column, which is 1 but for the rounding of the levels above.
//
// For a column of C codes and inputs of K units, the first must read 4·K·(rows + C) bytes
// and write 4·C·rows; it reads the flows once more for every 64 codes, and the table for
// every 64 rows, mostly from the card's cache. An HCLT of 784 variables, 64 units and 256
// codes writes 0.41 GB for 512 rows, reads 0.15 GB, and multiplies 13 GFLOP.

const (
	// KernelPosterior writes the probabilities of the codes of columns: x = entries of list
	// less one (pairs: first 0 and the root, a sum; then a column in the table of variables,
	// and one of its codes, a multiple of PosteriorCodes), y = ceil(rows/T).
	KernelPosterior = "posterior"
	// KernelPosteriorUnits writes the probabilities of the units of inputs without codes,
	// column by column; listed and launched as KernelPosterior, with any second word.
	KernelPosteriorUnits = "posterior_units"
)

// PosteriorCodes is how many codes a block of threads of KernelPosterior does.
const PosteriorCodes = outTile

// posteriors is a block of threads that writes a part of a column for 64 rows.
type posteriors struct {
	*kernel
	tid      ptx.Value // U32
	root     ptx.Value // U64: the record of the sum at the root
	variable ptx.Value // U64: the record of the column
	first    ptx.Value // U32: second word of the entry
	base     ptx.Value // U32: first row
	rows     ptx.Value // U32: rows that exist, at most 64
	length   ptx.Value // U32: floats from row to row of the results
	offset   ptx.Value // U32: of the column in a row
}

// posteriors starts a kernel, whose blocks return where the call has not chosen their column.
func (v Variant) posteriors(name string, blocks int, args ...string) *posteriors {
	k := v.begin(name, tileThreads, blocks, append(args, ArgControl, ArgVal, ArgExp, ArgBad, ArgKept, ArgSums, ArgUses,
		ArgVariables, ArgLeaves, ArgOffsets, ArgOut, ArgList)...)
	p := &posteriors{kernel: k, tid: k.Special("%tid.x")}
	list := k.arg(ArgList)
	entry := k.LoadN(ptx.U32, 2, k.At(list, k.Special("%ctaid.x"), 8), 8)
	p.length = k.Load(ptx.U32, k.arg(ArgOffsets), 0)
	p.offset = k.Load(ptx.U32, k.At(k.arg(ArgOffsets), entry[0], 4), 4)
	k.ReturnIf(k.Eq(p.offset, NotChosen))
	p.root = k.record(ArgSums, k.Load(ptx.U32, list, 4), SumSize)
	p.variable, p.first = k.record(ArgVariables, entry[0], VariableSize), entry[1]
	p.base = k.Mul(k.Special("%ctaid.y"), RowTile)
	p.rows = k.Min(k.Sub(k.control(ptx.U32, ControlRows), p.base), RowTile)
	return p
}

// eachLeaf goes through the inputs of the column: the addresses of their records.
func (p *posteriors) eachLeaf(do func(leaf ptx.Value)) {
	span := p.LoadN(ptx.U32, 2, p.variable, VariableLeaf)
	p.For(ptx.U32, span[0], p.Add(span[0], span[1]), 1, func(i ptx.Value) { do(p.record(ArgLeaves, i, LeafSize)) })
}

// flows adds up what flows into n adjacent units of an input, by row.
func (p *posteriors) flows(n int, leaf ptx.Value, rows []ptx.Value, unit ptx.Value) [][]ptx.Value {
	flows := p.zeros(len(rows), n)
	span := p.LoadN(ptx.U32, 2, leaf, LeafUse)
	p.For(ptx.U32, span[0], p.Add(span[0], span[1]), 1, func(u ptx.Value) {
		use := p.record(ArgUses, u, UseSize)
		pitch := p.Mul(p.Load(ptx.U32, use, UseWidth), 4)
		start := p.At(p.element(ArgKept, p.Load(ptx.U64, use, UseKept)), unit, 4)
		var read [][]ptx.Value
		for _, r := range rows {
			read = append(read, p.floats(n, p.MadWide(r, pitch, start), 0))
		}
		for i, row := range read {
			for j, x := range row {
				p.Into(flows[i][j]).Add(flows[i][j], x)
			}
		}
	})
	return flows
}

// result is the address of element i of the column in a row.
func (p *posteriors) result(row, i ptx.Value) ptx.Value {
	return p.element(ArgOut, p.MadWide(row, p.length, p.Cvt(ptx.U64, p.Add(p.offset, i))))
}

// divisor returns what the flows of a row are divided by: their total, or NaN in a row that
// is impossible.
func (p *posteriors) divisor(row, total ptx.Value) ptx.Value {
	return p.Select(p.possible(p.root, row), total, math.NaN())
}

// posterior multiplies flows by tables. Two slabs of each take turns, as in forward.
func (v Variant) posterior() *ptx.Kernel {
	p := v.posteriors(KernelPosterior, 3, ArgParams, ArgCodes)
	// The results come to lie where the slabs were, and behind them the rows' totals.
	tiles := p.Shared("tiles", 16, max(4*v.slabBytes(), 4*RowTile*panelPitch))
	totals := p.Shared("totals", 16, 4*RowTile)
	codes := p.Load(ptx.U32, p.variable, VariableCodes)
	outputs := p.Min(p.Sub(codes, p.first), PosteriorCodes)
	t := p.rowTile(tileThreads, RowTile)
	product := p.rowProduct(outputs)
	total := p.zeros(1, len(t.row))[0]
	m := &tableProduct{posteriors: p, t: t, outputs: outputs, tiles: tiles, total: total}
	m.place, m.side = p.slabPlace(t.line, t.lane), p.Mov(ptx.U32, 0)
	p.If(m.missing(codes), func() { p.eachLeaf(func(leaf ptx.Value) { m.multiply(product, leaf) }) })
	p.Sync()
	places := product.places()
	for j, row := range places.rows {
		for l, output := range places.outputs {
			at := p.At(tiles, p.Mad(row, panelPitch, output), 4)
			n := len(places.outputs)
			product.eachRun(func(run int) { p.Store(ptx.F32, at, 32*run, product.acc[run][j*n+l]) })
		}
	}
	for i, sum := range total {
		for d := lanes / 2; d > 0; d /= 2 {
			sum = p.Add(sum, p.Shuffle("bfly", sum, d))
		}
		p.Guard(p.Eq(t.lane, 0), func() { p.Store(ptx.F32, p.At(totals, p.Add(t.line, i*t.apart), 4), 0, sum) })
	}
	p.Sync()
	m.write(codes, totals)
	return p.Kernel()
}

// tableProduct is a product of flows and tables.
type tableProduct struct {
	*posteriors
	t       *rowTile
	outputs ptx.Value   // U32: codes that exist
	tiles   ptx.Value   // U32: two slabs of flows, two of tables
	total   []ptx.Value // F32, by row: what flows into the units that this thread has seen
	place   ptx.Value   // U32: of the thread's first vector in a slab
	side    ptx.Value   // U32: of the slabs, in bytes
}

// missing reports whether the cell of the column is missing in any of the rows: all warps
// look at all rows.
func (m *tableProduct) missing(codes ptx.Value) ptx.Value {
	k, lane := m.kernel, m.And(m.tid, 31)
	cells := k.codeAt(k.Load(ptx.U32, m.variable, VariableAt))
	some := k.Mov(ptx.Pred, k.Ne(lane, lane))
	for i := range RowTile / 32 {
		r := k.Min(k.Add(lane, 32*i), k.Sub(m.rows, 1))
		k.Into(some).Or(some, k.Eq(k.code(cells, k.Add(m.base, r)), codes))
	}
	return k.Any(some)
}

// multiply adds the products of an input, a chunk of units at a time.
func (m *tableProduct) multiply(product *rowProduct, leaf ptx.Value) {
	var (
		k     = m.kernel
		size  = k.slabBytes()
		width = k.Load(ptx.U32, leaf, LeafWidth)
		exps  = k.Load(ptx.U32, leaf, LeafExps)
		pitch = k.Mul(width, 4)
		start = k.element(ArgParams, k.Load(ptx.U64, leaf, LeafTable))
		tops  []ptx.Value // addresses of the thread's codes
		have  []ptx.Value // bytes to read of them
	)
	for i := range outTile / 16 {
		code := k.Add(m.t.line, 16*i)
		exists := k.Lt(code, m.outputs)
		tops = append(tops, k.MadWide(k.Add(m.first, k.Select(exists, code, 0)), pitch, start))
		have = append(have, k.Select(exists, k.Mov(ptx.U32, 4*k.vector()), 0))
	}
	fetch := func(unit ptx.Value) {
		there := k.Lt(unit, width)
		to := k.Add(k.Add(m.tiles, 2*size), k.Add(m.place, m.side))
		for i, top := range tops {
			from := k.At(top, k.Select(there, unit, 0), 4)
			k.CopyAsync(to, 16*i*k.linePitch(), from, 0, 4*k.vector(), k.Select(there, have[i], 0))
		}
		k.Commit()
	}
	// scale multiplies the numbers of the table that this thread has fetched by 2 to their
	// exponents, where they have some.
	scale := func(unit ptx.Value) {
		k.If(k.And(k.Ne(exps, 0), k.Lt(unit, width)), func() {
			at := k.Add(k.Add(m.tiles, 2*size), k.Add(m.place, m.side))
			for i, top := range tops {
				to := k.Add(at, 16*i*k.linePitch())
				xs := k.floats(k.vector(), to, 0)
				own := k.floats(k.vector(), k.At(k.At(top, unit, 4), exps, 4), 0)
				for j, e := range own {
					xs[j] = k.Mul(xs[j], k.pow2(k.Cvt(ptx.S32, e, "rzi")))
				}
				k.putFloats(to, 0, xs)
			}
		})
	}
	fetch(m.t.unit)
	k.For(ptx.U32, 0, width, k.chunk(), func(at ptx.Value) {
		unit := k.Add(at, m.t.unit)
		left := k.Add(k.Add(m.tiles, m.place), m.side)
		there := k.Lt(unit, width)
		flows := k.zeros(len(m.t.read), k.vector())
		k.If(there, func() {
			for i, row := range m.flows(k.vector(), leaf, m.t.read, unit) {
				for j, x := range row {
					k.Set(flows[i][j], x)
					k.Into(m.total[i]).Add(m.total[i], x)
				}
			}
		})
		for i, row := range flows {
			k.putFloats(left, 16*i*k.linePitch(), row)
		}
		k.WaitGroup(0)
		scale(unit)
		k.Sync()
		slabs := k.Add(m.tiles, m.side)
		k.Into(m.side).Xor(m.side, size)
		next := k.Add(at, k.chunk())
		k.If(k.Lt(next, width), func() { fetch(k.Add(next, m.t.unit)) })
		product.add(slabs, k.Add(slabs, 2*size), k.Min(k.Div(k.Sub(width, at), k.vector()), lanes))
	})
}

// write writes rows of results, a row to a warp, from shared memory: of an observed cell 1
// at its code.
func (m *tableProduct) write(codes, totals ptx.Value) {
	k := m.kernel
	lane := k.And(m.tid, 31)
	cells := k.codeAt(k.Load(ptx.U32, m.variable, VariableAt))
	k.For(ptx.U32, k.Shr(m.tid, 5), m.rows, tileThreads/32, func(r ptx.Value) {
		row := k.Add(m.base, r)
		cell := k.code(cells, row)
		missing := k.Eq(cell, codes)
		total := k.Select(missing, k.Load(ptx.F32, k.At(totals, r, 4), 0), 1)
		divisor := m.divisor(row, total)
		line := k.At(m.tiles, k.Mul(r, panelPitch), 4)
		k.For(ptx.U32, lane, m.outputs, 32, func(c ptx.Value) {
			code := k.Add(m.first, c)
			one := k.Select(k.Eq(code, cell), k.Mov(ptx.F32, 1), 0)
			x := k.Select(missing, k.Load(ptx.F32, k.At(line, c, 4), 0), one)
			k.Store(ptx.F32, m.result(row, code), 0, k.Div(x, divisor))
		})
	})
}

// posteriorUnits writes the flows of units, a row to a warp.
func (v Variant) posteriorUnits() *ptx.Kernel {
	p := v.posteriors(KernelPosteriorUnits, 4)
	lane := p.And(p.tid, 31)
	p.For(ptx.U32, p.Shr(p.tid, 5), p.rows, tileThreads/32, func(r ptx.Value) {
		row := p.Add(p.base, r)
		total := p.Mov(ptx.F32, 0)
		each := func(do func(unit, place, flow ptx.Value)) {
			place := p.Mov(ptx.U32, 0)
			p.eachLeaf(func(leaf ptx.Value) {
				units := p.Load(ptx.U32, leaf, LeafUnits)
				p.For(ptx.U32, lane, units, 32, func(u ptx.Value) { do(u, place, p.flows(1, leaf, []ptx.Value{row}, u)[0][0]) })
				p.Into(place).Add(place, units)
			})
		}
		each(func(_, _, flow ptx.Value) { p.Into(total).Add(total, flow) })
		total = p.WarpReduce(total, func(x, y any) ptx.Value { return p.Add(x, y) })
		divisor := p.divisor(row, total)
		each(func(u, place, flow ptx.Value) {
			p.Store(ptx.F32, p.result(row, p.Add(place, u)), 0, p.Div(flow, divisor))
		})
	})
	return p.Kernel()
}
