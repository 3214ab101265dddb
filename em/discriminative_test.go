package em_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
)

const classes = 3

// classified returns circuits with a root for each class, the variable number class, and leaves of every kind, and one in which
// the class has leaves too.
func classified(t *testing.T, class int) map[string]*circuit.Graph {
	t.Helper()
	families := map[string]structures.Leaf{
		"categorical": categorical(4),
		"gaussian":    func(int) circuit.Leaf { return circuit.Gaussian{} },
		"mixed": func(v int) circuit.Leaf {
			return []circuit.Leaf{circuit.Gaussian{}, circuit.Poisson{}, circuit.LogNormal{}, circuit.Binomial{Trials: 5}, circuit.Bernoulli{}}[v%5]
		},
	}
	tree, err := structures.GridTree(3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*circuit.Graph{}
	for name, leaf := range families {
		o := structures.DefaultRATSPN()
		o.Vars, o.Latents, o.Depth, o.Leaf = 9, 5, 2, leaf
		rat, err := structures.RATSPN(o)
		if err != nil {
			t.Fatal(err)
		}
		hclt, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 6, Leaf: leaf})
		if err != nil {
			t.Fatal(err)
		}
		o.Latents = 1
		single, err := structures.RATSPN(o)
		if err != nil {
			t.Fatal(err)
		}
		out["rat-spn of "+name], out["hclt of "+name], out["single units of "+name] = rat, hclt, single
	}
	if out["sums of several blocks"], err = structures.HCLT(tree, structures.HCLTOptions{Latents: 40, Leaf: families["categorical"]}); err != nil {
		t.Fatal(err)
	}
	for _, g := range out {
		if err := structures.AddClass(g, class, classes); err != nil {
			t.Fatal(err)
		}
	}
	if tree, err = structures.GridTree(2, 5, 1); err != nil {
		t.Fatal(err)
	}
	leaves, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 6, Leaf: func(v int) circuit.Leaf {
		if v == class {
			return circuit.Categorical{Categories: classes}
		}
		return circuit.Gaussian{}
	}})
	if err != nil {
		t.Fatal(err)
	}
	out["leaves of the class"] = leaves
	return out
}

// hidden returns the rows without their class.
func hidden(rows [][]float64, class int) [][]float64 {
	out := make([][]float64, len(rows))
	for i, row := range rows {
		out[i] = append([]float64(nil), row...)
		out[i][class] = math.NaN()
	}
	return out
}

// counts are flows of rows, and of the inputs with codes the flows of each code, [input][unit][code].
type counts struct {
	*reference.Flows
	codes [][][]float64
}

func countsOf(t *testing.T, g *circuit.Graph, p reference.Params, rows [][]float64) counts {
	t.Helper()
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	c := counts{codes: make([][][]float64, len(g.Nodes))}
	if c.Flows, err = ev.Flows(rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		one, err := ev.Flows([][]float64{row})
		if err != nil {
			t.Fatal(err)
		}
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.Kind != circuit.Input || n.Leaf.Codes() == 0 || math.IsNaN(row[n.Var]) {
				continue
			}
			if c.codes[i] == nil {
				c.codes[i] = make([][]float64, n.Units)
				for u := range c.codes[i] {
					c.codes[i][u] = make([]float64, n.Leaf.Codes())
				}
			}
			for u, w := range one.Weights[i] {
				c.codes[i][u][int(row[n.Var])] += w
			}
		}
	}
	return c
}

