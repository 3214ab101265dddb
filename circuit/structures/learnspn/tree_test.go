package learnspn

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestTreeTables compares the tables of a tree over two bits with counts made by hand: 4 of 6
// rows have the first bit set, 3 of these the second, and none of the others. Two rows are
// added, a half to each of the four cells.
func TestTreeTables(t *testing.T) {
	src, leaves := tableOf(t,
		column{categories: 2, codes: []int{1, 1, 1, 1, 0, 0}},
		column{categories: 2, codes: []int{1, 1, 1, 0, 0, 0}})
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	s := whole(all)
	tr := learnTree(s, newPairCounter(s), nil, newLeafFitter(all, 2))
	if tr.parent[0] != -1 || tr.parent[1] != 0 {
		t.Fatalf("parents %v, want -1 and 0", tr.parent)
	}
	for i, want := range [][][]float64{{{3.0 / 8, 5.0 / 8}}, {{2.5 / 3, 0.5 / 3}, {1.5 / 5, 3.5 / 5}}} {
		got := tr.table[i]
		if i == 1 {
			got = tr.params[i]
		}
		if len(got) != len(want) {
			t.Fatalf("variable %d has tables %v, want %v", i, got, want)
		}
		for state := range want {
			for c := range want[state] {
				if !near(got[state][c], want[state][c], 1e-6) {
					t.Errorf("variable %d, state %d: %v, want %v", i, state, got[state], want[state])
				}
			}
		}
	}
}

// TestWeightsAreShares wants the weights of the sum over two clusters of 80 and 20 % of the
// rows to be these.
func TestWeightsAreShares(t *testing.T) {
	const rows = 1000
	rng := rand.New(rand.NewPCG(51, 52))
	columns := make([]column, 8)
	for v := range columns {
		columns[v] = column{categories: 2, codes: make([]int, rows)}
		for r := range rows {
			columns[v].codes[r] = int(indicate((r < rows/5) != (rng.IntN(50) == 0)))
		}
	}
	src, leaves := tableOf(t, columns...)
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	o := Defaults()
	o.Leaves, o.Threshold = leaves, gTestThreshold
	n := learn(t.Context(), all, &o)
	if n.kind != sumNode || len(n.weights) != 2 || !near(max(n.weights[0], n.weights[1]), 0.8, 0.01) || !near(n.weights[0]+n.weights[1], 1, 1e-9) {
		t.Errorf("the root is of kind %d with weights %v, want a sum with 0.8 and 0.2", n.kind, n.weights)
	}
}

// TestComponents wants chains of dependent pairs in one component, and asks for each pair at
// most once.
func TestComponents(t *testing.T) {
	asked := map[[2]int]bool{}
	got := components(7, func(i, j int) bool {
		if i >= j || asked[[2]int{i, j}] {
			t.Errorf("pair %d, %d is asked for again or in the wrong order", i, j)
		}
		asked[[2]int{i, j}] = true
		return i+2 == j && j != 4 // 0-2, 1-3-5, 4-6
	})
	if want := [][]int{{0, 2}, {1, 3, 5}, {4, 6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("components %v, want %v", got, want)
	}
	if got := components(0, nil); len(got) != 0 {
		t.Errorf("components of nothing: %v", got)
	}
}

// TestMixtureKeepsItsBestRound learns mixtures that overfit few rows, and wants the score that
// is returned to be that of the circuit that is returned, and no less than that of any round.
func TestMixtureKeepsItsBestRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	src, leaves := tableOf(t, families(60, 0, rng)...)
	judge, _ := tableOf(t, families(400, 0, rng)...)
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	valid, err := readTable(t.Context(), judge, leaves)
	if err != nil {
		t.Fatal(err)
	}
	fit := newLeafFitter(all, 0.01)
	m := &treeMixture{s: whole(all), fit: fit, valid: valid}
	n, score := m.learn(t.Context(), 4, rand.New(rand.NewPCG(1, 1)))
	if got := m.score(n); got != score {
		t.Errorf("the mixture has %v nats per row, its score is %v", got, score)
	}
	weight := make([][]float64, len(n.children))
	if got, want := m.expect(n, weight), mean(n.logLik(all, m.s.rows)); !near(got, want, 1e-9) {
		t.Errorf("the mean of the rows is %v, want %v", got, want)
	}
	unjudged := &treeMixture{s: whole(all), fit: fit}
	last, _ := unjudged.learn(t.Context(), 4, rand.New(rand.NewPCG(1, 1)))
	if end := m.score(last); !(score > end) {
		t.Errorf("the best round has %v nats per row on other rows, the last %v: nothing was overfitted", score, end)
	}
}

