package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// Bounds that every device keeps, from which values are computed again in log
// space. A test stands a factor of 8 on either side: the scale of a row is a
// power of two above its largest product.
const (
	leastOutput = 0x1p-102 // of a sum, for each column, relative to the row's largest product
	leastStored = 0x1p-24  // of a product of few factors that is kept
)

// testThresholds wants values just inside what float32 is trusted with to be taken,
// and those just outside to be computed again; both are right.
func testThresholds(t *testing.T, open Open, _ Depth) {
	t.Run("floors", func(t *testing.T) { testFloors(t, open) })
	t.Run("traces", func(t *testing.T) { testTraces(t, open) })
	for _, side := range []struct {
		factor float64
		again  bool
	}{{8, false}, {1. / 8, true}} {
		for _, size := range []int{2, 16, 32} {
			t.Run(fmt.Sprintf("output of blocks of %d, %v times the bound", size, side.factor), func(t *testing.T) {
				var p reference.Params
				g := &circuit.Graph{NumVars: 1}
				small := leastOutput * float64(size) * side.factor / 2 // beside a product of 1/2
				in := leaves(g, &p, 0, 0.5, small)
				g.Root = sum(g, &p, 1, []float64{0.5, 0.5}, sum(g, &p, 2, []float64{1, 0, 0, 1}, in))
				checkAgain(t, open, g, p, []float64{1}, size, side.again)
			})
		}
		for factors := 1; factors <= 4; factors++ { // of four on, elements have exponents of their own
			t.Run(fmt.Sprintf("stored product of %d, %v times the bound", factors, side.factor), func(t *testing.T) {
				var p reference.Params
				g := &circuit.Graph{NumVars: factors}
				var inputs []circuit.NodeID
				row := make([]float64, factors)
				for v := range factors {
					inputs = append(inputs, leaves(g, &p, v, math.Pow(leastStored*side.factor, 1/float64(factors))))
					row[v] = 1
				}
				g.Root = product(g, &p, inputs...)
				checkAgain(t, open, g, p, row, 1, side.again && factors <= 3)
			})
		}
	}
}

// checkAgain evaluates a row, and wants to know whether a value of it was computed
// again.
func checkAgain(t *testing.T, open Open, g *circuit.Graph, p reference.Params, row []float64, size int, again bool) {
	t.Helper()
	dev := open(t)
	defer dev.Close()
	o := compile.DefaultOptions()
	o.BlockSize = size
	m := Build(t, dev, g, p, o, engine.Options{Rows: 4})
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ev.LogLikelihood(row)
	if err != nil {
		t.Fatal(err)
	}
	ll := make([]float64, 1)
	if err := m.Engine.LogLikelihood(t.Context(), reference.Batch(reference.Schema(g), [][]float64{row}), ll); err != nil {
		t.Fatal(err)
	}
	compareLL(t, [][]float64{row}, ll, []float64{want})
	if got := m.Engine.Recomputed() > 0; got != again {
		t.Errorf("%d values were computed again in log space; want some: %v", m.Engine.Recomputed(), again)
	}
}

// Bounds of what training leaves behind.
const (
	leastWeight  = 0x1p-100 // of a probability that was positive
	leastAverage = 0x1p-64  // of Anemone's averages; 0 below
)

// testFloors trains on a row that one weight and one code have no share in: they
// become the least weight, not 0 and not more.
func testFloors(t *testing.T, open Open) {
	var p reference.Params
	g := &circuit.Graph{NumVars: 1}
	g.Root = sum(g, &p, 1, []float64{0.5, 0.5}, leaves(g, &p, 0, 0.5, 0x1p-120))
	rule := tensor.Rule{Step: 1}
	ctx := t.Context()
	batch := reference.Batch(reference.Schema(g), [][]float64{{1}})
	for _, fused := range []bool{true, false} {
		dev := open(t)
		m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 4, Train: true})
		ll := make([]float64, 1)
		var err error
		if fused {
			err = m.Engine.Step(ctx, batch, 0, 1, rule, ll)
		} else if err = m.Engine.Accumulate(ctx, batch, 0, 1, ll); err == nil {
			err = m.Engine.Apply(ctx, rule)
		}
		if err != nil {
			t.Fatal(err)
		}
		after := m.Read(t)
		for what, got := range map[string]float64{"weight": float64(after[g.Root][1]), "code": float64(after[0][0])} {
			if !(got >= leastWeight/2 && got <= leastWeight*2) {
				t.Errorf("fused %v: a %s without flow becomes %v, want %v", fused, what, got, leastWeight)
			}
		}
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// testTraces lets averages decay past the least one.
func testTraces(t *testing.T, open Open) {
	var p reference.Params
	g := &circuit.Graph{NumVars: 1}
	g.Root = sum(g, &p, 1, []float64{0.4, 0.3, 0.3}, leaves(g, &p, 0, 0.5, 0x1p-120, 0x1p-120))
	dev := open(t)
	defer dev.Close()
	ctx := t.Context()
	m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 4, Train: true})
	prog := m.Engine.Program()
	at := prog.ParamOffset(prog.Sums[0].Param)
	averages := make([]float32, prog.AverageLen())
	averages[at], averages[at+1], averages[at+2] = 1, 8*leastAverage, leastAverage/8
	if err := m.Engine.WriteAverages(ctx, 0, averages); err != nil {
		t.Fatal(err)
	}
	if err := m.Engine.Accumulate(ctx, reference.Batch(reference.Schema(g), [][]float64{{1}}), 0, 1, make([]float64, 1)); err != nil {
		t.Fatal(err)
	}
	if err := m.Engine.Apply(ctx, tensor.Rule{Step: 0.1, Anemone: &tensor.Anemone{Momentum: 0.5, Rows: 1, Weight: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Engine.ReadAverages(ctx, 0, averages); err != nil {
		t.Fatal(err)
	}
	if averages[at+1] != 4*leastAverage || averages[at+2] != 0 {
		t.Errorf("averages without flow become %v and %v, want %v and 0", averages[at+1], averages[at+2], 4*leastAverage)
	}
}
