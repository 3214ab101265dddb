package tensor_test

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
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

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
	rule         tensor.Rule

	dev     kernels.Device
	own     tensor.Program // on the device, without the engine
	buffers [5]kernels.Buffer
	codes   int            // cells in the buffer of codes
	answers kernels.Buffer // posteriors
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

type namedWork struct {
	name string
	run  work
}

// works are what is done with a circuit.
var works = []namedWork{
	{"anemone", func(j *job, ctx context.Context, b *dataset.Batch, out *outcome) error {
		ll, r := make([]float64, b.Rows), j.rule
		weight := 0.0
		for _, part := range [][2]int{{0, b.Rows / 3}, {b.Rows / 3, b.Rows}} {
			if err := j.Engine.Accumulate(ctx, b, part[0], part[1], ll[part[0]:]); err != nil {
				return err
			}
			r.Anemone = &tensor.Anemone{Momentum: 0.75, Rows: part[1] - part[0], Weight: weight}
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
			for r := range c.Codes.Len() {
				out.words = append(out.words, uint64(c.Codes.At(r)))
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
		c.Codes.Narrow, c.Codes.Wide, c.Values = slices.Clone(c.Codes.Narrow), slices.Clone(c.Codes.Wide), slices.Clone(c.Values)
		for r := range b.Rows {
			switch {
			case r%4 != 3 && (7*r+3*v)%5 > 1:
			case c.Discrete():
				c.Codes.Set(r, dataset.Missing)
			default:
				c.Values[r] = float32(math.NaN())
			}
		}
	}
	return &out
}

// evaluate loads the circuit as a module without the engine, once, and evaluates rows
// there. What the program's calls take is in the buffers then: parameters, codes,
// values, log-likelihoods and visits.
func (j *job) evaluate(ctx context.Context, b *dataset.Batch, m layers.Module) error {
	p := j.Result.Program
	if j.own == nil {
		var err error
		m.Program, m.Rows = p, b.Rows
		if j.own, err = kernels.LoadAs[tensor.Program](ctx, j.dev, m); err != nil {
			return err
		}
	}
	codes, values := []uint16{}, []float32{}
	for _, c := range p.Columns {
		for _, code := range b.Columns[c.Var].Codes.Narrow {
			codes = append(codes, min(code, uint16(c.Codes))) // the largest number is a missing cell
		}
		values = append(values, b.Columns[c.Var].Values...)
	}
	j.codes = len(codes)
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
	return j.own.Forward(ctx, b.Rows, &tensor.ForwardArgs{Params: bufs[0], Codes: bufs[1], Values: bufs[2], LL: bufs[3]})
}

// visits evaluates rows, looks at every vector and counts the visits of the rows,
// by the device's own kernels: an engine does so for one row without evidence.
func (j *job) visits(ctx context.Context, b *dataset.Batch, out *outcome) error {
	if err := j.evaluate(ctx, b, layers.Module{Train: true}); err != nil {
		return err
	}
	p, bufs, visits := j.Result.Program, &j.buffers, make([]float32, j.Result.Program.VisitLen())
	for v := range p.Vectors {
		log := make([]float64, b.Rows*int(p.Vectors[v].Units))
		if err := j.own.Inspect(ctx, b.Rows, &tensor.InspectArgs{Params: bufs[0], Codes: bufs[1], Values: bufs[2], Vector: v, Log: log}); err != nil {
			return err
		}
		add(out, log)
	}
	if err := j.own.Backward(ctx, b.Rows, &tensor.BackwardArgs{Params: bufs[0], Codes: bufs[1], Values: bufs[2], Visits: bufs[4]}); err != nil {
		return err
	}
	err := j.dev.Read(ctx, visits, bufs[4], 0)
	add(out, visits)
	return err
}

// queryWorks are what is asked of a circuit.
var queryWorks = []namedWork{
	{"posteriors", (*job).askPosteriors},
	{"maxima", (*job).askMaxima},
}

// askPosteriors computes the posteriors of two columns of three, the last one first, from
// rows with missing cells.
func (j *job) askPosteriors(ctx context.Context, b *dataset.Batch, out *outcome) error {
	b = holes(b)
	if err := j.evaluate(ctx, b, layers.Module{Queries: true}); err != nil {
		return err
	}
	p, bufs := j.Result.Program, &j.buffers
	var of []int32
	for c := int32(len(p.Columns)) - 1; c >= 0; c-- {
		if c%3 != 1 {
			of = append(of, c)
		}
	}
	offsets, err := p.PosteriorOffsets(of)
	if err != nil {
		return err
	}
	posteriors := make([]float32, b.Rows*offsets[len(of)])
	if j.answers == nil {
		if j.answers, err = j.dev.Alloc(ctx, kernels.Float32, len(posteriors)); err != nil {
			return err
		}
	}
	if err := j.own.Posteriors(ctx, b.Rows, &tensor.PosteriorsArgs{Params: bufs[0], Codes: bufs[1], Values: bufs[2], Of: of, Out: j.answers}); err != nil {
		return err
	}
	if err := j.dev.Read(ctx, posteriors, j.answers, 0); err != nil {
		return err
	}
	add(out, posteriors)
	return j.dev.Sync(ctx) // there may be nothing to read
}

// askMaxima fills missing cells by maxima, for functions by modes that grow with their
// units.
func (j *job) askMaxima(ctx context.Context, b *dataset.Batch, out *outcome) error {
	b = holes(b)
	if err := j.evaluate(ctx, b, layers.Module{Queries: true}); err != nil {
		return err
	}
	p, bufs, units := j.Result.Program, &j.buffers, 0
	for _, f := range p.Functions() {
		units += int(p.Vectors[p.Inputs[f].Vector].Units)
	}
	args := tensor.MaximiseArgs{
		Params: bufs[0], Codes: bufs[1], Values: bufs[2], Modes: make([]float64, units),
		Log: make([]float64, b.Rows), Bound: make([]float64, b.Rows), Units: make([]int32, b.Rows*len(p.Functions())),
	}
	for i := range args.Modes {
		args.Modes[i] = -1 - float64(i)/8
	}
	if err := j.own.Maximise(ctx, b.Rows, &args); err != nil {
		return err
	}
	add(out, args.Log)
	add(out, args.Bound)
	for _, u := range args.Units {
		out.words = append(out.words, uint64(u))
	}
	codes := make([]uint16, j.codes)
	if err := j.dev.Read(ctx, codes, bufs[1], 0); err != nil {
		return err
	}
	for _, c := range codes {
		out.words = append(out.words, uint64(c))
	}
	return nil
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
	j := &job{rule: tensor.Rule{Step: 0.7, Pseudocount: 0.05}, dev: dev}
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
