package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// testPosteriors compares the distributions of all columns given the observed cells
// with those of the reference, and with themselves when rows and columns are cut.
func testPosteriors(t *testing.T, open Open, depth Depth) {
	t.Run("random", func(t *testing.T) {
		cases(t, depth.count(60), func(t *testing.T, c *randomCase) {
			checkPosteriors(t, open, c, queried(c))
		})
	})
	t.Run("structures", func(t *testing.T) {
		eachQueried(t, depth, func(t *testing.T, c *randomCase, rows [][]float64) { checkPosteriors(t, open, c, rows) })
	})
	t.Run("deep", func(t *testing.T) { testDeepPosteriors(t, open) })
	t.Run("cut", func(t *testing.T) { testCutPosteriors(t, open) })
}

// queried are rows of a random circuit with cells missing: some as they are, more of the others.
func queried(c *randomCase) [][]float64 {
	return append(gaps(rand.New(rand.NewPCG(71, 72)), c.rows[:14], 0.5), c.rows[14:21]...)
}

// eachQueried calls do for circuits of every structure and for extreme ones, with rows.
func eachQueried(t *testing.T, depth Depth, do func(t *testing.T, c *randomCase, rows [][]float64)) {
	rng := rand.New(rand.NewPCG(73, 74))
	run := func(name string, g *circuit.Graph, p reference.Params, size int, rows [][]float64) {
		t.Run(name, func(t *testing.T) { do(t, &randomCase{graph: g, params: p, size: size}, rows) })
	}
	for i, s := range structured(t, 19, 5) {
		sizes := []int{1, 8, 32}
		if depth == Brief {
			sizes = sizes[i%3 : i%3+1]
		}
		for _, size := range sizes {
			rows := gaps(rng, correlatedRows(rng, 16, 5, 7), 0.5)
			run(fmt.Sprintf("%s/blocks=%d", s.name, size), s.graph, initial(t, s.graph), size, rows)
		}
	}
	for _, family := range []circuit.Leaf{circuit.Gaussian{}, circuit.Poisson{}, circuit.Binomial{Trials: 300}, circuit.DiscretisedLogistic{Domain: 40, MinScale: 0.01}, realBins, wholeBins} {
		for i, s := range structuredOver(t, 6, family) {
			if depth == Brief && i%2 == 0 {
				continue
			}
			rows := gaps(rng, reference.RandomRows(s.graph, rng, 6, 0), 0.4)
			run(family.Name()+" "+s.name, s.graph, initial(t, s.graph), 0, rows)
		}
	}
	for _, tc := range extremeCases {
		g, p := tc.make()
		run(tc.name, g, p, 0, gaps(rng, append(allRows(g), allRows(g)...), 0.3))
	}
	g, p := opposedNormals()
	rows := reference.RandomRows(g, rng, 12, 0.3)
	for i := range rows {
		rows[i][i%g.NumVars] = float64(float32(14 + rng.Float64()))
	}
	run("opposed normals", g, p, 0, rows)
	g, p = besideBins()
	rows = reference.RandomRows(g, rng, 12, 0.3)
	for i := range rows {
		rows[i][i%g.NumVars], rows[i][(i+1)%g.NumVars] = 1e6, -3
	}
	run("beside bins", g, p, 0, rows)
	g, p = faint()
	run("faint", g, p, 0, gaps(rng, append(allRows(g), allRows(g)...), 0.3))
}

// Histograms with breaks of their own, of numbers and of whole ones.
var (
	realBins  = circuit.RealHistogram{Breaks: []float64{-2.5, -1, 0.25, 0.5, 3, 8}}
	wholeBins = circuit.RealHistogram{Breaks: []float64{-1, 0, 1, 4, 6}}
)

// besideBins is a mixture of products of 70 histograms whose densities outside their bins, in which rows may be, are
// far below those within.
func besideBins() (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 70}, reference.Params{}
	var xs []circuit.NodeID
	for v := range g.NumVars {
		l := circuit.RealHistogram{Breaks: []float64{0, 1, 2.5, 3}, Floor: 2.220446e-16}
		if v%2 == 1 {
			l.Breaks = []float64{0, 2, 3, 5}
		}
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 2, Var: v, Leaf: l})
		p = append(p, []float64{0.5, 0.25, 0.25, 0, 0.75, 0.125}) // they need not integrate to 1
		xs = append(xs, circuit.NodeID(len(g.Nodes)-1))
	}
	sum(g, &p, 1, []float64{0.25, 0.75}, product(g, &p, xs...))
	return g, p
}

