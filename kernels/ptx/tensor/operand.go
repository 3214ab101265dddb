package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// BareFactors is how many factors are multiplied without an exponent for each
// product. Products of more are formed once per step where they are kept.
const BareFactors = 3

// lanes is the number of threads that share a row while operands are formed.
const lanes = 8

// vector is the number of adjacent units that a thread reads at once.
func (v Variant) vector() int { return min(v.Block, 4) }

// chunk is the number of units of a row that lanes threads read at once.
func (v Variant) chunk() int { return lanes * v.vector() }

// wideCount marks the number of factors of an element whose products take an exponent
// each, though they may be of few factors.
const wideCount = 1 << 31

// operands forms the products of elements in some rows, a vector of units at a
// time. Its values are one thread's.
type operands struct {
	k      *kernel
	rows   []ptx.Value // U32, rows of the launch
	vector int
	lanes  int                      // threads that share a row
	count  ptx.Value                // U32, factors of the element, and wideCount where its products are wide
	width  ptx.Value                // U32
	factor ptx.Value                // U64, address of its first factor
	base   []ptx.Value              // S32, by row: the exponent that its stored factors have together
	at     [BareFactors][]ptx.Value // U64, by factor and row: address of its first unit
	shift  []ptx.Value              // S32, by row: base less the exponent of the sum
	scale  []ptx.Value              // F32, 2^shift
	held   [BareFactors]place       // of the first factors, after turn
}

// operands returns a former of products in rows that exist.
func (k *kernel) operands(rows []ptx.Value) *operands {
	n := len(rows)
	o := &operands{
		k: k, rows: rows, vector: k.vector(), lanes: lanes,
		count: k.Mov(ptx.U32, 0), width: k.Mov(ptx.U32, 0), factor: k.Mov(ptx.U64, 0),
		base: k.Vars(ptx.S32, n), shift: k.Vars(ptx.S32, n), scale: k.Vars(ptx.F32, n),
	}
	for i := range rows {
		k.Set(o.base[i], 0)
		k.Set(o.shift[i], 0)
		k.Set(o.scale[i], 0.0)
	}
	for f := range o.at {
		o.at[f] = k.Vars(ptx.U64, n)
		for _, a := range o.at[f] {
			k.Set(a, 0)
		}
	}
	return o
}

// chunk is the number of units of a row that its threads read at once.
func (o *operands) chunk() int { return o.lanes * o.vector }

// open turns to an element, given by its index.
func (o *operands) open(element ptx.Value) {
	k := o.k
	o.head(element)
	o.adding(func(sums []exponentSum) {
		o.eachCount(func(n int) {
			for f := range n {
				o.locate(k.place(o.factor, f*FactorSize), o.at[f], sums)
			}
			if n == 0 {
				o.eachFactor(func(factor ptx.Value) { o.locate(k.place(factor, 0), nil, sums) })
			}
		})
	})
}

// adding sets the bases of the rows to what do adds up.
func (o *operands) adding(do func(sums []exponentSum)) {
	var sums []exponentSum
	for _, b := range o.base {
		e := exponentSum{b, o.k.Var(ptx.S32)}
		o.k.start(e)
		sums = append(sums, e)
	}
	do(sums)
	for i, e := range sums {
		o.k.Set(o.base[i], o.k.settle(e))
	}
}

// formed hands the place in val of the element's products to do, an U64 with the first
// float of row 0, if they are kept.
func (o *operands) formed(element ptx.Value, do func(start ptx.Value)) {
	k := o.k
	at := k.Load(ptx.U64, k.record(ArgElements, element, ElementSize), ElementFormed)
	k.If(k.Ne(at, NotKept), func() { do(k.element(ArgVal, at)) })
}

