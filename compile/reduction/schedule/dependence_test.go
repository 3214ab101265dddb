package schedule

import (
	"fmt"
	"testing"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// TestDependences enumerates what the points of all statements read, and wants each of these elements in a dependence. An
// index that data gives may be any.
func TestDependences(t *testing.T) {
	list := []struct{ name, text, cycle string }{{"two parts", `array float a[N], b[N]; output b;
a[i] += b[j]*a[i-1] : { [i,j] : 1 <= i < N, 0 <= j < N, j != i, j < i }; b[i] += a[j]*b[w[i]] + x[i] : { [i,j] : 0 <= i < N, 0 <= j < N, j != i } if b[j] > 0;`, ""}}
	sizes := []int64{4, 3}
	for _, c := range append(list, orders...) {
		p := parse(t, ordersHead+c.text)
		deps, err := Dependences(p)
		if err != nil {
			t.Fatal(err)
		}
		at := func(rows []polyhedron.Row, x []int64) (out []int64) {
			for _, r := range rows {
				v, _ := r.Eval(x)
				out = append(out, v)
			}
			return out
		}
		points := func(s *polyhedron.Set, visit func(x []int64)) {
			scan, err := polyhedron.NewScan(s, len(sizes))
			if err != nil {
				t.Fatal(err)
			}
			scan.Points(sizes, func(x []int64) bool { visit(x); return true })
		}
		known := map[string]bool{}
		for _, d := range deps {
			points(d.Set, func(x []int64) { known[fmt.Sprint(d.Target, at(d.To, x), d.Source, at(d.From, x))] = true })
		}
		found := 0
		for _, s := range p.Statements {
			sets, err := p.Points(s)
			if err != nil {
				t.Fatal(err)
			}
			var index []polyhedron.Row
			for k := range s.Index {
				r, err := p.Row(&s.Index[k], s.Dims)
				if err != nil {
					t.Fatal(err)
				}
				index = append(index, r)
			}
			for _, r := range Reads(p, s) {
				if p.Array(r.Array).Input {
					continue
				}
				for _, set := range sets {
					points(set, func(x []int64) {
						from := []int64{0} // the places that an index that is not affine may have: N of them
						if len(r.Index) > 0 && r.Index[0] == nil {
							from = []int64{0, 1, 2, 3}
						}
						for _, v := range from {
							u := []int64{v}
							if r.Index[0] != nil {
								u = at(r.Index, x)
							}
							found++
							if key := fmt.Sprint(s.Array, at(index, x), r.Array, u); !known[key] {
								t.Errorf("%s: %s is not in a dependence", c.name, key)
							}
						}
					})
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no reads", c.name)
		}
	}
}
