package trees

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/forest"
)

// grown appends a random tree of comparisons to a forest.
func grown(rng *rand.Rand, f *forest.Forest, depth int) {
	t := forest.Tree{Weight: 1}
	var put func(depth int) int32
	put = func(depth int) int32 {
		at := int32(len(t.Nodes))
		t.Nodes = append(t.Nodes, forest.Node{ID: at, First: int32(len(t.Values)), Last: int32(len(t.Values) + 1)})
		if depth == 0 || rng.IntN(5) == 0 {
			t.Values = append(t.Values, forest.Value{Value: rng.NormFloat64()})
			return at
		}
		n := forest.Node{ID: at, Test: []forest.Test{forest.Less, forest.LessEqual, forest.Greater, forest.GreaterEqual}[rng.IntN(4)], Feature: int32(rng.IntN(f.Features)), MissingYes: rng.IntN(2) == 0, Threshold: float64(rng.IntN(7)) - 1}
		n.Yes = put(depth - 1)
		n.No = put(depth - 1)
		t.Nodes[at] = n
		return at
	}
	put(depth)
	f.Trees = append(f.Trees, t)
}

// TestTrees: the circuit's likelihoods are the means over the trees of what counting the rows of the leaf that a row reaches gives; all states
// have the mass 1, a missing cell is the sum over its bins, and a row reaches one leaf of each tree.
func TestTrees(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := &forest.Forest{Features: 3, Outputs: 1, Base: []float64{0}, Alpha: 1, Input: []forest.Precision{forest.Float32, forest.Float64}[seed%2]}
		if seed%3 == 0 {
			f.Classes, f.Cut = 2, 0.3
		}
		for range 1 + rng.IntN(3) {
			grown(rng, f, rng.IntN(4))
		}
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		rows := make([]float64, 3*(1+rng.IntN(60)))
		for i := range rows {
			if rows[i] = float64(rng.IntN(6)); rng.IntN(9) == 0 {
				rows[i] = math.NaN()
			}
		}
		smoothing := []float64{1, 0.01, 30}[rng.IntN(3)]
		c, err := New(f, rows, smoothing)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := circuit.Validate(c.Graph); err != nil {
			t.Fatal(err)
		}
		if got, err := circuit.DeterministicUnder(c.Graph, func(id circuit.NodeID, dst []float32) error {
			for i, x := range c.params[id] {
				dst[i] = float32(x)
			}
			return nil
		}); err != nil || got != (len(f.Trees) == 1) {
			t.Errorf("seed %d: the circuit of %d trees is deterministic: %v, %v", seed, len(f.Trees), got, err)
		}
		params := make(reference.Params, len(c.Graph.Nodes))
		copy(params, c.params)
		ev, err := reference.New(c.Graph, params)
		if err != nil {
			t.Fatal(err)
		}
		states, err := reference.States(c.Graph, reference.MissingRow(c.Graph.NumVars))
		if err != nil {
			t.Fatal(err)
		}
		total, firsts := 0.0, map[float64]float64{}
		for state := range states {
			ll, err := ev.LogLikelihood(state)
			if err != nil {
				t.Fatal(err)
			}
			total += math.Exp(ll)
			firsts[state[0]] += math.Exp(ll)
		}
		if !(math.Abs(total-1) < 1e-9) {
			t.Errorf("seed %d: all states have the mass %v", seed, total)
		}
		for x, want := range firsts {
			row := reference.MissingRow(c.Graph.NumVars)
			row[0] = x
			if ll, err := ev.LogLikelihood(row); err != nil || !(math.Abs(math.Exp(ll)-want) < 1e-9) {
				t.Errorf("seed %d: the first feature's bin %v has %v, its states %v", seed, x, math.Exp(ll), want)
			}
		}
		for r := range len(rows) / 3 {
			cells := rows[3*r : 3*r+3]
			if math.IsNaN(cells[0] + cells[1] + cells[2]) {
				continue
			}
			state := reference.MissingRow(c.Graph.NumVars)
			for k, x := range cells {
				state[k] = float64(bin(c.Schema.Columns[k].Edges, x))
			}
			ll, err := ev.LogLikelihood(state)
			if err != nil {
				t.Fatal(err)
			}
			if want := counted(c, f, rows, cells, smoothing); !(math.Abs(math.Exp(ll)-want) < 1e-12+1e-9*want) {
				t.Errorf("seed %d, row %v: %v, counted %v", seed, cells, math.Exp(ll), want)
			}
			values, err := ev.Values(state)
			if err != nil {
				t.Fatal(err)
			}
			for id, n := range c.Graph.Nodes {
				reached := 0
				for _, v := range values[id] {
					if !math.IsInf(v, -1) {
						reached++
					}
				}
				if n.Kind == circuit.Product && reached != 1 {
					t.Fatalf("seed %d, row %v: %d leaves of the tree at node %d have it", seed, cells, reached, id)
				}
			}
		}
	}
}

