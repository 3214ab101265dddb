package tensor

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// sampleRows is the number of rows that a thread draws at a time.
const sampleRows = 32

// sampler draws the missing cells of a call. Each row writes to places of its own, so
// any thread may draw it.
type sampler struct {
	*executor
	draws tensor.Draws
}

// sample draws the missing cells of the rows that forward has evaluated.
func (x *executor) sample(rows int, a *tensor.SampleArgs) error {
	if err := x.begin(rows, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	functions := x.prog.Functions()
	if len(a.Units) < rows*len(functions) {
		return tooShort("units", len(a.Units), rows*len(functions))
	}
	s := &sampler{x, tensor.NewDraws(a.Seed, a.First)}
	x.share((rows+sampleRows-1)/sampleRows, func(w *worker, i int) {
		s.descend(w, i*sampleRows, min((i+1)*sampleRows, rows))
	})
	x.share(len(x.prog.Inputs), func(w *worker, i int) { s.input(w, &x.prog.Inputs[i]) })
	for i, f := range functions {
		for r, u := range x.takenOf(x.prog.Inputs[f].Vector)[:rows] {
			a.Units[i*rows+r] = u - 1
		}
	}
	return nil
}

// share gives the numbers below n out to the threads.
func (x *executor) share(n int, do func(w *worker, i int)) {
	var next atomic.Int64
	work := func(w *worker) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(w, i)
		}
	}
	var wg sync.WaitGroup
	for _, w := range x.workers[1:] {
		wg.Go(func() { work(w) })
	}
	work(x.workers[0])
	wg.Wait()
}

// takenOf returns, by row, the unit of a vector that the row takes, from 1, or 0.
func (x *executor) takenOf(v int32) []int32 {
	return x.taken[int(v)*x.rowsMax : int(v)*x.rowsMax+x.rowsMax]
}

// descend takes the rows lo to hi-1 from the root down to the inputs.
func (s *sampler) descend(w *worker, lo, hi int) {
	p := s.prog
	for v := range p.Vectors {
		clear(s.takenOf(int32(v))[lo:hi])
	}
	root := s.takenOf(p.Root)
	for r := lo; r < hi; r++ {
		if !math.IsInf(s.logValue(p.Root, r, 0), -1) {
			root[r] = 1
		}
	}
	for i := len(s.tasks) - 1; i >= 0; i-- {
		t := &s.tasks[i]
		taken := s.takenOf(t.vec)
		switch t.kind {
		case layers.StoredVector:
			for r := lo; r < hi; r++ {
				if u := taken[r]; u > 0 {
					s.hand(&t.elems[0], r, u-1)
				}
			}
		case layers.SumVector:
			for r := lo; r < hi; r++ {
				n := 0
				for r+n < hi && taken[r+n] > 0 {
					n++
				}
				if n > 0 {
					s.sum(w, t, r, n, taken)
					r += n
				}
			}
		}
	}
}

// hand gives a unit of an element to its factors.
func (s *sampler) hand(e *elem, row int, unit int32) {
	for i := range e.factors {
		s.takenOf(e.factors[i].vec)[row] = unit + 1
	}
}

// sum draws an operand of a sum in each of n rows from r on.
func (s *sampler) sum(w *worker, t *task, r, n int, taken []int32) {
	at := 0
	if w.parts > 1 { // the others are at other sums, and w.e has room for all rows of any
		at = r * (len(w.e) / s.rowsMax)
	}
	operands := w.e[at:][:n*t.cols]
	s.form(w, t, r, n, operands)
	for i := range n {
		row := r + i
		unit, uniform := int(taken[row]-1), s.draws.Row(row).Uniform(t.vec)
		col := -1
		if entry := s.logs.get(t.vec, row); entry != nil {
			col = s.drawLog(w, t.sum.rowOf(unit/s.size*s.size), unit%s.size, entry.operands, uniform)
		} else {
			col = s.draw(w, t.sum.rowOf(unit/s.size*s.size), unit%s.size, operands[i*t.cols:][:t.cols], uniform)
		}
		if col < 0 {
			continue
		}
		k := len(t.elems) - 1
		for t.elems[k].col > col {
			k--
		}
		s.hand(&t.elems[k], row, int32(col-t.elems[k].col))
	}
}

// rowOf returns the runs of the row block that starts at a unit.
func (p *sumPlan) rowOf(unit int) []rowRun {
	lo, _ := slices.BinarySearchFunc(p.forward, unit, func(r rowRun, u int) int { return cmp.Compare(r.row, u) })
	hi := lo + 1
	for !p.forward[hi-1].tail {
		hi++
	}
	return p.forward[lo:hi]
}

