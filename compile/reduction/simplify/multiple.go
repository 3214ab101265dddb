package simplify

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
)

// multiples takes a value that a reduction has many times once. In
//
//	m[i] max= x[j] : {[i,j,k] : 0 <= j <= i, 0 <= k < N}
//
// every x[j] is there for each k, and a maximum or a minimum does not change with more of the same. k is projected out.
func (w *worker) multiples() error {
	changed := false
	for n, s := range w.prog.Statements {
		for {
			c, err := w.once(s)
			if err != nil {
				return err
			}
			if c == nil {
				break
			}
			w.prog.Statements[n], s, changed = c, c, true
		}
	}
	if !changed {
		return nil
	}
	return w.reparse()
}

// once returns s without a dimension that neither its element nor its value depends on, or nil if there is none.
func (w *worker) once(s *reduction.Statement) (*reduction.Statement, error) {
	if s.Op != reduction.Max && s.Op != reduction.Min {
		return nil, nil
	}
	sets, err := w.prog.Points(s)
	if err != nil || len(sets) != 1 {
		return nil, err
	}
	for d, name := range s.Dims {
		used := slices.ContainsFunc(s.Expressions(), func(e reduction.Expr) bool { return reduction.Mentions(e, name) })
		for k := range s.Index {
			used = used || slices.ContainsFunc(s.Index[k].Terms, func(t reduction.Term) bool { return t.Name == name })
		}
		if used {
			continue
		}
		v := len(w.prog.Params) + d
		set, exact, err := sets[0].Project(v)
		if err != nil {
			return nil, err
		}
		if !exact {
			continue
		}
		if set, err = without(set, v).Tighten(); err != nil {
			return nil, err
		}
		c := *s
		c.Dims = slices.Delete(slices.Clone(s.Dims), d, d+1)
		c.Domain = w.chains(set, c.Dims)
		w.report.Steps = append(w.report.Steps, Step{Kind: Multiple, Array: s.Array, Statement: s.String(),
			Text: fmt.Sprintf("%s takes values once, which it has for every %s", s.Array, name)})
		return &c, nil
	}
	return nil, nil
}