// counted is the likelihood of a row without missing cells: for each tree, which rows reach its leaf is found by going down the tree, and how
// wide the leaf's box is by trying bins.
func counted(c *Circuit, f *forest.Forest, rows, cells []float64, smoothing float64) float64 {
	sum := 0.0
	for i := range f.Trees {
		t := &f.Trees[i]
		leaf := t.Find(cells)
		leaves := 0.0
		for k := range t.Nodes {
			if n := &t.Nodes[k]; n.Test == forest.Leaf && someNumber(c, t, n) {
				leaves++
			}
		}
		var here [][]float64
		for r := 0; r < len(rows); r += 3 {
			if t.Find(rows[r:r+3]) == leaf {
				here = append(here, rows[r:r+3])
			}
		}
		all := 0.0
		for r := 0; r < len(rows); r += 3 {
			if someNumber(c, t, t.Find(rows[r:r+3])) {
				all++
			}
		}
		p := (float64(len(here)) + smoothing/leaves) / (all + smoothing)
		for k := range 3 {
			e := c.Schema.Columns[k].Edges
			own, known, width := 0.0, 0.0, 0.0
			for _, r := range here {
				if !math.IsNaN(r[k]) {
					if known++; bin(e, r[k]) == bin(e, cells[k]) {
						own++
					}
				}
			}
			at := append([]float64(nil), cells...)
			for j := range len(e) - 1 {
				if at[k] = e[j]; t.Find(at) == leaf {
					width += e[j+1] - e[j]
				}
			}
			j := bin(e, cells[k])
			p *= (own + smoothing*(e[j+1]-e[j])/width) / (known + smoothing)
		}
		sum += p / float64(len(f.Trees))
	}
	return sum
}

// someNumber reports whether a row of the least numbers of bins reaches a leaf.
func someNumber(c *Circuit, t *forest.Tree, leaf *forest.Node) bool {
	s := c.Schema.Columns
	for _, x := range s[0].Edges[:len(s[0].Edges)-1] {
		for _, y := range s[1].Edges[:len(s[1].Edges)-1] {
			for _, z := range s[2].Edges[:len(s[2].Edges)-1] {
				if t.Find([]float64{x, y, z}) == leaf {
					return true
				}
			}
		}
	}
	return false
}

// TestThresholds: at and beside thresholds that float32 does not have, a row is in the leaf that the forest sends it to wherever
// float32 cells can tell, and is counted in the bin where an engine finds it, which rounds edges to float32.
func TestThresholds(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		thresholds := []float64{0.1, 0.3, 0.6, 0.7, 1e-46, 0, 1, rng.NormFloat64(), rng.NormFloat64(), float64(rng.Float32())}
		thresholds = append(thresholds, math.Nextafter(0.7, 1), math.Nextafter(0.1, 0))
		rng.Shuffle(len(thresholds), func(i, j int) { thresholds[i], thresholds[j] = thresholds[j], thresholds[i] })
		f := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{0}, Alpha: 1, Input: []forest.Precision{forest.Float32, forest.Float64}[seed%2]}
		f.Classes, f.Cut = 2, 0.3
		grown(rng, f, 4)
		used := map[float32]bool{}
		rows := []float64{-9, 9}
		for i := range f.Trees[0].Nodes {
			n := &f.Trees[0].Nodes[i]
			if n.Test == forest.Leaf {
				continue
			}
			at := thresholds[i%len(thresholds)]
			n.Threshold = at
			near := float32(at)
			used[near] = true
			rows = append(rows, at, math.Nextafter(at, 9), math.Nextafter(at, -9), float64(near), float64(math.Nextafter32(near, 9)), float64(math.Nextafter32(near, -9)))
		}
		c, err := New(f, rows, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		g, err := onFloat32(f)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := reference.New(c.Graph, append(reference.Params(nil), c.params...))
		if err != nil {
			t.Fatal(err)
		}
		edges := c.Schema.Columns[0].Edges
		for i, x := range edges {
			if x != float64(float32(x)) || i > 0 && !(x > edges[i-1]) {
				t.Fatalf("seed %d: edges %v", seed, edges)
			}
		}
		for _, x := range rows {
			cell := float32(x)
			exact := slices.ContainsFunc(f.Trees[0].Nodes, func(n forest.Node) bool { return n.Test != forest.Leaf && n.Threshold == x })
			alone := !slices.ContainsFunc(f.Trees[0].Nodes, func(n forest.Node) bool {
				return n.Test != forest.Leaf && n.Threshold != x && float32(n.Threshold) == cell
			})
			if f.Input == forest.Float32 || !used[cell] || exact && alone {
				seen := x
				if f.Input == forest.Float32 {
					seen = float64(cell)
				}
				if got, want := g.Trees[0].Find([]float64{float64(cell)}).ID, f.Trees[0].Find([]float64{seen}).ID; got != want {
					t.Errorf("seed %d, %v cells: %v is counted in leaf %d, the forest has it in %d", seed, f.Input, x, got, want)
				}
			}
			state := reference.MissingRow(c.Graph.NumVars)
			state[0] = float64(len(edges) - 2) // as package engine has it
			for k := range edges[:len(edges)-1] {
				if float32(edges[k]) <= cell && cell < float32(edges[k+1]) {
					state[0] = float64(k)
				}
			}
			if ll, err := ev.LogLikelihood(state); err != nil || !(math.Exp(ll) > 0.5/float64(len(rows))) {
				t.Errorf("seed %d, %v cells: a query of %v has the likelihood %v, so it was counted elsewhere: %v", seed, f.Input, x, math.Exp(ll), err)
			}
		}
	}
}

