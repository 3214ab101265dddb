package kerneltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// testTopDown compares the visits of units in a row without evidence with the
// oracle's, which walks down from the root, and with their law: a row visits one
// unit of each variable.
func testTopDown(t *testing.T, open Open, depth Depth) {
	check := func(t *testing.T, g *circuit.Graph, p reference.Params, co compile.Options) {
		ev, err := reference.New(g, p)
		if err != nil {
			t.Fatal(err)
		}
		dev := open(t)
		defer dev.Close()
		var exact []float32
		for _, mixed := range []bool{false, true} {
			m := Build(t, dev, g, p, co, engine.Options{Rows: 64, Train: true, Mixed: mixed})
			prog := m.Result.Program
			got := make([]float32, prog.VisitLen())
			if err := m.Engine.TopDown(context.Background(), got); err != nil {
				t.Fatal(err)
			}
			// Up and down a dozen levels, some roundings of 2^-24 each, or as many of
			// mixed precision as in a step.
			tol := 1e-5
			lower := m.Engine.Precision().Values
			if lower {
				tol = 0x1p-8
			}
			compareVisits(t, m, got, ev.Visits(), tol)
			checkVariables(t, prog, got, tol)
			if mixed && !lower && fmt.Sprint(got) != fmt.Sprint(exact) {
				t.Error("mixed precision changes the visits")
			}
			exact = got
			after := m.Read(t)
			for id := range after {
				for i, x := range after[id] {
					if x != float32(p[id][i]) {
						t.Fatalf("node %d parameter %d moved from %v to %v", id, i, p[id][i], x)
					}
				}
			}
		}
	}
	cases(t, depth.count(30), func(t *testing.T, c *randomCase) { check(t, c.graph, c.params, c.options()) })
	for _, s := range structured(t, 32, 4) {
		t.Run(s.name, func(t *testing.T) { check(t, s.graph, initial(t, s.graph), compile.DefaultOptions()) })
	}
}

// compareVisits looks up each node's visits by the place of its parameters.
func compareVisits(t testing.TB, m *Model, got []float32, want [][]float64, tol float64) {
	t.Helper()
	prog := m.Result.Program
	place := map[int64]int64{} // of parameters → of visits
	for i := range prog.Sums {
		place[prog.ParamOffset(prog.Sums[i].Param)] = prog.SumNorm(prog.Sums[i].Owner) - prog.NumParams
	}
	for i := range prog.Inputs {
		in := &prog.Inputs[i]
		for _, at := range []int64{in.Table, in.Params} {
			if at >= 0 {
				place[at] = prog.InputNorm(in.Owner) - prog.NumParams
			}
		}
	}
	for i := range m.Result.Map.Len() {
		id := m.Result.Map.Node(i)
		off, _ := m.Result.Map.Region(i)
		at, ok := place[off]
		if !ok {
			t.Fatalf("no vector has the parameters of node %d", id)
		}
		for u, w := range want[id] {
			if x := float64(got[at+int64(u)]); !near(x, w, tol*w) {
				t.Errorf("node %d unit %d: %v visits, want %v", id, u, x, w)
			}
		}
	}
}

// checkVariables adds up the visits of the inputs of each variable.
func checkVariables(t testing.TB, prog *layers.Program, visits []float32, tol float64) {
	t.Helper()
	sums, tied, total := map[int32]float64{}, map[int32]bool{}, 0.0
	for i := range prog.Inputs {
		in := &prog.Inputs[i]
		v := prog.Columns[in.Column].Var
		if in.Owner != int32(i) {
			tied[v], tied[prog.Columns[prog.Inputs[in.Owner].Column].Var] = true, true
			continue
		}
		at := prog.InputNorm(int32(i)) - prog.NumParams
		for _, x := range visits[at : at+int64(prog.Width(in.Vector))] {
			sums[v] += float64(x)
			total += float64(x)
		}
	}
	for v, s := range sums {
		if !tied[v] && !near(s, 1, tol) {
			t.Errorf("the inputs of variable %d are visited %v times, want once", v, s)
		}
	}
	if vars := float64(len(prog.Columns)); !near(total, vars, tol*vars) {
		t.Errorf("%v visits of inputs, want one for each of %v variables", total, vars)
	}
}

