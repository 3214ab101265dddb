package gosource

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// arrange orders the loops of a statement over a set in the space of the parameters, the open times and dims: a
// dimension that an equality gives is computed as soon as what it depends on is known, and innermost is the loop along
// which most of what the statement reads and writes is one place or follows in memory. Others keep their order. The
// points of a statement at one time do not need each other, so every order is right.
func (e *emitter) arrange(s *reduction.Statement, set *polyhedron.Set, dims []string) []string {
	given := len(e.prog.Params) + len(e.times)
	needs := map[string][]string{} // of a dimension that an equality gives
	for _, r := range set.Zero {
		var in []string
		computed := ""
		for k, d := range dims {
			switch c := r[given+k]; {
			case c == 0:
				continue
			case c == 1 || c == -1:
				computed = d
			}
			in = append(in, d)
		}
		if computed == "" || needs[computed] != nil || slices.ContainsFunc(in, func(d string) bool { return needs[d] != nil }) {
			continue
		}
		needs[computed] = slices.DeleteFunc(in, func(d string) bool { return d == computed })
		if needs[computed] == nil {
			needs[computed] = []string{}
		}
	}
	var loops []string
	for _, d := range dims {
		if needs[d] == nil {
			loops = append(loops, d)
		}
	}
	if len(loops) > 0 {
		best := len(loops) - 1
		for k := best - 1; k >= 0; k-- {
			if slices.Compare(e.jumps(s, loops[k]), e.jumps(s, loops[best])) < 0 {
				best = k
			}
		}
		loops = append(slices.Delete(slices.Clone(loops), best, best+1), loops[best])
	}
	var out []string
	place := func() {
		for _, d := range dims {
			missing := func(n string) bool { return !slices.Contains(out, n) }
			if needs[d] != nil && missing(d) && !slices.ContainsFunc(needs[d], missing) {
				out = append(out, d)
			}
		}
	}
	place()
	for _, d := range loops {
		out = append(out, d)
		place()
	}
	return out
}

// jumps says how badly the elements that s reads and writes lie along dimension d: how many do not follow each other and
// are not one element, and the number of those that do not follow each other.
func (e *emitter) jumps(s *reduction.Statement, d string) []int {
	far, still := 0, 0
	judge := func(array string, coefficient func(k int) (c int64, known bool)) {
		along, inside := false, false
		order := e.layout(array)
		for place, k := range order {
			c, known := coefficient(k)
			follows := c == 1 && place == len(order)-1
			along = along || known && follows
			inside = inside || !known || c != 0 && !follows
		}
		switch {
		case inside:
			far++
		case !along:
			still++
		}
	}
	of := func(a *reduction.Affine) (int64, bool) {
		for _, t := range a.Terms {
			if t.Name == d {
				return t.Coefficient, true
			}
		}
		return 0, true
	}
	judge(s.Array, func(k int) (int64, bool) { return of(&s.Index[k]) })
	for _, x := range s.Expressions() {
		reduction.Walk(x, func(x reduction.Expr) {
			r, ok := x.(*reduction.Read)
			if !ok {
				return
			}
			judge(r.Array, func(k int) (int64, bool) {
				if a, err := reduction.AffineOf(r.Index[k]); err == nil && e.plain(&a) {
					return of(&a)
				}
				return 0, !reduction.Mentions(r.Index[k], d)
			})
		})
	}
	return []int{far, still}
}

// layout returns the indices of an array in the order in which they are in memory, the last one without gaps. Those of an array
// inside of the program that data picks, as b in h[k,b], come before the others, along which a loop can then go.
func (e *emitter) layout(name string) []int {
	if order, ok := e.layouts[name]; ok {
		return order
	}
	a := e.prog.Array(name)
	picked := map[int]bool{}
	for _, s := range e.prog.Statements {
		for _, r := range schedule.Reads(e.prog, s) {
			for k, x := range r.Index {
				if r.Array == name && x == nil && !a.Input && !slices.Contains(e.prog.Outputs, name) {
					picked[k] = true
				}
			}
		}
	}
	var order, rest []int
	for k := range a.Extents {
		if picked[k] {
			order = append(order, k)
		} else {
			rest = append(rest, k)
		}
	}
	e.layouts[name] = append(order, rest...)
	return e.layouts[name]
}
