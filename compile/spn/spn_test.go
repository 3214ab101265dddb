package spn_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
	"github.com/pce-engine/pce/kernels/x86"
)

// cells returns rows as a module reads them.
func cells(m *simt.Module, rows [][]float64) any {
	if m.Inputs[0].Type == simt.U8 {
		q := m.Inputs[0]
		x := make([]uint8, len(rows)*q.Width)
		for r, row := range rows {
			for v, c := range row {
				if c != c {
					c = spn.MissingByte
				}
				at, _ := q.Place(len(x), v, r)
				x[at] = uint8(c)
			}
		}
		return x
	}
	return columns(rows)
}

// columns gives rows as [variable][row].
func columns(rows [][]float64) []float32 {
	x := make([]float32, len(rows)*len(rows[0]))
	for r, row := range rows {
		for v, c := range row {
			x[v*len(rows)+r] = float32(c)
		}
	}
	return x
}

// graph is a circuit that a test makes node by node, each of one unit.
type graph struct {
	circuit.Graph
	params reference.Params
}

// add appends a node and returns its number.
func (g *graph) add(n circuit.Node, p []float64) circuit.NodeID {
	n.Units = 1
	g.Nodes, g.params = append(g.Nodes, n), append(g.params, p)
	return circuit.NodeID(len(g.Nodes) - 1)
}

// sameNative holds native code, where there is some, to the bits of the interpreter.
func sameNative(t testing.TB, m *simt.Module, in, want any) {
	t.Helper()
	for _, set := range []string{"avx2", "avx512"} {
		p, err := x86.Compile(m, 1, set)
		if errors.Is(err, x86.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer p.Free()
		n, got := 0, any(nil)
		if narrow, ok := want.([]float32); ok {
			n, got = len(narrow), make([]float32, len(narrow))
		} else {
			n = len(want.([]float64))
			got = make([]float64, n)
		}
		if err := p.Run(t.Context(), 0, n/m.Outputs[0].Width, []any{in}, []any{got}); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if g, w := simttest.ElementBits(got, i), simttest.ElementBits(want, i); g != w {
				t.Fatalf("%s, %s: row %d has the bits %#x, want %#x", m.Name, p.Path(), i, g, w)
			}
		}
	}
}

// run evaluates rows by the interpreter, and again where the program says so. It returns how
// many rows that were.
func run(t testing.TB, p *spn.Program, rows [][]float64) (ll []float64, again int) {
	t.Helper()
	n := len(rows)
	ll = make([]float64, n)
	eval := func(m *simt.Module, out []float64) {
		i, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := cells(m, rows)
		narrow := make([]float32, n)
		var to any = out
		if m.Outputs[0].Type == simt.F32 {
			to = narrow
		}
		if err := i.Run(t.Context(), 0, n, []any{in}, []any{to}); err != nil {
			t.Fatal(err)
		}
		if m.Outputs[0].Type == simt.F32 {
			for r, x := range narrow {
				out[r] = float64(x)
			}
		}
		sameNative(t, m, in, to)
	}
	eval(p.Module, ll)
	if p.Exact == nil && !math.IsInf(p.Least, -1) {
		x := columns(rows)
		for r := range ll {
			if !(ll[r] >= p.Least) {
				p.Again(x[r:], n, 1, ll[r:])
				again++
			}
		}
	}
	if p.Exact == nil {
		return ll, again
	}
	exact, _ := run(t, p.Exact, rows)
	for r := range ll {
		if !(ll[r] >= p.Least) {
			ll[r] = exact[r]
			again++
		}
	}
	return ll, again
}