// faint is a mixture in which components with weights of 1e-30 explain rows that the
// others give even less.
func faint() (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 6}, reference.Params{}
	var xs []circuit.NodeID
	for v := range g.NumVars {
		xs = append(xs, leaves(g, &p, v, 1e-12, 0.25+0.1*float64(v), 1-0x1p-20, 0.5))
	}
	sum(g, &p, 1, []float64{1 - 0x1p-20, 1e-30, 3e-30, 0x1p-20}, product(g, &p, xs...))
	return g, p
}

// posteriors evaluates the first rows of a launch and returns what Posteriors writes of
// some columns, with the offsets in a row, after a pattern that it must not touch.
func (l *launch) posteriors(t testing.TB, rows int, of []int32) (out []float32, offsets []int) {
	t.Helper()
	ctx := context.Background()
	offsets, err := l.prog.PosteriorOffsets(of)
	must(t, err)
	width := offsets[len(of)]
	buf, err := l.dev.Alloc(ctx, kernels.Float32, l.rows*width)
	must(t, err)
	defer buf.Free()
	out = make([]float32, l.rows*width)
	for i := range out {
		out[i] = 7
	}
	must(t, l.dev.Write(ctx, buf, 0, out))
	must(t, l.own.Forward(ctx, rows, &l.args))
	must(t, l.own.Posteriors(ctx, rows, &tensor.PosteriorsArgs{Params: l.args.Params, Codes: l.args.Codes, Values: l.args.Values, Of: of, Out: buf}))
	must(t, l.dev.Read(ctx, out, buf, 0))
	for i, x := range out[rows*width:] {
		if x != 7 {
			t.Fatalf("posteriors of %d rows write %v at element %d after them", rows, x, i)
		}
	}
	return out[:rows*width], offsets
}

// allColumns returns the numbers of a program's columns.
func allColumns(p *layers.Program) []int32 {
	of := make([]int32, len(p.Columns))
	for c := range of {
		of[c] = int32(c)
	}
	return of
}

// checkPosteriors compares rows with the reference, to 1e-5: flows of float32 numbers,
// which the way down takes off by less than 10^-8 a sum.
func checkPosteriors(t *testing.T, open Open, c *randomCase, rows [][]float64) {
	t.Helper()
	const tol = 1e-5
	dev := open(t)
	defer dev.Close()
	ev := c.evaluator(t)
	l := newLaunch(t, dev, c, rows, layers.Module{Queries: true})
	out, offsets := l.posteriors(t, l.rows, allColumns(l.prog))
	width := offsets[len(offsets)-1]
	for r, given := range rows {
		want, err := ev.Conditionals(given)
		if err != nil && !errors.Is(err, reference.ErrRow) {
			t.Fatal(err)
		}
		if ll, err := ev.LogLikelihood(given); err == nil && ll < leastFinite && out[r*width] != out[r*width] {
			continue
		}
		for col := range l.prog.Columns {
			v := l.prog.Columns[col].Var
			got := out[r*width:][offsets[col]:offsets[col+1]]
			total := 0.0
			for i, x := range got {
				total += float64(x)
				switch {
				case err != nil && x == x:
					t.Fatalf("row %d is impossible, variable %d element %d is %v, want NaN", r, v, i, x)
				case err == nil && want[v] != nil && !near(float64(x), want[v][i], tol):
					t.Fatalf("row %d: variable %d is %d with %v, want %v (%v)", r, v, i, x, want[v][i], given)
				}
			}
			if err == nil && !near(total, 1, tol) {
				t.Errorf("row %d: elements of variable %d add up to %v", r, v, total)
			}
			if err == nil && want[v] == nil {
				l.checkDensity(t, ev, given, int(v), got, tol)
			}
		}
	}
}

