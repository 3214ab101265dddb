package pce_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestRowsOfALaunch wants the same bits of log-likelihoods and samples whatever
// the rows of a launch, on every kernel path and on the emulator.
func TestRowsOfALaunch(t *testing.T) {
	places := []pce.Options{{Device: "emulator"}}
	for _, path := range pce.KernelPaths() {
		places = append(places, pce.Options{Device: "cpu", KernelPath: path})
	}
	seeds := uint64(4)
	if testing.Short() {
		seeds = 2
	}
	for _, o := range places {
		for seed := range seeds {
			ro := reference.RandomOptions{MaxNodes: 20, MaxUnits: 1 + int(seed)*20}
			g := reference.Random(rand.New(rand.NewPCG(seed, 30)), ro)
			rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 31)), 70, 0.4)
			var lls [][]float64
			var drawn [][][]float64
			launches := []int{512, 64, 33, 1}
			if o.Device == "emulator" {
				launches = []int{128, 64, 9}
			}
			if testing.Short() {
				launches = launches[len(launches)-2:]
			}
			for _, n := range launches {
				o.Rows = n
				m, err := pce.New(t.Context(), g, start(t, g), o)
				if err != nil {
					t.Fatal(err)
				}
				ll, err := m.LogLikelihood(t.Context(), rows)
				if err != nil {
					t.Fatal(err)
				}
				s, err := m.SampleGiven(t.Context(), rows, seed)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				lls, drawn = append(lls, ll), append(drawn, s)
			}
			for k, n := range launches[1:] {
				for r := range rows {
					if a, b := lls[0][r], lls[k+1][r]; math.Float64bits(a) != math.Float64bits(b) {
						t.Fatalf("%+v, seed %d, row %d: %v in launches of %d rows, %v of %d", o, seed, r, a, launches[0], b, n)
					}
					if !slices.EqualFunc(drawn[0][r], drawn[k+1][r], func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
						t.Fatalf("%+v, seed %d, row %d: other samples in launches of %d rows than of %d", o, seed, r, n, launches[0])
					}
				}
			}
		}
	}
}