// keeper returns what keeps products of the element, those of a row from column c on,
// if exists holds, as the program wants.
func (o *operands) keeper(element ptx.Value) func(row int, c, exists ptx.Value, xs []ptx.Value) {
	k := o.k
	start := k.Mov(ptx.U64, 0)
	o.formed(element, func(at ptx.Value) { k.Set(start, at) })
	pitch := k.Mul(o.width, 4)
	return func(row int, c, exists ptx.Value, xs []ptx.Value) {
		at := k.At(k.MadWide(o.rows[row], pitch, start), c, 4)
		k.Guard(k.And(exists, k.Ne(start, 0)), func() { k.putFloats(at, 0, xs) })
	}
}

// openFormed is open for a reader of products, of a sum given by its address: those
// that are kept become the element's one factor.
func (o *operands) openFormed(element, sum ptx.Value) {
	k := o.k
	o.open(element)
	o.formed(element, func(start ptx.Value) {
		k.Set(o.count, 1)
		o.adding(func(sums []exponentSum) { o.locateStored(start, k.sumExps(sum), o.at[0], sums) })
	})
}

// sumExps is the address of the exponents of a sum.
func (k *kernel) sumExps(sum ptx.Value) ptx.Value {
	return k.At(k.arg(ArgExp), k.Load(ptx.U32, sum, SumExp), 4)
}

// turn goes to an element whose rows change: reach then goes to those that the
// operands' rows hold.
func (o *operands) turn(element ptx.Value) {
	k := o.k
	o.head(element)
	for i := range o.held {
		p := &o.held[i]
		*p = place{kind: k.Mov(ptx.U32, 0), start: k.Mov(ptx.U64, 0), side: k.Mov(ptx.U64, 0)}
		k.If(k.Gt(o.factors(), i), func() {
			read := k.place(o.factor, i*FactorSize)
			k.Set(p.kind, read.kind)
			k.Set(p.start, read.start)
			k.Set(p.side, read.side)
		})
	}
}

// turnFormed is turn for a reader of products, as openFormed.
func (o *operands) turnFormed(element, sum ptx.Value) {
	o.turn(element)
	o.formed(element, func(start ptx.Value) {
		k := o.k
		k.Set(o.count, 1)
		k.Set(o.held[0].kind, StoredFactor)
		k.Set(o.held[0].start, start)
		k.Set(o.held[0].side, k.sumExps(sum))
	})
}

// reach finds the rows of the element that turn went to.
func (o *operands) reach() {
	o.adding(func(sums []exponentSum) {
		o.eachCount(func(n int) {
			for i := range n {
				o.locate(o.held[i], o.at[i], sums)
			}
			if n == 0 {
				o.eachFactor(func(factor ptx.Value) { o.locate(o.k.place(factor, 0), nil, sums) })
			}
		})
	})
}

// head reads the record of an element.
func (o *operands) head(element ptx.Value) {
	k := o.k
	record := k.record(ArgElements, element, ElementSize)
	first := k.LoadN(ptx.U32, 2, record, ElementFactor)
	k.Into(o.width).Load(ptx.U32, record, ElementWidth)
	k.Into(o.count).Mad(k.Load(ptx.U32, record, ElementWide), wideCount, first[1])
	k.Into(o.factor).At(k.arg(ArgFactors), first[0], FactorSize)
}

// factors is the number of factors of the element.
func (o *operands) factors() ptx.Value { return o.k.And(o.count, wideCount-1) }

// eachCount emits what do emits for elements of 1, 2 and 3 factors that are multiplied
// bare, and of n = 0 for all others.
func (o *operands) eachCount(do func(n int)) {
	k := o.k
	k.IfElse(k.Eq(o.count, 2), func() { do(2) }, func() {
		k.IfElse(k.Eq(o.count, 1), func() { do(1) }, func() {
			k.IfElse(k.Eq(o.count, 3), func() { do(3) }, func() { do(0) })
		})
	})
}

// eachFactor goes through the factors of the element.
func (o *operands) eachFactor(do func(factor ptx.Value)) {
	k := o.k
	k.For(ptx.U32, 0, o.factors(), 1, func(i ptx.Value) { do(k.At(o.factor, i, FactorSize)) })
}