// checkDensity compares the mixture of the units of a variable without codes, at the
// modes of some, with what the reference says of the row with that value.
func (l *launch) checkDensity(t *testing.T, ev *evaluator, given []float64, v int, shares []float32, tol float64) {
	t.Helper()
	if !math.IsNaN(given[v]) {
		return // posteriors of an observed cell say what explains it, and are not its distribution
	}
	base, err := ev.LogLikelihood(given)
	must(t, err)
	type unit struct {
		leaf circuit.Leaf
		p    []float64
	}
	var units []unit
	for _, f := range l.prog.Functions() {
		in := &l.prog.Inputs[f]
		for u := 0; u < int(l.prog.Vectors[in.Vector].Units) && int(in.Column) == l.column(v); u++ {
			units = append(units, unit{in.Family.(circuit.Leaf), l.unitParams(in, u)})
		}
	}
	if len(units) != len(shares) {
		t.Fatalf("variable %d has %d elements, want %d", v, len(shares), len(units))
	}
	row := append([]float64{}, given...)
	for i := 0; i < len(units); i += 1 + len(units)/4 {
		row[v] = units[i].leaf.Mode(units[i].p)
		ll, err := ev.LogLikelihood(row)
		must(t, err)
		got, most := 0.0, 0.0
		for k, u := range units {
			density := math.Exp(u.leaf.LogProb(u.p, row[v]))
			got += float64(shares[k]) * density
			most = max(most, density)
		}
		if want := math.Exp(ll - base); !near(got, want, tol*max(1, most)) {
			t.Fatalf("variable %d has density %v at %v, want %v (%v)", v, got, row[v], want, given)
		}
	}
}

// testDeepPosteriors goes down a chain of 784 sums, on which rounding adds up.
func testDeepPosteriors(t *testing.T, open Open) {
	g, err := structures.HMM(structures.HMMOptions{Length: 784, Latents: 8, Tied: true, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }})
	must(t, err)
	rng := rand.New(rand.NewPCG(75, 76))
	checkPosteriors(t, open, &randomCase{graph: g, params: initial(t, g)}, gaps(rng, correlatedRows(rng, 784, 4, 4), 0.3))
}

// testCutPosteriors wants the same bits of a row whatever rows and columns are asked for,
// and of a program that is loaded for training as well.
func testCutPosteriors(t *testing.T, open Open) {
	rng := rand.New(rand.NewPCG(77, 78))
	list := []*circuit.Graph{reference.Random(rng, reference.RandomOptions{Vars: 6, MaxUnits: 40})}
	for _, s := range structured(t, 35, 70)[1:] {
		list = append(list, s.graph)
	}
	for _, g := range list {
		rows := gaps(rng, reference.RandomRows(g, rng, 133, 0), 0.5)
		dev := open(t)
		c := &randomCase{graph: g, params: initial(t, g)}
		l := newLaunch(t, dev, c, rows, layers.Module{Queries: true})
		all, at := l.posteriors(t, l.rows, allColumns(l.prog))
		width := at[len(at)-1]
		n := int32(len(l.prog.Columns))
		for _, ask := range []struct {
			rows int
			of   []int32
		}{{1, allColumns(l.prog)}, {65, allColumns(l.prog)}, {l.rows, []int32{n - 1, 0}}, {130, []int32{n / 2}}, {l.rows, nil}} {
			out, offsets := l.posteriors(t, ask.rows, ask.of)
			own := offsets[len(ask.of)]
			for r := range ask.rows {
				for i, c := range ask.of {
					for k, x := range out[r*own:][offsets[i]:offsets[i+1]] {
						if want := all[r*width+at[c]+k]; math.Float32bits(x) != math.Float32bits(want) {
							t.Fatalf("columns %v of %d rows: row %d column %d element %d is %v, of all %v", ask.of, ask.rows, r, c, k, x, want)
						}
					}
				}
			}
		}
		train := newLaunch(t, dev, c, rows, layers.Module{Queries: true, Train: true})
		again, _ := train.posteriors(t, l.rows, allColumns(l.prog))
		for i, x := range again {
			if math.Float32bits(x) != math.Float32bits(all[i]) {
				t.Fatalf("loaded for training: element %d is %v, want %v", i, x, all[i])
			}
		}
		must(t, dev.Close())
	}
}
