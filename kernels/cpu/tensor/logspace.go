package tensor

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// logStore keeps the rows of vectors that were recomputed in log space: those
// with a value too small, next to the row's largest, for a shared exponent.
type logStore struct {
	rowsMax int
	counts  []atomic.Int32 // by vector: rows in log space
	index   []int32        // [vector][rowsMax]: place in the vector's entries plus 1, allZero, or 0
	mu      sync.Mutex     // guards entries
	entries [][]*logEntry  // by vector; those past its rows in log space are of earlier calls, and used once more
}

// allZero is the index of a row without a unit above 0. It keeps nothing: circuits that exclude most of their parts in every row have
// one for nearly every row and vector.
const allZero = -1

// logEntry is one row of one vector.
type logEntry struct {
	log      []float64 // natural logs of the units
	operands []float64 // natural logs of a sum's operands
	flow     []float32 // flows of the units, in the backward pass
}

func (s *logStore) init(vectors, rowsMax int) {
	s.rowsMax = rowsMax
	s.counts = make([]atomic.Int32, vectors)
	s.index = make([]int32, vectors*rowsMax)
	s.entries = make([][]*logEntry, vectors)
}

func (s *logStore) reset() {
	for v := range s.counts {
		if s.counts[v].Load() == 0 {
			continue
		}
		clear(s.index[v*s.rowsMax : (v+1)*s.rowsMax])
		s.entries[v] = s.entries[v][:0]
		s.counts[v].Store(0)
	}
}

// put keeps copies of the logs of a row and, for a sum, of its operands.
func (s *logStore) put(vec int32, row int, logs, operands []float64) {
	at := int(vec)*s.rowsMax + row
	if math.IsInf(slices.Max(logs), -1) {
		s.index[at] = allZero
	} else {
		e, n := s.entry(vec)
		e.log, e.operands = append(e.log[:0], logs...), append(e.operands[:0], operands...)
		s.index[at] = n
	}
	s.counts[vec].Add(1)
}

// entry returns one more entry of a vector, and the number of its entries.
func (s *logStore) entry(vec int32) (*logEntry, int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.entries[vec]
	n := len(list)
	if n < cap(list) {
		list = list[:n+1]
	} else {
		list = append(list, nil)
	}
	if list[n] == nil {
		list[n] = &logEntry{}
	}
	s.entries[vec] = list
	return list[n], int32(n + 1)
}

// get reports whether a row is in log space, and returns its entry, nil where all of its units are 0.
func (s *logStore) get(vec int32, row int) (e *logEntry, in bool) {
	if s.counts[vec].Load() == 0 {
		return nil, false
	}
	switch i := s.index[int(vec)*s.rowsMax+row]; i {
	case 0, allZero:
		return nil, i == allZero
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.entries[vec][i-1], true
	}
}

// any reports whether a vector that a task reads has rows in log space.
func (s *logStore) any(t *task) bool {
	for i := range t.elems {
		for k := range t.elems[i].factors {
			if s.counts[t.elems[i].factors[k].vec].Load() > 0 {
				return true
			}
		}
	}
	return false
}

// operandInLog reports whether a factor of a task is in log space in a row.
func (s *logStore) operandInLog(t *task, row int) bool {
	for i := range t.elems {
		for k := range t.elems[i].factors {
			v := t.elems[i].factors[k].vec
			if s.counts[v].Load() > 0 && s.index[int(v)*s.rowsMax+row] != 0 {
				return true
			}
		}
	}
	return false
}

// lostLog is the natural log that logs end at, as exponents do: what lies below is
// -Inf. Near it a float64 still tells logs apart that differ by 10^-6.
const lostLog = micro.Lost * math.Ln2

// held returns a natural log, or -Inf for one that is lost.
func held(l float64) float64 {
	if l < lostLog {
		return math.Inf(-1)
	}
	return l
}

