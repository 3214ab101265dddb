package cuda_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// sketch builds a circuit by hand.
type sketch struct {
	circuit.Graph
	units int
}

func (s *sketch) add(n circuit.Node) circuit.NodeID {
	if n.Units == 0 {
		n.Units = s.units
	}
	n.TiedTo = circuit.None
	s.Nodes = append(s.Nodes, n)
	s.Root = circuit.NodeID(len(s.Nodes) - 1)
	return s.Root
}

// input adds leaves of a new variable.
func (s *sketch) input(l circuit.Leaf) circuit.NodeID {
	s.NumVars++
	return s.add(circuit.Node{Kind: circuit.Input, Var: s.NumVars - 1, Leaf: l})
}

func (s *sketch) product(children ...circuit.NodeID) circuit.NodeID {
	return s.add(circuit.Node{Kind: circuit.Product, Children: children})
}

func (s *sketch) sum(children ...circuit.NodeID) circuit.NodeID {
	return s.add(circuit.Node{Kind: circuit.Sum, Children: children})
}

// root adds a sum of one unit.
func (s *sketch) root(children ...circuit.NodeID) *circuit.Graph {
	s.add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: children})
	return &s.Graph
}

// leaves is a circuit with leaves of every family, with tables of any size and
// without, each with others that share their parameters.
func leaves(units int) *circuit.Graph {
	s := &sketch{units: units}
	first := s.input(circuit.Indicator{Domain: 3, Value: 1})
	second := s.add(circuit.Node{Kind: circuit.Input, Var: 0, Leaf: circuit.Categorical{Categories: 3}})
	var list []circuit.NodeID
	bins := []int{0, 2, 3, 4, 8, 12, 13, 20, 21, 30}
	for _, l := range []circuit.Leaf{
		circuit.Categorical{Categories: 41}, circuit.Binomial{Trials: 42}, circuit.Histogram{Edges: append(bins, 43)},
		circuit.DiscretisedLogistic{Domain: 44}, circuit.Gaussian{MinSigma: 0.125}, circuit.Poisson{},
		circuit.Categorical{Categories: 270}, circuit.DiscretisedLogistic{Domain: 271},
		circuit.Histogram{Edges: append(bins, 270)}, circuit.Binomial{Trials: 270},
	} {
		at, twin := s.input(l), s.input(l)
		s.Nodes[twin].TiedTo = at
		list = append(list, s.product(at, twin))
	}
	all := []circuit.NodeID{list[0], list[9]}
	for i := 1; i < 9; i += 2 {
		all = append(all, s.sum(s.product(list[i], list[i+1])))
	}
	return s.root(s.product(append(all, first)...), s.product(append(all, second)...))
}

// vocabulary is a circuit with a table so large that several blocks of threads share
// its counts, and with a leaf that shares it.
func vocabulary() *circuit.Graph {
	s := &sketch{units: 3}
	at := s.input(circuit.Categorical{Categories: tensor.PartedCodes + 7})
	twin := s.input(circuit.Categorical{Categories: tensor.PartedCodes + 7})
	s.Nodes[twin].TiedTo = at
	return s.root(s.product(at, s.sum(twin)))
}