// testAnemone takes updates of several shards, in two orders, and compares
// the parameters with the oracle's.
func testAnemone(t *testing.T, open Open, depth Depth) {
	const window, momentum, pseudocount = 48, 0.9, 1e-6
	updates := 20
	if depth == Brief {
		updates = 8 // each set of rows twice
	}
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(21, 22))
	type training struct {
		name string
		structure
		rows   [][]float64
		ranges []engine.Range
		start  reference.Params
		tol    float64
	}
	// float32 sums of a few hundred positive terms up and down a few levels, which
	// EM amplifies little in 20 updates.
	const tol = 2e-5
	var list []training
	for _, s := range structured(t, 8, 4) {
		rows := correlatedRows(rng, 16, 4, 4*window)
		list = append(list, training{s.name, s, rows, nil, initial(t, s.graph), tol})
	}
	// A mean near 0 is a sum of terms near 2 and -2. Far from 0 the variance is a
	// difference of large numbers, and a mean rounds to 2^-11, half a thousandth of the
	// deviations.
	for _, c := range []struct{ mean, tol float64 }{{0, 5 * tol}, {1e4, 4 * 0x1p-11}} {
		mean, tol := c.mean, c.tol
		tree, err := structures.GridTree(2, 3, 3)
		if err != nil {
			t.Fatal(err)
		}
		leaf := func(int) circuit.Leaf { return circuit.Gaussian{} }
		g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 3, Leaf: leaf})
		if err != nil {
			t.Fatal(err)
		}
		columns := make([]circuit.ColumnStats, 6)
		for v := range columns {
			columns[v] = circuit.ColumnStats{Mean: mean, Variance: 4, Min: mean - 6, Max: mean + 6}
		}
		start, err := reference.Init(g, 11, columns)
		if err != nil {
			t.Fatal(err)
		}
		rows := make([][]float64, 4*window)
		for r := range rows {
			rows[r] = make([]float64, 6)
			centre := float64(rng.IntN(3)-1) * 3
			for v := range rows[r] {
				rows[r][v] = float64(float32(mean + centre + rng.NormFloat64()))
			}
		}
		ranges := slices.Repeat([]engine.Range{{Min: mean - 10, Max: mean + 10}}, 6)
		list = append(list, training{fmt.Sprintf("gaussian mean=%v", mean), structure{graph: g}, rows, ranges, start, tol})
	}
	for i := range depth.count(6) {
		g := reference.Random(rand.New(rand.NewPCG(uint64(i), 23)), reference.RandomOptions{Positive: true, MaxUnits: 9})
		start, err := reference.Init(g, 11, nil)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, training{fmt.Sprintf("random %d", i), structure{graph: g}, reference.RandomRows(g, rng, 4*window, 0), nil, start, tol})
	}
	for i, c := range list {
		if testing.Short() && i%3 != 1 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for _, row := range c.rows {
				if rng.IntN(4) == 0 {
					row[rng.IntN(len(row))] = math.NaN()
				}
			}
			dev := open(t)
			defer dev.Close()
			batch := reference.Batch(reference.Schema(c.graph), c.rows)
			var got [2][][]float32
			for order, shards := range [][][2]int{{{0, 20}, {20, 39}, {39, 48}}, {{39, 48}, {0, 20}, {20, 39}}} {
				m := Build(t, dev, c.graph, c.start, compile.DefaultOptions(), engine.Options{Rows: 32, Train: true, Ranges: c.ranges})
				ll := make([]float64, 32)
				weight := 0.0
				for step := range updates {
					lo := step % 4 * window
					for _, s := range shards {
						if err := m.Engine.Accumulate(ctx, batch, lo+s[0], lo+s[1], ll); err != nil {
							t.Fatal(err)
						}
					}
					rule := tensor.Anemone{Momentum: momentum, Weight: weight, Rows: window}
					if err := m.Engine.Apply(ctx, tensor.Rule{Step: anemoneStep(step), Pseudocount: pseudocount, Anemone: &rule}); err != nil {
						t.Fatal(err)
					}
					weight = rule.Next()
				}
				got[order] = m.Read(t)
			}
			sameBits(t, "shards in order", "in another", got[0], got[1])

			question := digestOf(c.graph, c.start).ask(fmt.Sprintf("%d updates of Anemone", updates), c.rows...)
			want, err := remember(question, func() (reference.Params, error) {
				run, p := reference.Anemone{Momentum: momentum}, c.start
				for step := range updates {
					ev, err := reference.New(c.graph, p)
					if err != nil {
						return nil, err
					}
					lo := step % 4 * window
					f, err := ev.Flows(c.rows[lo : lo+window])
					if err != nil {
						return nil, err
					}
					p = run.Step(ev, f, window, reference.Step{Size: anemoneStep(step), Pseudocount: pseudocount})
				}
				return p, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			compareAnemone(t, c.graph, got[0], want, c.tol)
		})
	}
}

func anemoneStep(step int) float64 { return 0.4 - 0.3*float64(step)/19 }

// compareAnemone checks parameters after some updates, by their size above 1e-3.
func compareAnemone(t testing.TB, g *circuit.Graph, got [][]float32, want reference.Params, tol float64) {
	t.Helper()
	worst, where := 0.0, ""
	for id := range want {
		for i, w := range want[id] {
			x := float64(got[id][i])
			if d := math.Abs(x-w) / (math.Abs(w) + 1e-3); !(d <= worst) {
				worst, where = d, fmt.Sprintf("node %d (%v) parameter %d = %v, want %v", id, g.Nodes[id].Kind, i, x, w)
			}
		}
	}
	if !(worst <= tol) {
		t.Errorf("off by %g: %s", worst, where)
	}
}
