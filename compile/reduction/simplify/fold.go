package simplify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// unfold removes the marks of arrays that are kept in place, which mean nothing for the values: the steps
// choose anew.
func (w *worker) unfold() error {
	for _, a := range w.prog.Arrays {
		a.Fold = nil
	}
	return w.reparse()
}

// fold keeps arrays in place whose elements start from a neighbour. In
//
//	h[k,b] += h[k-1,b] : {[k,b] : 1 <= k < N, 0 <= b < B}
//	h[k,b] += x[i]     : {[k,i,b] : i+1 = k, 1 <= k < N, 0 <= b < B} if z[i] == b
//
// the first line copies all B elements for each k, and the second one changes one of them. If all that reads h[k,b] can be
// computed before h[k+1,b] is, one row of B elements is enough, and the copy is nothing to do.
func (w *worker) fold() error {
	var candidates []*reduction.Array
	for _, a := range w.prog.Arrays {
		ok, err := w.foldable(a)
		if err != nil {
			return err
		}
		if ok {
			candidates = append(candidates, a)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	if cycle, err := w.cycle(); cycle != nil || err != nil { // together they have no order, or nothing has
		if err != nil {
			return err
		}
		for _, a := range candidates {
			a.Fold = nil
		}
		if nothing, err := w.cycle(); nothing != nil || err != nil {
			return err
		}
		kept := candidates[:0]
		for _, a := range candidates {
			a.Fold = reduction.CarryOf(w.first(a))
			if cycle, err = w.cycle(); err != nil {
				return err
			}
			if cycle != nil {
				w.refuseFold(a, "some element would be updated before all that read it are computed: "+cycle.Error())
				a.Fold = nil
				continue
			}
			kept = append(kept, a)
		}
		candidates = kept
	}
	for _, a := range candidates {
		w.report.Steps = append(w.report.Steps, Step{Kind: InPlace, Array: a.Name, Statement: w.first(a).String(),
			Text: fmt.Sprintf("%s is kept in place along index %d of %d, %v", a.Name, a.Fold.Index+1, len(a.Extents), a.Fold)})
	}
	return w.reparse()
}

// foldable marks an array that could be kept in place if the order allows it.
func (w *worker) foldable(a *reduction.Array) (bool, error) {
	if a.Input || a.Fold != nil || slices.Contains(w.prog.Outputs, a.Name) { // all elements of an output are wanted
		return false, nil
	}
	f := reduction.CarryOf(w.first(a))
	if f == nil {
		return false, nil
	}
	for _, s := range w.prog.Statements {
		if s.Array == a.Name && s != w.first(a) && reduction.CarryOf(s) != nil {
			w.refuseFold(a, "it has two neighbours to start from")
			return false, nil
		}
	}
	found, where, err := w.prog.Restarts(a, f)
	if err != nil {
		return false, err
	}
	if found {
		w.refuseFold(a, "elements that do not start from their neighbour come after ones that are written"+where)
		return false, nil
	}
	a.Fold = f
	return true, nil
}

// notInPlace begins the reason of a refusal to keep an array in place.
const notInPlace = "not kept in place: "

// refuseFold reports why an array is copied.
func (w *worker) refuseFold(a *reduction.Array, reason string) {
	w.report.Refused = append(w.report.Refused, Refusal{Array: a.Name, Statement: w.first(a).String(), Reason: notInPlace + reason})
}

// first is the first statement that writes an array.
func (w *worker) first(a *reduction.Array) *reduction.Statement {
	for _, s := range w.prog.Statements {
		if s.Array == a.Name {
			return s
		}
	}
	return nil
}

// cycle returns why the elements have no order, or nil if they have one.
func (w *worker) cycle() (cycle, err error) {
	deps, err := schedule.Dependences(w.prog)
	if err != nil {
		return nil, err
	}
	if _, err = w.anyOrder(deps); errors.Is(err, schedule.ErrCycle) {
		return err, nil
	}
	return nil, err
}

// moved is a part of a statement, as sum.key, and where the neighbour is that its elements start from.
type moved struct {
	key   string
	ru    []int64
	exact bool // the sum is a count, which subtraction leaves exact
}

// rest does the steps after histograms. Where an array cannot be kept in place because its elements are computed the other
// way round than they are read, as counts of what is still to come are, and they are counts, the copies cost more than
// everything else or the array is too large, it tries the opposite neighbour, even with subtraction. So it does for counts in
// place against the direction of everything else.
func (w *worker) rest() error {
	from, err := w.clone()
	if err != nil {
		return err
	}
	if err := w.restOnce(); err != nil {
		return err
	}
	turned, err := w.worthTurning()
	if err != nil || len(turned) == 0 {
		return err
	}
	for range 2 { // again without those for which it did not help
		other, err := from.clone()
		if err != nil {
			return err
		}
		other.turned = turned
		if err := other.restOnce(); err != nil {
			return err
		}
		helped := map[string][]int64{}
		for name, m := range other.moved {
			if a := other.prog.Array(name); turned[m.key] != nil && a.Fold != nil {
				helped[m.key] = turned[m.key]
			}
		}
		if len(helped) == len(turned) {
			w.take(other)
			return nil
		}
		if turned = helped; len(turned) == 0 {
			return nil
		}
	}
	return nil
}

func (w *worker) restOnce() error {
	passes := []func() error{w.reuseSums, w.forward, w.fold, w.running, w.apart, w.parts}
	if w.elements {
		passes = []func() error{w.reuseSums, w.forward, w.parts}
	}
	for _, pass := range passes {
		if err := pass(); err != nil {
			return err
		}
	}
	return nil
}

// counts reports whether the value of an expression is a small integer or a number of points.
func (w *worker) counts(e reduction.Expr) bool {
	switch e := e.(type) {
	case *reduction.Number:
		return e.Integer && e.I <= 1<<20 && e.I >= -1<<20
	case *reduction.Read:
		s := w.first(w.prog.Array(e.Array))
		return s != nil && w.counting(s)
	}
	return false
}

// against reports whether array a, which nothing that it needs waits for, is kept in place against the direction of one that is
// computed element after element: what reads both would have to keep what it reads of a.
func (w *worker) against(a *reduction.Array) bool {
	return !w.recursive[a.Name] && slices.ContainsFunc(w.prog.Arrays, func(b *reduction.Array) bool {
		return w.recursive[b.Name] && b.Fold != nil && b.Fold.Step != a.Fold.Step
	})
}

// worthTurning returns the parts of statements whose arrays are not kept in place and should be.
func (w *worker) worthTurning() (map[string][]int64, error) {
	var others []*reduction.Statement
	for _, s := range w.prog.Statements {
		if reduction.CarryOf(s) == nil {
			others = append(others, s)
		}
	}
	all, _, err := w.points(true, others...)
	if err != nil {
		return nil, err
	}
	out := map[string][]int64{}
	for name, m := range w.moved {
		a := w.prog.Array(name)
		if a.Fold != nil && m.exact && w.against(a) {
			out[m.key] = m.ru
		}
		if a.Fold != nil || slices.Contains(w.prog.Outputs, name) || w.first(a).Op != reduction.Add || reduction.CarryOf(w.first(a)) == nil {
			continue
		}
		d, _, err := w.points(true, w.first(a))
		if err != nil {
			return nil, err
		}
		if m.exact || !dominated(d, all) || w.bins[name] != nil && !w.fits(a.Extents) {
			out[m.key] = m.ru
		}
	}
	return out, nil
}