// place is where a factor's values stand.
type place struct {
	kind  ptx.Value // U32
	start ptx.Value // U64: its first value, or the first of its table
	side  ptx.Value // U64: its first exponent, or the first code of its column
	modes ptx.Value // U64, in a filled kernel: where those of a table begin
}

// place reads the record of a factor.
func (k *kernel) place(factor ptx.Value, offset int) place {
	first := k.Load(ptx.U64, factor, offset+FactorBase)
	rest := k.LoadN(ptx.U32, 2, factor, offset+FactorKind)
	p := place{kind: rest[0], start: k.Var(ptx.U64), side: k.Var(ptx.U64)}
	if k.filled {
		p.modes = k.modesAt(factor, offset+FactorModes)
	}
	k.IfElse(k.Eq(p.kind, StoredFactor), func() {
		k.Into(p.start).At(k.arg(ArgVal), first, 4)
		k.Into(p.side).At(k.arg(ArgExp), rest[1], 4)
	}, func() {
		k.Into(p.start).At(k.arg(ArgParams), first, 4)
		k.Into(p.side).At(k.arg(ArgCodes), rest[1], k.codeBytes())
	})
	return p
}

// locate sets at, unless it is nil, to the places of a factor's rows, and adds
// their exponents to sums, unless that is nil.
func (o *operands) locate(p place, at []ptx.Value, sums []exponentSum) {
	k := o.k
	pitch := k.Mul(o.width, 4)
	k.IfElse(k.Eq(p.kind, StoredFactor), func() { o.locateStored(p.start, p.side, at, sums) }, func() {
		if at != nil {
			var missing, modes ptx.Value
			if k.filled {
				missing, modes = k.Load(ptx.U32, p.modes, 0), k.Add(p.modes, 4*ModesHead)
			}
			for i, r := range o.rows {
				code := k.code(p.side, r)
				k.Into(at[i]).MadWide(code, pitch, p.start)
				if k.filled {
					k.Into(at[i]).Select(k.Eq(code, missing), modes, at[i])
				}
			}
		}
	})
}

// locateStored is locate for stored values from an address on.
func (o *operands) locateStored(start, exps ptx.Value, at []ptx.Value, sums []exponentSum) {
	k := o.k
	if at != nil {
		pitch := k.Mul(o.width, 4)
		for i, r := range o.rows {
			k.Into(at[i]).MadWide(r, pitch, start)
		}
	}
	if sums != nil {
		for i, r := range o.rows {
			k.addTo(sums[i], k.Load(ptx.S32, k.At(exps, r, 4), 0))
		}
	}
}

// align sets the scales to those under a sum whose exponents are exps, by row.
func (o *operands) align(exps []ptx.Value) {
	k := o.k
	for i, e := range exps {
		k.Into(o.shift[i]).Sub(o.base[i], e)
		k.Set(o.scale[i], k.pow2(o.shift[i]))
	}
}

// pow2 returns 2^n, 0 below 2^-126 and at most 2^127, for an S32.
func (k *kernel) pow2(n ptx.Value) ptx.Value {
	n = k.Max(k.Min(n, 127), -127)
	return k.Shl(k.Add(n, 127), 23).As(ptx.F32)
}

// floats reads n adjacent floats, 1, 2 or 4.
func (k *kernel) floats(n int, addr ptx.Value, offset int) []ptx.Value {
	if n == 1 {
		return []ptx.Value{k.Load(ptx.F32, addr, offset)}
	}
	return k.LoadN(ptx.F32, n, addr, offset)
}

// ownExps returns the exponents that n adjacent values from an address on have of their
// own, F32: they stand exps floats further, or are 0 where that is 0.
func (k *kernel) ownExps(n int, exps, start ptx.Value) []ptx.Value {
	own := k.zeros(1, n)[0]
	k.If(k.Ne(exps, 0), func() {
		for j, x := range k.floats(n, k.At(start, exps, 4), 0) {
			k.Set(own[j], x)
		}
	})
	return own
}

