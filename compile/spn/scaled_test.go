package spn_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// classCircuit is a random tensorised network over vars variables, with a root for each class: the last variable. Leaves
// of each variable are Gaussians or, of each third one if mixed, categories.
func classCircuit(t testing.TB, rng *rand.Rand, vars, latents, classes int, mixed bool, spread float64) (*circuit.Graph, reference.Params) {
	t.Helper()
	o := structures.DefaultRATSPN()
	o.Vars, o.Latents, o.Depth, o.Seed = vars, latents, 2, rng.Uint64()
	o.Leaf = func(v int) circuit.Leaf {
		if mixed && v%3 == 2 {
			return circuit.Categorical{Categories: 3}
		}
		return circuit.Gaussian{}
	}
	g, err := structures.RATSPN(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := structures.AddClass(g, vars, classes); err != nil {
		t.Fatal(err)
	}
	first := circuit.None // the indicator of the first class
	for i := range g.Nodes {
		if l, ok := g.Nodes[i].Leaf.(circuit.Indicator); ok && l.Value == 0 {
			first = circuit.NodeID(i)
		}
	}
	blurred := mixed && classes > 1
	if blurred {
		g.Nodes[first].Leaf = circuit.Categorical{Categories: classes}
	}
	params, err := reference.Init(g, rng.Uint64(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Nodes {
		if _, ok := g.Nodes[i].Leaf.(circuit.Gaussian); ok {
			for u := 0; u < len(params[i]); u += 2 {
				params[i][u], params[i][u+1] = spread*rng.NormFloat64(), math.Exp(rng.NormFloat64())
			}
		}
	}
	if blurred { // rows of the first root are now and then of the second class
		clear(params[first])
		params[first][0], params[first][1] = 0.75, 0.25
	}
	return g, params
}

// classRows are rows of the circuit with cells that are missing, common and extreme.
func classRows(rng *rand.Rand, g *circuit.Graph, n int) [][]float64 {
	rows := make([][]float64, n)
	for r := range rows {
		rows[r] = make([]float64, g.NumVars)
		for v := range rows[r] {
			rows[r][v] = float64(float32(2 * rng.NormFloat64()))
		}
		for i := range g.Nodes {
			if node := &g.Nodes[i]; node.Kind == circuit.Input && node.Leaf.Codes() > 0 {
				rows[r][node.Var] = float64(rng.IntN(node.Leaf.Codes()))
			}
		}
		for v := range rows[r] {
			if codes := rows[r][v] == math.Trunc(rows[r][v]); r%4 == 1 && rng.IntN(3) == 0 || r == 0 {
				rows[r][v] = math.NaN()
			} else if r%8 == 2 && rng.IntN(4) == 0 && !codes {
				rows[r][v] = float64([]float32{1e9, -1e9, 1e30, -3e38, 200, 1e-40, 30}[rng.IntN(7)])
			}
		}
	}
	return rows
}

// classLogs are the log-likelihoods of a row with each class, by the evaluator in float64.
func classLogs(t testing.TB, ev *reference.Evaluator, row []float64, class, classes int) []float64 {
	t.Helper()
	lls := make([]float64, classes)
	own := append([]float64(nil), row...)
	for k := range lls {
		own[class] = float64(k)
		ll, err := ev.LogLikelihood(own)
		if err != nil {
			t.Fatal(err)
		}
		lls[k] = ll
	}
	return lls
}

// runClasses evaluates rows by the interpreter, with native code held to its bits, and computes again those that the
// module does not. It returns [row][class], and how many rows were computed again.
func runClasses(t testing.TB, p *spn.Program, rows [][]float64, classes int) (lls []float64, again int) {
	t.Helper()
	wellFormed(t, p.LoSPN(cutAt(200)))
	n := len(rows)
	eval := func(m *simt.Module) []float64 {
		i, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := cells(m, rows)
		var out any = make([]float64, n*classes)
		if m.Outputs[0].Type == simt.F32 {
			out = make([]float32, n*classes)
		}
		if err := i.Run(t.Context(), 0, n, []any{in}, []any{out}); err != nil {
			t.Fatal(err)
		}
		sameNative(t, m, in, out)
		turned := make([]float64, n*classes)
		for k := range turned {
			at := k%classes*n + k/classes
			if narrow, ok := out.([]float32); ok {
				turned[k] = float64(narrow[at])
			} else {
				turned[k] = out.([]float64)[at]
			}
		}
		return turned
	}
	lls = eval(p.Module)
	var exact []float64
	if p.Exact != nil {
		exact, _ = runClasses(t, p.Exact, rows, classes)
	}
	x := columns(rows)
	for r := range rows {
		own, top := lls[r*classes:][:classes], math.Inf(-1)
		for _, ll := range own {
			top = math.Max(top, ll)
		}
		switch {
		case top >= p.Least:
		case exact != nil:
			copy(own, exact[r*classes:])
			again++
		default:
			p.Again(x[r:], n, 1, own)
			again++
		}
	}
	return lls, again
}

// TestClasses holds code for the codes of a variable to the evaluator, in every space.
func TestClasses(t *testing.T) {
	all := append([]spn.Options{{Space: spn.Scaled, Type: simt.F32}, {Space: spn.Scaled, Type: simt.F64}}, options[:6]...)
	seeds := uint64(8)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 16))
		classes := []int{1, 2, 3, 10}[seed%4]
		g, params := classCircuit(t, rng, 3+int(seed)*2, 1+int(seed*3%14), classes, seed%2 == 1, []float64{1, 1, 40}[seed%3])
		ev, err := reference.New(g, params)
		if err != nil {
			t.Fatal(err)
		}
		class := g.NumVars - 1
		rows := classRows(rng, g, 37)
		for _, o := range all {
			if o.Space != spn.Scaled && g.Nodes[0].Units > 4 {
				continue // long code for little news
			}
			p, err := spn.CompileClasses(g, params.Read64, class, o)
			if errors.Is(err, spn.ErrOptions) && o.Space == spn.Linear {
				continue // overflows
			}
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, o, err)
			}
			lls, again := runClasses(t, p, rows, classes)
			if o.Space == spn.Scaled && again > len(rows)/4 {
				t.Errorf("seed %d, %v: %d of %d rows were computed again", seed, p, again, len(rows))
			}
			for r, row := range rows {
				want := classLogs(t, ev, row, class, classes)
				top := math.Inf(-1)
				for _, ll := range want {
					top = math.Max(top, ll)
				}
				for k, ll := range lls[r*classes:][:classes] {
					// What is far below the likeliest class may be off by what counts beside that one.
					within := p.Bound.Of(want[k])
					near := math.Abs(math.Exp(ll-top)-math.Exp(want[k]-top)) <= 2*p.Bound.Of(top)
					if o.Space == spn.Log && o.Type == simt.F32 && want[k] < -math.MaxFloat32 && math.IsInf(ll, -1) {
						continue // which no float32 is
					}
					if !(ll == want[k] || math.Abs(ll-want[k]) <= within || near && want[k] < top-20) {
						t.Fatalf("seed %d, %v: row %d %v, class %d: %v, want %v within %v", seed, p, r, row, k, ll, want[k], within)
					}
				}
			}
		}
	}
}

