package kerneltest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
)

// FarTables wants the odds of a class where tables, or products of several of their numbers, have exponents
// below -2^24, which as float32 would be rounded by more than the classes lie apart.
func FarTables(t *testing.T, open Open) {
	for _, units := range []int{2, 16, 48} {
		t.Run(fmt.Sprint(units, " units"), func(t *testing.T) { testFarTables(t, open, units) })
	}
}

func testFarTables(t *testing.T, open Open, units int) {
	g, p := &circuit.Graph{NumVars: 3}, reference.Params{}
	const scale = 0x1p-14 // so small that codes lie far apart in units of it, as exponents want, while there are few to tabulate
	leaf := circuit.DiscretisedLogistic{Domain: 1876, MinScale: scale}
	for v := range 2 {
		params := make([]float64, 2*units) // a mean and a scale for each unit
		for u := range units {
			params[2*u], params[2*u+1] = float64(u)/float64(units)*scale, scale
		}
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: units, Var: v, Leaf: leaf})
		p = append(p, params)
	}
	class, weights := make([]float64, 2*units), make([]float64, units)
	for u := range units {
		x := float64(u+1) / float64(units+1)
		class[2*u], class[2*u+1], weights[u] = 1-x, x, 1/float64(units)
	}
	g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: units, Var: 2, Leaf: circuit.Bernoulli{}})
	p = append(p, class)
	sum(g, &p, 1, weights, product(g, &p, 0, 1, 2))

	var rows [][]float64
	for _, x := range [][2]float64{{6, 12}, {1250, 0}, {1251, 0}, {0, 1875}, {563, 564}, {1562, 1874}} {
		rows = append(rows, []float64{x[0], x[1], 0}, []float64{x[0], x[1], 1})
	}
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	dev := open(t)
	defer dev.Close()
	m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 64})
	got, want := make([]float64, len(rows)), make([]float64, len(rows))
	if err := m.Engine.LogLikelihood(context.Background(), reference.Batch(reference.Schema(g), rows), got); err != nil {
		t.Fatal(err)
	}
	for r := range rows {
		if want[r], err = ev.LogLikelihood(rows[r]); err != nil {
			t.Fatal(err)
		}
	}
	if !(want[2] < -0x1p24*math.Ln2) {
		t.Fatalf("log-likelihood %v is not far enough", want[2])
	}
	for r := 0; r < len(rows); r += 2 {
		if got, want := got[r+1]-got[r], want[r+1]-want[r]; !near(got, want, 1e-4) {
			t.Errorf("cells %v: log odds %v, want %v", rows[r][:2], got, want)
		}
	}
}
