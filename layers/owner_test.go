package layers_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/layers"
)

// programs are the sample and those of random circuits of all leaves.
func programs(t *testing.T) []*layers.Program {
	t.Helper()
	list := []*layers.Program{sample(t)}
	for seed := range uint64(60) {
		g := reference.Random(rand.New(rand.NewPCG(seed, 31)), reference.RandomOptions{})
		r, err := compile.Compile(g, compile.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r.Program)
	}
	return list
}

// TestOwners wants every place with at most one owner, and one for each that an
// update may write: all edge blocks, all parameters of leaves, all normalisers
// of owners and all residues.
func TestOwners(t *testing.T) {
	functions, tied := 0, 0
	for k, p := range programs(t) {
		params, flows, averages := make([]int, p.NumParams), make([]int, p.FlowLen()), make([]int, p.AverageLen())
		note := func(at []int, ranges []layers.Range) {
			last := int64(-1)
			for _, r := range ranges {
				if r.Lo <= last || r.Hi <= r.Lo || r.Hi > int64(len(at)) {
					t.Fatalf("program %d: ranges %v of a buffer of %d", k, ranges, len(at))
				}
				last = r.Hi - 1
				for i := r.Lo; i < r.Hi; i++ {
					at[i]++
				}
			}
		}
		owners := p.Owners()
		sharers := 0
		for i, o := range owners {
			note(params, o.Params)
			note(flows, o.Flows)
			note(averages, o.Averages)
			if (o.Sum < 0) == (o.Input < 0) {
				t.Fatalf("program %d: owner %d is sum %d and input %d", k, i, o.Sum, o.Input)
			}
			if i > 0 && (o.Sum >= 0 && o.Sum <= owners[i-1].Sum || o.Input >= 0 && o.Input <= owners[i-1].Input) {
				t.Errorf("program %d: %v stands after %v", k, o, owners[i-1])
			}
			if o.Statistics {
				functions++
			}
			if o.Sharers > 1 {
				tied++
			}
			sharers += o.Sharers
		}
		want := make([]int, p.NumParams)
		fill := func(at []int, lo, n int64) {
			for i := lo; i < lo+n; i++ {
				at[i] = 1
			}
		}
		fill(want, p.ParamOffset(1), p.ParamOffset(p.ParamBlocks-1))
		wantFlows := slices.Concat(want, make([]int, p.VisitLen()))
		members := len(p.Sums)
		for i := range p.Sums {
			fill(wantFlows, p.SumNorm(p.Sums[i].Owner), int64(p.Width(p.Sums[i].Vector)))
		}
		for i := range p.Inputs {
			in := &p.Inputs[i]
			if in.Family.NumParams() == 0 {
				continue
			}
			members++
			width := int64(p.Width(in.Vector))
			fill(wantFlows, p.InputNorm(in.Owner), width)
			if in.Codes > 0 {
				fill(want, in.Table, int64(in.Codes)*width)
				fill(wantFlows, in.Table, int64(in.Codes)*width)
			}
			if in.Params >= 0 {
				fill(want, in.Params, int64(in.Family.NumParams())*width)
			}
			if in.Exps >= 0 {
				fill(want, in.Exps, int64(in.Codes)*width)
			}
			if in.Codes == 0 {
				fill(wantFlows, in.Params, int64(in.Family.NumStats())*width)
			}
		}
		wantAverages := slices.Concat(wantFlows, slices.Repeat([]int{1}, int(p.AverageLen()-p.FlowLen())))
		if !slices.Equal(params, want) || !slices.Equal(flows, wantFlows) || !slices.Equal(averages, wantAverages) {
			t.Errorf("program %d: the owners have other places than an update may write", k)
		}
		if sharers != members {
			t.Errorf("program %d: %d sums and inputs share parameters of owners, want %d", k, sharers, members)
		}
	}
	if functions == 0 || tied == 0 {
		t.Errorf("%d functions and %d tied owners were tested", functions, tied)
	}
}

// bytesOf is what a step moves of owners.
func bytesOf(owners []layers.Owner) int64 {
	n := int64(0)
	for _, o := range owners {
		for _, r := range o.Params {
			n += 4 * r.Len()
		}
		for _, r := range o.Flows {
			n += 8 * r.Len()
		}
	}
	return n
}

// largest is the size of the largest run of the best split, found by trying all.
func largest(owners []layers.Owner, n int) int64 {
	if n == 1 {
		return bytesOf(owners)
	}
	best := int64(-1)
	for i := range len(owners) + 1 {
		if m := max(bytesOf(owners[:i]), largest(owners[i:], n-1)); best < 0 || m < best {
			best = m
		}
	}
	return best
}

// TestSplitOwners compares the largest run with that of all splits.
func TestSplitOwners(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 33))
	for range 300 {
		owners := make([]layers.Owner, rng.IntN(9))
		for i := range owners {
			owners[i].Params = []layers.Range{{Lo: 0, Hi: rng.Int64N(40)}}
			owners[i].Flows = []layers.Range{{Lo: 0, Hi: rng.Int64N(1 + int64(rng.IntN(50)))}}
		}
		n := 1 + rng.IntN(5)
		b := layers.SplitOwners(owners, n)
		if len(b) != n+1 || b[0] != 0 || b[n] != len(owners) || !slices.IsSorted(b) {
			t.Fatalf("%d owners in %d runs: bounds %v", len(owners), n, b)
		}
		got := int64(0)
		for k := range n {
			got = max(got, bytesOf(owners[b[k]:b[k+1]]))
		}
		if want := largest(owners, n); got != want {
			t.Errorf("%d owners in %d runs: the largest has %d bytes, want %d: %v", len(owners), n, got, want, b)
		}
		if again := layers.SplitOwners(owners, n); !slices.Equal(b, again) {
			t.Errorf("bounds %v, then %v", b, again)
		}
	}
	equal := make([]layers.Owner, 10)
	for i := range equal {
		equal[i].Params = []layers.Range{{Lo: 0, Hi: 8}}
	}
	for _, tc := range []struct {
		owners, n int
		want      []int
	}{
		{10, 4, []int{0, 2, 5, 7, 10}},
		{10, 3, []int{0, 3, 6, 10}},
		{4, 2, []int{0, 2, 4}},
		{3, 0, []int{0, 3}},
		{0, 2, []int{0, 0, 0}},
	} {
		if got := layers.SplitOwners(equal[:tc.owners], tc.n); !slices.Equal(got, tc.want) {
			t.Errorf("%d equal owners in %d runs: %v, want %v", tc.owners, tc.n, got, tc.want)
		}
	}
}

// TestStatScale: the scales of an input are those of its owner, and 1 where it has none.
func TestStatScale(t *testing.T) {
	scales := [][]float64{nil, {8, 64}}
	for _, tc := range []struct {
		owner int32
		k     int
		want  float64
	}{{1, 0, 8}, {1, 1, 64}, {1, 2, 1}, {0, 0, 1}, {2, 0, 1}} {
		if got := layers.StatScale(scales, &layers.Input{Owner: tc.owner, Family: circuit.Gaussian{}}, tc.k); got != tc.want {
			t.Errorf("owner %d, statistic %d: %v, want %v", tc.owner, tc.k, got, tc.want)
		}
	}
}
