package em_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
)

// model is a circuit with a start and rows to train it on.
type model struct {
	graph *circuit.Graph
	start reference.Params
	prog  *compile.Result
	rows  [][]float64
	table *dataset.Table
}

func newModel(t testing.TB, g *circuit.Graph, rows [][]float64) *model {
	t.Helper()
	prog, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	start, err := reference.Init(g, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &model{g, start, prog, rows, tableOf(t, g, rows)}
}

func tableOf(t testing.TB, g *circuit.Graph, rows [][]float64) *dataset.Table {
	t.Helper()
	s := reference.Schema(g)
	table, err := dataset.NewTable(s, len(rows))
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Append(reference.Batch(s, rows)); err != nil {
		t.Fatal(err)
	}
	return table
}

// engine opens the model on a device with its starting parameters.
func (m *model) engine(t testing.TB, dev cpu.Options, rows int) *engine.Engine {
	t.Helper()
	d, err := cputensor.Open(dev)
	if err != nil {
		t.Fatal(err)
	}
	ranges := slices.Repeat([]engine.Range{{Min: math.Inf(1), Max: math.Inf(-1)}}, m.graph.NumVars)
	for _, row := range m.rows {
		for v, x := range row {
			if x == x {
				ranges[v] = engine.Range{Min: min(ranges[v].Min, x), Max: max(ranges[v].Max, x)}
			}
		}
	}
	ctx := context.Background()
	eng, err := engine.New(ctx, d, m.prog.Program, engine.Options{Rows: rows, Train: true, Ranges: ranges})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { eng.Close() })
	for i := range m.prog.Map.Len() {
		at, n := m.prog.Map.Region(i)
		region, canonical := make([]float32, n), make([]float32, m.graph.NumParams(m.prog.Map.Node(i)))
		if err := m.start.Read(m.prog.Map.Node(i), canonical); err != nil {
			t.Fatal(err)
		}
		if err := m.prog.Map.Pack(i, canonical, region); err != nil {
			t.Fatal(err)
		}
		if err := eng.WriteParams(ctx, at, region); err != nil {
			t.Fatal(err)
		}
	}
	return eng
}

// bits returns the parameter buffer.
func bits(t testing.TB, p em.ParamReader) []float32 {
	t.Helper()
	out := make([]float32, p.Program().NumParams)
	if err := p.ReadParams(context.Background(), 0, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// run trains a model from its start and returns what came out.
func (m *model) run(t testing.TB, dev cpu.Options, o em.Options) (em.Result, []float32) {
	t.Helper()
	flows := em.NewLocal(m.engine(t, dev, o.LaunchRows(len(m.rows))), m.table)
	defer flows.Close()
	tr, err := em.New(flows, o)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return res, bits(t, flows)
}

func categorical(n int) structures.Leaf {
	return func(int) circuit.Leaf { return circuit.Categorical{Categories: n} }
}

// structured returns small circuits of every structure, by name.
func structured(t testing.TB) map[string]*circuit.Graph {
	t.Helper()
	must := func(g *circuit.Graph, err error) *circuit.Graph {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	tree, err := structures.GridTree(3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	rat := structures.DefaultRATSPN()
	rat.Vars, rat.Latents, rat.Depth, rat.Leaf = 9, 5, 2, categorical(4)
	pd := structures.DefaultPD()
	pd.Shape, pd.Latents, pd.SplitInterval, pd.Leaf = [3]int{3, 3, 1}, 5, 1, categorical(4)
	return map[string]*circuit.Graph{
		"hclt":     must(structures.HCLT(tree, structures.HCLTOptions{Latents: 7, Leaf: categorical(4)})),
		"hmm":      must(structures.HMM(structures.HMMOptions{Length: 9, Latents: 6, Tied: true, Leaf: categorical(4)})),
		"hmm-free": must(structures.HMM(structures.HMMOptions{Length: 9, Latents: 6, Leaf: categorical(4)})),
		"rat-spn":  must(structures.RATSPN(rat)),
		"pd":       must(structures.PD(pd)),
		"breaks": must(structures.HCLT(tree, structures.HCLTOptions{Latents: 4, Leaf: func(v int) circuit.Leaf {
			return circuit.RealHistogram{Breaks: []float64{-4, -0.5, 0.25 * float64(v%2), 3, 9}, Floor: 1e-3}
		}})),
		"gaussian": must(structures.HCLT(tree, structures.HCLTOptions{Latents: 4, Leaf: func(int) circuit.Leaf { return circuit.Gaussian{} }})),
	}
}

// clustered draws rows that have something to learn: copies of a few random
// rows in which cells are drawn anew or missing.
func clustered(g *circuit.Graph, seed uint64, count int, missing float64) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 3))
	centres := reference.RandomRows(g, rng, 5, 0)
	noise := reference.RandomRows(g, rng, count, 0)
	for _, row := range noise {
		centre := centres[rng.IntN(len(centres))]
		for v := range row {
			switch u := rng.Float64(); {
			case u < missing:
				row[v] = math.NaN()
			case u < 0.7:
				if row[v] = centre[v]; math.Trunc(centre[v]) != centre[v] { // not a code
					row[v] = float64(float32(centre[v] + 0.1*rng.NormFloat64()))
				}
			}
		}
	}
	return noise
}