// TestBin: an edge is in the bin above it, the last one in the last bin.
func TestBin(t *testing.T) {
	for x, want := range map[float64]int{0: 0, 0.99: 0, 1: 1, 2.4: 1, 2.5: 2, 3: 2, 4: 2} {
		if got := bin([]float64{0, 1, 2.5, 4}, x); got != want {
			t.Errorf("%v is in bin %d, want %d", x, got, want)
		}
	}
}

// TestTreesClass gives the rows of each leaf the class that the forest gives them.
func TestTreesClass(t *testing.T) {
	f := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{0}, Alpha: 1, Input: forest.Float64, Classes: 2, Trees: []forest.Tree{{
		Weight: 1,
		Nodes: []forest.Node{
			{ID: 0, Test: forest.Less, Threshold: 1.5, Yes: 1, No: 2}, {ID: 1, First: 0, Last: 1}, {ID: 2, First: 1, Last: 2},
		},
		Values: []forest.Value{{Value: -4}, {Value: 4}},
	}}}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	c, err := New(f, []float64{1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(c.Graph, reference.Params(c.params))
	if err != nil {
		t.Fatal(err)
	}
	for class, x := range []float64{1, 2} {
		at := float64(bin(c.Schema.Columns[0].Edges, x))
		own, err := ev.LogLikelihood([]float64{at, float64(class)})
		if err != nil {
			t.Fatal(err)
		}
		other, err := ev.LogLikelihood([]float64{at, float64(1 - class)})
		if err != nil {
			t.Fatal(err)
		}
		if !(own > other+math.Log(100)) {
			t.Errorf("rows of %v have class %d with a log-likelihood of %v, the other class with %v", x, class, own, other)
		}
	}
}

// TestEdgesOfTheLargestNumber gives a feature a bin where all its cells are the largest float32, which none is behind.
func TestEdgesOfTheLargestNumber(t *testing.T) {
	got, err := edges(&forest.Forest{Features: 2}, []float64{math.MaxFloat32, math.NaN(), math.MaxFloat32, math.NaN()})
	if err != nil {
		t.Fatal(err)
	}
	for k, e := range got {
		if len(e) != 2 || !(e[0] < e[1]) {
			t.Errorf("feature %d has the edges %v, want two", k, e)
		}
	}
}

// TestTreesNames gives columns the names of the forest, and the class one that none of them has.
func TestTreesNames(t *testing.T) {
	f := &forest.Forest{Features: 2, Outputs: 1, Base: []float64{0}, Alpha: 1, Input: forest.Float64, Classes: 2, Cut: 0.5, Labels: []string{"no", "yes"}}
	grown(rand.New(rand.NewPCG(1, 1)), f, 2)
	for _, names := range [][]string{nil, {"age", "class"}, {"predicted class", "class"}} {
		f.Names = names
		c, err := New(f, []float64{1, 2, 3, 4}, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"", "", ""}
		if copy(want, names); names != nil {
			want[2] = "predicted class"
		}
		if slices.Contains(names, want[2]) && names != nil {
			want[2] = "predicted predicted class"
		}
		var got []string
		for i := range c.Schema.Columns {
			got = append(got, c.Schema.Columns[i].Name)
		}
		if last := c.Schema.Columns[2]; !slices.Equal(got, want) || !slices.Equal(last.Labels, f.Labels) {
			t.Errorf("columns %q, of which the last has the labels %q; want %q", got, last.Labels, want)
		}
	}
}

// TestTreesRefuses: forests without a circuit are refused in one line; a neighbour is not.
func TestTreesRefuses(t *testing.T) {
	for _, c := range []struct {
		what, want string
		change     func(f *forest.Forest)
		rows       []float64
		smoothing  float64
	}{
		{"good", "", func(*forest.Forest) {}, []float64{1, 2}, 1},
		{"all missing", "", func(*forest.Forest) {}, []float64{math.NaN(), math.NaN()}, 1},
		{"large numbers", "", func(*forest.Forest) {}, []float64{math.MaxFloat32, -math.MaxFloat32, 1, 1}, 1},
		{"infinite threshold", "", func(f *forest.Forest) { f.Trees[0].Nodes[0].Threshold = math.Inf(1) }, []float64{1, 2}, 1},
		{"no rows", "one row at least", func(*forest.Forest) {}, nil, 1},
		{"half a row", "3 cells for rows of 2", func(*forest.Forest) {}, []float64{1, 2, 3}, 1},
		{"infinite", "row 1, column 2: +Inf; want a number that float32 holds", func(*forest.Forest) {}, []float64{1, math.Inf(1)}, 1},
		{"beyond float32", "row 2, \"a\": +Inf; want a number that float32 holds, at most 3.4e38", func(f *forest.Forest) { f.Names = []string{"a", "b"} }, []float64{1, 2, 1e39, 2}, 1},
		{"no smoothing", "smoothing 0", func(*forest.Forest) {}, []float64{1, 2}, 0},
		{"smoothing", "smoothing NaN", func(*forest.Forest) {}, []float64{1, 2}, math.NaN()},
		{"no trees", "no trees", func(f *forest.Forest) { f.Trees = nil }, []float64{1, 2}, 1},
		{"equality", "a test of categories", func(f *forest.Forest) { f.Trees[0].Nodes[0].Test = forest.Equal }, []float64{1, 2}, 1},
		{"NaN", "tree 0, node 0", func(f *forest.Forest) { f.Trees[0].Nodes[0].Threshold = math.NaN() }, []float64{1, 2}, 1},
		{"many classes", "masses of bins and classes", func(f *forest.Forest) {
			f.Outputs, f.Classes, f.Base, f.Trees = 1<<16, 1<<16, make([]float64, 1<<16), slices.Repeat(f.Trees, 1100)
		}, []float64{1, 2}, 1},
		{"no features", "no features", func(f *forest.Forest) { f.Features, f.Trees[0].Nodes = 0, []forest.Node{{Last: 1}} }, nil, 1},
		{"many features", "masses of bins and classes", func(f *forest.Forest) { // of whose leaves the boxes alone would take 2 GB
			f.Features = 1 << 14
			nodes := []forest.Node{}
			for i := range int32(1 << 13) {
				nodes = append(nodes, forest.Node{Test: forest.Less, Feature: i, Threshold: 0.5, Yes: 2*i + 1, No: 2*i + 2}, forest.Node{Last: 1})
			}
			f.Trees[0].Nodes = append(nodes, forest.Node{Last: 1})
		}, slices.Concat(make([]float64, 1<<14), slices.Repeat([]float64{1}, 1<<14)), 1},
		{"zeros", "takes zeros", func(f *forest.Forest) { f.Trees[0].Nodes[0].ZeroMissing = true }, []float64{1, 2}, 1},
	} {
		f := &forest.Forest{Features: 2, Outputs: 1, Base: []float64{0}, Alpha: 1, Trees: []forest.Tree{{Weight: 1,
			Nodes: []forest.Node{{Test: forest.Less, Feature: 1, Threshold: 2, Yes: 1, No: 2}, {Last: 1}, {Last: 1, ID: 1}}, Values: []forest.Value{{Value: 1}}}}}
		c.change(f)
		if err := f.Check(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		got, err := New(f, c.rows, c.smoothing)
		switch {
		case c.want == "" && (err != nil || got.Schema.Validate() != nil):
			t.Errorf("%s: %v", c.what, err)
		case c.want != "" && (!errors.Is(err, ErrTrees) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v; want %q", c.what, err, c.want)
		}
	}
}