// putFloats writes 1, 2 or 4 adjacent floats.
func (k *kernel) putFloats(addr ptx.Value, offset int, xs []ptx.Value) {
	if len(xs) == 1 {
		k.Store(ptx.F32, addr, offset, xs[0])
		return
	}
	k.StoreN(ptx.F32, addr, offset, xs)
}

// bare returns, by row, the products of mantissas of n factors in the units from
// column on.
func (o *operands) bare(n int, column ptx.Value) [][]ptx.Value {
	k := o.k
	read := make([][][]ptx.Value, n)
	for f := range n {
		for _, a := range o.at[f] {
			read[f] = append(read[f], k.floats(o.vector, k.At(a, column, 4), 0))
		}
	}
	for f := 1; f < n; f++ {
		for i := range o.rows {
			for j, x := range read[f][i] {
				read[0][i][j] = k.Mul(read[0][i][j], x)
			}
		}
	}
	return read[0]
}

// The bits of 1 times 2^24, and the number of its exponent.
const (
	carryBits = 0x4b800000
	carryExp  = 127 + 24
)

// wide returns the products of any number of factors in one row as mantissas in
// [2^24, 2^25) and exponents, at most Lost for a product of 0.
func (o *operands) wide(row int, column ptx.Value) (mantissas, exps []ptx.Value) {
	k := o.k
	one := *o
	one.rows = o.rows[row : row+1]
	at := k.Vars(ptx.U64, 1)
	mantissas, exps = k.Vars(ptx.F32, o.vector), k.Vars(ptx.S32, o.vector)
	for j, m := range mantissas {
		k.Set(m, 0x1p24)
		k.Set(exps[j], 0)
	}
	o.eachFactor(func(factor ptx.Value) {
		place := k.place(factor, 0)
		one.locate(place, at, nil)
		start := k.At(at[0], column, 4)
		own := k.Load(ptx.U32, factor, FactorExps)
		if k.filled { // modes have no exponents
			own = k.Select(k.Eq(at[0], k.Add(place.modes, 4*ModesHead)), 0, own)
		}
		for j, f := range k.floats(o.vector, start, 0) {
			m, x := mantissas[j], exps[j]
			// The carried 2^24 keeps the product of a subnormal number normal.
			p := k.Mul(m, f).As(ptx.S32)
			e := k.Shr(p, 23)
			sum := k.AddSat(x, k.Sub(e, carryExp))
			zero, fraction := k.Eq(e, 0), k.And(p, 0x7fffff)
			k.Into(x).Select(zero, none, sum)
			k.Into(m).Or(fraction, carryBits)
		}
		k.If(k.Ne(own, 0), func() {
			for j, e := range k.floats(o.vector, k.At(start, own, 4), 0) {
				k.Into(exps[j]).AddSat(exps[j], k.Cvt(ptx.S32, e, "rzi"))
			}
		})
	})
	return mantissas, exps
}

// form returns, by row, the operands in the units from column on: products under
// the exponents that align has set.
func (o *operands) form(column ptx.Value) [][]ptx.Value {
	k := o.k
	out := make([][]ptx.Value, len(o.rows))
	for i := range out {
		out[i] = k.Vars(ptx.F32, o.vector)
	}
	o.eachCount(func(n int) {
		if n > 0 {
			for i, row := range o.bare(n, column) {
				for j, p := range row {
					k.Into(out[i][j]).Mul(p, o.scale[i])
				}
			}
			return
		}
		for i := range out {
			for j, x := range o.formWide(i, column) {
				k.Set(out[i][j], x)
			}
		}
	})
	return out
}

