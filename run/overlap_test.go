package run_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
)

// spy is an emulator that writes down what its user asks for, and can be made deaf
// to waits for events.
type spy struct {
	*emulator.Emulator
	streams []cuda.Stream
	deaf    int // the stream, from 1 in the order of their making, that does not wait for events
	calls   []call
}

// call is one call of a driver.
type call struct {
	name   string // "graph", "copy in", "end"
	stream int    // 1 or 2
	bytes  int
	done   int // launches of kernels that the card has done
}

func (s *spy) note(name string, on cuda.Stream, bytes int) {
	s.calls = append(s.calls, call{name, 1 + slices.Index(s.streams, on), bytes, len(s.Log())})
}

func (s *spy) NewStream() (cuda.Stream, error) {
	h, err := s.Emulator.NewStream()
	s.streams = append(s.streams, h)
	return h, err
}

func (s *spy) Capture(on cuda.Stream) error {
	s.note("capture", on, 0)
	return s.Emulator.Capture(on)
}

func (s *spy) LaunchGraph(g cuda.Graph, on cuda.Stream) error {
	s.note("graph", on, 0)
	return s.Emulator.LaunchGraph(g, on)
}

func (s *spy) CopyIn(dst cuda.Ptr, src []byte, on cuda.Stream) error {
	s.note("copy in", on, len(src))
	return s.Emulator.CopyIn(dst, src, on)
}

func (s *spy) WaitEvent(on cuda.Stream, e cuda.Event) error {
	if s.deaf > 0 && s.deaf <= len(s.streams) && on == s.streams[s.deaf-1] {
		return nil
	}
	return s.Emulator.WaitEvent(on, e)
}

// pipeline is a small circuit on a spied card, with rows.
type pipeline struct {
	spy   *spy
	dev   *cuda.Device
	model *kerneltest.Model
	batch *dataset.Batch
	table *dataset.Table
}

const pipelineRows = 16 // of a launch

func newPipeline(t *testing.T, o emulator.Options, rows int) *pipeline {
	t.Helper()
	tree, err := structures.GridTree(3, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 4, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }})
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Strict = true
	p := &pipeline{spy: &spy{Emulator: emulator.New(o)}}
	if p.dev, err = executor.Open("emulator", func() (cuda.Driver, error) { return p.spy, nil }); err != nil {
		t.Fatal(err)
	}
	p.model = kerneltest.Build(t, p.dev, g, params, compile.DefaultOptions(), engine.Options{Rows: pipelineRows, Train: true})
	schema := reference.Schema(g)
	p.batch = reference.Batch(schema, reference.RandomRows(g, rand.New(rand.NewPCG(1, 2)), rows, 0.1))
	if p.table, err = dataset.NewTable(schema, rows); err != nil {
		t.Fatal(err)
	}
	if err := p.table.Append(p.batch); err != nil {
		t.Fatal(err)
	}
	return p
}

// train does the first steps of an epoch, of one shard each, and returns the
// log-likelihood of each and the parameters.
func (p *pipeline) train(ctx context.Context, steps int) (lls []float64, params []float32, err error) {
	local := em.NewLocal(p.model.Engine, p.table)
	defer local.Close()
	plan := em.Plan{Schedule: dataset.Schedule{Rows: p.table.Rows(), BatchRows: pipelineRows, Seed: 3}, ShardRows: pipelineRows, Epochs: 1}
	if err := local.Begin(ctx, plan); err != nil {
		return nil, nil, err
	}
	for i := range steps {
		r, err := local.Step(ctx, tensor.Rule{Step: 0.5 / float64(1+i), Pseudocount: 0.1})
		if err != nil {
			return lls, nil, err
		}
		lls = append(lls, r.LogLikelihood)
	}
	params = make([]float32, local.Program().NumParams)
	return lls, params, local.ReadParams(ctx, 0, params)
}