// logValue returns the natural log of a unit's value in a row.
func (x *executor) logValue(v int32, row, unit int) float64 {
	vec := &x.prog.Vectors[v]
	if vec.Kind == layers.InputVector {
		in := &x.prog.Inputs[vec.Def]
		if in.Codes > 0 {
			code := x.columnCodes(in).at(row)
			if x.call.peaks != nil && code == in.Codes {
				return held(x.logPeak(in, unit))
			}
			m, e := x.tabulated(in, int(code), unit)
			return held(math.Log(m) + e*math.Ln2)
		}
		return held(x.logDensity(in, row, unit, x.unitParams(in, unit, nil)))
	}
	if e, in := x.logs.get(v, row); e != nil {
		return e.log[unit]
	} else if in {
		return math.Inf(-1)
	}
	if vec.Kind == layers.StoredVector { // its mantissas may have vanished next to the row's largest
		sum := 0.0
		for _, f := range x.prog.ElementFactors(x.prog.Stored[vec.Def].Element) {
			sum = held(sum + x.logValue(f, row, unit))
		}
		return sum
	}
	e := x.exp(v)[row]
	if e == micro.Lost {
		return math.Inf(-1)
	}
	return math.Log(float64(x.value(v, row)[unit])) + float64(e)*math.Ln2
}

// tabulated returns the probability m·2^e of a code of a unit.
func (x *executor) tabulated(in *layers.Input, code, unit int) (m, e float64) {
	at := int64(code*x.prog.Width(in.Vector) + unit)
	if in.Exps >= 0 {
		e = float64(x.call.params[in.Exps+at])
	}
	return float64(x.call.params[in.Table+at]), e
}

// logOperands writes the natural logs of a row's operands to w.logE, padding
// as -Inf.
func (x *executor) logOperands(w *worker, t *task, row int) {
	w.logE = slices.Grow(w.logE[:0], t.cols)[:t.cols]
	for i := range t.elems {
		e := &t.elems[i]
		out := w.logE[e.col : e.col+e.width]
		for u := range out {
			out[u] = 0
			if u >= e.units {
				out[u] = math.Inf(-1)
			}
		}
		for k := range e.factors {
			for u := range e.units {
				out[u] = held(out[u] + x.logValue(e.factors[k].vec, row, u))
			}
		}
	}
}

// fillOperands scales w.logE to a row of operands and sets the exponent of the
// task's vector.
func (x *executor) fillOperands(w *worker, t *task, row int, out []float32) {
	top := slices.Max(w.logE)
	if math.IsInf(top, -1) {
		clear(out[:t.cols])
		x.exp(t.vec)[row] = 0
		return
	}
	ex := math.Floor(top / math.Ln2)
	x.exp(t.vec)[row] = micro.Exponent(ex)
	for i, l := range w.logE {
		out[i] = float32(math.Exp(l - ex*math.Ln2))
	}
}

// recheck recomputes in log space those rows of a tile whose outputs are not
// to be trusted.
func (x *executor) recheck(w *worker, t *task, r, n int) {
	for row := r; row < r+n; row++ {
		low := int32(0)
		inLog := x.logs.operandInLog(t, row)
		zero, rounded := true, false
		for i := range t.elems {
			e := &t.elems[i]
			s := x.shiftOf(e.id)[row]
			if s != micro.ZeroRow {
				zero = false
				rounded = rounded || e.rounded(s)
				if !e.wide && !inLog {
					low = min(low, s)
				}
			} else if !inLog {
				low = min(low, x.exp(t.vec)[row]-x.exponents(e, row))
			}
		}
		limit := float32(t.cols) * trust * exp2neg(low)
		bad := (zero || rounded) && !inLog
		if !bad && trusted(x.value(t.vec, row)[:t.units], limit) {
			continue
		}
		x.logOperands(w, t, row)
		if !bad && x.zerosAlone(w, t, row, limit) {
			continue
		}
		x.logSum(w, t)
		x.logs.put(t.vec, row, w.logS, w.logE)
		x.recomputed.Add(1)
	}
}

// trusted reports whether all outputs of a row are at least limit.
func trusted(outputs []float32, limit float32) bool {
	for _, o := range outputs {
		if !(o >= limit) {
			return false
		}
	}
	return true
}

// zerosAlone reports whether the outputs of a row below limit are exact, as in a chain that excludes states: they are 0, and w.logE, the
// logs of the operands, has nothing that they weigh. The row has one output of limit or more, which its exponent is about.
func (x *executor) zerosAlone(w *worker, t *task, row int, limit float32) bool {
	some := false
	for u, o := range x.value(t.vec, row)[:t.units] {
		if o >= limit {
			some = true
			continue
		}
		exact := o == 0
		x.eachWeight(t, u, u+1, func(_, j int, _ float64) { exact = exact && math.IsInf(w.logE[j], -1) })
		if !exact {
			return false
		}
	}
	return some
}