// TestScaled holds scaled space to the evaluator on networks with blocks on both sides of a tile, on rows that linear space
// has no numbers for; Gaussians are near each other, and far apart.
func TestScaled(t *testing.T) {
	for _, latents := range []int{1, 12, 13} {
		for _, spread := range []float64{1, 10, 1e4} { // around what maxShift allows for narrow ones
			rng := rand.New(rand.NewPCG(uint64(latents), uint64(spread)))
			g, params := classCircuit(t, rng, 13, latents, 2, true, spread)
			rows := classRows(rng, g, 19)
			for _, typ := range []simt.Type{simt.F32, simt.F64} {
				check(t, fmt.Sprintf("%d units, spread %v", latents, spread), g, params, spn.Options{Space: spn.Scaled, Type: typ}, rows)
			}
		}
	}
}

// TestLost has rows whose product is of units that are ever farther below the largest of their blocks, until float32 loses
// them beside that one.
func TestLost(t *testing.T) {
	const apart = 20.0 // of the means of units, in deviations
	g := &circuit.Graph{NumVars: 3}
	var params reference.Params
	add := func(n circuit.Node, p ...float64) circuit.NodeID {
		n.Units = 2
		g.Nodes, params = append(g.Nodes, n), append(params, p)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	var sums []circuit.NodeID
	for v := range 2 {
		in := add(circuit.Node{Kind: circuit.Input, Var: v, Leaf: circuit.Gaussian{}}, 0, 1, apart, 1)
		sums = append(sums, add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{in}}, 1, 1e-36, 1e-36, 1))
	}
	product := add(circuit.Node{Kind: circuit.Product, Children: sums})
	above := add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{product}}, 0.5, 0.5, 0.25, 0.75)
	last := add(circuit.Node{Kind: circuit.Input, Var: 2, Leaf: circuit.Gaussian{}}, 0, 1, 1, 1)
	top := add(circuit.Node{Kind: circuit.Product, Children: []circuit.NodeID{above, last}})
	g.Root = add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{top}}, 0.5, 0.5)
	g.Nodes[g.Root].Units = 1
	step := 1.0
	if testing.Short() {
		step = 3
	}
	for bits := 4.0; bits < 160; bits += step {
		// Unit 0 of the first variable and unit 1 of the second are above the other one by that many bits.
		far := bits * math.Ln2 / apart
		row := []float64{float64(float32(apart/2 - far)), float64(float32(apart/2 + far)), 0.5}
		again := check(t, fmt.Sprintf("%v bits", bits), g, params, spn.Options{Space: spn.Scaled, Type: simt.F32}, [][]float64{row, row})
		if want := bits > 100; (bits < 90 || bits > 102) && (again > 0) != want {
			t.Errorf("%v bits: %d rows were computed again", bits, again)
		}
		if again := check(t, fmt.Sprintf("%v bits", bits), g, params, spn.Options{Space: spn.Scaled, Type: simt.F64}, [][]float64{row}); again > 0 {
			t.Errorf("%v bits: float64 was computed again", bits)
		}
	}
}

