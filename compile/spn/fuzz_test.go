package spn_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// FuzzBackEnds compiles random circuits with an option: machine code has the bits of the interpreter, and both are within
// the bound of the evaluator. The bits of extreme say what is drawn beside usual circuits and rows: 1 are parameters, 2 cells,
// 4 a root for each code of a variable, 8 and 16 rows of bytes.
func FuzzBackEnds(f *testing.F) {
	for i := range options {
		for _, extreme := range []uint8{0, 1, 2, 3, 7, 8, 25} {
			f.Add(uint64(i), uint8(i), uint8(13), extreme)
		}
	}
	for i := range options { // several groups of rows in a turn
		f.Add(uint64(i+16), uint8(i), uint8(77), uint8(24))
	}
	f.Add(uint64(420), uint8(51), uint8(134), uint8(145)) // a sum of terms that are not normal numbers, computed again
	f.Add(uint64(77), uint8(3), uint8(13), uint8(3))      // a cell that is farther from a mean than float32 reaches
	f.Fuzz(func(t *testing.T, seed uint64, option, rows, extreme uint8) {
		rng := rand.New(rand.NewPCG(seed, 10))
		var g *circuit.Graph
		var params reference.Params
		switch {
		case seed%4 == 3:
			g, params = histograms(rng, 1+rng.IntN(4), seed%8 == 3)
		case seed%8 == 5:
			g, params = gaussians(rng, 1+rng.IntN(14), 1+rng.IntN(6))
		case seed%16 == 4:
			g, params = reference.Chain(rng, 1+rng.IntN(40), 2+rng.IntN(3))
		default:
			codes := []int{5, 5, 2, 17, 255, 256, 300}[rng.IntN(7)]
			g = reference.Random(rng, reference.RandomOptions{MaxUnits: 1 + rng.IntN(3), MaxNodes: 20, MaxCodes: codes, Discrete: seed%2 == 0})
			var err error
			if params, err = reference.Init(g, seed, nil); err != nil {
				t.Fatal(err)
			}
		}
		if spn.Supported(g) != nil || circuit.Count(g).SumEdges > 400 {
			t.Skip("not for code, or long code for little news")
		}
		if extreme&1 > 0 {
			extremeParams(rng, g, params)
		}
		list := append(reference.RandomRows(g, rng, int(rows), []float64{0.3, 0, 0.9}[rng.IntN(3)]), reference.MissingRow(g.NumVars))
		o := options[int(option)%len(options)]
		if extreme&2 > 0 && extreme&24 == 0 {
			extremeCells(rng, g, params, list)
		}
		if extreme&24 > 0 {
			o.Bytes, o.Layout = true, []simt.Layout{simt.Rows, simt.Columns}[extreme>>4&1]
			for _, row := range list {
				for v, x := range row {
					row[v] = math.Max(0, math.Min(254, math.Floor(x)))
				}
			}
		}
		if extreme&4 > 0 {
			checkClasses(t, g, params, o, list)
			return
		}
		checkBackEnds(t, g, params, o, list, extreme)
	})
}

// checkBackEnds compares a program with the evaluator.
func checkBackEnds(t *testing.T, g *circuit.Graph, params reference.Params, o spn.Options, rows [][]float64, extreme uint8) {
	t.Helper()
	p, err := spn.Compile(g, params.Read64, o)
	if errors.Is(err, spn.ErrOptions) && (o.Space == spn.Linear || o.Bytes) {
		t.Skip("the space overflows, or cells do not fit in bytes")
	}
	if err != nil {
		t.Fatal(err)
	}
	eachRow(t, p, g, params, rows, func(r int, got, want float64) {
		bound := p.Bound.Of(want)
		if !sameLog(p, got, want) {
			t.Fatalf("%+v, %v: row %d %v: %v, want %v within %v", o, p, r, rows[r], got, want, bound)
		}
		if loose := 1e-3 * math.Max(1, math.Abs(want)); extreme&1 == 0 && !(bound <= loose) && o.Type == simt.F64 {
			t.Fatalf("%+v, %v: the bound %v of %v says little", o, p, bound, want)
		}
	})
}

// checkClasses compares a program of a root for each code of the first finite variable with the evaluator.
func checkClasses(t *testing.T, g *circuit.Graph, params reference.Params, o spn.Options, rows [][]float64) {
	t.Helper()
	class, codes := -1, 0
	for v, n := range circuit.Domains(g) {
		if n > 0 && n <= 20 {
			class, codes = v, n
			break
		}
	}
	if class < 0 || o.Bytes {
		t.Skip("no class")
	}
	p, err := spn.CompileClasses(g, params.Read64, class, o)
	if errors.Is(err, spn.ErrOptions) && o.Space == spn.Linear {
		t.Skip("overflows")
	}
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(g, params)
	if err != nil {
		t.Fatal(err)
	}
	roots := p.Module.Outputs[0].Width
	lls, _ := runClasses(t, p, rows, roots)
	for r, row := range rows {
		want, got := classLogs(t, ev, row, class, codes), make([]float64, codes)
		for k := range got { // codes that no leaf has are impossible
			if got[k] = math.Inf(-1); k < roots {
				got[k] = lls[r*roots+k]
			}
		}
		top, own := slices.Max(want), slices.Max(got)
		ok := sameLog(p, own, top)
		for k := range got { // small ones only have the right shares
			ok = ok && (math.IsInf(own, -1) || math.Abs(math.Exp(got[k]-own)-math.Exp(want[k]-top)) <= 2.01*p.Bound.Of(top))
		}
		if !ok {
			t.Fatalf("%+v, %v: row %d %v, variable %d: %v, want %v within %v", o, p, r, row, class, got, want, p.Bound.Of(top))
		}
	}
}