// leastWide is the shift below which a wide product is not taken as it is. Kernels add the
// exponents of its factors up as float32, which has all whole numbers to 2^24.
const leastWide = -1 << 23

// rounded reports whether a product of that shift may have lost the lowest bits of its exponents.
func (e *elem) rounded(shift int32) bool {
	return e.wide && shift < leastWide && shift != micro.ZeroRow
}

// exponents adds up the exponents of an element's factors in a row.
func (x *executor) exponents(e *elem, row int) (sum int32) {
	for i := range e.factors {
		if f := &e.factors[i]; f.input < 0 {
			sum = micro.AddExponents(sum, x.exp(f.vec)[row])
		}
	}
	return sum
}

// logSum computes the outputs of a sum from w.logE in log space, to w.logS, the
// largest terms where the call wants these. It is the definition of the sum kernels.
func (x *executor) logSum(w *worker, t *task) {
	w.logS = slices.Grow(w.logS[:0], t.units)[:t.units]
	top := slices.Max(w.logE)
	for u := range w.logS {
		w.logS[u] = math.Inf(-1)
	}
	if math.IsInf(top, -1) {
		return
	}
	if x.call.most {
		x.eachWeight(t, 0, t.units, func(i, j int, theta float64) {
			w.logS[i] = max(w.logS[i], held(math.Log(theta)+w.logE[j]))
		})
		return
	}
	w.linearS, w.linearE = slices.Grow(w.linearS[:0], t.width)[:t.width], slices.Grow(w.linearE[:0], t.cols)[:t.cols]
	sum, lin := w.linearS, w.linearE
	clear(sum)
	for j, l := range w.logE {
		lin[j] = math.Exp(l - top)
	}
	x.eachWeight(t, 0, t.width, func(i, j int, theta float64) { sum[i] += theta * lin[j] })
	for u := range w.logS {
		switch {
		case sum[u] > 1e-280:
			w.logS[u] = held(top + math.Log(sum[u]))
		default: // even float64 has lost terms: the largest of this unit alone sets the scale
			best := math.Inf(-1)
			x.eachWeight(t, u, u+1, func(_, j int, theta float64) { best = max(best, math.Log(theta)+w.logE[j]) })
			if math.IsInf(best, -1) {
				continue
			}
			s := 0.0
			x.eachWeight(t, u, u+1, func(_, j int, theta float64) { s += math.Exp(math.Log(theta) + w.logE[j] - best) })
			w.logS[u] = held(best + math.Log(s))
		}
	}
}

// eachWeight calls do for every non-zero weight of the units lo..hi-1 of a sum,
// with the unit, the column and the weight.
func (x *executor) eachWeight(t *task, lo, hi int, do func(i, j int, theta float64)) {
	for k := range t.sum.back {
		run := &t.sum.back[k]
		base := x.prog.ParamOffset(run.param)
		for i := max(lo, run.row); i < min(hi, run.row+run.n); i++ {
			at := base + int64((i-run.row)*x.size)
			for j, theta := range x.call.params[at : at+int64(x.size)] {
				if theta != 0 {
					do(i, run.col+j, float64(theta))
				}
			}
		}
	}
}

// inspect copies the log values of a vector.
func (x *executor) inspect(rows int, a *tensor.InspectArgs) error {
	if err := x.begin(rows, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if a.Vector < 0 || a.Vector >= len(x.prog.Vectors) {
		return fmt.Errorf("%w: cpu: inspection of vector %d, want 0..%d", kernels.ErrDevice, a.Vector, len(x.prog.Vectors)-1)
	}
	x.needValues()
	units := int(x.prog.Vectors[a.Vector].Units)
	if len(a.Log) < rows*units {
		return tooShort("log values", len(a.Log), rows*units)
	}
	for r := range rows {
		for u := range units {
			a.Log[r*units+u] = x.logValue(int32(a.Vector), r, u)
		}
	}
	return nil
}
