package tensor

import (
	"math"
	"slices"
	"sort"

	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// sampler draws the missing cells of a call.
type sampler struct {
	*executor
	draws tensor.Draws
}

// sample draws the missing cells of the rows that forward has evaluated.
func (x *executor) sample(rows int, a *tensor.SampleArgs) error {
	if err := x.begin(rows, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if err := x.roomForUnits(rows, a.Units); err != nil {
		return err
	}
	x.needValues()
	s := &sampler{x, tensor.NewDraws(a.Seed, a.First)}
	x.walk(s.choose)
	x.share(len(x.prog.Inputs), func(w *worker, i int) { s.input(w, &x.prog.Inputs[i]) })
	x.unitsTaken(a.Units)
	return nil
}

// choose is the choice of an operand in proportion to weight times value.
func (s *sampler) choose(w *worker, t *task, row, unit int, o operands) int {
	runs, uniform := t.sum.rowOf(unit/s.size*s.size), s.draws.Row(row).Uniform(t.vec)
	if o.logs != nil {
		return s.drawLog(w, runs, unit%s.size, o.logs, uniform)
	}
	return s.draw(w, runs, unit%s.size, o.values, uniform)
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
// more take one of them, of at most groupCodes codes. Else a row's sum is kept for every sumCodes codes.
const (
	groupUnits = 16
	groupRows  = 4
	groupCodes = 4096
	sumCodes   = 64
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
			codes.set(r, s.code(w, in, int(taken[r])-1, s.draws.Row(r).Uniform(in.Vector)))
		}
	}
}

// code draws a code of a unit. Sums up to every sumCodes-th code tell which of them the second pass needs; a domain may
// have so many codes that their own sums would take more memory than the kernels hold.
func (s *sampler) code(w *worker, in *layers.Input, unit int, uniform float64) int {
	n, total := int(in.Codes), 0.0
	w.sums = w.sums[:0]
	for c := range n {
		if c%sumCodes == 0 {
			w.sums = append(w.sums, total)
		}
		total += s.prob(in, c, unit)
	}
	pick := uniform * total
	above := sort.Search(len(w.sums)-1, func(k int) bool { return w.sums[k+1] > pick })
	c := above * sumCodes
	for acc := w.sums[above] + s.prob(in, c, unit); c < n-1 && !(acc > pick); c++ {
		acc += s.prob(in, c+1, unit)
	}
	return c
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