// draw returns the column of the operand that a unit of a row block takes, -1 if
// none has a value.
func (s *sampler) draw(w *worker, runs []rowRun, unit int, operands []float32, uniform float64) int {
	size, total := s.size, 0.0
	sums := w.sums[:0] // up to the end of each tile
	for k := range runs {
		run := &runs[k]
		for i, tile := range run.tiles {
			weights := s.call.params[s.prog.ParamOffset(tile)+int64(unit*size):][:size]
			total += dot(weights, operands[run.col+i*size:][:size])
			sums = append(sums, total)
		}
	}
	w.sums = sums
	pick := uniform * total
	at, acc := 0, 0.0
	for k := range runs {
		run := &runs[k]
		for i, tile := range run.tiles {
			if !(sums[at] > pick) {
				acc = sums[at]
				at++
				continue
			}
			weights, col := s.call.params[s.prog.ParamOffset(tile)+int64(unit*size):][:size], run.col+i*size
			last := -1
			for j, theta := range weights {
				if x := float64(theta) * float64(operands[col+j]); x > 0 {
					last = col + j
					if acc += x; acc > pick {
						break
					}
				}
			}
			return last // of the tile, where another order of the sum has eaten the end
		}
	}
	return -1
}

// dot returns the sum of products.
func dot(a, b []float32) float64 {
	b = b[:len(a)]
	var s [4]float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s[0] += float64(a[i]) * float64(b[i])
		s[1] += float64(a[i+1]) * float64(b[i+1])
		s[2] += float64(a[i+2]) * float64(b[i+2])
		s[3] += float64(a[i+3]) * float64(b[i+3])
	}
	for ; i < len(a); i++ {
		s[0] += float64(a[i]) * float64(b[i])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// drawLog is draw with the natural logs of the operands.
func (s *sampler) drawLog(w *worker, runs []rowRun, unit int, operands []float64, uniform float64) int {
	size := s.size
	w.sums = w.sums[:0]
	top := math.Inf(-1)
	each := func(do func(k, col int, theta float32)) {
		k := 0
		for i := range runs {
			for j, tile := range runs[i].tiles {
				for c, theta := range s.call.params[s.prog.ParamOffset(tile)+int64(unit*size):][:size] {
					do(k, runs[i].col+j*size+c, theta)
					k++
				}
			}
		}
	}
	each(func(_, col int, theta float32) {
		l := math.Log(float64(theta)) + operands[col]
		top = max(top, l)
		w.sums = append(w.sums, l)
	})
	if math.IsInf(top, -1) {
		return -1
	}
	total := 0.0
	for k, l := range w.sums {
		total += math.Exp(l - top)
		w.sums[k] = total
	}
	pick, found := uniform*total, -1
	each(func(k, col int, _ float32) {
		if found < 0 && w.sums[k] > pick {
			found = col
		}
	})
	return found
}

// Codes of an input are drawn for groupUnits units together where groupRows rows or
// more take one of them, of at most groupCodes codes.
const (
	groupUnits = 16
	groupRows  = 4
	groupCodes = 4096
)

// input draws the missing codes of an input.
func (s *sampler) input(w *worker, in *layers.Input) {
	if in.Codes == 0 {
		return
	}
	width, n := s.prog.Width(in.Vector), int(in.Codes)
	codes, taken := s.columnCodes(in), s.takenOf(in.Vector)
	var rows []int
	for first := 0; first < width; first += groupUnits {
		rows = rows[:0]
		for r := range s.call.rows { // other inputs of the column write the codes of rows that take them
			if u := int(taken[r]) - 1; u >= first && u < first+groupUnits && codes.at(r) == in.Codes {
				rows = append(rows, r)
			}
		}
		if len(rows) >= groupRows && n <= groupCodes {
			sums := s.sumTable(w, in, first, min(groupUnits, width-first))
			for _, r := range rows {
				u := int(taken[r]) - 1 - first
				pick := s.draws.Row(r).Uniform(in.Vector) * sums[(n-1)*groupUnits+u]
				lo, hi := 0, n-1
				for lo < hi {
					if mid := (lo + hi) / 2; sums[mid*groupUnits+u] > pick {
						hi = mid
					} else {
						lo = mid + 1
					}
				}
				codes.set(r, lo)
			}
			continue
		}
		for _, r := range rows {
			u, total := int(taken[r])-1, 0.0
			for c := range n {
				total += s.prob(in, c, u)
			}
			pick, acc, c := s.draws.Row(r).Uniform(in.Vector)*total, s.prob(in, 0, u), 0
			for ; c < n-1 && !(acc > pick); c++ {
				acc += s.prob(in, c+1, u)
			}
			codes.set(r, c)
		}
	}
}

// prob returns the probability of a code of a unit.
func (s *sampler) prob(in *layers.Input, code, unit int) float64 {
	m, e := s.tabulated(in, code, unit)
	if e == 0 {
		return m
	}
	return math.Ldexp(m, int(e))
}

// sumTable adds up columns of a table, those of units units from first on, in
// order: [codes, groupUnits].
func (s *sampler) sumTable(w *worker, in *layers.Input, first, units int) []float64 {
	n := int(in.Codes)
	w.sums = slices.Grow(w.sums[:0], n*groupUnits)[:n*groupUnits]
	var acc [groupUnits]float64
	for c := range n {
		out := (*[groupUnits]float64)(w.sums[c*groupUnits:])
		for u := range units {
			acc[u] += s.prob(in, c, first+u)
		}
		*out = acc
	}
	return w.sums
}
