package tensor

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/layers"
)

// walkRows is the number of rows that a thread takes down at a time.
const walkRows = 32

// walker takes rows from the root down to one unit of each input. Each row writes to
// places of its own, so any thread may take it.
type walker struct {
	*executor
	choose choice
}

// choice returns the column of the operand that a unit of a sum takes in a row, -1 if
// none has a value.
type choice func(w *worker, t *task, row, unit int, o operands) int

// operands are those of a sum in a row: their natural logs or, where that is nil, their
// values under a common exponent.
type operands struct {
	values []float32
	logs   []float64
}

// walk takes all rows of the call down.
func (x *executor) walk(choose choice) {
	k, rows := &walker{x, choose}, x.call.rows
	x.share((rows+walkRows-1)/walkRows, func(w *worker, i int) {
		k.descend(w, i*walkRows, min((i+1)*walkRows, rows))
	})
}

// roomForUnits checks that units have room for what unitsTaken sets.
func (x *executor) roomForUnits(rows int, units []int32) error {
	if n := rows * len(x.prog.Watched()); len(units) < n {
		return tooShort("units", len(units), n)
	}
	return nil
}

// unitsTaken sets the units that rows have taken of the watched inputs, [watched, rows].
func (x *executor) unitsTaken(units []int32) {
	for i, f := range x.prog.Watched() {
		for r, u := range x.takenOf(x.prog.Inputs[f].Vector)[:x.call.rows] {
			units[i*x.call.rows+r] = u - 1
		}
	}
}

// share gives the numbers below n out to the threads, of which the first n at most take some.
func (x *executor) share(n int, do func(w *worker, i int)) {
	var next atomic.Int64
	work := func(w *worker) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(w, i)
		}
	}
	var wg sync.WaitGroup
	for _, w := range x.workers[1:max(1, min(n, len(x.workers)))] {
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
func (k *walker) descend(w *worker, lo, hi int) {
	p := k.prog
	for v := range p.Vectors {
		clear(k.takenOf(int32(v))[lo:hi])
	}
	root := k.takenOf(p.Root)
	for r := lo; r < hi; r++ {
		if !math.IsInf(k.logValue(p.Root, r, 0), -1) {
			root[r] = 1
		}
	}
	for i := len(k.tasks) - 1; i >= 0; i-- {
		t := &k.tasks[i]
		taken := k.takenOf(t.vec)
		switch t.kind {
		case layers.StoredVector:
			for r := lo; r < hi; r++ {
				if u := taken[r]; u > 0 {
					k.hand(&t.elems[0], r, u-1)
				}
			}
		case layers.SumVector:
			for r := lo; r < hi; r++ {
				n := 0
				for r+n < hi && taken[r+n] > 0 {
					n++
				}
				if n > 0 {
					k.sum(w, t, r, n, taken)
					r += n
				}
			}
		}
	}
}

// hand gives a unit of an element to its factors.
func (k *walker) hand(e *elem, row int, unit int32) {
	for i := range e.factors {
		k.takenOf(e.factors[i].vec)[row] = unit + 1
	}
}

// sum takes an operand of a sum in each of n rows from r on.
func (k *walker) sum(w *worker, t *task, r, n int, taken []int32) {
	at := 0
	if w.parts > 1 { // the others are at other sums, and w.e has room for all rows of any
		at = r * (len(w.e) / k.rowsMax)
	}
	formed := w.e[at:][:n*t.cols]
	k.form(w, t, r, n, formed)
	for i := range n {
		row := r + i
		o := operands{values: formed[i*t.cols:][:t.cols]}
		if entry, _ := k.logs.get(t.vec, row); entry != nil {
			o.logs = entry.operands
		}
		col := k.choose(w, t, row, int(taken[row]-1), o)
		if col < 0 {
			continue
		}
		e := len(t.elems) - 1
		for t.elems[e].col > col {
			e--
		}
		k.hand(&t.elems[e], row, int32(col-t.elems[e].col))
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