// halves is a circuit of two halves that share their parameters: with a stored
// product, sums of several elements and of some blocks, weights that a mask
// leaves out, vectors with several users, and products of many factors.
func halves(units int) *circuit.Graph {
	s := &sketch{units: units}
	side := units / 3 // of blocks
	edges := &circuit.Edges{Rows: side, Cols: side}
	for r := range int32(3) {
		for c := range r + 1 {
			edges.Pairs = append(edges.Pairs, [2]int32{r, c})
		}
	}
	weights := len(edges.Pairs) * side * side
	edges.Mask = make([]uint64, (weights+63)/64)
	for i := range weights {
		if i%3 != 1 {
			edges.Mask[i/64] |= 1 << (i % 64)
		}
	}
	half := func() (dense, sparse circuit.NodeID) {
		var five []circuit.NodeID
		for range 5 {
			five = append(five, s.input(circuit.Categorical{Categories: 3}))
		}
		stored := s.product(five...)
		a, b := s.sum(stored), s.sum(stored)
		s.Nodes[b].Edges = edges
		x, y, z := s.input(circuit.Gaussian{}), s.input(circuit.Categorical{Categories: 5}), s.input(circuit.Categorical{Categories: 2})
		first, second := s.product(a, x, y, z), s.product(s.product(b, x), s.sum(s.product(y, z)))
		dense, sparse = s.sum(first, second), s.sum(first)
		s.Nodes[sparse].Edges = edges
		return dense, sparse
	}
	a, b := half()
	n := circuit.NodeID(len(s.Nodes))
	c, d := half()
	for i := n; i < 2*n; i++ {
		if s.Nodes[i].Kind != circuit.Product {
			s.Nodes[i].TiedTo = i - n
		}
	}
	return s.root(s.product(a, c), s.product(b, d), s.product(a, d))
}

// elements is a circuit of products of one to five factors, tabulated leaves and
// other vectors in every place, some of them stored. A sum of outputs units has all.
func elements(units, outputs int) *circuit.Graph {
	s := &sketch{units: units}
	var leaf, vector []circuit.NodeID
	for v := range 5 {
		leaf = append(leaf, s.input(circuit.Categorical{Categories: 3}))
		vector = append(vector, s.sum(leaf[v]))
	}
	// pick takes the leaf of a variable for a 0 and the sum for a 1.
	pick := func(from int, kinds ...int) (list []circuit.NodeID) {
		for i, k := range kinds {
			list = append(list, [2]circuit.NodeID{leaf[from+i], vector[from+i]}[k])
		}
		return list
	}
	five := func(kinds ...int) circuit.NodeID { return s.product(pick(0, kinds...)...) }
	two := s.sum(s.product(pick(1, 1, 0)...), s.product(pick(1, 0, 1)...))
	last := s.sum(s.product(pick(3, 0, 0)...), s.product(pick(3, 1, 1)...))
	four := s.sum(s.product(two, last), s.product(pick(1, 0, 1, 0, 1)...), s.product(pick(1, 1, 0, 1, 0)...))
	stored := []circuit.NodeID{five(0, 1, 0, 1, 0), five(1, 0, 1, 0, 1)}
	all := []circuit.NodeID{
		s.sum(stored...), s.product(leaf[0], four), s.product(four, leaf[0]), s.product(vector[0], four),
		s.product(leaf[0], two, last), s.product(two, leaf[0], last), s.product(two, last, leaf[0]), s.product(two, vector[0], last),
		s.product(leaf[0], leaf[1], s.sum(s.product(leaf[2], last))),
		s.product(vector[0], two, leaf[3], vector[4]), s.product(leaf[0], two, vector[3], leaf[4]),
		five(0, 0, 0, 0, 0), five(1, 1, 1, 1, 1), five(0, 1, 1, 0, 1), five(1, 0, 0, 1, 0),
	}
	other := s.sum(stored...)
	s.units = outputs
	return s.root(s.sum(all...), other)
}

// sharp leaves are far apart in a harsh circuit.
var sharp = circuit.Gaussian{MinSigma: 1e-4}

// wide is a circuit with more columns, and more units, than a block of threads does
// at once; tall has many units of few columns.
func wide() *circuit.Graph { return layer(260, 70) }
func tall() *circuit.Graph { return layer(40, 260) }

// broad has more columns than stay in shared memory.
func broad() *circuit.Graph { return layer(520, 70) }

func layer(columns, units int) *circuit.Graph {
	s := &sketch{units: columns}
	both := s.product(s.input(circuit.Categorical{Categories: 3}), s.input(sharp))
	s.units = units
	return s.root(s.sum(both))
}

// many is a circuit with more sums in a level, and more factors in a product, than
// a block of threads looks at once.
func many() *circuit.Graph {
	s := &sketch{units: 2}
	var all []circuit.NodeID
	for range 260 {
		all = append(all, s.sum(s.input(circuit.Categorical{Categories: 2})))
	}
	return s.root(s.product(all...))
}