// sameLog reports whether a log-likelihood is within the bound, or both are beyond what the type has.
func sameLog(p *spn.Program, got, want float64) bool {
	beyond := p.Type == simt.F32 && want < -0x1p126 && got < -0x1p120
	return beyond || got == want || math.Abs(got-want) <= p.Bound.Of(want)
}

// extremeParams makes some weights 0 or tiny, some leaves certain of a code, and some deviations and means of Gaussians
// large or small.
func extremeParams(rng *rand.Rand, g *circuit.Graph, params reference.Params) {
	tiny := func() float64 { return []float64{0, 0, 1e-9, 1e-30, 1e-45, 1e-300, 5e-324}[rng.IntN(7)] }
	mass := func(p []float64) { // keeps one
		rest, keep := 0.0, rng.IntN(len(p))
		for k := range p {
			if k != keep && rng.IntN(3) == 0 {
				p[k] = tiny()
			}
			rest += p[k]
		}
		p[keep] = math.Max(0, p[keep]+1-rest)
	}
	for i := range g.Nodes {
		n, p := &g.Nodes[i], params[i]
		if p == nil || rng.IntN(2) == 0 {
			continue
		}
		if n.Kind == circuit.Sum && n.Edges == nil {
			for u := range n.Units {
				size := len(p) / n.Units
				mass(p[u*size:][:size])
			}
			continue
		}
		switch l := n.Leaf.(type) {
		case circuit.Categorical, circuit.Bernoulli:
			size := l.NumParams()
			for u := range n.Units {
				mass(p[u*size:][:size])
			}
		case circuit.Binomial:
			for u := range n.Units {
				p[u] = []float64{0, 1, 1e-300, 1e-9, 1 - 0x1p-53}[rng.IntN(5)]
			}
		case circuit.Gaussian:
			for u := range n.Units {
				if l.MinSigma == 0 {
					p[2*u+1] = []float64{1e-30, 1e-9, 1e-3, 1, 1e9, 0x1p30, 1e30, 1e38}[rng.IntN(8)]
				}
				p[2*u] = []float64{0, 1, -1, 1e9, -999999, 1e38, -3e38, 1e-40}[rng.IntN(8)]
			}
		}
	}
}

// extremeCells writes numbers that are far away, at breaks and at means to cells of variables that are not finite.
func extremeCells(rng *rand.Rand, g *circuit.Graph, params reference.Params, rows [][]float64) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != circuit.Input || n.Leaf.Codes() > 0 {
			continue
		}
		list := []float64{0, math.Copysign(0, -1), 1e9, -1e9, -999999, 1e38, -1e38, math.MaxFloat32, -math.MaxFloat32, 0x1p-149, 1e-40, 2147483648, -2147483649, 16777217}
		switch l := n.Leaf.(type) {
		case circuit.RealHistogram:
			list = append(list, l.Breaks[len(l.Breaks)-1], l.Breaks[len(l.Breaks)-1]+1, l.Breaks[0], l.Breaks[0]-1)
		case circuit.Gaussian:
			if p := params[i]; p != nil {
				list = append(list, p[0], p[0]+p[1], p[0]-3*p[1], p[0]+40*p[1])
			}
		}
		for _, row := range rows {
			if x := float64(float32(list[rng.IntN(len(list))])); rng.IntN(4) == 0 && !math.IsInf(x, 0) {
				row[n.Var] = x
			}
		}
	}
}

// TestTinyProbabilities has codes and weights whose probabilities, or products of them, are below what float64 has, though
// their logarithms are not.
func TestTinyProbabilities(t *testing.T) {
	narrow := &circuit.Graph{NumVars: 2, Root: 4, Nodes: []circuit.Node{
		{Units: 2, Var: 0, Leaf: circuit.DiscretisedLogistic{Domain: 256}},
		{Units: 2, Var: 1, Leaf: circuit.Binomial{Trials: 255}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2, 3}},
	}}
	nested := &circuit.Graph{NumVars: 1, Root: 2, Nodes: []circuit.Node{
		{Units: 2, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Sum, Units: 2, Children: []circuit.NodeID{0}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{1}},
	}}
	for _, c := range []struct {
		g      *circuit.Graph
		params reference.Params
		rows   [][]float64
	}{
		{narrow, reference.Params{{10, 0.1, 12, 0.2}, {1e-9, 1e-7}, nil, nil, {0.25, 0.25, 0.25, 0.25}}, [][]float64{{250, 0}, {250, 255}, {84, 3}, {156, 1}, {math.NaN(), 255}, {255, math.NaN()}, {10, 0}}},
		{nested, reference.Params{{1, 0, 0, 1}, {1, 1e-200, 1, 1e-250}, {1, 1e-200}}, [][]float64{{0}, {1}, {math.NaN()}}},
	} {
		for _, o := range options {
			check(t, "tiny", c.g, c.params, o, c.rows)
		}
	}
}

// TestLongChains: operations that are joined take no copy of all below them.
func TestLongChains(t *testing.T) {
	const length = 8000
	g := graph{Graph: circuit.Graph{NumVars: length}}
	for v := range length {
		g.Root = g.add(circuit.Node{Kind: circuit.Input, Var: v, Leaf: circuit.Bernoulli{}}, []float64{0.5, 0.5})
		if v > 0 {
			g.Root = g.add(circuit.Node{Kind: circuit.Product, Children: []circuit.NodeID{g.Root - 1, g.Root}}, nil)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := spn.Compile(&g.Graph, g.params.Read64, spn.Options{Space: spn.Log, Type: simt.F64})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
		t.Errorf("a product of %d factors in a chain takes %d MB, want 64 at most", length, took)
	}
	if p.Info.Products != length-1 {
		t.Errorf("%d multiplications, want %d", p.Info.Products, length-1)
	}
}
