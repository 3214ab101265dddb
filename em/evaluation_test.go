package em_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
)

// TestEvaluate wants the same bits from launches of any size: those of sums over
// spans of rows, whole and cut short; and the extreme rows.
func TestEvaluate(t *testing.T) {
	g := structured(t)["hclt"]
	m := newModel(t, g, clustered(g, 3, 3*em.EvalRows+100, 0.1))
	ctx, schema := context.Background(), reference.Schema(g)
	ll := make([]float64, len(m.rows))
	eng := m.engine(t, cpu.Options{}, 64)
	for r := range m.rows {
		if err := eng.LogLikelihood(ctx, reference.Batch(schema, m.rows[r:r+1]), ll[r:r+1]); err != nil {
			t.Fatal(err)
		}
	}
	want, plain := 0.0, 0.0
	for lo := 0; lo < len(ll); lo += em.EvalRows {
		sum := 0.0
		for _, x := range ll[lo:min(lo+em.EvalRows, len(ll))] {
			sum += x
			plain += x
		}
		want += sum
	}
	if want == plain {
		t.Fatal("spans make no difference for these rows; nothing was tested")
	}
	want /= float64(len(ll))
	for _, rows := range []int{1, 7, 64, 511, 512, 513, 1024, 2048} {
		got, err := em.Evaluate(ctx, m.engine(t, cpu.Options{}, rows), m.table)
		if err != nil {
			t.Fatal(err)
		}
		if math.Float64bits(got.Mean()) != math.Float64bits(want) {
			t.Errorf("launches of %d rows: %v, want %v", rows, got.Mean(), want)
		}
		if low, high := slices.Index(ll, slices.Min(ll)), slices.Index(ll, slices.Max(ll)); got.Rows != len(ll) ||
			got.Lowest != (em.RowLL{Row: low, LL: ll[low]}) || got.Highest != (em.RowLL{Row: high, LL: ll[high]}) {
			t.Errorf("launches of %d rows: %+v, want the extreme rows %d and %d", rows, got, low, high)
		}
	}
}

// TestTally adds numbers in portions and evaluations one after another, and wants
// what one evaluation of all gives.
func TestTally(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ll := make([]float64, 3*em.EvalRows+7)
	for i := range ll {
		ll[i] = -50 + rng.NormFloat64()
	}
	ll[700], ll[900], ll[1200] = math.Inf(-1), math.Inf(-1), 3
	for _, n := range []int{0, 1, 2, em.EvalRows - 1, em.EvalRows, em.EvalRows + 1, 700, 701, 1000, len(ll)} {
		var want em.Evaluation
		for lo := 0; lo < n; lo += em.EvalRows {
			want.Add(ll[lo:min(lo+em.EvalRows, n)])
		}
		if n == 0 != math.IsNaN(want.Mean()) {
			t.Errorf("%d rows: mean %v", n, want.Mean())
		}
		if n == len(ll) && (want.Lowest != em.RowLL{Row: 700, LL: math.Inf(-1)} || want.Highest != em.RowLL{Row: 1200, LL: 3} || want.Impossible != 2) {
			t.Errorf("%+v: want the extreme rows 700 and 1200, two impossible ones", want)
		}
		for _, portion := range []int{1, 3, em.EvalRows, em.EvalRows + 1, 2000} {
			var tally em.Tally
			for lo := 0; lo < n; lo += portion {
				tally.Add(ll[lo:min(lo+portion, n)]...)
				tally.Evaluation() // must not disturb what follows
			}
			if got := tally.Evaluation(); got != want {
				t.Errorf("%d rows in portions of %d: %+v, want %+v", n, portion, got, want)
			}
		}
		var followed em.Evaluation
		followed.Follow(em.Evaluation{})
		for lo := 0; lo < n; lo += em.EvalRows {
			var one em.Evaluation
			one.Add(ll[lo:min(lo+em.EvalRows, n)])
			followed.Follow(one)
		}
		if followed != want {
			t.Errorf("%d rows, evaluation after evaluation: %+v, want %+v", n, followed, want)
		}
	}
}
