package simplify

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
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
					found = found || schedule.AffineIndex(w.prog, s, x) == nil && !w.indexOf(s, x, &w.prog.Array(e.Array).Extents[k])
				}
			case *reduction.Call:
				found = found || e.Function == "floor" && w.prog.TypeOf(s, e.Args[0]) == reduction.Float
			}
		})
		return found
	})
}

// lacking reports whether expressions read an array of which an element may not be there: they may do so at points that a guard keeps
// out.
func (w *worker) lacking(list ...reduction.Expr) bool {
	return slices.ContainsFunc(list, func(e reduction.Expr) (found bool) {
		reduction.Walk(e, func(e reduction.Expr) {
			if r, ok := e.(*reduction.Read); ok && !found {
				if w.lacks == nil {
					w.lacks = w.incomplete()
				}
				found = w.lacks[r.Array]
			}
		})
		return found
	})
}

// incomplete finds the arrays of which an element may not be there, as no point of = or of a draw writes it, or needs such an element.
func (w *worker) incomplete() map[string]bool {
	lacks := map[string]bool{}
	for _, a := range w.prog.Arrays {
		if a.Input || w.first(a).Op != reduction.Assign && !w.first(a).Op.Draws() {
			continue
		}
		rest, err := w.prog.Unwritten(a)
		lacks[a.Name] = err != nil || len(rest) > 0
	}
	for again := true; again; {
		again = false
		for _, s := range w.prog.Statements {
			if !lacks[s.Array] && slices.ContainsFunc(schedule.Reads(w.prog, s), func(r schedule.Read) bool { return lacks[r.Array] }) {
				lacks[s.Array], again = true, true
			}
		}
	}
	return lacks
}

// indexOf reports whether x is an element of an array, or a scalar, whose range is within that of an index of an extent, also with
// numbers and parameters added to it.
func (w *worker) indexOf(s *reduction.Statement, x reduction.Expr, extent *reduction.Affine) bool {
	params := len(w.prog.Params)
	shift := make(polyhedron.Row, params+1)
	for b, ok := x.(*reduction.Binary); ok; b, ok = x.(*reduction.Binary) {
		rest, sign := b.Y, int64(1)
		x = b.X
		switch {
		case b.Op == "-":
			sign = -1
		case b.Op != "+":
			return false
		case schedule.AffineIndex(w.prog, s, rest) == nil:
			x, rest = rest, x
		}
		r := schedule.AffineIndex(w.prog, s, rest)
		if r == nil || slices.ContainsFunc(r[params:len(r)-1], func(c int64) bool { return c != 0 }) {
			return false
		}
		for v := range params {
			shift[v] += sign * r[v]
		}
		shift[params] += sign * r[len(r)-1]
	}
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
	for k, c := range shift {
		low[k] += c
		beyond[k] -= high[k] + c
	}
	return w.context.Implies(low) && w.context.Implies(beyond)
}