// band is a circuit of a sum whose blocks each read two of their own: with more groups
// than a warp looks at once.
func band(block int) *circuit.Graph {
	const blocks = 40
	s := &sketch{units: blocks * block}
	edges := &circuit.Edges{Rows: block, Cols: block}
	for r := range int32(blocks) {
		edges.Pairs = append(edges.Pairs, [2]int32{r, min(r, blocks-2)}, [2]int32{r, min(r, blocks-2) + 1})
	}
	both := s.sum(s.input(circuit.Categorical{Categories: 3}))
	s.Nodes[both].Edges = edges
	return s.root(s.product(both, s.input(circuit.Categorical{Categories: 3})))
}

// notched is a circuit of a sum of products of five factors whose four row blocks read
// four column blocks, and one of their own: nobody forms its products for all of them.
func notched(block int) *circuit.Graph {
	s := &sketch{units: 8 * block}
	var five []circuit.NodeID
	for i := range 5 {
		five = append(five, s.input(circuit.Categorical{Categories: 2 + i}))
	}
	both := s.product(five...)
	s.units = 4 * block
	at := s.sum(both)
	s.Nodes[at].Edges = &circuit.Edges{Rows: block, Cols: block}
	for r := range int32(4) {
		s.Nodes[at].Edges.Pairs = append(s.Nodes[at].Edges.Pairs, [2]int32{r, 0}, [2]int32{r, 1}, [2]int32{r, 2}, [2]int32{r, 3}, [2]int32{r, 4 + r})
	}
	return s.root(at)
}

// far is a circuit of two halves, each with two units that are too small beside the
// other two even for float64.
func far() *circuit.Graph {
	s := &sketch{units: 4}
	half := func() circuit.NodeID {
		var list []circuit.NodeID
		for range farLeaves {
			list = append(list, s.input(distant))
		}
		list = append(list, s.input(circuit.Categorical{Categories: 3})) // tells like units apart
		at := s.sum(s.product(list...))
		s.Nodes[at].Edges = &circuit.Edges{Rows: 2, Cols: 2, Pairs: [][2]int32{{0, 0}, {1, 1}}}
		return at
	}
	return s.root(s.product(half(), half()))
}

// distant leaves are those of far, of which each half has farLeaves.
var distant = circuit.Categorical{Categories: 6}

const farLeaves = 24

// top is a circuit whose root is a leaf, or a product: of tabulated leaves for a 0,
// of sums for a 1, of other leaves for a 2.
func top(kinds ...int) *circuit.Graph {
	s := &sketch{units: 1}
	var list []circuit.NodeID
	for _, k := range kinds {
		at := s.input(circuit.Categorical{Categories: 3})
		switch k {
		case 1:
			at = s.sum(at)
		case 2:
			s.Nodes[at].Leaf = circuit.Gaussian{}
		}
		list = append(list, at)
	}
	if len(list) > 1 {
		s.product(list...)
	}
	return &s.Graph
}

// trio is a circuit of three variables.
func trio(units int) *circuit.Graph {
	s := &sketch{units: units}
	x, y, z := s.input(circuit.Categorical{Categories: 3}), s.input(circuit.Gaussian{}), s.input(circuit.Poisson{})
	return s.root(s.product(x, s.sum(y), z), s.product(s.sum(x), y, z))
}