// check compares a program with the evaluator in float64.
func check(t *testing.T, what string, g *circuit.Graph, params reference.Params, o spn.Options, rows [][]float64) (again int) {
	t.Helper()
	p, err := spn.Compile(g, params.Read64, o)
	if errors.Is(err, spn.ErrOptions) && o.Space == spn.Linear {
		return 0 // overflows
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	wellFormed(t, p.LoSPN(cutAt(200)))
	return eachRow(t, p, g, params, rows, func(r int, got, want float64) {
		if !(got == want || math.Abs(got-want) <= p.Bound.Of(want)) {
			t.Fatalf("%s, %v: row %d %v: %v, want %v within %v", what, p, r, rows[r], got, want, p.Bound.Of(want))
		}
		if loose := 1e-3 * math.Max(1, math.Abs(want)); !(p.Bound.Of(want) <= loose) && o.Type == simt.F64 {
			t.Fatalf("%s, %v: the bound %v of %v says little", what, p, p.Bound.Of(want), want)
		}
	})
}

// eachRow calls compare with what a program and the reference say of each row, and returns what run does of rows.
func eachRow(t testing.TB, p *spn.Program, g *circuit.Graph, params reference.Params, rows [][]float64, compare func(r int, got, want float64)) (again int) {
	t.Helper()
	ev, err := reference.New(g, params)
	if err != nil {
		t.Fatal(err)
	}
	ll, again := run(t, p, rows)
	for r, row := range rows {
		want, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		compare(r, ll[r], want)
	}
	return again
}

var options = []spn.Options{
	{Type: simt.F64}, {Space: spn.Linear, Type: simt.F64}, {Space: spn.Log, Type: simt.F64},
	{Space: spn.Auto, Type: simt.F32}, {Space: spn.Linear, Type: simt.F32}, {Space: spn.Log, Type: simt.F32},
	{Space: spn.Scaled, Type: simt.F32}, {Space: spn.Scaled, Type: simt.F64},
	{Space: spn.Linear, Type: simt.F64, Joint: 9}, {Space: spn.Linear, Type: simt.F32, Joint: 16}, {Space: spn.Linear, Type: simt.F32, Joint: 1 << 10},
}

// TestRandomCircuits compiles random circuits of blocks of units with every option.
func TestRandomCircuits(t *testing.T) {
	circuits, compiled := 40, 0
	if testing.Short() {
		circuits = 10
	}
	for seed := range uint64(circuits) {
		rng := rand.New(rand.NewPCG(seed, 9))
		g := reference.Random(rng, reference.RandomOptions{MaxUnits: 3, MaxNodes: 20, Discrete: seed%2 == 0})
		params, err := reference.Init(g, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := spn.Supported(g); err != nil {
			if _, err := spn.Compile(g, params.Read64, options[0]); !errors.Is(err, spn.ErrCode) {
				t.Fatalf("%v, want ErrCode", err)
			}
			continue
		}
		if circuit.Count(g).SumEdges > 400 { // long code for little news
			continue
		}
		compiled++
		rows := reference.RandomRows(g, rng, 12, 0.3)
		rows = append(rows, reference.MissingRow(g.NumVars))
		for _, o := range options {
			check(t, fmt.Sprintf("seed %d", seed), g, params, o, rows)
		}
	}
	if compiled < circuits/3 {
		t.Errorf("only %d of %d circuits were compiled", compiled, circuits)
	}
}

// histograms is a mixture over variables whose leaves are histograms with random breaks.
func histograms(rng *rand.Rand, vars int, whole bool) (*circuit.Graph, reference.Params) {
	g := graph{Graph: circuit.Graph{NumVars: vars}}
	sum := circuit.Node{Kind: circuit.Sum}
	for range 3 {
		product := circuit.Node{Kind: circuit.Product}
		for v := range vars {
			bins := 1 + rng.IntN(9)
			breaks, p := []float64{float64(rng.IntN(9) - 4)}, make([]float64, bins)
			for i := range p {
				step := rng.Float64() + 1e-3
				if whole {
					step = float64(1 + rng.IntN(4))
				}
				breaks, p[i] = append(breaks, breaks[i]+step), rng.Float64()
				if rng.IntN(4) == 0 && i > 0 {
					p[i] = p[i-1]
				}
			}
			floor := []float64{0x1p-52, 0}[rng.IntN(8)/7]
			product.Children = append(product.Children, g.add(circuit.Node{Var: v, Leaf: circuit.RealHistogram{Breaks: breaks, Floor: floor}}, p))
		}
		sum.Children = append(sum.Children, g.add(product, nil))
	}
	g.Root = g.add(sum, []float64{0.5, 0.25, 0.25})
	return &g.Graph, g.params
}

// TestHistograms walks the numbers at and around every break, far away and missing.
func TestHistograms(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 4))
		g, params := histograms(rng, 2, seed%2 == 0)
		var xs []float64
		for _, n := range g.Nodes {
			if l, ok := n.Leaf.(circuit.RealHistogram); ok {
				for _, b := range l.Breaks {
					x := float32(b)
					xs = append(xs, float64(x), float64(math.Nextafter32(x, -100)), float64(math.Nextafter32(x, 100)))
				}
			}
		}
		xs = append(xs, math.NaN(), 0, 1e30, -1e30, math.MaxFloat32, 2147483648, -2147483649, 1e9)
		var rows [][]float64
		for _, x := range xs {
			rows = append(rows, []float64{x, xs[rng.IntN(len(xs))]}, []float64{xs[rng.IntN(len(xs))], x})
		}
		for _, o := range options {
			check(t, fmt.Sprintf("seed %d", seed), g, params, o, rows)
		}
	}
}