// TestCopiesOverlapSteps wants the rows of a step to be copied, on a stream of their
// own, after the step before was launched and before anybody waits for it.
func TestCopiesOverlapSteps(t *testing.T) {
	const steps = 5
	p := newPipeline(t, emulator.Options{}, steps*pipelineRows)
	defer p.dev.Close()
	p.spy.calls = nil
	if _, _, err := p.train(t.Context(), steps); err != nil {
		t.Fatal(err)
	}
	cells := 2 * pipelineRows * len(p.model.Result.Program.Columns)
	p.spy.note("end", 0, 0)
	checkOverlap(t, p.spy.calls, steps, cells)

	// After part of an epoch rows are loaded that evaluation has no use for.
	for _, before := range []int{0, 2} {
		if _, _, err := p.train(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		p.spy.calls = nil
		if _, err := em.Evaluate(t.Context(), p.model.Engine, p.table); err != nil {
			t.Fatal(err)
		}
		p.spy.note("end", 0, 0)
		checkOverlap(t, p.spy.calls, steps, cells)
	}
}

// checkOverlap reads what a driver was asked for: when rows are copied, the kernels
// of the last graph must be yet to run.
func checkOverlap(t *testing.T, calls []call, steps, cells int) {
	t.Helper()
	first, last := calls[0].done, calls[len(calls)-1].done
	graphs, overlapped, stream := 0, 0, 0
	for _, c := range calls {
		switch {
		case c.name == "graph":
			graphs++
			stream = c.stream
		case c.name == "copy in" && c.bytes == cells && graphs > 0:
			if c.stream == stream {
				t.Errorf("rows are copied on stream %d, which launches graphs", c.stream)
			}
			if c.done <= first+(last-first)*(graphs-1)/steps {
				overlapped++
			}
		}
	}
	if graphs != steps || overlapped != steps-1 {
		t.Errorf("%d graphs were launched and the rows of %d copied meanwhile, want %d and %d: %+v", graphs, overlapped, steps, steps-1, calls)
	}
}

// TestGraphsTakeBothSizes trains epochs whose steps have 15 and 14 rows. A graph is
// recorded once for each of the two places of rows, and each launches both sizes:
// three steps an epoch, so a place meets every step of an epoch in turn. All steps
// must give the bits that they give on a card of their own, whose graph has met no
// other size.
func TestGraphsTakeBothSizes(t *testing.T) {
	const rows, epochs, steps = 3*pipelineRows - 4, 4, 3
	ctx := t.Context()
	plan := em.Plan{Schedule: dataset.Schedule{Rows: rows, BatchRows: pipelineRows, Seed: 3}, ShardRows: pipelineRows, Epochs: epochs}
	begin := func(p *pipeline, at dataset.Cursor) *em.Local {
		local := em.NewLocal(p.model.Engine, p.table)
		from := plan
		from.Start = at
		if err := local.Begin(ctx, from); err != nil {
			t.Fatal(err)
		}
		return local
	}
	// step does the next step of local and returns the parameters after it.
	step := func(local *em.Local, n, want int) (float64, []float32) {
		r, err := local.Step(ctx, tensor.Rule{Step: 0.5 / float64(1+n), Pseudocount: 0.1})
		if err != nil || r.Rows != want {
			t.Fatalf("step %d: %+v, %v; want %d rows", n, r, err, want)
		}
		params := make([]float32, local.Program().NumParams)
		if err := local.ReadParams(ctx, 0, params); err != nil {
			t.Fatal(err)
		}
		return r.LogLikelihood, params
	}
	all := newPipeline(t, emulator.Options{}, rows)
	defer all.dev.Close()
	local := begin(all, dataset.Cursor{})
	defer local.Close()
	before := make([]float32, local.Program().NumParams)
	if err := local.ReadParams(ctx, 0, before); err != nil {
		t.Fatal(err)
	}
	all.spy.calls = nil
	for n := range epochs * steps {
		at := dataset.Cursor{Epoch: n / steps, Step: n % steps}
		size := []int{15, 15, 14}[at.Step]
		one := newPipeline(t, emulator.Options{}, rows)
		alone := begin(one, at)
		if err := alone.WriteParams(ctx, 0, before); err != nil {
			t.Fatal(err)
		}
		wantLL, want := step(alone, n, size)
		alone.Close()
		if err := one.dev.Close(); err != nil {
			t.Fatal(err)
		}
		ll, params := step(local, n, size)
		if ll != wantLL || !slices.Equal(params, want) {
			t.Errorf("step %d of epoch %d, %d rows: log-likelihood %v, alone %v; other parameters: %v", at.Step, at.Epoch, size, ll, wantLL, !slices.Equal(params, want))
		}
		before = params
	}
	captures, graphs := 0, 0
	for _, c := range all.spy.calls {
		switch c.name {
		case "capture":
			captures++
		case "graph":
			graphs++
		}
	}
	if captures != 2 || graphs != epochs*steps {
		t.Errorf("%d graphs were recorded and %d launched, want 2 and %d", captures, graphs, epochs*steps)
	}
}

// overwrite writes a parameter while a step is under way that moves it, and adds the
// step's log-likelihoods and the parameters to a list.
func (p *pipeline) overwrite(ctx context.Context, to []float64) ([]float64, error) {
	e, ll := p.model.Engine, make([]float64, pipelineRows)
	pass, err := e.LoadStep(ctx, p.batch, 0, pipelineRows, ll)
	if err != nil {
		return nil, err
	}
	params := make([]float32, e.Program().NumParams)
	for _, do := range []func() error{
		func() error { return pass.Step(ctx, tensor.Rule{Step: 0.5, Pseudocount: 0.1}) },
		func() error { return e.WriteParams(ctx, 0, []float32{0.25}) },
		func() error { return pass.Wait(ctx) },
		func() error { return e.ReadParams(ctx, 0, params) },
	} {
		if err := do(); err != nil {
			return nil, err
		}
	}
	to = append(to, ll...)
	for _, x := range params {
		to = append(to, float64(x))
	}
	return to, nil
}

// TestMissingWaits takes the waits for events away from one stream after the other, and
// wants that to show: as a race, or in the numbers that are read back.
func TestMissingWaits(t *testing.T) {
	var want []float64
	for deaf, name := range []string{"none", "launches", "copies to the card", "copies from the card"} {
		for seed := range uint64(4) {
			p := newPipeline(t, emulator.Options{Seed: seed}, 4*pipelineRows)
			p.spy.deaf = deaf
			got, _, err := p.train(t.Context(), 4)
			if err == nil {
				got, err = p.overwrite(t.Context(), got)
			}
			switch {
			case deaf == 0 && err != nil:
				t.Fatal(err)
			case deaf == 0 && want == nil:
				want = got
			case deaf == 0 && !slices.Equal(got, want):
				t.Errorf("seed %d: other numbers", seed)
			case deaf > 0 && err == nil && slices.Equal(got, want):
				t.Errorf("seed %d: nothing shows that the stream of %s does not wait", seed, name)
			case err != nil && !strings.Contains(err.Error(), "race between streams"):
				t.Errorf("seed %d, no waits of %s: %v, want a race", seed, name, err)
			}
			if err := p.dev.Close(); deaf == 0 && err != nil {
				t.Error(err)
			}
		}
	}
}

// TestUnderWay asks for more than a card can have under way: updates whose graph is
// the same, passes without end, evaluation between a step and rows that are loaded
// for the next one. It wants the bits of one thing after the other.
func TestUnderWay(t *testing.T) {
	ctx := t.Context()
	const rows = 6*pipelineRows - 5
	var want [][]float64
	for _, waits := range []bool{true, false} {
		for seed := range uint64(4) {
			p := newPipeline(t, emulator.Options{Seed: seed}, rows)
			e := p.model.Engine
			check := func(err error) {
				t.Helper()
				if err == nil && waits {
					err = p.dev.Sync(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var passes []*engine.Pass
			var got [][]float64
			for lo := 0; lo < rows; lo += pipelineRows {
				hi := min(lo+pipelineRows, rows)
				got = append(got, make([]float64, hi-lo))
				pass, err := e.Load(ctx, p.batch, lo, hi, got[len(got)-1])
				check(err)
				passes = append(passes, pass)
			}
			for i, pass := range passes {
				if i%2 == 0 {
					check(pass.Accumulate(ctx))
				} else {
					check(pass.Evaluate(ctx))
				}
			}
			for _, step := range []float64{0.9, 0.1, 0.5} {
				check(e.Apply(ctx, tensor.Rule{Step: step, Pseudocount: 0.2}))
			}
			n := len(e.Program().Owners())
			for _, part := range [][2]int{{0, n / 2}, {n / 2, n}} {
				check(e.WriteParams(ctx, 0, []float32{0.5}))
				check(e.ApplyOwners(ctx, tensor.Rule{Step: 0.3, Pseudocount: 0.1}, part[0], part[1]))
				check(e.ApplyOwners(ctx, tensor.Rule{Step: 0.3, Pseudocount: 0.1}, n-part[1], n-part[0]))
			}
			all := make([]float64, rows)
			check(e.LogLikelihood(ctx, p.batch, all))
			for _, pass := range passes {
				check(pass.Wait(ctx))
			}
			got = append(got, all)
			if want == nil {
				want = got
			}
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Fatalf("seed %d, waits %v: other log-likelihoods in part %d", seed, waits, i)
				}
			}
			if err := p.dev.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestErrorsOfNextRows damages a cell of a batch that is loaded ahead, and wants the
// step before to succeed, and the error at its own step.
func TestErrorsOfNextRows(t *testing.T) {
	p := newPipeline(t, emulator.Options{}, 3*pipelineRows)
	defer p.dev.Close()
	ctx := t.Context()
	local := em.NewLocal(p.model.Engine, &damaged{Source: p.table, at: 2})
	defer local.Close()
	plan := em.Plan{Schedule: dataset.Schedule{Rows: p.table.Rows(), BatchRows: pipelineRows, InOrder: true}, ShardRows: pipelineRows, Epochs: 1}
	if err := local.Begin(ctx, plan); err != nil {
		t.Fatal(err)
	}
	rule := tensor.Rule{Step: 0.5, Pseudocount: 0.1}
	r, err := local.Step(ctx, rule)
	if err != nil || r.Rows != pipelineRows {
		t.Fatalf("the step before: %+v, %v", r, err)
	}
	const says = "row 5, variable 1, both counted from 0: 77 is not a category (want 0..3)"
	if _, err := local.Step(ctx, rule); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %q", err, says)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if err := local.Begin(ctx, plan); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Step(stopped, rule); err != context.Canceled {
		t.Errorf("after the context's end: %v", err)
	}
}

// damaged is a source with a bad cell in one of its batches.
type damaged struct {
	dataset.Source
	at int // batches until then
}

func (d *damaged) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	err := d.Source.Gather(ctx, b, rows)
	if d.at--; d.at == 0 {
		b.Columns[1].Codes.Set(5, 77)
	}
	return err
}