// harsh makes parameters with which float32 cannot hold the values of a row side by
// side, unless all codes are 0 or missing.
func harsh(g *circuit.Graph, p reference.Params, rng *rand.Rand) {
	for id := range p {
		n := &g.Nodes[id]
		leaf, categorical := n.Leaf.(circuit.Categorical)
		if n.Leaf == circuit.Leaf(sharp) {
			for u := range n.Units {
				p[id][2*u], p[id][2*u+1] = 6*rng.Float64()-3, 0.0005
			}
		}
		if n.Leaf == circuit.Leaf(distant) {
			for i := range p[id] {
				unit, k := i/6, i%6
				small := (unit/2+n.Var/(farLeaves+1))%2 == 1
				switch p[id][i] = float64(k+1) / 15; {
				case small && k < 5:
					p[id][i] *= 1e-29
				case small:
					p[id][i] = 1
				case k == 5:
					p[id][i] = 0
				}
			}
			continue
		}
		if g.Nodes[0].Leaf == circuit.Leaf(distant) { // whose weights are ordinary
			continue
		}
		if p[id] == nil || n.Kind == circuit.Input && !categorical {
			continue
		}
		each, one := len(p[id])/n.Units, 0
		for i := range p[id] {
			unit, k := i/each, i%each
			if one = unit % each; n.Kind == circuit.Input {
				each, one = leaf.Categories, (unit+n.Var)%leaf.Categories
			}
			switch {
			case n.Kind == circuit.Sum && each >= 260: // a unit or so without the column that counts
				if rng.IntN(50) == 0 {
					p[id][i] = 0
				}
			case n.Kind == circuit.Input && k == one:
				p[id][i] = math.Pow(10, -8*rng.Float64())
			case k == one && n.Units < 200 || n.Kind == circuit.Input && k == 0:
				p[id][i] = 1
			case rng.IntN(4) == 0:
				p[id][i] = 0
			default:
				p[id][i] = math.Pow(10, -15-23*rng.Float64())
			}
		}
	}
}

// job is a circuit on a device, with rows to work on and rows that its memory
// held before.
type job struct {
	*kerneltest.Model
	batch, other *dataset.Batch
	rule         kernels.Rule

	dev     kernels.Device
	own     map[string]kernels.Kernel // of the device, without the engine
	buffers [5]kernels.Buffer
}

// outcome is all that is read back of a job, in bits.
type outcome struct{ words []uint64 }

// add adds numbers.
func add[T float32 | float64 | int64](o *outcome, s []T) {
	for _, x := range s {
		switch x := any(x).(type) {
		case float32:
			o.words = append(o.words, uint64(math.Float32bits(x)))
		case float64:
			o.words = append(o.words, math.Float64bits(x))
		case int64:
			o.words = append(o.words, uint64(x))
		}
	}
}

// params adds the parameters.
func (o *outcome) params(ctx context.Context, j *job) error {
	p := make([]float32, j.Result.Program.NumParams)
	err := j.Engine.ReadParams(ctx, 0, p)
	add(o, p)
	return err
}

// flows adds the flows.
func (o *outcome) flows(ctx context.Context, j *job) error {
	f := make([]int64, j.Result.Program.FlowLen())
	err := j.Engine.ReadFlows(ctx, 0, f)
	add(o, f)
	return err
}

// work is one thing to do with a circuit.
type work func(j *job, ctx context.Context, b *dataset.Batch, out *outcome) error

// works are what is done with a circuit.
var works = []struct {
	name string
	run  work
}{
	{"anemone", func(j *job, ctx context.Context, b *dataset.Batch, out *outcome) error {
		ll, r := make([]float64, b.Rows), j.rule
		weight := 0.0
		for _, part := range [][2]int{{0, b.Rows / 3}, {b.Rows / 3, b.Rows}} {
			if err := j.Engine.Accumulate(ctx, b, part[0], part[1], ll[part[0]:]); err != nil {
				return err
			}
			r.Anemone = &kernels.Anemone{Momentum: 0.75, Rows: part[1] - part[0], Weight: weight}
			if err := j.Engine.Apply(ctx, r); err != nil {
				return err
			}
			weight = r.Anemone.Next()
		}
		averages := make([]float32, j.Result.Program.AverageLen())
		if err := j.Engine.ReadAverages(ctx, 0, averages); err != nil {
			return err
		}
		add(out, averages)
		if err := out.flows(ctx, j); err != nil {
			return err
		}
		return out.params(ctx, j)
	}},
	{"step", func(j *job, ctx context.Context, b *dataset.Batch, out *outcome) error {
		ll := make([]float64, b.Rows)
		if err := j.Engine.Step(ctx, b, 0, b.Rows, j.rule, ll); err != nil {
			return err
		}
		add(out, ll)
		return out.params(ctx, j)
	}},
	{"shards", func(j *job, ctx context.Context, b *dataset.Batch, out *outcome) error {
		if err := shards(ctx, j, b, out); err != nil {
			return err
		}
		if err := j.Engine.Apply(ctx, j.rule); err != nil {
			return err
		}
		if err := out.flows(ctx, j); err != nil {
			return err
		}
		return out.params(ctx, j)
	}},
	{"visits", (*job).visits},
	{"sample", func(j *job, ctx context.Context, b *dataset.Batch, out *outcome) error {
		given := holes(b)
		if err := j.Engine.Sample(ctx, given, 5, 7); err != nil {
			return err
		}
		for _, c := range given.Columns {
			for _, code := range c.Codes {
				out.words = append(out.words, uint64(code))
			}
			add(out, c.Values)
		}
		return nil
	}},
}

