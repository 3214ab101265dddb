package learnspn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestSmoothingOfLogistic wants the rows that are added to a part to count for a discretised logistic leaf as for a Gaussian one of
// the same numbers: with one row and two added ones, both are about as wide as all rows.
func TestSmoothingOfLogistic(t *testing.T) {
	const rows = 500
	rng := rand.New(rand.NewPCG(61, 62))
	codes, numbers := make([]int, rows), make([]float32, rows)
	for r := range rows {
		codes[r] = min(max(int(128+20*rng.NormFloat64()), 0), 255)
		numbers[r] = float32(codes[r])
	}
	src, leaves := tableOf(t, column{categories: 256, codes: codes, leaf: circuit.DiscretisedLogistic{Domain: 256}}, column{values: numbers})
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, rows} {
		f, part := newLeafFitter(all, 2), whole(all).rows[:n]
		logistic, gaussian := f.rows(0, part), f.rows(1, part)
		if deviation := logistic[1] * math.Pi / math.Sqrt(3); !near(deviation/gaussian[1], 1, 0.2) || !near(logistic[0], gaussian[0], 5) {
			t.Errorf("%d rows: mean %v and deviation %v, those of a Gaussian are %v and %v", n, logistic[0], deviation, gaussian[0], gaussian[1])
		}
	}
}

// TestSmoothingIsLikeAllRows wants the rows that are added to look like all rows, however many they are: leaves of all rows have their
// mean, whatever their parameters started from.
func TestSmoothingIsLikeAllRows(t *testing.T) {
	const rows = 200
	rng := rand.New(rand.NewPCG(63, 64))
	codes, numbers, counts := make([]int, rows), make([]float32, rows), make([]float32, rows)
	for r := range rows {
		codes[r] = min(max(int(128+20*rng.NormFloat64()), 0), 255)
		numbers[r] = float32(5 + 3*rng.NormFloat64())
		counts[r] = float32(rng.IntN(30))
	}
	all := tableRows(t, column{values: numbers}, column{values: counts, leaf: circuit.Poisson{}},
		column{categories: 256, codes: codes, leaf: circuit.DiscretisedLogistic{Domain: 256}})
	for _, smoothing := range []float64{2, 1e6} {
		f := newLeafFitter(all, smoothing)
		for v := range all {
			want := all[v].describe()
			if p := f.rows(v, whole(all).rows); !near(p[0], want.Mean, 0.01*math.Sqrt(want.Variance)) {
				t.Errorf("%s, %v rows added: mean %v, want %v", all[v].leaf.Name(), smoothing, p[0], want.Mean)
			}
		}
	}
}

// TestSmoothingOfNoEvents wants a count above 0 to stay as possible as smoothing leaves a code that no row has, where all rows have 0.
func TestSmoothingOfNoEvents(t *testing.T) {
	all := tableRows(t, column{values: make([]float32, 200), leaf: circuit.Poisson{}})
	p := newLeafFitter(all, 2).rows(0, whole(all).rows)
	if none, one := all[0].leaf.LogProb(p, 0), all[0].leaf.LogProb(p, 1); !(none > -0.01 && one > -15) {
		t.Errorf("log probabilities of no event and of one: %v and %v", none, one)
	}
}
