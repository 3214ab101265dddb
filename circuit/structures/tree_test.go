package structures

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// depthFrom returns the height of the tree hung up at root.
func depthFrom(t Tree, root int) int {
	next := make([][]int, len(t.Parent))
	for v, p := range t.Parent {
		if p >= 0 {
			next[v], next[p] = append(next[v], p), append(next[p], v)
		}
	}
	var deepest func(v, from int) int
	deepest = func(v, from int) int {
		d := 0
		for _, w := range next[v] {
			if w != from {
				d = max(d, 1+deepest(w, v))
			}
		}
		return d
	}
	return deepest(root, -1)
}

// TestCentre compares the root of random trees with all other roots.
func TestCentre(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 40; n++ {
		for range 20 {
			var edges [][2]int
			for v := 1; v < n; v++ {
				edges = append(edges, [2]int{rng.IntN(v), v})
			}
			label := rng.Perm(n)
			for i := range edges {
				edges[i] = [2]int{label[edges[i][0]], label[edges[i][1]]}
			}
			tree, err := NewTree(n, edges)
			if err != nil {
				t.Fatal(err)
			}
			root := slices.Index(tree.Parent, -1)
			best := 0
			for v := range n {
				if depthFrom(tree, v) < depthFrom(tree, best) {
					best = v
				}
			}
			height, err := tree.Height()
			if err != nil || root != best || height != depthFrom(tree, best) {
				t.Fatalf("edges %v: root %d, height %d, %v; want root %d, height %d", edges, root, height, err, best, depthFrom(tree, best))
			}
		}
	}
}

func TestRandomTreeInner(t *testing.T) {
	for _, tc := range []struct{ n, inner int }{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {4, 2}, {50, 1}, {50, 20}, {50, 48}, {784, 604}} {
		for seed := range uint64(10) {
			tree, err := RandomTreeInner(tc.n, tc.inner, seed)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tree.Height(); err != nil || len(tree.Parent) != tc.n || tree.Inner() != tc.inner {
				t.Errorf("RandomTreeInner(%d, %d, %d) has %d variables, %d inner, %v", tc.n, tc.inner, seed, len(tree.Parent), tree.Inner(), err)
			}
		}
	}
	a, _ := RandomTreeInner(50, 20, 1)
	b, _ := RandomTreeInner(50, 20, 2)
	again, _ := RandomTreeInner(50, 20, 1)
	if slices.Equal(a.Parent, b.Parent) || !slices.Equal(a.Parent, again.Parent) {
		t.Error("a tree does not depend on its seed alone")
	}
}

func TestGridTree(t *testing.T) {
	for _, tc := range []struct{ h, w int }{{1, 1}, {1, 7}, {5, 1}, {4, 6}, {28, 28}} {
		tree, err := GridTree(tc.h, tc.w, 5)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Height(); err != nil || len(tree.Parent) != tc.h*tc.w {
			t.Fatalf("%d×%d: %d variables, %v", tc.h, tc.w, len(tree.Parent), err)
		}
		for v, p := range tree.Parent {
			dy, dx := v/tc.w-p/tc.w, v%tc.w-p%tc.w
			if p >= 0 && dy*dy+dx*dx != 1 {
				t.Errorf("%d×%d: %d and its parent %d are no neighbours", tc.h, tc.w, v, p)
			}
		}
	}
}