// holes returns a copy of a batch with two cells of five missing, and all of every
// fourth row.
func holes(b *dataset.Batch) *dataset.Batch {
	out := *b
	out.Columns = slices.Clone(b.Columns)
	for v := range out.Columns {
		c := &out.Columns[v]
		c.Codes, c.Values = slices.Clone(c.Codes), slices.Clone(c.Values)
		for r := range b.Rows {
			switch {
			case r%4 != 3 && (7*r+3*v)%5 > 1:
			case c.Codes != nil:
				c.Codes[r] = dataset.Missing
			default:
				c.Values[r] = float32(math.NaN())
			}
		}
	}
	return &out
}

// visits evaluates rows, looks at every vector and counts the visits of the rows,
// by the device's own kernels: an engine does so for one row without evidence.
func (j *job) visits(ctx context.Context, b *dataset.Batch, out *outcome) error {
	p := j.Result.Program
	if j.own == nil {
		var err error
		if j.own, err = j.dev.Load(ctx, layers.Module{Program: p, Rows: b.Rows, Train: true}); err != nil {
			return err
		}
	}
	codes, values := []uint16{}, []float32{}
	for _, c := range p.Columns {
		for _, code := range b.Columns[c.Var].Codes {
			if code == dataset.Missing {
				code = uint16(c.Codes)
			}
			codes = append(codes, code)
		}
		values = append(values, b.Columns[c.Var].Values...)
	}
	params := make([]float32, p.NumParams)
	if err := j.Engine.ReadParams(ctx, 0, params); err != nil {
		return err
	}
	ll, visits := make([]float64, b.Rows), make([]float32, p.VisitLen())
	for i, s := range []any{params, codes, values, ll, visits} {
		if j.buffers[i] == nil {
			n, t := reflect.ValueOf(s).Len(), []kernels.DType{kernels.Float32, kernels.Uint16, kernels.Float32, kernels.Float64, kernels.Float32}[i]
			var err error
			if j.buffers[i], err = j.dev.Alloc(ctx, t, n); err != nil {
				return err
			}
		}
		if err := j.dev.Write(ctx, j.buffers[i], 0, s); err != nil {
			return err
		}
	}
	bufs := &j.buffers
	if err := j.dev.Launch(ctx, j.own[kernels.Forward], b.Rows, &kernels.ForwardArgs{Params: bufs[0], Codes: bufs[1], Values: bufs[2], LL: bufs[3]}); err != nil {
		return err
	}
	for v := range p.Vectors {
		log := make([]float64, b.Rows*int(p.Vectors[v].Units))
		if err := j.dev.Launch(ctx, j.own[kernels.Inspect], b.Rows, &kernels.InspectArgs{Params: bufs[0], Codes: bufs[1], Values: bufs[2], Vector: v, Log: log}); err != nil {
			return err
		}
		add(out, log)
	}
	if err := j.dev.Launch(ctx, j.own[kernels.Backward], b.Rows, &kernels.BackwardArgs{Params: bufs[0], Codes: bufs[1], Values: bufs[2], Visits: bufs[4]}); err != nil {
		return err
	}
	err := j.dev.Read(ctx, visits, bufs[4], 0)
	add(out, visits)
	return err
}

