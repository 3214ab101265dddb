package forest_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
)

// stump asks whether cell 0 is below 1.
func stump() *forest.Forest {
	return &forest.Forest{
		Features: 2, Outputs: 1, Base: []float64{0}, Alpha: 1,
		Trees: []forest.Tree{{
			Weight: 1,
			Nodes:  []forest.Node{{Test: forest.Less, Threshold: 1, Yes: 1, No: 2}, {First: 0, Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}},
			Values: []forest.Value{{Value: 3}, {Value: 4}},
		}},
	}
}

func TestCheck(t *testing.T) {
	if err := (*forest.Forest)(nil).Check(); !errors.Is(err, forest.ErrForest) {
		t.Errorf("nil: %v, want ErrForest", err)
	}
	if err := stump().Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*forest.Forest){
		"-1 features":                    func(f *forest.Forest) { f.Features = -1 },
		"0 outputs":                      func(f *forest.Forest) { f.Outputs = 0 },
		"link 99":                        func(f *forest.Forest) { f.Link = 99 },
		"wants 1 output":                 func(f *forest.Forest) { f.Outputs, f.Base, f.Link = 2, make([]float64, 2), forest.Negation },
		"2 base scores; want 1":          func(f *forest.Forest) { f.Base = make([]float64, 2) },
		"3 divisors":                     func(f *forest.Forest) { f.Divisor = make([]float64, 3) },
		"1 names of features; want 2":    func(f *forest.Forest) { f.Names = []string{"a"} },
		"3 classes; want 1":              func(f *forest.Forest) { f.Classes = 3 },
		"1 classes; want 2":              func(f *forest.Forest) { f.Classes = 1 },
		"1 labels":                       func(f *forest.Forest) { f.Classes, f.Labels = 2, []string{"a"} },
		"a linear model with 1 trees":    func(f *forest.Forest) { f.Linear = &forest.Linear{} },
		"a linear model with 0 weights":  func(f *forest.Forest) { f.Trees, f.Linear = nil, &forest.Linear{} },
		"tree 0: 0 nodes":                func(f *forest.Forest) { f.Trees[0].Nodes = nil },
		"test 99 is unknown":             func(f *forest.Forest) { f.Trees[0].Nodes[0].Test = 99 },
		"feature 2 is out of range":      func(f *forest.Forest) { f.Trees[0].Nodes[0].Feature = 2 },
		"child 3 is out of range":        func(f *forest.Forest) { f.Trees[0].Nodes[0].No = 3 },
		"child 0 is out of range":        func(f *forest.Forest) { f.Trees[0].Nodes[0].No = 0 },
		"child 1 has a parent already":   func(f *forest.Forest) { f.Trees[0].Nodes[0].No = 1 },
		"list 1..3 is out of range":      func(f *forest.Forest) { f.Trees[0].Nodes[2].Last = 3 },
		"list 2..1 is out of range":      func(f *forest.Forest) { n := &f.Trees[0].Nodes[2]; n.First, n.Last = 2, 1 },
		"list 0..1 is out of range; wan": func(f *forest.Forest) { n := &f.Trees[0].Nodes[0]; n.Test, n.Last = forest.In, 1 },
		"not in ascending order": func(f *forest.Forest) {
			n := &f.Trees[0].Nodes[0]
			n.Test, n.Last, f.Trees[0].Categories = forest.In, 2, []float64{1, 1}
		},
		"value 1 is of output 1": func(f *forest.Forest) { f.Trees[0].Values[1].Output = 1 },
	} {
		f := stump()
		change(f)
		if err := f.Check(); !errors.Is(err, forest.ErrForest) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

func TestEvaluateChecksSizes(t *testing.T) {
	f := stump()
	for _, tt := range []struct{ rows, out int }{{3, 1}, {2, 2}, {2, 0}, {0, 1}} {
		if err := forest.Evaluate(f, forest.Margin, make([]float32, tt.rows), make([]float64, tt.out)); !errors.Is(err, forest.ErrRequest) {
			t.Errorf("%d cells, %d results: %v", tt.rows, tt.out, err)
		}
	}
	if err := forest.Evaluate(f, forest.Margin, []float32{}, nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
	if err := forest.Evaluate(f, forest.Class, make([]float32, 2), make([]float64, 1)); !errors.Is(err, forest.ErrRequest) || !strings.Contains(err.Error(), "no classes") {
		t.Errorf("classes of a regression: %v", err)
	}
}

// TestBlocks: the number of rows changes no result, and cells are rounded to the
// forest's precision first.
func TestBlocks(t *testing.T) {
	f := stump()
	above := math.Nextafter(1, 0) // rounds to 1 in float32
	for _, n := range []int{1, 63, 64, 65, 200} {
		for _, p := range []forest.Precision{forest.Float32, forest.Float64} {
			f.Input = p
			rows, out := make([]float64, 2*n), make([]float64, n)
			for i := range n {
				rows[2*i] = []float64{0, above, 1, math.NaN(), 2}[i%5]
			}
			if err := forest.Evaluate(f, forest.Margin, rows, out); err != nil {
				t.Fatal(err)
			}
			for i, got := range out {
				want := []float64{3, 4, 4, 4, 4}[i%5]
				if p == forest.Float64 && i%5 == 1 {
					want = 3
				}
				if got != want {
					t.Errorf("%s, row %d of %d: %v, want %v", p, i, n, got, want)
				}
			}
		}
	}
}

// TestSumOrder: float32 sums start with the base and run in the order of the trees.
func TestSumOrder(t *testing.T) {
	f := stump()
	for _, v := range []float64{1 << 24, 1, 1, -(1 << 24)} {
		f.Trees = append(f.Trees, forest.Tree{Weight: 1, Nodes: []forest.Node{{First: 0, Last: 1}}, Values: []forest.Value{{Value: v}}})
	}
	f.Trees = f.Trees[1:]
	var out [1]float64
	for _, tt := range []struct {
		base float64
		last bool
		sum  forest.Precision
		want float64
	}{{0, false, forest.Float32, 0}, {0, false, forest.Float64, 2}, {1, false, forest.Float32, 0}, {1, true, forest.Float32, 1}} {
		f.Base[0], f.BaseLast, f.Sum = tt.base, tt.last, tt.sum
		if err := forest.Evaluate(f, forest.Margin, make([]float64, 2), out[:]); err != nil || out[0] != tt.want {
			t.Errorf("%+v: %v: %v", tt, out[0], err)
		}
	}
}

// TestCombine: sums, minima and maxima over trees, each with a base, divided, or neither; no tree has a value for the second output.
func TestCombine(t *testing.T) {
	f := stump()
	f.Outputs, f.Base = 2, []float64{0.5, 0.25}
	for _, v := range []float64{-8, 2} {
		f.Trees = append(f.Trees, forest.Tree{Weight: 0.5, Nodes: []forest.Node{{First: 0, Last: 1}}, Values: []forest.Value{{Value: v}}})
	}
	for _, c := range []struct {
		combine forest.Combine
		last    bool
		divisor []float64
		want    [4]float64 // of two rows, which have 3 and 4 from the first tree
	}{
		{forest.Sum, false, nil, [4]float64{0.5, 0.25, 1.5, 0.25}},
		{forest.Sum, true, nil, [4]float64{0.5, 0.25, 1.5, 0.25}},
		{forest.Sum, false, []float64{2, 4}, [4]float64{0.25, 0.0625, 0.75, 0.0625}},
		{forest.Sum, true, []float64{2, 4}, [4]float64{0.5, 0.25, 1, 0.25}},
		{forest.Min, false, nil, [4]float64{-3.5, 0.25, -3.5, 0.25}},
		{forest.Max, false, nil, [4]float64{3.5, 0.25, 4.5, 0.25}},
		{forest.Max, false, []float64{2, 4}, [4]float64{2, 0.25, 2.5, 0.25}},
	} {
		f.Combine, f.BaseLast, f.Divisor = c.combine, c.last, c.divisor
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		var out [4]float64
		if err := forest.Evaluate(f, forest.Margin, []float64{0, 0, 2, 0}, out[:]); err != nil || out != c.want {
			t.Errorf("%+v: %v: %v", c, out, err)
		}
	}
}

// TestLinear: a linear model of several outputs, in which a missing cell counts as 0.
func TestLinear(t *testing.T) {
	f := &forest.Forest{
		Features: 2, Outputs: 3, Base: []float64{100, 200, 300}, Alpha: 1, Classes: 3, Link: forest.Argmax,
		Linear: &forest.Linear{Bias: []float64{1, 2, 3}, Weights: []float64{10, 20, 30, -1, -2, -300}},
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	rows := []float64{1, 0, 2, 0.5, math.NaN(), 1, 3, math.NaN()}
	want := []float64{111, 222, 333, 120.5, 241, 213, 100, 200, 3, 131, 262, 393}
	out := make([]float64, len(want))
	if err := forest.Evaluate(f, forest.Margin, rows, out); err != nil || !slices.Equal(out, want) {
		t.Errorf("margins %v, want %v: %v", out, want, err)
	}
	classes := make([]float64, 4)
	if err := forest.Evaluate(f, forest.Class, rows, classes); err != nil || !slices.Equal(classes, []float64{2, 1, 1, 2}) {
		t.Errorf("classes %v: %v", classes, err)
	}
	for _, wrong := range []forest.Linear{{Bias: make([]float64, 2), Weights: f.Linear.Weights}, {Bias: f.Linear.Bias, Weights: make([]float64, 5)}} {
		f.Linear = &wrong
		if err := f.Check(); !errors.Is(err, forest.ErrForest) {
			t.Errorf("%d biases and %d weights: %v", len(wrong.Bias), len(wrong.Weights), err)
		}
	}
}

func TestLinks(t *testing.T) {
	for link, want := range map[forest.Link][]float64{
		forest.Identity: {-0.5}, forest.Sigmoid: {1 / (1 + math.E)}, forest.Exp: {math.Exp(-0.5)}, forest.Step: {0}, forest.Softplus: {math.Log(1 + math.Exp(-0.5))},
		forest.SignedSquare: {-0.25}, forest.Anomaly: {math.Exp2(0.25)}, forest.SigmoidPair: {1 / (1 + 1/math.E), 1 / (1 + math.E)}, forest.Complement: {1.5, -0.5},
		forest.Negation: {0.5, -0.5}, forest.Argmax: {0}, forest.Softmax: {1},
	} {
		f := stump()
		f.Trees[0].Values[0].Value, f.Link, f.Alpha, f.Output, f.Sum = -0.5, link, 2, forest.Float64, forest.Float64
		out := make([]float64, f.Width(forest.Prediction))
		if err := forest.Evaluate(f, forest.Prediction, make([]float32, 2), out); err != nil || len(out) != len(want) {
			t.Fatalf("%s: %v: %v", link, out, err)
		}
		for i := range want {
			if !(math.Abs(out[i]-want[i]) <= 1e-15) {
				t.Errorf("%s: %v, want %v", link, out, want)
			}
		}
	}
}

// TestLinksAtExtremes: no link overflows where its result is a plain number.
func TestLinksAtExtremes(t *testing.T) {
	for _, s := range []float64{1e4, -1e4} {
		f := stump()
		f.Outputs, f.Base, f.Link, f.Output, f.Sum = 2, []float64{s, 0}, forest.Softmax, forest.Float64, forest.Float64
		f.Trees = nil
		out := make([]float64, 2)
		if err := forest.Evaluate(f, forest.Prediction, make([]float32, 2), out); err != nil || !(out[0]+out[1] == 1) {
			t.Errorf("softmax of %v and 0: %v: %v", s, out, err)
		}
		f.Outputs, f.Base, f.Link = 1, f.Base[:1], forest.Softplus
		if err := forest.Evaluate(f, forest.Prediction, make([]float32, 2), out[:1]); err != nil || out[0] != max(s, 0) {
			t.Errorf("softplus of %v: %v: %v", s, out[0], err)
		}
	}
	for link, want := range map[forest.Link]float64{forest.Exp: 1.3549863193146328e308, forest.Sigmoid: 1 / 1.3549863193146328e308} { // exp(709.5)
		f := stump()
		f.Base, f.Link, f.Output, f.Sum, f.Trees = []float64{709.5}, link, forest.Float64, forest.Float64, nil
		if link == forest.Sigmoid {
			f.Base[0] = -709.5
		}
		out := make([]float64, 1)
		if err := forest.Evaluate(f, forest.Prediction, make([]float32, 2), out); err != nil || !(math.Abs(out[0]/want-1) <= 1e-14) {
			t.Errorf("%s of %v is %v, want %v: %v", link, f.Base[0], out[0], want, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	f := stump()
	if f.NumNodes() != 3 || f.NumLeaves() != 2 || f.Depth() != 1 || f.Width(forest.Leaves) != 1 {
		t.Errorf("%d nodes, %d leaves, depth %d", f.NumNodes(), f.NumLeaves(), f.Depth())
	}
	// What pruning has left behind does not count.
	nodes := &f.Trees[0].Nodes
	*nodes = append(*nodes, forest.Node{Test: forest.In, Yes: 4, No: 5}, forest.Node{}, forest.Node{})
	if err := f.Check(); err != nil || f.NumNodes() != 3 || f.NumLeaves() != 2 || f.NumCategorical() != 0 {
		t.Errorf("%v: %d nodes, %d leaves, %d tests of categories", err, f.NumNodes(), f.NumLeaves(), f.NumCategorical())
	}
	for _, test := range []forest.Test{forest.In, forest.InTruncated, forest.InExact} {
		if (*nodes)[0].Test = test; f.NumCategorical() != 1 {
			t.Errorf("test %d: %d tests of categories", test, f.NumCategorical())
		}
		(*nodes)[0].Last = 1
		if err := f.Check(); !errors.Is(err, forest.ErrForest) {
			t.Errorf("test %d with a list that is not there: %v", test, err)
		}
		(*nodes)[0].Last = 0
	}
}
