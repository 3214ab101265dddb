package simplify

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

var cases = flag.Int("cases", 600, "random domains and vectors")

// TestSplit compares the recurrence of split with the plain sums, on random domains in two and three
// dimensions within a box, random maps to elements, and random vectors. Values are random but for being
// the same along the vector.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	n := *cases
	if testing.Short() {
		n /= 6
	}
	done, subtracted := 0, 0
	for range n {
		dims := 2 + r.IntN(2)
		set := &polyhedron.Set{Vars: dims}
		for v := range dims {
			low, high := make(polyhedron.Row, dims+1), make(polyhedron.Row, dims+1)
			low[v], high[v], high[dims] = 1, -1, 4
			set.Positive = append(set.Positive, low, high)
		}
		random := func(limit, constant int64) polyhedron.Row {
			row := make(polyhedron.Row, dims+1)
			for v := range dims {
				row[v] = r.Int64N(2*limit+1) - limit
			}
			row[dims] = r.Int64N(constant+1) - constant/3
			return row
		}
		for range r.IntN(4) {
			set.Positive = append(set.Positive, random(1, 6))
		}
		var index []polyhedron.Row
		for v := range 1 + r.IntN(dims-1) {
			row := make(polyhedron.Row, dims+1)
			row[v] = 1
			if r.IntN(3) == 0 {
				row = random(1, 2)
			}
			index = append(index, row)
		}
		vector := make([]int64, dims)
		for v := range vector {
			vector[v] = r.Int64N(5) - 2
		}
		tight, err := set.Tighten()
		if err != nil {
			t.Fatal(err)
		}
		m, exact, err := split(tight, index, vector, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m == nil || !slices.ContainsFunc(m.ru, func(x int64) bool { return x != 0 }) {
			continue
		}
		done++
		if len(m.less) > 0 {
			subtracted++
		}
		if err := recurrence(r, set, index, m, exact); err != nil {
			t.Fatalf("%v along %v to %v: %v", set, vector, index, err)
		}
	}
	if done < n/4 || subtracted < done/4 {
		t.Errorf("%d domains, %d with subtraction: the test says little", done, subtracted)
	}
}

// recurrence compares what m says of each element with the plain sum.
func recurrence(r *rand.Rand, set *polyhedron.Set, index []polyhedron.Row, m *move, exact bool) error {
	values := map[string]int64{}
	value := func(x []int64) int64 { // the same for all x + k*m.r
		v := slices.IndexFunc(m.r, func(c int64) bool { return c != 0 })
		k := x[v] / m.r[v]
		if x[v]%m.r[v] < 0 {
			k -= m.r[v] / max(m.r[v], -m.r[v])
		}
		y := slices.Clone(x)
		for d := range y {
			y[d] -= k * m.r[d]
		}
		key := fmt.Sprint(y)
		if _, ok := values[key]; !ok {
			values[key] = r.Int64N(1 << 40)
		}
		return values[key]
	}
	at := func(rows []polyhedron.Row, x []int64) string {
		var u []int64
		for _, row := range rows {
			v, _ := row.Eval(x)
			u = append(u, v)
		}
		return fmt.Sprint(u)
	}
	total := func(sets polyhedron.Union, rows []polyhedron.Row) map[string]int64 {
		sums := map[string]int64{}
		for _, s := range sets {
			scan, err := polyhedron.NewScan(s, 0)
			if err != nil {
				panic(err)
			}
			scan.Points(nil, func(x []int64) bool {
				if !set.Contains(x) {
					sums["outside"] = 1
				}
				sums[at(rows, x)] += value(x)
				return true
			})
		}
		return sums
	}
	want := total(polyhedron.Union{set}, index)
	more, less := total(m.more, index), total(m.less, m.lessIndex)
	if more["outside"]+less["outside"] > 0 {
		return fmt.Errorf("values are read outside of the domain: %v", m)
	}
	elements := map[string][]int64{}
	rank := len(index)
	u := make([]int64, rank)
	var walk func(k int)
	walk = func(k int) {
		if k == rank {
			elements[fmt.Sprint(u)] = slices.Clone(u)
			return
		}
		for u[k] = -16; u[k] <= 16; u[k]++ {
			walk(k + 1)
		}
	}
	walk(0)
	for key, u := range elements {
		got := more[key] - less[key]
		if m.common.Contains(u) {
			from := slices.Clone(u)
			for k := range from {
				from[k] -= m.ru[k]
			}
			if _, ok := want[fmt.Sprint(from)]; !ok && exact {
				return fmt.Errorf("%s starts from %v, which has no points", key, from)
			}
			got += want[fmt.Sprint(from)]
		}
		if got != want[key] {
			return fmt.Errorf("%s is %d, want %d: %+v", key, got, want[key], m)
		}
	}
	return nil
}
