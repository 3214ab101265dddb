package simplify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// merge drops arrays that other arrays equal, which are read in their place: those that the same statements write, but for
// the array's own name and the names of dimensions. Contraction leaves such arrays where a program
// computes a value once more for every value of an index.
func (w *worker) merge() error {
	for {
		first := map[string]string{} // the first array of a text
		instead := map[string]string{}
		for _, a := range w.prog.Arrays {
			if a.Input {
				continue
			}
			text, err := w.definition(a)
			if err != nil {
				return err
			}
			if other, ok := first[text]; !ok {
				first[text] = a.Name
			} else if !slices.Contains(w.prog.Outputs, a.Name) {
				instead[a.Name] = other
				w.report.Steps = append(w.report.Steps, Step{Kind: Merge, Array: a.Name, Text: fmt.Sprintf("%s is %s", a.Name, other)})
			}
		}
		if len(instead) == 0 {
			return nil
		}
		dropped := func(name string) bool { return instead[name] != "" }
		w.prog.Arrays = slices.DeleteFunc(w.prog.Arrays, func(a *reduction.Array) bool { return dropped(a.Name) })
		w.prog.Statements = slices.DeleteFunc(w.prog.Statements, func(s *reduction.Statement) bool { return dropped(s.Array) })
		for k, s := range w.prog.Statements {
			c := *s
			w.prog.Statements[k] = rewrite(&c, func(e reduction.Expr) reduction.Expr {
				return renamed(e, func(name string) string {
					if other, ok := instead[name]; ok {
						return other
					}
					return name
				})
			})
		}
		if err := w.reparse(); err != nil { // arrays that read these may be equal now
			return err
		}
	}
}

// definition is a text that arrays of equal elements share: the shape, and the statements that write it, with domains in
// one form.
func (w *worker) definition(a *reduction.Array) (string, error) {
	var b strings.Builder
	shape := *a
	shape.Name = "*"
	fmt.Fprintln(&b, a.Type, shape.String())
	for _, s := range w.prog.Statements {
		if s.Array != a.Name {
			continue
		}
		c := *s
		c.Array = "*"
		if sets, err := w.prog.Points(s); err != nil {
			return "", err
		} else if len(sets) == 1 {
			tight, err := sets[0].Tighten()
			if err != nil {
				return "", err
			}
			sortRows(tight.Positive)
			c.Domain = w.chains(tight, s.Dims)
		}
		b.WriteString(canonical(rewrite(&c, func(e reduction.Expr) reduction.Expr {
			return renamed(e, func(name string) string {
				if name == a.Name {
					return "*"
				}
				return name
			})
		})))
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func sortRows(rows []polyhedron.Row) {
	slices.SortFunc(rows, func(a, b polyhedron.Row) int { return slices.Compare(a, b) })
}

// renamed copies e with other names for the arrays that it reads.
func renamed(e reduction.Expr, name func(string) string) reduction.Expr {
	return transform(e, func(e reduction.Expr) reduction.Expr {
		if r, ok := e.(*reduction.Read); ok {
			r.Array = name(r.Array)
		}
		return e
	})
}