// TestMixtureOfFewerClusters asks for more trees than the rows have clusters, and wants the weights of the first round,
// after which a cancelled context ends the work, to sum to 1.
func TestMixtureOfFewerClusters(t *testing.T) {
	all := tableRows(t, column{categories: 2, codes: []int{0, 0, 0, 0, 1, 1, 1, 1}}, column{categories: 2, codes: []int{0, 0, 0, 0, 1, 1, 1, 1}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &treeMixture{s: whole(all), fit: newLeafFitter(all, 1)}
	n, _ := m.learn(ctx, 10, rand.New(rand.NewPCG(1, 1)))
	sum := 0.0
	for _, w := range n.weights {
		sum += w
	}
	if len(n.weights) >= 10 || !near(sum, 1, 1e-6) {
		t.Errorf("%d trees with weights %v, want fewer than 10 that sum to 1", len(n.weights), n.weights)
	}
}

// TestRareColumns has columns with a cell in one row of 50, each of which has a column with all cells that tells of it. In the tree
// they are beside each other: the few rows in which two of the former are observed seem to inform more, and say next to nothing.
func TestRareColumns(t *testing.T) {
	const rows, dense, rare = 4000, 4, 24
	rng := rand.New(rand.NewPCG(81, 82))
	columns := make([]column, dense+rare)
	for v := range columns {
		columns[v] = column{categories: 2, codes: make([]int, rows)}
	}
	for r := range rows {
		for v := range columns {
			switch code := columns[v%dense].codes[r]; {
			case v < dense:
				columns[v].codes[r] = rng.IntN(2)
			case rng.IntN(50) > 0:
				columns[v].codes[r] = dataset.Missing
			case rng.IntN(5) == 0:
				columns[v].codes[r] = 1 - code
			default:
				columns[v].codes[r] = code
			}
		}
	}
	src, leaves := tableOf(t, columns...)
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	s := whole(all)
	tree := learnTree(s, newPairCounter(s), nil, newLeafFitter(all, 2))
	for v := dense; v < dense+rare; v++ {
		if of := v % dense; tree.parent[v] != of && tree.parent[of] != v {
			t.Errorf("column %d, of which %d tells, has the parent %d, and that %d", v, of, tree.parent[v], tree.parent[of])
		}
	}
}

// TestWeightedShares learns a tree by rows of which those that have a cell of the first column have nearly all of the weight: it is
// between the other two, of which it tells more than they tell of each other, although most rows lack it.
func TestWeightedShares(t *testing.T) {
	const rows, heavy = 4000, 400
	rng := rand.New(rand.NewPCG(91, 92))
	columns, weight := make([]column, 3), make([]float64, rows)
	for v := range columns {
		columns[v] = column{categories: 2, codes: make([]int, rows)}
	}
	for r := range rows {
		a := rng.IntN(2)
		for v := range columns {
			if columns[v].codes[r] = a; v > 0 && rng.IntN(8) == 0 {
				columns[v].codes[r] = 1 - a
			}
		}
		if weight[r] = 1; r >= heavy {
			columns[0].codes[r], weight[r] = dataset.Missing, 1e-4
		}
	}
	all := tableRows(t, columns...)
	s := whole(all)
	tree := learnTree(s, weightedPairs{s, weight}, weight, newLeafFitter(all, 2))
	for _, v := range []int{1, 2} {
		if tree.parent[v] != 0 && tree.parent[0] != v {
			t.Errorf("parents %v; columns 1 and 2 are to be beside column 0", tree.parent)
		}
	}
}