// TestMixedLeaves has histograms and Gaussians over the same variables.
func TestMixedLeaves(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 24))
		g, params := histograms(rng, 3, seed%2 == 0)
		for i := range g.Nodes {
			if g.Nodes[i].Kind == circuit.Input && rng.IntN(3) == 0 {
				g.Nodes[i].Leaf, params[i] = circuit.Gaussian{}, []float64{3 * rng.NormFloat64(), 0.5 + rng.Float64()}
			}
		}
		var rows [][]float64
		for range 50 {
			row := reference.MissingRow(3)
			for v := range row {
				if rng.IntN(4) > 0 {
					row[v] = float64(float32(5 * rng.NormFloat64()))
				}
			}
			rows = append(rows, row)
		}
		for _, o := range options {
			check(t, fmt.Sprintf("seed %d", seed), g, params, o, rows)
		}
	}
}

// TestRecomputedRows has rows on both sides of what linear space can hold.
func TestRecomputedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	g, params := histograms(rng, 40, true)
	for i := range g.Nodes { // no power of 2, so that numbers too small are off
		if l, ok := g.Nodes[i].Leaf.(circuit.RealHistogram); ok {
			g.Nodes[i].Leaf = circuit.RealHistogram{Breaks: l.Breaks, Floor: 1.7e-16}
		}
	}
	var rows [][]float64
	for cells := range 41 { // so many far outside, each 2^-52
		row := reference.MissingRow(40)
		for v := range cells {
			row[v] = 1e6
		}
		rows = append(rows, row)
	}
	for _, typ := range []simt.Type{simt.F32, simt.F64} {
		again := check(t, "far rows", g, params, spn.Options{Space: spn.Linear, Type: typ}, rows)
		want := map[simt.Type][2]int{simt.F32: {34, 41}, simt.F64: {18, 30}}[typ]
		if again < want[0] || again > want[1] {
			t.Errorf("%v: %d of 41 rows were computed again, want %d to %d", typ, again, want[0], want[1])
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	g, params := histograms(rand.New(rand.NewPCG(1, 1)), 2, true)
	for what, c := range map[string]struct {
		o    spn.Options
		want error
	}{
		"space": {spn.Options{Space: "cubic", Type: simt.F64}, spn.ErrOptions},
		"type":  {spn.Options{Type: simt.I32}, spn.ErrOptions},
		"joint": {spn.Options{Joint: 1<<10 + 1}, spn.ErrOptions},
	} {
		if _, err := spn.Compile(g, params.Read64, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	params[g.Root][0] = 0.9
	if _, err := spn.Compile(g, params.Read64, spn.DefaultOptions()); !errors.Is(err, circuit.ErrGraph) {
		t.Errorf("weights that sum to 1.4: %v, want ErrGraph", err)
	}
	params[g.Root][0] = 0.5
	for i := range g.Nodes { // densities of 2^100 in 40 variables overflow
		if g.Nodes[i].Kind == circuit.Input {
			params[i] = []float64{math.Ldexp(1, 100)}
			g.Nodes[i].Leaf = circuit.RealHistogram{Breaks: []float64{0, 1}}
		}
	}
	if _, err := spn.Compile(g, params.Read64, spn.Options{Space: spn.Linear, Type: simt.F32}); !errors.Is(err, spn.ErrOptions) {
		t.Errorf("an overflow: %v, want ErrOptions", err)
	}
	if p, err := spn.Compile(g, params.Read64, spn.Options{Type: simt.F32}); err != nil || p.Space != spn.Log {
		t.Errorf("an overflow with a free choice: %v, %v; want log space", p, err)
	}
}

// TestByteRows compiles whole histograms for rows of bytes: breaks on both sides of what fits a register, of the
// tables that permutations have, and of what a byte has; and cells at both ends.
func TestByteRows(t *testing.T) {
	for seed := range uint64(12) {
		if testing.Short() && seed%2 == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 4))
		g, params := histograms(rng, 1+int(seed)*2, true)
		last := []float64{14, 15, 16, 62, 63, 126, 127, 253, 254, 255, 256, 300}[seed]
		for i := range g.Nodes {
			if h, ok := g.Nodes[i].Leaf.(circuit.RealHistogram); ok && rng.IntN(2) == 0 {
				h.Breaks[len(h.Breaks)-1] = max(last, h.Breaks[len(h.Breaks)-1])
				mass := 0.0
				for k, p := range params[i] {
					mass += p * (h.Breaks[k+1] - h.Breaks[k])
				}
				for k := range params[i] {
					params[i][k] /= mass
				}
			}
		}
		var rows [][]float64
		for k := range 50 {
			row := make([]float64, g.NumVars)
			for v := range row {
				row[v] = []float64{float64(rng.IntN(255)), float64(rng.IntN(20)), 0, 254, math.NaN(), min(254, last+float64(k%3-1))}[rng.IntN(6)]
			}
			rows = append(rows, row)
		}
		for _, o := range options {
			o.Bytes, o.Layout = true, []simt.Layout{simt.Rows, simt.Columns}[seed%2]
			check(t, fmt.Sprintf("seed %d", seed), g, params, o, rows)
		}
	}
	g, params := histograms(rand.New(rand.NewPCG(1, 4)), 2, false)
	if _, err := spn.Compile(g, params.Read64, spn.Options{Type: simt.F32, Bytes: true}); !errors.Is(err, spn.ErrOptions) {
		t.Errorf("breaks with fractions: %v, want ErrOptions", err)
	}
}

// TestSameBytes: equal circuits give equal modules.
func TestSameBytes(t *testing.T) {
	g, params := histograms(rand.New(rand.NewPCG(2, 1)), 3, false)
	var texts [2]string
	for i := range texts {
		p, err := spn.Compile(g, params.Read64, spn.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = p.Module.Text()
		if _, err := simt.Parse(texts[i]); err != nil {
			t.Error(err)
		}
	}
	if texts[0] != texts[1] {
		t.Error("two compilations differ")
	}
}

// open reads one of the shared networks.
func open(t testing.TB, name string) (*circuit.Graph, reference.Params) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../shared/data/spn/text", name+".spn"))
	if err != nil {
		t.Skip("no SPNs of others in ../shared/data/spn: they are in the repository esa-tu-darmstadt/spn-compiler, branch feature/circt-llvm-19.0.0")
	}
	m, err := spflow.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Load64(m.Graph, m.Params64)
	if err != nil {
		t.Fatal(err)
	}
	return m.Graph, params
}

// TestSharedModels holds code to the evaluator on public networks, with rows of their domains.
func TestSharedModels(t *testing.T) {
	for name, want := range map[string]string{
		"NLTCS_200": "in linear space, ", "NIPS5": "in linear space, ", "NIPS40": "again in log space", "PLANTS_4000": "",
	} {
		if testing.Short() && (name == "PLANTS_4000" || name == "NIPS40") {
			continue // large ones
		}
		g, params := open(t, name)
		rng := rand.New(rand.NewPCG(5, 5))
		var rows [][]float64
		for range 60 {
			row := make([]float64, g.NumVars)
			for v := range row {
				row[v] = float64(rng.IntN(2) * rng.IntN(2+98*rng.IntN(2)))
				if rng.IntN(9) == 0 {
					row[v] = math.NaN()
				}
			}
			rows = append(rows, row)
		}
		for _, o := range options {
			check(t, name, g, params, o, rows)
			o.Bytes = true
			check(t, name+" of bytes", g, params, o, rows)
			o.Layout = simt.Columns
			check(t, name+" of columns of bytes", g, params, o, rows)
		}
		p, err := spn.Compile(g, params.Read64, spn.DefaultOptions())
		if err != nil || !strings.Contains(p.String(), want) {
			t.Errorf("%s: %v, %v; want %q", name, p, err, want)
		}
		t.Logf("%s: %v; %+v", name, p, p.Info)
	}
}

// BenchmarkCode evaluates rows of public networks on one core, by native code and by the interpreter.
func BenchmarkCode(b *testing.B) {
	type runner interface {
		Run(ctx context.Context, lo, hi int, in, out []any) error
	}
	for _, name := range []string{"NLTCS_200", "PLANTS_4000", "NIPS5", "NIPS40"} {
		for _, o := range options {
			for _, native := range []bool{true, false} {
				b.Run(fmt.Sprintf("%s/%s/%v/native=%v", name, o.Space, o.Type, native), func(b *testing.B) {
					g, params := open(b, name)
					p, err := spn.Compile(g, params.Read64, o)
					if err != nil {
						b.Skip(err)
					}
					const n = 4096
					x := make([]float32, n*g.NumVars)
					var ll any = make([]float64, n)
					if o.Type == simt.F32 {
						ll = make([]float32, n)
					}
					for i := range x {
						x[i] = float32(i * 7 / 3 % 2)
					}
					var run runner
					if native {
						run, err = x86.Compile(p.Module, 1, x86.Path())
					} else {
						run, err = simt.Compile(p.Module, 1)
					}
					if errors.Is(err, x86.ErrUnsupported) {
						b.Skip(err)
					}
					if err != nil {
						b.Fatal(err)
					}
					for b.Loop() {
						if err := run.Run(b.Context(), 0, n, []any{x}, []any{ll}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "rows/us")
				})
			}
		}
	}
}