// TestPruefer checks that the sequences of four variables give all 16 trees.
func TestPruefer(t *testing.T) {
	seen := map[[3][2]int]bool{}
	for a := range 4 {
		for b := range 4 {
			edges := decodePruefer(4, []int{a, b})
			if _, err := NewTree(4, edges); err != nil {
				t.Fatal(err)
			}
			var key [3][2]int
			for i, e := range edges {
				key[i] = [2]int{min(e[0], e[1]), max(e[0], e[1])}
			}
			slices.SortFunc(key[:], func(x, y [2]int) int { return slices.Compare(x[:], y[:]) })
			seen[key] = true
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d different trees over 4 variables, want 16", len(seen))
	}
}

func TestBadOptions(t *testing.T) {
	hclt := func(parent ...int) func() error {
		return func() error {
			_, err := HCLT(Tree{parent}, HCLTOptions{Latents: 2, Leaf: binary})
			return err
		}
	}
	hmm := func(o HMMOptions) func() error { return func() error { _, err := HMM(o); return err } }
	rat := func(o RATSPNOptions) func() error { return func() error { _, err := RATSPN(o); return err } }
	pd := func(edit func(*PDOptions)) func() error {
		return func() error {
			o := pd28Options(64)
			edit(&o)
			_, err := PD(o)
			return err
		}
	}
	for _, tc := range []struct {
		name string
		run  func() error
		want error
	}{
		{"tree", hclt(-1, 0, 0, 2), nil},
		{"no variable", hclt(), ErrOptions},
		{"no root", hclt(1, 0), ErrOptions},
		{"two roots", hclt(-1, -1), ErrOptions},
		{"cycle beside the root", hclt(-1, 2, 1), ErrOptions},
		{"own parent", hclt(-1, 1), ErrOptions},
		{"parent out of range", hclt(-1, 2), ErrOptions},
		{"parent below -1", hclt(-1, -2), ErrOptions},
		{"edge to nowhere", func() error { _, err := NewTree(2, [][2]int{{0, 2}}); return err }, ErrOptions},
		{"edge from nowhere", func() error { _, err := NewTree(2, [][2]int{{-1, 0}}); return err }, ErrOptions},
		{"too few edges", func() error { _, err := NewTree(3, [][2]int{{0, 1}}); return err }, ErrOptions},
		{"double edge", func() error { _, err := NewTree(3, [][2]int{{0, 1}, {1, 0}}); return err }, ErrOptions},
		{"tree of no variables", func() error { _, err := NewTree(0, nil); return err }, ErrOptions},
		{"all inner", func() error { _, err := RandomTreeInner(5, 4, 0); return err }, ErrOptions},
		{"none inner", func() error { _, err := RandomTreeInner(5, 0, 0); return err }, ErrOptions},
		{"negative variables", func() error { _, err := RandomTreeInner(-5, 1, 0); return err }, ErrOptions},
		{"huge grid", func() error { _, err := GridTree(1<<40, 1<<40, 0); return err }, ErrOptions},
		{"flat grid", func() error { _, err := GridTree(3, 0, 0); return err }, ErrOptions},
		{"hmm", hmm(HMMOptions{Length: 3, Latents: 2, Leaf: binary}), nil},
		{"hmm of no step", hmm(HMMOptions{Length: 0, Latents: 2, Leaf: binary}), ErrOptions},
		{"hmm without states", hmm(HMMOptions{Length: 3, Latents: 0, Leaf: binary}), ErrOptions},
		{"hmm too wide", hmm(HMMOptions{Length: 3, Latents: 1 << 40, Leaf: binary}), ErrOptions},
		{"hmm too long", hmm(HMMOptions{Length: 1 << 40, Latents: 2, Leaf: binary}), ErrOptions},
		{"hmm without leaves", hmm(HMMOptions{Length: 3, Latents: 2}), ErrOptions},
		{"nil leaf", hmm(HMMOptions{Length: 3, Latents: 2, Leaf: func(int) circuit.Leaf { return nil }}), ErrOptions},
		{"tied, uneven leaves", hmm(HMMOptions{Length: 3, Latents: 2, Tied: true,
			Leaf: func(v int) circuit.Leaf { return circuit.Categorical{Categories: 2 + v} }}), ErrOptions},
		{"rat-spn", rat(RATSPNOptions{Vars: 9, Latents: 2, Depth: 2, Repetitions: 1, Pieces: 2, Leaf: binary}), nil},
		{"rat-spn of depth 0", rat(RATSPNOptions{Vars: 9, Latents: 2, Repetitions: 1, Pieces: 2, Leaf: binary}), ErrOptions},
		{"rat-spn in one piece", rat(RATSPNOptions{Vars: 9, Latents: 2, Depth: 1, Repetitions: 1, Pieces: 1, Leaf: binary}), ErrOptions},
		{"rat-spn repeated too often", rat(RATSPNOptions{Vars: 9, Latents: 2, Depth: 1, Repetitions: 1 << 60, Pieces: 2, Leaf: binary}), ErrOptions},
		{"deep rat-spn", rat(RATSPNOptions{Vars: 9, Latents: 2, Depth: 1 << 60, Repetitions: 1, Pieces: 1 << 60, Leaf: binary}), nil},
		{"rat-spn of no variables", rat(RATSPNOptions{Vars: -9, Latents: 2, Depth: 2, Repetitions: 1, Pieces: 2, Leaf: binary}), ErrOptions},
		{"pd without channels", pd(func(o *PDOptions) { o.Shape[2] = 0 }), ErrOptions},
		{"pd of huge image", pd(func(o *PDOptions) { o.Shape = [3]int{1 << 40, 1 << 40, 1 << 40} }), ErrOptions},
		{"pd of 65,537 rows", pd(func(o *PDOptions) { o.Shape, o.SplitInterval = [3]int{1<<16 + 1, 1, 1}, 1<<12 }), ErrOptions},
		{"pd of too many cells", pd(func(o *PDOptions) { o.Shape = [3]int{1 << 16, 1 << 16, 1} }), ErrOptions},
		{"pd of too many rectangles", pd(func(o *PDOptions) { o.Shape = [3]int{512, 512, 1} }), ErrOptions},
		{"pd of too many edge blocks", pd(func(o *PDOptions) { o.Latents = 1 << 20 }), ErrOptions},
		{"pd without interval", pd(func(o *PDOptions) { o.SplitInterval = 0 }), ErrOptions},
		{"pd without products", pd(func(o *PDOptions) { o.MaxProductBlocks = 0 }), ErrOptions},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.run(); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// TestTiedLeaves names the columns of tied steps whose leaves differ as users count them.
func TestTiedLeaves(t *testing.T) {
	leaf := func(v int) circuit.Leaf { return circuit.Categorical{Categories: 2 + v%2} }
	_, err := HMM(HMMOptions{Length: 3, Latents: 2, Tied: true, Leaf: leaf})
	if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "columns 2 and 3") {
		t.Errorf("leaves of 2, 3 and 2 categories: %v", err)
	}
}
