package kerneltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// mostNarrow is the most codes of a column of which a program has narrow codes.
const mostNarrow = math.MaxUint16

// testCodes checks narrow and wide codes.
func testCodes(t *testing.T, open Open, depth Depth) {
	t.Run("borders", func(t *testing.T) { testBorders(t, open, depth) })
	t.Run("same", func(t *testing.T) { testSameCodes(t, open, depth) })
}

// testBorders takes steps and samples of a hidden Markov model on both sides of the
// border between narrow and wide codes. Rows have the last codes, codes which only
// their upper half tells apart, and missing cells.
func testBorders(t *testing.T, open Open, depth Depth) {
	for _, n := range []int{mostNarrow - 1, mostNarrow, mostNarrow + 1, mostNarrow + 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			latents := []int{3, 9, 17}
			if depth == Brief {
				latents = latents[:1]
			}
			for _, l := range latents {
				checkBorder(t, open, l, n)
			}
		})
	}
}

func checkBorder(t *testing.T, open Open, latents, n int) {
	t.Helper()
	dev := open(t)
	defer dev.Close()
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: n} }
	g, err := structures.HMM(structures.HMMOptions{Length: 3, Latents: latents, Tied: true, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	start := initial(t, g)
	last, nan := float64(n-1), math.NaN()
	rows := [][]float64{
		{last, last, last}, {0, last, nan}, {last - 1, 1, last}, {nan, nan, nan}, {nan, last, nan}, {65533, 0, last - 1}, {0, 0, 0},
		{1, nan, 65533}, {float64((n - 1) & 0xffff), last, 0}, {last, nan, nan},
	}
	rule := tensor.Rule{Step: 0.6, Pseudocount: 0.1}
	want, after, err := oracle(g, start, rows, rule)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	batch := reference.Batch(reference.Schema(g), rows)
	fused := Build(t, dev, g, start, compile.DefaultOptions(), engine.Options{Rows: len(rows), Train: true})
	if got := fused.Result.Program.WideCodes(); got != (n > mostNarrow) {
		t.Fatalf("a program of %d codes has wide codes: %v", n, got)
	}
	ll := make([]float64, len(rows))
	if err := fused.Engine.Step(ctx, batch, 0, len(rows), rule, ll); err != nil {
		t.Fatal(err)
	}
	compareLL(t, rows, ll, want)
	params := fused.Read(t)
	compareParams(t, "step", g, params, after)

	counted := Build(t, dev, g, start, compile.DefaultOptions(), engine.Options{Rows: len(rows), Train: true})
	if err := counted.Engine.Accumulate(ctx, batch, 0, len(rows), ll); err != nil {
		t.Fatal(err)
	}
	if err := counted.Engine.Apply(ctx, rule); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "fused", "by flows", params, counted.Read(t))
	newReplay(t, open, &randomCase{graph: g, params: start}, rows, 1, 0).check(t)

	if n == mostNarrow { // the next number is a missing cell
		return
	}
	batch.Columns[1].Codes.Set(4, n)
	if err := fused.Engine.LogLikelihood(ctx, batch, ll); err == nil {
		t.Errorf("code %d of %d categories was taken", n, n)
	}
}

// testSameCodes gives circuits of few codes a variable that makes their codes wide, and
// wants the bits that they have with narrow ones: so every kernel reads wide codes.
func testSameCodes(t *testing.T, open Open, depth Depth) {
	run := func(name string, g *circuit.Graph, p reference.Params, rows [][]float64, co compile.Options, mixed bool) {
		t.Run(name, func(t *testing.T) {
			var narrow *outcome
			for _, n := range []int{mostNarrow, mostNarrow + 1} {
				marked, q, given := mark(g, p, rows, n)
				o := work(t, open, marked, q, given, co, mixed)
				for r, row := range o.samples {
					if got := row[g.NumVars]; got != float64(n-1) {
						t.Fatalf("%d codes: row %d has %v where only the last can be", n, r, got)
					}
					o.samples[r] = row[:g.NumVars]
				}
				for i := range o.maxima {
					o.maxima[i].row = o.maxima[i].row[:g.NumVars]
				}
				o.flows = nil // tables differ in length
				if narrow == nil {
					narrow = o
				} else {
					narrow.compare(t, o, 1)
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(61, 62))
	for i, s := range structured(t, 40, 4) {
		rows := gaps(rng, correlatedRows(rng, 16, 4, 70), 0.1)
		sizes := []int{16, 8, 4, 32}
		if depth == Brief {
			rows, sizes = rows[:40], sizes[i:i+1]
		}
		for _, size := range sizes {
			co := compile.DefaultOptions()
			co.BlockSize = size
			run(fmt.Sprintf("%s/blocks=%d", s.name, size), s.graph, initial(t, s.graph), rows, co, size == 16)
		}
	}
	for _, tc := range extremeCases {
		if tc.name == "star" && (testing.Short() || depth == Brief) {
			continue // one task of 783 barriers
		}
		g, p := tc.make()
		run(tc.name, g, p, allRows(g), compile.DefaultOptions(), false)
	}
}

// mark multiplies a circuit by an indicator of the last of n codes of a new
// variable, and gives the rows that code.
func mark(g *circuit.Graph, p reference.Params, rows [][]float64, n int) (*circuit.Graph, reference.Params, [][]float64) {
	marked := &circuit.Graph{NumVars: g.NumVars + 1, Nodes: append([]circuit.Node{}, g.Nodes...)}
	p = append(reference.Params{}, p...)
	indicator := circuit.NodeID(len(marked.Nodes))
	marked.Nodes = append(marked.Nodes, circuit.Node{
		Kind: circuit.Input, Units: 1, Var: g.NumVars, Leaf: circuit.Indicator{Domain: n, Value: n - 1},
	})
	p = append(p, nil)
	marked.Root = product(marked, &p, g.Root, indicator)
	given := make([][]float64, len(rows))
	for r, row := range rows {
		given[r] = append(append([]float64{}, row...), float64(n-1))
	}
	return marked, p, given
}