// TestAutoScaled: a free choice takes scaled space from a size of blocks on, and up to a depth.
func TestAutoScaled(t *testing.T) {
	space := func(g *circuit.Graph, params reference.Params, typ simt.Type) spn.Space {
		t.Helper()
		p, err := spn.Compile(g, params.Read64, spn.Options{Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		return p.Space
	}
	first := 0
	for latents := 1; latents <= 16; latents += 3 {
		rng := rand.New(rand.NewPCG(uint64(latents), 1))
		g, params := classCircuit(t, rng, 24, latents, 2, false, 1)
		scaled := space(g, params, simt.F32) == spn.Scaled
		if scaled && first == 0 {
			first = latents
		}
		if scaled != (first > 0) {
			t.Errorf("%d units: scaled space is %v, and it is from %d units on", latents, scaled, first)
		}
		if latents == 1 || first == latents {
			check(t, fmt.Sprintf("%d units", latents), g, params, spn.Options{Type: simt.F32}, classRows(rng, g, 2))
		}
	}
	if first < 4 || first > 13 {
		t.Errorf("scaled space from %d units on", first)
	}
	for length, want := range map[int]spn.Space{5: spn.Scaled, 60: spn.Linear} {
		g, err := structures.HMM(structures.HMMOptions{Length: length, Latents: 16, Leaf: func(int) circuit.Leaf { return circuit.Gaussian{} }})
		if err != nil {
			t.Fatal(err)
		}
		params, err := reference.Init(g, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := space(g, params, simt.F32); got != want {
			t.Errorf("a chain of %d: %s space, want %s", length, got, want)
		}
	}
}

// TestUnreadClass refuses a class that only a leaf reads which the root does not reach.
func TestUnreadClass(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.Categorical{Categories: 3}},
	}}
	params := reference.Params{{0.5, 0.5}, {0.25, 0.25, 0.5}}
	for class, want := range []error{nil, spn.ErrOptions} {
		if _, err := spn.CompileClasses(g, params.Read64, class, spn.Options{Type: simt.F64}); !errors.Is(err, want) {
			t.Errorf("class %d: %v, want %v", class, err, want)
		}
	}
}
