package kerneltest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// Queries compares what an engine on a device answers with sums and integrals over all
// completions of rows, in circuits of up to 12 variables: likelihoods, conditionals, moments,
// draws and most probable completions. The parts posteriors, maximise and sample of the suite
// look at the device's own calls on many more circuits.
func Queries(t *testing.T, open Open) {
	t.Run("enumerated", func(t *testing.T) {
		for _, c := range enumeratedCases() {
			t.Run(c.name, func(t *testing.T) { c.check(t, open) })
		}
	})
	t.Run("draws", func(t *testing.T) { testDraws(t, open) })
	t.Run("deterministic", func(t *testing.T) { testExactCompletions(t, open) })
}

// enumerated is a circuit with rows and what a sum over their completions says of them.
type enumerated struct {
	randomCase
	name    string
	answers []enumeration // of rows
}

// enumeration is what the completions of a row say of it.
type enumeration struct {
	ll, best       float64 // of the row, and of its most probable completion
	mean, variance []float64
	codes          [][]float64 // [variable][code], nil where there are none
	finite         bool        // best is the largest of all completions, not of a grid
}

// enumeratedCases are computed once for all devices.
var enumeratedCases = sync.OnceValue(func() (list []*enumerated) {
	add := func(name string, seed uint64, rows int, o reference.RandomOptions) {
		rng := rand.New(rand.NewPCG(seed, 91))
		c := &enumerated{name: name}
		c.graph = reference.Random(rng, o)
		if c.params, c.err = reference.Init(c.graph, seed, nil); c.err == nil {
			c.rows = reference.RandomRows(c.graph, rng, rows, 0.4)
			c.err = c.enumerate()
		}
		list = append(list, c)
	}
	add("twelve variables", 1, 4, reference.RandomOptions{Vars: 12, MaxUnits: 8, MaxCodes: 2, MaxNodes: 40, Discrete: true})
	add("structural zeros", 2, 6, reference.RandomOptions{Vars: 6, MaxUnits: 12, MaxCodes: 3, Discrete: true})
	add("many zeros", 7, 6, reference.RandomOptions{Vars: 5, MaxUnits: 3, MaxCodes: 3, Discrete: true})
	for seed := uint64(3); seed < 7; seed++ {
		add("every leaf", seed, 5, reference.RandomOptions{Vars: 4, MaxUnits: 6, MaxCodes: 3, MaxNodes: 30})
	}
	rng := rand.New(rand.NewPCG(8, 91))
	for _, family := range []circuit.Leaf{circuit.Gaussian{}, circuit.Poisson{}, realBins, wholeBins} {
		tree, err := structures.GridTree(3, 1, 1)
		c := &enumerated{name: family.Name()}
		if c.err = err; err == nil {
			c.graph, c.err = structures.HCLT(tree, structures.HCLTOptions{Latents: 3, Leaf: func(int) circuit.Leaf { return family }})
		}
		if c.err == nil {
			c.params, c.err = reference.Init(c.graph, 9, nil)
		}
		if c.err == nil {
			c.rows = reference.RandomRows(c.graph, rng, 4, 0.4)
			c.err = c.enumerate()
		}
		list = append(list, c)
	}
	return list
})

// enumerate adds up the completions of the rows; it leaves out rows of too many points.
func (c *enumerated) enumerate() error {
	const most = 1 << 14
	ev, err := reference.New(c.graph, c.params)
	if err != nil {
		return err
	}
	domains := circuit.Domains(c.graph)
	rows := c.rows
	c.rows = nil
	for _, row := range rows {
		points, err := ev.Points(row)
		if errors.Is(err, reference.ErrDomain) {
			continue
		}
		if err != nil {
			return err
		}
		n := 0
		for range points {
			n++
		}
		if n > most {
			continue
		}
		a := enumeration{best: math.Inf(-1), finite: true, codes: make([][]float64, len(row))}
		a.mean, a.variance = make([]float64, len(row)), make([]float64, len(row))
		for v, codes := range domains {
			a.codes[v] = make([]float64, max(0, codes))
			a.finite = a.finite && (codes != 0 || !math.IsNaN(row[v]))
		}
		mass, square := 0.0, make([]float64, len(row))
		for x, weight := range points {
			ll, err := ev.LogLikelihood(x)
			if err != nil {
				return err
			}
			p := weight * math.Exp(ll)
			a.best = max(a.best, ll)
			mass += p
			for v, x := range x {
				a.mean[v] += p * x
				square[v] += p * x * x
				if len(a.codes[v]) > 0 {
					a.codes[v][int(x)] += p
				}
			}
		}
		a.ll = math.Log(mass)
		for v := range row {
			a.mean[v] /= mass
			a.variance[v] = square[v]/mass - a.mean[v]*a.mean[v]
			for k := range a.codes[v] {
				a.codes[v][k] /= mass
			}
		}
		c.rows, c.answers = append(c.rows, row), append(c.answers, a)
	}
	return nil
}