// formWide is form for a row of an element of any number of factors.
func (o *operands) formWide(row int, column ptx.Value) []ptx.Value {
	k := o.k
	mantissas, exps := o.wide(row, column)
	for j, m := range mantissas {
		up := k.pow2(k.AddSat(exps[j], o.shift[row]))
		m = k.Mul(m, 0x1p-24)
		mantissas[j] = k.Mul(m, up)
	}
	return mantissas
}

// logs returns the logs to the base 2 of the operands of one row, which is marked,
// in the units from column on, less exp. As in logOperand whole parts and rests are added up
// apart: factors may be far below the largest of their vectors, and a float of such a log has no
// digits left for what is less than 1.
func (o *operands) logs(column, exp ptx.Value) []ptx.Value {
	k := o.k
	rests, wholes := k.zeros(1, o.vector)[0], k.Vars(ptx.S32, o.vector)
	for _, w := range wholes {
		k.Set(w, 0)
	}
	at := k.Mov(ptx.U64, 0)
	base := exponentSum{k.Var(ptx.S32), k.Var(ptx.S32)}
	k.start(base)
	o.eachFactor(func(factor ptx.Value) {
		p := k.place(factor, 0)
		o.locate(p, []ptx.Value{at}, []exponentSum{base})
		table := k.Eq(p.kind, TableFactor)
		start := k.At(at, column, 4)
		// Marked rows have logs for values, whatever exponents these have in others.
		own := k.ownExps(o.vector, k.Select(table, k.Load(ptx.U32, factor, FactorExps), 0), start)
		for j, x := range k.floats(o.vector, start, 0) {
			x = k.Select(table, k.Lg2(x), x)
			floor := k.Max(k.Cvt(ptx.F32, x, "rmi"), none) // of 0 the rest is -Inf
			k.Into(rests[j]).Add(rests[j], k.Sub(x, floor))
			whole := k.AddSat(k.Cvt(ptx.S32, floor, "rzi"), k.Cvt(ptx.S32, own[j], "rzi"))
			k.Into(wholes[j]).AddSat(wholes[j], whole)
		}
	})
	up := k.Sub(k.settle(base), exp)
	for j, rest := range rests {
		k.Into(rest).Add(rest, k.Cvt(ptx.F32, k.AddSat(wholes[j], up), "rn"))
	}
	return rests
}

// fit raises top, by row, to the exponent of the largest product of the element
// among the units that this thread sees: a vector in each chunk from column on. It
// hands bare products to keep, unless that is nil, by row, with the column of the first.
func (o *operands) fit(column ptx.Value, top []ptx.Value, keep func(c ptx.Value, rows [][]ptx.Value)) {
	k := o.k
	raise := func(i int, exp, exists ptx.Value) {
		sum := k.Select(exists, k.addExponents(exp, o.base[i]), none)
		k.Into(top[i]).Max(top[i], sum)
	}
	o.eachCount(func(n int) {
		if n > 0 {
			most := k.Vars(ptx.F32, len(o.rows))
			for _, m := range most {
				k.Set(m, 0.0)
			}
			k.For(ptx.U32, column, o.width, o.chunk(), func(c ptx.Value) {
				rows := o.bare(n, c)
				for i, row := range rows {
					for _, p := range row {
						k.Into(most[i]).Max(most[i], p)
					}
				}
				if keep != nil {
					keep(c, rows)
				}
			})
			for i, m := range most {
				e := k.Shr(m.As(ptx.S32), 23)
				raise(i, k.Sub(e, 127), k.Ne(e, 0))
			}
			return
		}
		most := k.Vars(ptx.S32, len(o.rows))
		for _, m := range most {
			k.Set(m, none)
		}
		k.For(ptx.U32, column, o.width, o.chunk(), func(c ptx.Value) {
			for i := range o.rows {
				_, exps := o.wide(i, c)
				for _, x := range exps {
					k.Into(most[i]).Max(most[i], x)
				}
			}
		})
		for i, m := range most {
			raise(i, m, k.Gt(m, Lost))
		}
	})
}