// grown returns the counts of a discriminative step in float64, from those of rows with and without their class.
func grown(g *circuit.Graph, p reference.Params, rows [][]float64, f, h counts, d em.Discriminative) *reference.Flows {
	out, share := reference.NewFlows(g), d.Share
	// unit makes the counts c of a unit, of which there are f with the class and h without it; theta is its distribution. Leaves
	// of the class have as many in all as with it.
	unit := func(c, f, h, theta []float64, class bool) {
		change, with, without, sum := 0.0, 0.0, 0.0, 0.0
		for k := range c {
			change += math.Abs(f[k] - h[k])
			with += f[k]
			without += h[k]
		}
		d := share * (2*change + 0.01*without)
		for k := range c {
			if less := f[k] - share*h[k]; less >= 0 {
				c[k] = less + d*theta[k]
			} else if d*theta[k] > 0 {
				c[k] = d * theta[k] * math.Exp(less/(d*theta[k]))
			}
			sum += c[k]
		}
		for k := range c {
			switch {
			case sum > 0 && class:
				c[k] *= with / sum
			case sum > 0:
				c[k] *= ((1-share)*with + share*without) / sum
			}
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind == circuit.Sum {
			width := len(p[i]) / n.Units
			for k := 0; k < len(p[i]); k += width {
				unit(out.Params[i][k:][:width], f.Params[i][k:][:width], h.Params[i][k:][:width], p[i][k:][:width], false)
			}
		}
		if n.Kind != circuit.Input || n.Leaf.NumParams() == 0 {
			continue
		}
		stats, params := n.Leaf.NumStats(), n.Leaf.NumParams()
		one := make([]float64, stats)
		for u := range n.Units {
			theta := p[i][u*params:][:params]
			sum, weight := out.Stats[i][u*stats:][:stats], &out.Weights[i][u]
			if codes := n.Leaf.Codes(); codes > 0 {
				c, probability, without := make([]float64, codes), make([]float64, codes), make([]float64, codes)
				if n.Var != d.Class {
					without = h.codes[i][u]
				}
				for k := range probability {
					probability[k] = math.Exp(n.Leaf.LogProb(theta, float64(k)))
				}
				unit(c, f.codes[i][u], without, probability, n.Var == d.Class)
				for k, x := range c {
					n.Leaf.Stats(float64(k), one)
					for k, s := range one {
						sum[k] += x * s
					}
					*weight += x
				}
				continue
			}
			with, without := f.Weights[i][u], h.Weights[i][u]
			less := func(k int) float64 { return f.Stats[i][u*stats+k] - h.Stats[i][u*stats+k] }
			change := math.Abs(with - without)
			one[0] = theta[0]
			if stats == 2 {
				one[1] = theta[0]*theta[0] + theta[1]*theta[1]
				change += math.Abs(less(0)-theta[0]*(with-without)) / theta[1]
				change += math.Abs(less(1)-2*theta[0]*less(0)+theta[0]*theta[0]*(with-without)) / (theta[1] * theta[1])
			} else {
				change += math.Abs(less(0)-theta[0]*(with-without)) / math.Sqrt(theta[0])
			}
			most := make([]float64, stats) // of a row, as a power of two
			for _, row := range rows {
				if x := row[n.Var]; !math.IsNaN(x) {
					t := make([]float64, stats)
					n.Leaf.Stats(x, t)
					for k := range t {
						most[k] = max(most[k], math.Exp2(math.Ceil(math.Log2(math.Abs(t[k])))))
					}
				}
			}
			for k, e := range one {
				if most[k] == 0 {
					most[k] = 1
				}
				most[k] = max(most[k], math.Abs(e))
			}
			alone := append([]float64(nil), theta...)
			n.Leaf.MStep(alone, f.Stats[i][u*stats:][:stats], with, 0, 1)
			prior := share * (2*change + 0.01*without)
			for range 64 {
				*weight = with - share*without + prior
				for k := range sum {
					sum[k] = f.Stats[i][u*stats+k] - share*h.Stats[i][u*stats+k] + prior*one[k]
				}
				next := append([]float64(nil), theta...)
				n.Leaf.MStep(next, sum, *weight, 0, 1)
				inside := sum[stats-1] >= 0 // of squares or counts
				for k := range sum {
					inside = inside && math.Abs(sum[k]) <= *weight*most[k]
				}
				if next[params-1] >= min(theta[params-1]/2, 0.99*alone[params-1]) && inside || prior == 0 {
					break
				}
				prior *= 2
			}
			for k := range sum {
				sum[k] *= ((1-share)*with + share*without) / *weight
			}
			*weight = (1-share)*with + share*without
		}
	}
	return out
}

// discriminate does steps over all rows, of sizes that fall from the first one, and returns the objective before each, and the
// parameters.
func (m *model) discriminate(t *testing.T, d em.Discriminative, steps int, size float64, shard int) ([]float64, reference.Params) {
	t.Helper()
	eng := m.engine(t, cpu.Options{}, shard)
	flows := em.NewLocal(eng, m.table)
	defer flows.Close()
	if err := flows.Discriminate(d); err != nil {
		t.Fatal(err)
	}
	o := em.Options{Phases: []em.Phase{{
		Rule: em.MiniBatch, Epochs: steps, BatchRows: len(m.rows), Pseudocount: 0.5, StepSize: em.Schedule{{em.Linear, 1, size, 0.02}},
	}}, ShardRows: shard}
	var lls []float64
	o.OnEpoch = func(x em.Metrics) { lls = append(lls, x.TrainLL) }
	tr, err := em.New(flows, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lls, m.params(t, flows)
}

// params are those of a trained model.
func (m *model) params(t *testing.T, p em.ParamReader) reference.Params {
	t.Helper()
	out := make(reference.Params, len(m.graph.Nodes))
	for i := range m.prog.Map.Len() {
		at, n := m.prog.Map.Region(i)
		region, narrow := make([]float32, n), make([]float32, m.graph.NumParams(m.prog.Map.Node(i)))
		if err := p.ReadParams(t.Context(), at, region); err != nil {
			t.Fatal(err)
		}
		if err := m.prog.Map.Unpack(i, region, narrow); err != nil {
			t.Fatal(err)
		}
		for _, x := range narrow {
			out[m.prog.Map.Node(i)] = append(out[m.prog.Map.Node(i)], float64(x))
		}
	}
	return out
}

// objective is the mean of log p(class, x) - share·log p(x), by the reference.
func objective(t *testing.T, g *circuit.Graph, p reference.Params, rows [][]float64, class int, share float64) float64 {
	t.Helper()
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, row := range hidden(rows, class) {
		with, err := ev.LogLikelihood(rows[i])
		if err != nil {
			t.Fatal(err)
		}
		without, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		sum += with - share*without
	}
	return sum / float64(len(rows))
}

// TestDiscriminativeStep compares a step with one in float64, of every kind of leaf, with missing cells, one and several
// shards, the last one short, and the class in front of, between and behind the other variables.
func TestDiscriminativeStep(t *testing.T) {
	shares := []float64{1, 0.4, 0.01}
	if testing.Short() {
		shares = shares[:1]
	}
	for i, share := range shares {
		class := []int{9, 0, 4}[i]
		for name, g := range classified(t, class) {
			rows := clustered(g, 3, 47, 0.1)
			m := newModel(t, g, rows)
			for _, shard := range []int{47, 20} {
				d := em.Discriminative{Class: class, Share: share}
				lls, got := m.discriminate(t, d, 1, 0.7, shard)
				if want := objective(t, g, m.start, rows, class, share); !(math.Abs(lls[0]-want) <= 1e-5*math.Abs(want)) {
					t.Errorf("%s, share %v: the objective is %v, want %v", name, share, lls[0], want)
				}
				ev, err := reference.New(g, m.start)
				if err != nil {
					t.Fatal(err)
				}
				c := grown(g, m.start, rows, countsOf(t, g, m.start, rows), countsOf(t, g, m.start, hidden(rows, class)), d)
				want := ev.EM(c, reference.Step{Size: 0.7, Pseudocount: 0.5})
				for n := range want {
					for k := range want[n] {
						if !(math.Abs(got[n][k]-want[n][k]) <= 2e-5*(1+math.Abs(want[n][k]))) {
							t.Fatalf("%s, share %v, shards of %d: node %d (%+v), parameter %d is %v, want %v, before it was %v", name, share, shard, n, g.Nodes[n].Leaf, k, got[n][k], want[n][k], m.start[n][k])
						}
					}
				}
			}
		}
	}
}

// TestDiscriminativeTraining raises the objective far above what training without a share comes to, and evaluates rows
// by it.
func TestDiscriminativeTraining(t *testing.T) {
	const class = 9
	for name, g := range classified(t, class) {
		if testing.Short() && !strings.HasPrefix(name, "rat-spn") {
			continue
		}
		if strings.HasPrefix(name, "single") {
			continue // two products of factors do not have what the class depends on
		}
		rows := clustered(g, 5, 200, 0)
		for _, row := range rows { // the class is a parity, which generative training of so few units hardly sees
			row[class] = float64((int(math.Abs(row[1]))+int(math.Abs(row[4])))%2 + 1)
		}
		m := newModel(t, g, rows)
		_, plain := m.discriminate(t, em.Discriminative{Class: class}, 60, 0.5, 64)
		lls, got := m.discriminate(t, em.Discriminative{Class: class, Share: 1}, 60, 0.5, 64)
		before, after := objective(t, g, plain, rows, class, 1), objective(t, g, got, rows, class, 1)
		t.Logf("%s: %.4f without a share, %.4f to %.4f with it", name, before, lls[0], after)
		if !(after > 0.8*before) {
			t.Errorf("%s: log p(class | x) is %v, of generative training %v", name, after, before)
		}
	}
}

// TestDiscriminativeStays: means and spreads stay where rows are, although the classes would be told better from afar.
func TestDiscriminativeStays(t *testing.T) {
	if testing.Short() {
		t.Skip("300 epochs; run without -short")
	}
	const class = 4
	g := classified(t, class)["rat-spn of gaussian"]
	m := newModel(t, g, clustered(g, 5, 100, 0))
	flows := em.NewLocal(m.engine(t, cpu.Options{}, 100), m.table)
	defer flows.Close()
	if err := flows.Discriminate(em.Discriminative{Class: class, Share: 1}); err != nil {
		t.Fatal(err)
	}
	tr, err := em.New(flows, em.Options{Phases: []em.Phase{{Rule: em.MiniBatch, Epochs: 300, BatchRows: 100, StepSize: em.Schedule{{em.Constant, 1, 0.9, 0.9}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, p := range m.params(t, flows) {
		n := &g.Nodes[i]
		if _, ok := n.Leaf.(circuit.Gaussian); !ok {
			continue
		}
		most := 1.0 // the power of two that no number of the column exceeds
		for _, row := range m.rows {
			most = max(most, math.Exp2(math.Ceil(math.Log2(math.Abs(row[n.Var])))))
		}
		for k := 0; k < len(p); k += 2 {
			if square := p[k]*p[k] + p[k+1]*p[k+1]; !(math.Abs(p[k]) <= most*1.001 && square <= most*most*1.001) {
				t.Errorf("node %d: a mean of %v and a deviation of %v, of numbers up to %v", i, p[k], p[k+1], most)
			}
		}
	}
}

// TestDiscriminativeOutside: a unit that expects more of a statistic than any row has moves, too, and one that is far wider than all numbers
// becomes narrower.
func TestDiscriminativeOutside(t *testing.T) {
	const class = 1
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Gaussian{MinSigma: 1e-12}},
		{Kind: circuit.Input, Units: 2, Var: class, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	for _, unit := range []float64{1, 1e-7} {
		var rows [][]float64
		for i := range 64 {
			rows = append(rows, []float64{unit * float64(i%2), float64(i % 2)}) // the other class than that of the nearest unit
		}
		m := newModel(t, g, rows)
		copy(m.start[0], []float64{1, 0.5, 0, 0.5}) // squares of 1.25 and 0.25
		copy(m.start[1], []float64{0.8, 0.2, 0.3, 0.7})
		_, got := m.discriminate(t, em.Discriminative{Class: class, Share: 1}, 1, 0.7, 64)
		if mean := got[0][0]; !(mean < 0.999) {
			t.Errorf("numbers up to %v: the mean of a unit goes from 1 to %v", unit, mean)
		}
		if mean := got[0][0]; unit < 1 && !(mean > 0.3 && mean < 0.36) { // 0.3 of it, and what the pseudocount has
			t.Errorf("numbers up to %v: the mean of a unit goes from 1 to %v", unit, mean)
		}
		if sd := got[0][3]; unit < 1 && !(sd > 0.2 && sd < 0.4) {
			t.Errorf("numbers up to %v: the deviation of a unit goes from 0.5 to %v", unit, sd)
		}
	}
}

// TestDiscriminativeLittle: a step with next to no share is one of EM, also of units that are far wider than their rows.
func TestDiscriminativeLittle(t *testing.T) {
	const class = 1
	for _, leaf := range []circuit.Leaf{circuit.Gaussian{MinSigma: 0.01}, circuit.LogNormal{MinSigma: 0.01}, circuit.Poisson{}} {
		g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
			{Kind: circuit.Input, Units: 2, Var: 0, Leaf: leaf},
			{Kind: circuit.Input, Units: 2, Var: class, Leaf: circuit.Categorical{Categories: 2}},
			{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
			{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
		}}
		var rows [][]float64
		for i := range 64 {
			rows = append(rows, []float64{float64(1 + i%2), float64(i % 2)})
		}
		m := newModel(t, g, rows)
		copy(m.start[0], []float64{8, 9, 6, 7})
		if leaf.NumParams() == 1 {
			copy(m.start[0], []float64{8, 9})
		}
		_, want := m.discriminate(t, em.Discriminative{Class: class}, 1, 0.9, 64)
		_, got := m.discriminate(t, em.Discriminative{Class: class, Share: 1e-9}, 1, 0.9, 64)
		for n := range want {
			for k, w := range want[n] {
				if !(math.Abs(got[n][k]-w) <= 1e-5*(1+math.Abs(w))) {
					t.Errorf("%s: node %d, parameter %d is %v, without a share %v, before it was %v", leaf.Name(), n, k, got[n][k], w, m.start[n][k])
				}
			}
		}
	}
}

// TestDiscriminativeRare: a unit that has no more than zeros of its class keeps as much of its rate in a step as EM leaves it. The sum of its
// counts, less those of rows of another class, was below 0, so that a step of any size could end at the least rate of all.
func TestDiscriminativeRare(t *testing.T) {
	const class, size = 1, 0.3
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Poisson{}},
		{Kind: circuit.Input, Units: 2, Var: class, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	var rows [][]float64
	for i := range 64 {
		rows = append(rows, []float64{float64(i % 2), float64(i % 2)})
	}
	m := newModel(t, g, rows)
	copy(m.start[0], []float64{0.01, 0.02})
	copy(m.start[1], []float64{1, circuit.MinProb, circuit.MinProb, 1})
	for _, share := range []float64{0, 0.5, 1} {
		_, got := m.discriminate(t, em.Discriminative{Class: class, Share: share}, 1, size, 64)
		if rate := got[0][0]; !(rate >= 0.01*(1-size) && rate <= 0.01) {
			t.Errorf("share %v: a rate of 0.01 becomes %v", share, rate)
		}
	}
}

// TestDiscriminativeImpossible: rows of a class without a share are impossible, as are those that no class has, and others
// are not. Impossible rows teach nothing.
func TestDiscriminativeImpossible(t *testing.T) {
	const class = 9
	g := classified(t, class)["hclt of categorical"]
	rows := clustered(g, 3, 40, 0)
	rows[0][0], rows[0][class] = 3, math.NaN()
	rows[1][0], rows[1][class] = 0, math.NaN()
	want := 0
	var possible [][]float64
	for _, row := range rows {
		if row[class] == 2 || row[0] == 3 {
			want++
		} else {
			possible = append(possible, row)
		}
	}
	start := func(rows [][]float64) *model {
		m := newModel(t, g, rows)
		m.start[g.Root] = []float64{0.5, 0.5, 0}
		for i := range g.Nodes {
			if n := &g.Nodes[i]; n.Kind == circuit.Input && n.Var == 0 {
				for u := range n.Units {
					copy(m.start[i][4*u:], []float64{0.5, 0.25, 0.25, 0})
				}
			}
		}
		return m
	}
	m := start(rows)
	flows := em.NewLocal(m.engine(t, cpu.Options{}, 40), m.table)
	defer flows.Close()
	if err := flows.Discriminate(em.Discriminative{Class: class, Share: 1}); err != nil {
		t.Fatal(err)
	}
	e, err := flows.LogLikelihood(t.Context(), m.table)
	if err != nil || want == 0 || e.Impossible != want || !math.IsInf(e.Mean(), -1) || e.Highest.LL != 0 {
		t.Errorf("%d impossible rows of mean %v (%v), want %d", e.Impossible, e.Mean(), err, want)
	}
	for _, share := range []float64{0.5, 1} {
		d := em.Discriminative{Class: class, Share: share}
		_, all := m.discriminate(t, d, 3, 0.7, 40)
		_, some := start(possible).discriminate(t, d, 3, 0.7, 40)
		for n := range all {
			for k := range all[n] {
				if !(math.Abs(all[n][k]-some[n][k]) <= 2e-5*(1+math.Abs(some[n][k]))) {
					t.Fatalf("share %v: node %d, parameter %d is %v, and %v without the impossible rows", share, n, k, all[n][k], some[n][k])
				}
			}
		}
	}
}

// TestDiscriminativeRefuses: what cannot be the class, and Anemone.
func TestDiscriminativeRefuses(t *testing.T) {
	const class = 9
	g := classified(t, class)["rat-spn of gaussian"]
	m := newModel(t, g, clustered(g, 3, 10, 0))
	flows := em.NewLocal(m.engine(t, cpu.Options{}, 10), m.table)
	defer flows.Close()
	for _, d := range []em.Discriminative{{0, 1}, {-1, 1}, {10, 1}, {class, -0.1}, {class, 1.1}, {class, math.NaN()}} {
		if err := flows.Discriminate(d); !errors.Is(err, em.ErrOptions) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if err := flows.Discriminate(em.Discriminative{Class: class, Share: 1}); err != nil {
		t.Fatal(err)
	}
	tr, err := em.New(flows, em.Options{Phases: []em.Phase{{Rule: em.Anemone, Epochs: 1, BatchRows: 10, StepSize: em.Schedule{{em.Constant, 1, 0.1, 0.1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); !errors.Is(err, em.ErrOptions) {
		t.Errorf("anemone: %v", err)
	}
	tree, err := structures.GridTree(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	g, err = structures.HCLT(tree, structures.HCLTOptions{Latents: 2, Leaf: func(int) circuit.Leaf { return circuit.DiscretisedLogistic{Domain: 5} }})
	if err != nil {
		t.Fatal(err)
	}
	if err := structures.AddClass(g, 0, 2); err != nil {
		t.Fatal(err)
	}
	m = newModel(t, g, clustered(g, 3, 10, 0))
	logistic := em.NewLocal(m.engine(t, cpu.Options{}, 10), m.table)
	defer logistic.Close()
	if err := logistic.Discriminate(em.Discriminative{Share: 1}); !errors.Is(err, em.ErrOptions) || !strings.Contains(err.Error(), "discretised-logistic") {
		t.Errorf("discretised logistic leaves: %v", err)
	}
}