// check compares an engine's answers with the sums, to 1e-5.
func (c *enumerated) check(t *testing.T, open Open) {
	if c.err != nil || len(c.rows) == 0 {
		t.Fatalf("%d rows, %v", len(c.rows), c.err)
	}
	dev := open(t)
	defer dev.Close()
	ctx := context.Background()
	m := Build(t, dev, c.graph, c.params, c.options(), engine.Options{Rows: 64, Queries: true})
	batch := func() *dataset.Batch { return reference.Batch(reference.Schema(c.graph), c.rows) }
	ll := make([]float64, len(c.rows))
	must(t, m.Engine.LogLikelihood(ctx, batch(), ll))
	moments := make([]float64, len(c.rows)*2*c.graph.NumVars)
	must(t, m.Engine.Moments(ctx, batch(), moments))
	full, best, bound := batch(), make([]float64, len(c.rows)), make([]float64, len(c.rows))
	must(t, m.Engine.MPE(ctx, full, engine.MPEOptions{Candidates: 20, Sweeps: 10, Seed: 1}, best, bound))
	near := func(r int, what string, got, want float64) {
		t.Helper()
		if !near(got, want, 1e-5*max(1, math.Abs(want))) {
			t.Errorf("row %v: %s is %v, want %v", c.rows[r], what, got, want)
		}
	}
	for r, want := range c.answers {
		near(r, "the log-likelihood", ll[r], want.ll)
		impossible := math.IsInf(want.ll, -1)
		if want.finite { // candidates find the best of these circuits
			near(r, "the likelihood of the best completion", best[r], want.best)
		}
		if !(bound[r] >= want.best-1e-5) {
			t.Errorf("row %v: the bound is %v, a completion has %v", c.rows[r], bound[r], want.best)
		}
		for v, codes := range circuit.Domains(c.graph) {
			mean, variance := moments[r*2*c.graph.NumVars+v], moments[(r*2+1)*c.graph.NumVars+v]
			switch {
			case codes < 0:
			case impossible && (mean == mean || variance == variance):
				t.Errorf("row %v is impossible, variable %d has mean %v and variance %v", c.rows[r], v, mean, variance)
			case !impossible:
				near(r, "a mean", mean, want.mean[v])
				near(r, "a variance", variance, want.variance[v])
			}
		}
	}
	c.checkConditionals(t, m)
}

// checkConditionals asks for the distributions of all variables at once and, with the same
// bits, one after another.
func (c *enumerated) checkConditionals(t *testing.T, m *Model) {
	t.Helper()
	var all []int
	for v, codes := range circuit.Domains(c.graph) {
		if codes > 0 {
			all = append(all, v)
		}
	}
	ask := func(of ...int) (out []float64, width int) {
		t.Helper()
		for _, v := range of {
			w, err := m.Engine.ConditionalWidth(v)
			must(t, err)
			width += w
		}
		out = make([]float64, len(c.rows)*width)
		must(t, m.Engine.Conditional(context.Background(), reference.Batch(reference.Schema(c.graph), c.rows), of, out))
		return out, width
	}
	joint, width := ask(all...)
	at := 0
	for _, v := range all {
		alone, codes := ask(v)
		for r, want := range c.answers {
			for k := range codes {
				x, own := joint[r*width+at+k], alone[r*codes+k]
				switch {
				case math.Float64bits(x) != math.Float64bits(own):
					t.Errorf("row %v: variable %d is %d with %v, alone with %v", c.rows[r], v, k, x, own)
				case math.IsInf(want.ll, -1) && x == x:
					t.Errorf("row %v is impossible, variable %d is %d with %v", c.rows[r], v, k, x)
				case !math.IsInf(want.ll, -1) && !near(x, want.codes[v][k], 1e-5):
					t.Errorf("row %v: variable %d is %d with %v, want %v", c.rows[r], v, k, x, want.codes[v][k])
				}
			}
		}
		at += codes
	}
}

// testDraws compares how often the completions of rows are drawn with their probabilities.
func testDraws(t *testing.T, open Open) {
	g, err := structures.HMM(structures.HMMOptions{Length: 4, Latents: 5, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }})
	must(t, err)
	dev := open(t)
	defer dev.Close()
	c := &randomCase{graph: g, params: initial(t, g)}
	m := Build(t, dev, g, c.params, c.options(), engine.Options{Rows: 512})
	nan := math.NaN()
	for _, given := range [][]float64{{nan, nan, nan, nan}, {nan, 2, nan, 1}} {
		checkFrequencies(t, m, given, 1000)
	}
}

// testExactCompletions compares completions in deterministic circuits, where maxima need no
// candidates, with the best of all.
func testExactCompletions(t *testing.T, open Open) {
	rng := rand.New(rand.NewPCG(93, 94))
	for vars := 2; vars <= 8; vars += 3 {
		g, p := reference.Chain(rng, vars, 3)
		c := &randomCase{graph: g, params: p}
		dev := open(t)
		m := Build(t, dev, g, p, c.options(), engine.Options{Rows: 16, Queries: true})
		rows := append(reference.RandomRows(g, rng, 6, 0.6), reference.MissingRow(vars))
		ll, bound := make([]float64, len(rows)), make([]float64, len(rows))
		must(t, m.Engine.MPE(context.Background(), reference.Batch(reference.Schema(g), rows), engine.MPEOptions{}, ll, bound))
		ev := c.evaluator(t)
		for r, row := range rows {
			_, want, err := ev.MPE(row)
			must(t, err)
			if !near(ll[r], want, 1e-5*max(1, math.Abs(want))) {
				t.Errorf("%v is completed with log-likelihood %v, the best has %v", row, ll[r], want)
			}
		}
		must(t, dev.Close())
	}
}
