package codec

import (
	"math/bits"

	"github.com/pce-engine/pce/codec/lanes"
)

// absent is the code of a cell that is not coded: it is missing, or the file has no
// column for it.
const absent = -1

// cellCoder codes one cell, as a symbol of that many codes. Encoding gets the code and
// returns it; decoding returns what it reads.
type cellCoder interface {
	cell(d *distribution, code int) int
}

// distribution is p(x, cells coded before) of a variable of one row, for every code x,
// which is only evaluated where it is asked for.
type distribution struct {
	codes  int
	parts  []part // by input of the variable
	all    float64
	scale  float64 // from probability to the numbers of a coder; 0 makes codes equally probable
	spread uint64  // what is divided by probability; each code gets 1 more

	guess int // code that may be the one

	// possible is set by the coder: the code has a probability. A cell without one says
	// nothing about those to come: it counts as missing, and they keep the distribution
	// that they had.
	possible bool
}

// part is the outside of an input for one row, and the input's table.
type part struct {
	outside []float64
	table   *table
}

// minAll is the least probability that can be divided by: what is below it has lost
// digits, or is 0 because the cells before are impossible together.
const minAll = 0x1p-900

func (d *distribution) begin() {
	d.spread = whole - uint64(d.codes)
	d.all, d.scale = 0, 0
	for _, p := range d.parts {
		d.all += lanes.Total(p.outside)
	}
	if d.all >= minAll {
		d.scale = float64(d.spread) / d.all
	}
}

// below returns the probability of the codes below x.
func (d *distribution) below(x int) float64 {
	switch x {
	case 0:
		return 0
	case d.codes:
		return d.all
	}
	sum := 0.0
	for _, p := range d.parts {
		sum += lanes.Dot(p.outside, p.table.row(x))
	}
	return sum
}

// start returns where the interval of code x begins, whose codes below have the
// probability p. It grows by 1 or more from code to code.
func (d *distribution) start(x int, p float64) uint64 {
	switch {
	case x == d.codes:
		return whole
	case d.scale == 0:
		return uint64(x) * (whole / uint64(d.codes))
	}
	return min(uint64(float64(p*d.scale)), d.spread) + uint64(x)
}

func (e *encoder) cell(d *distribution, code int) int {
	lo, hi := d.below(code), d.below(code+1)
	d.possible = lo < hi
	e.encode(d.start(code, lo), d.start(code+1, hi))
	return code
}

// cell searches for the code whose interval holds the target: first around the guess, then
// at the codes with the most zeros at their end, which state.fetch expects. Where it looks
// changes nothing but the time.
func (c *decoder) cell(d *distribution, _ int) int {
	target := c.target()
	code, end := 0, d.codes
	lo, hi := 0.0, d.all
	from, to := uint64(0), uint64(whole)
	for probe := 0; end-code > 1; probe++ {
		zeros := bits.Len(uint(code^(end-1))) - 1
		x := (end - 1) >> zeros << zeros // above code
		if near := d.guess + 1 - probe; probe < 2 && code < near && near < end {
			x = near
		}
		p := d.below(x)
		if at := d.start(x, p); at <= target {
			code, lo, from = x, p, at
		} else {
			end, hi, to = x, p, at
		}
	}
	d.possible = lo < hi
	c.skip(from, to)
	return code
}

// fetch asks for the rows of tables that are likely to be read at step t: those around the
// code that most rows have, and the first ones of a search. Tables are far larger than caches.
func (s *state) fetch(t int, searches bool) {
	for _, in := range s.m.plan.inputs[t] {
		table := &s.m.tables[in]
		guess := int(s.common[t].code)
		for x := max(1, guess); x <= min(guess+1, table.codes-1); x++ {
			lanes.Fetch(table.row(x))
		}
		if !searches {
			continue
		}
		step := max(1, 1<<bits.Len(uint(table.codes-1))/fetched)
		for x := step; x < table.codes; x += step {
			lanes.Fetch(table.row(x))
		}
	}
}

// fetched is how many parts the first steps of a search tell apart.
const fetched = 8

// group codes the cells of up to groupRows rows, variable by variable. codes is
// [rows][variables]; decoding fills in what is not absent.
func (s *state) group(c cellCoder, codes []int32, rows int) {
	width := len(s.m.schema.Columns)
	_, decodes := c.(*decoder)
	for t, v := range s.m.plan.vars {
		s.fetch(t, decodes)
		s.prepare(t)
		s.split(t)
		for r := range groupRows {
			if r >= rows || codes[r*width+int(v)] == absent {
				for _, in := range s.m.plan.inputs[t] {
					s.value[in].fillRow(r)
				}
				continue
			}
			cell := &codes[r*width+int(v)]
			*cell = int32(s.codeCell(c, t, r, int(*cell)))
		}
	}
	for _, v := range s.m.unread {
		d := distribution{codes: s.m.schema.Columns[v].Categories}
		for r := range rows {
			if cell := &codes[r*width+int(v)]; *cell != absent {
				*cell = int32(c.cell(&d, int(*cell)))
			}
		}
	}
}

// common is a code that most rows have at a variable, if there is one.
type common struct{ code, votes int32 }

// vote is the algorithm of Boyer and Moore.
func (c *common) vote(code int32) {
	switch {
	case code == c.code:
		c.votes = min(c.votes+1, 1<<20)
	case c.votes == 0:
		c.code = code
	default:
		c.votes--
	}
}

// split gives each row of step t the outsides of its inputs, one input after another, with
// one exponent.
func (s *state) split(t int) {
	inputs := s.m.plan.inputs[t]
	top := s.outsideOf(inputs[0]).exp
	for _, in := range inputs[1:] {
		s.outsideOf(in).highest(&top)
	}
	at := 0
	for _, in := range inputs {
		out := s.outsideOf(in)
		f := out.factors(&top)
		lanes.Split(s.rows[at:], s.stride, out.m, &f)
		at += len(out.m)
	}
}

// codeCell codes the cell of row r at step t, or decodes it and returns the code, and then
// gives the inputs of the step their values at it. state.prepare(t) has computed the rows
// before. A cell that is impossible under the model is coded as any, and counts as missing for
// the steps to come.
func (s *state) codeCell(c cellCoder, t, r, code int) int {
	inputs := s.m.plan.inputs[t]
	d := &s.cell
	*d = distribution{codes: s.m.tables[inputs[0]].codes, parts: d.parts[:0], guess: int(s.common[t].code)}
	row := s.rows[r*s.stride:]
	for _, in := range inputs {
		units := s.m.graph.Nodes[in].Units
		d.parts = append(d.parts, part{row[:units], &s.m.tables[in]})
		row = row[units:]
	}
	d.begin()
	code = c.cell(d, code)
	s.common[t].vote(int32(code))
	for _, in := range inputs {
		if d.possible {
			s.value[in].setRow(r, &s.m.tables[in], code)
		} else {
			s.value[in].fillRow(r)
		}
	}
	return code
}

// setRow sets the numbers of a row to the probabilities of a code.
func (v *vector) setRow(r int, t *table, code int) {
	v.exp[r] = 0
	switch {
	case t.codes == 1:
		v.fillRow(r)
	case code == 0:
		for u, p := range t.row(1) {
			v.m[u][r] = p
		}
	case code == t.codes-1:
		for u, p := range t.row(code) {
			v.m[u][r] = 1 - p
		}
	default:
		lo, hi := t.row(code), t.row(code+1)
		for u, p := range lo {
			v.m[u][r] = hi[u] - p
		}
	}
}
