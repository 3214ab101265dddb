package em_test

import (
	"context"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
)

// TestMeanLogLikelihood wants the same bits from launches of any size: those of
// sums over spans of rows, whole and cut short.
func TestMeanLogLikelihood(t *testing.T) {
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
		got, err := em.MeanLogLikelihood(ctx, m.engine(t, cpu.Options{}, rows), m.table)
		if err != nil {
			t.Fatal(err)
		}
		if math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("launches of %d rows: %v, want %v", rows, got, want)
		}
	}
}