// shards adds flows up in two parts.
func shards(ctx context.Context, j *job, b *dataset.Batch, out *outcome) error {
	ll := make([]float64, b.Rows)
	cut := b.Rows / 3
	if err := j.Engine.Accumulate(ctx, b, cut, b.Rows, ll[cut:]); err != nil {
		return err
	}
	if err := j.Engine.Accumulate(ctx, b, 0, cut, ll); err != nil {
		return err
	}
	add(out, ll)
	return out.flows(ctx, j)
}

// subject is a circuit of the workload that is yet to be built.
type subject struct {
	name  string
	graph func() *circuit.Graph
	harsh bool
	rows  int
}

// subjects lists the circuits for blocks of a size, small ones first.
func subjects(block int) (list []subject) {
	units := map[int]int{1: 3, 8: 12, 32: 42}[block]
	parts, outputs := units, units
	if block == 32 { // room for all operands in shared memory
		parts, outputs = 30, 70
	}
	for _, kinds := range [][]int{{0}, {2}, {0, 0}, {1, 1}, {0, 1, 0}, {1, 0, 1}, {0, 1, 0, 1, 1}} {
		list = append(list, subject{fmt.Sprint("top", kinds), func() *circuit.Graph { return top(kinds...) }, true, 70})
	}
	return append(list,
		subject{"leaves", func() *circuit.Graph { return leaves(units) }, false, 70},
		subject{"vocabulary", vocabulary, false, 150},
		subject{"halves", func() *circuit.Graph { return halves(units) }, false, 70},
		subject{"harsh halves", func() *circuit.Graph { return halves(units) }, true, 15},
		subject{"wide", wide, false, 70},
		subject{"elements", func() *circuit.Graph { return elements(parts, outputs) }, false, 70},
		subject{"harsh tall", tall, true, 40},
		subject{"harsh wide", wide, true, 40},
		subject{"harsh elements", func() *circuit.Graph { return elements(parts, outputs) }, true, 40},
		subject{"many", many, false, 15},
		subject{"harsh far", far, true, 70},
		subject{"band", func() *circuit.Graph { return band(block) }, false, 15},
		subject{"many rows", func() *circuit.Graph { return trio(units) }, true, 600},
		subject{"harsh notched", func() *circuit.Graph { return notched(block) }, true, 40},
	)
}

// wideSubjects lists the circuits for the kernels on wide tiles, in blocks of 32, small
// ones first.
func wideSubjects() []subject {
	return []subject{
		{"wide", wide, false, 70},
		{"halves", func() *circuit.Graph { return halves(135) }, false, 20},
		{"harsh halves", func() *circuit.Graph { return halves(135) }, true, 15},
		{"harsh wide", wide, true, 40},
		{"elements", func() *circuit.Graph { return elements(70, 70) }, false, 70},
		{"harsh elements", func() *circuit.Graph { return elements(70, 70) }, true, 40},
		{"harsh broad", broad, true, 400},
		{"many rows", func() *circuit.Graph { return trio(70) }, true, 300},
		{"harsh notched", func() *circuit.Graph { return notched(32) }, true, 40},
	}
}

// build makes the circuit on a device, with blocks of a size.
func (p *subject) build(t *testing.T, dev kernels.Device, block int) *job {
	t.Helper()
	g, rng := p.graph(), rand.New(rand.NewPCG(31, 32))
	params, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{rule: kernels.Rule{Step: 0.7, Pseudocount: 0.05}, dev: dev}
	if p.harsh {
		harsh(g, params, rng)
		j.rule.Pseudocount = 0
	}
	for _, to := range []**dataset.Batch{&j.batch, &j.other} {
		list := reference.RandomRows(g, rng, p.rows, 0.1)
		for r := range list {
			if p.harsh && r%3 == 0 {
				clear(list[r])
			}
		}
		*to = reference.Batch(reference.Schema(g), list)
	}
	co := compile.DefaultOptions()
	co.BlockSize = block
	j.Model = kerneltest.Build(t, dev, g, params, co, engine.Options{Rows: p.rows, Train: true})
	return j
}