// fitted is how the rows of a sum are scaled, by row.
type fitted struct {
	exp   []ptx.Value // S32
	empty []ptx.Value // Pred: no operand is positive
	lost  []ptx.Value // S32: by how many bits bare products were scaled up at most, 0 or more
}

// fitSum chooses the exponents of rows for a sum, given by its address; column is
// the first unit that this thread sees.
func (o *operands) fitSum(sum, column ptx.Value) fitted {
	return o.fitElements(sum, func(top []ptx.Value) { o.fit(column, top, nil) })
}

// isBare reports whether the products of the element are multiplied bare.
func (o *operands) isBare() ptx.Value { return o.k.Le(o.k.Sub(o.count, 1), BareFactors-1) }

// fitElements is fitSum with a fit of its own for the element that is open.
func (o *operands) fitElements(sum ptx.Value, fit func(top []ptx.Value)) fitted {
	k := o.k
	top, base := k.Vars(ptx.S32, len(o.rows)), k.Vars(ptx.S32, len(o.rows))
	for i := range top {
		k.Set(top[i], none)
		k.Set(base[i], none)
	}
	first := k.Load(ptx.U32, sum, SumElement)
	end := k.Add(first, k.Load(ptx.U32, sum, SumElements))
	k.For(ptx.U32, first, end, 1, func(e ptx.Value) {
		o.open(e)
		fit(top)
		bare := o.isBare()
		for i, b := range o.base {
			b = k.Select(bare, b, none)
			k.Into(base[i]).Max(base[i], b)
		}
	})
	var f fitted
	for i, t := range top {
		for d := o.lanes / 2; d > 0; d /= 2 {
			t = k.Max(t, k.Shuffle("bfly", t, d))
		}
		empty := k.Lt(t, Lost)
		exp := k.Select(empty, 0, t)
		f.exp = append(f.exp, exp)
		f.empty = append(f.empty, empty)
		f.lost = append(f.lost, k.Max(k.SubSat(base[i], exp), 0))
	}
	return f
}

// rowTile is the rows of a block of threads: with l lanes, a thread forms operands in
// rows t/l + n·i, with n an l-th of the threads, and in units (t mod l)·vector of a chunk.
type rowTile struct {
	apart int         // n
	rows  ptx.Value   // U32, of the launch
	first ptx.Value   // U32, of the block
	lane  ptx.Value   // U32, t mod l
	line  ptx.Value   // U32, t/l
	unit  ptx.Value   // U32, first unit in a chunk
	row   []ptx.Value // U32, the thread's rows
	real  []ptx.Value // Pred: the row exists
	read  []ptx.Value // U32, the thread's rows, or the last that exists
}

// tileThreads is the number of threads of a block of the kernels on row tiles.
const tileThreads = 128

// worker is the number of this thread among those of a row tile's product: a block of
// threads may do several.
func (k *kernel) worker() ptx.Value { return k.And(k.Special("%tid.x"), tileThreads-1) }

// rowTile finds the rows of a block of threads, of which lanes share a row.
func (k *kernel) rowTile(threads, rows int) *rowTile { return k.rowTileOf(threads, rows, lanes) }

// rowTileOf is rowTile with a number of lanes.
func (k *kernel) rowTileOf(threads, rows, lanes int) *rowTile {
	tid := k.Special("%tid.x")
	t := &rowTile{apart: threads / lanes, rows: k.control(ptx.U32, ControlRows), first: k.Mul(k.Special("%ctaid.y"), rows)}
	t.lane, t.line = k.And(tid, lanes-1), k.Div(tid, lanes)
	t.unit = k.Mul(t.lane, k.vector())
	last := k.Sub(t.rows, 1)
	for i := range rows / t.apart {
		r := k.Add(k.Add(t.first, t.line), i*t.apart)
		t.row = append(t.row, r)
		t.real = append(t.real, k.Lt(r, t.rows))
		t.read = append(t.read, k.Min(r, last))
	}
	return t
}
