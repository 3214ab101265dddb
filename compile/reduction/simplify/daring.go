package simplify

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// daring reports whether an expression of s may fail at a point that a guard keeps out: it reads an array at an index that data gives
// and that may be outside of it, or takes the floor of a number that may not fit. Such expressions stay behind the guards that they have.
func (w *worker) daring(s *reduction.Statement, list ...reduction.Expr) bool {
	return slices.ContainsFunc(list, func(e reduction.Expr) (found bool) {
		reduction.Walk(e, func(e reduction.Expr) {
			switch e := e.(type) {
			case *reduction.Read:
				for k, x := range e.Index {
					found = found || schedule.AffineIndex(w.prog, s, x) == nil && !w.indexOf(x, &w.prog.Array(e.Array).Extents[k])
				}
			case *reduction.Call:
				found = found || e.Function == "floor" && w.prog.TypeOf(s, e.Args[0]) == reduction.Float
			}
		})
		return found
	})
}

// indexOf reports whether x is an element of an array, or a scalar, whose range is within that of an index of an extent.
func (w *worker) indexOf(x reduction.Expr, extent *reduction.Affine) bool {
	var a *reduction.Array
	switch x := x.(type) {
	case *reduction.Read:
		a = w.prog.Array(x.Array)
	case *reduction.Name:
		a = w.prog.Array(x.Name)
	}
	if a == nil || a.Range == nil {
		return false
	}
	low, err := w.prog.Row(&a.Range.Low, nil)
	if err != nil {
		return false
	}
	high, err := w.prog.Row(&a.Range.High, nil)
	if err != nil {
		return false
	}
	beyond, err := w.prog.Row(extent, nil)
	if err != nil {
		return false
	}
	for k, c := range high {
		beyond[k] -= c
	}
	return w.context.Implies(low) && w.context.Implies(beyond)
}
