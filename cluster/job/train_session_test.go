package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

// pair is a FlowSource over two sessions, as simple as can be: each does every
// other shard, both get all flows, each moves a part of the owners, and then both
// get each other's part.
type pair struct {
	t        *testing.T
	prog     *layers.Program
	sessions [2]cluster.Session
	names    map[dataset.Source]string
	rows     int
	plan     em.Plan
	at       dataset.Cursor
	prepare  bool
}

func (p *pair) Program() *layers.Program { return p.prog }
func (p *pair) Rows() int                { return p.rows }
func (p *pair) Device() string           { return p.sessions[0].Info().Device }
func (p *pair) Kernels() kernels.Info {
	i := p.sessions[0].Info()
	return kernels.Info{Name: i.Device, KernelPath: i.Path}
}
func (p *pair) PrecisionUsed() string { return p.sessions[0].Info().Precision }
func (p *pair) Recomputed() int64     { return 0 }
func (p *pair) Lost(error) bool       { return false }
func (p *pair) Close() error          { return errors.Join(p.sessions[0].Close(), p.sessions[1].Close()) }

func (p *pair) Begin(_ context.Context, plan em.Plan) error {
	p.plan, p.at = plan, plan.Start
	return nil
}

func (p *pair) Step(ctx context.Context, rule tensor.Rule) (res em.StepResult, err error) {
	step := cluster.Step{Schedule: p.plan.Schedule, At: p.at}
	shards := dataset.Shards(p.plan.StepRows(p.at.Step), p.plan.ShardRows)
	results := make([]em.StepResult, len(shards))
	for i := range slices.Backward(shards) { // in another order than one engine takes
		if p.prepare && i > 1 {
			p.sessions[i%2].Prepare(step, shards[i-2])
		}
		if results[i], err = p.sessions[i%2].Accumulate(ctx, step, shards[i]); err != nil {
			return res, err
		}
	}
	for _, r := range results {
		res.LogLikelihood += r.LogLikelihood
		res.Rows += r.Rows
		res.Impossible += r.Impossible
	}
	if rule.Anemone != nil {
		a := *rule.Anemone
		a.Rows, a.Impossible, rule.Anemone = res.Rows, res.Impossible, &a
	}
	l := p.sessions[0].Layout()
	var flows [2][]int64
	for i, s := range p.sessions {
		flows[i] = make([]int64, l.Flows)
		if err := s.ReadFlows(ctx, 0, flows[i]); err != nil {
			return res, err
		}
	}
	for i := range flows[0] {
		flows[0][i] += flows[1][i]
	}
	bounds := []int{0, len(l.Owners) / 3, len(l.Owners)}
	first := p.at.Step % 2 // who moves the first part: averages change hands
	before, states := make([]float32, l.Params+l.Averages), [2][]float32{}
	for i, s := range p.sessions {
		part := i ^ first
		if err := errors.Join(s.ReadState(ctx, 0, before), s.WriteFlows(ctx, 0, flows[0]), s.Apply(ctx, rule, bounds[part], bounds[part+1])); err != nil {
			return res, err
		}
		clear(flows[1])
		states[i] = make([]float32, l.Params+l.Averages)
		if err := errors.Join(s.WriteFlows(ctx, 0, flows[1]), s.ReadState(ctx, 0, states[i])); err != nil {
			return res, err
		}
		for k, o := range l.Owners {
			for _, r := range o.Params {
				if in := k >= bounds[part] && k < bounds[part+1]; !in && !slices.Equal(before[r.Lo:r.Hi], states[i][r.Lo:r.Hi]) {
					p.t.Errorf("moving the owners %d to %d moved owner %d", bounds[part], bounds[part+1]-1, k)
				}
			}
		}
	}
	for k, o := range l.Owners {
		from, to := states[1^first], states[first]
		if k < bounds[1] {
			from, to = to, from
		}
		for _, r := range o.Params {
			copy(to[r.Lo:r.Hi], from[r.Lo:r.Hi])
		}
		if l.Averages == 0 {
			continue
		}
		for _, r := range o.Averages {
			copy(to[l.Params+r.Lo:l.Params+r.Hi], from[l.Params+r.Lo:l.Params+r.Hi])
		}
	}
	for i, s := range p.sessions { // in two parts, the second across the end of the parameters
		cut := l.Params - min(l.Params, 7)
		if err := errors.Join(s.WriteState(ctx, 0, states[i][:cut]), s.WriteState(ctx, cut, states[i][cut:])); err != nil {
			return res, err
		}
	}
	p.at.Step++
	if p.at.Step == p.plan.Steps() {
		p.at = dataset.Cursor{Epoch: p.at.Epoch + 1}
	}
	return res, nil
}

func (p *pair) LogLikelihood(ctx context.Context, src dataset.Source) (all em.Evaluation, err error) {
	for lo := 0; lo < src.Rows(); lo += em.EvalRows {
		span := dataset.Span{Lo: lo, Hi: min(lo+em.EvalRows, src.Rows())}
		r, err := p.sessions[lo/em.EvalRows%2].LogLikelihood(ctx, p.names[src], span)
		if err != nil {
			return all, err
		}
		all.Follow(r)
	}
	return all, nil
}

func (p *pair) ReadParams(ctx context.Context, offset int64, params []float32) error {
	return p.sessions[1].ReadState(ctx, offset, params)
}

func (p *pair) WriteParams(ctx context.Context, offset int64, params []float32) error {
	return errors.Join(p.sessions[0].WriteState(ctx, offset, params), p.sessions[1].WriteState(ctx, offset, params))
}

func (p *pair) ReadAverages(ctx context.Context, offset int64, averages []float32) error {
	return p.sessions[1].ReadState(ctx, p.prog.NumParams+offset, averages)
}

func (p *pair) WriteAverages(ctx context.Context, offset int64, averages []float32) error {
	offset += p.prog.NumParams
	return errors.Join(p.sessions[0].WriteState(ctx, offset, averages), p.sessions[1].WriteState(ctx, offset, averages))
}

// openPair opens the flows of two sessions, which two loaders make.
func openPair(t *testing.T, l *Lead, o run.TrainOptions, rows TrainRows, roots []string, check func(*trainSettings)) run.OpenFlows {
	return func(ctx context.Context, b *run.Blueprint, load run.Load, valid, test dataset.Source) (run.Flows, error) {
		d, err := l.trainSettings(ctx, b, load, o.Compile, rows, valid, test)
		if err != nil {
			return nil, err
		}
		check(d)
		spec, err := l.publish(ctx, b.Program.Digest(), d, nil)
		if err != nil {
			return nil, err
		}
		p := &pair{t: t, prog: b.Program, names: map[dataset.Source]string{b.Train: trainSource, valid: validSource, test: testSource}, rows: b.Train.Rows(), prepare: true}
		for i := range p.sessions {
			if p.sessions[i], err = testLoader(t, roots, 1+i).Load(ctx, spec, l.Bus.Blobs()); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
}

// TestSessions trains with one engine and on two sessions that share the work,
// and wants the same files.
func TestSessions(t *testing.T) {
	data := t.TempDir()
	files := imageFiles(t, data, 4)
	wide := imageFiles(t, t.TempDir(), 70_000)
	builtin := files
	for i, r := range []*Rows{&wide.Train, &wide.Valid, &wide.Test} {
		r.Options.Types = map[string]dataset.Type{"*": {Kind: dataset.Discrete, Categories: 70_000}}
		b := []*Rows{&builtin.Train, &builtin.Valid, &builtin.Test}[i]
		b.Paths = []string{fmt.Sprintf("builtin:random?rows=%d&vars=16&categories=4&seed=%d", []int{200, 60, 530}[i], i+1)}
	}
	for name, c := range map[string]struct {
		rows  TrainRows
		kind  string
		edit  func(o *run.TrainOptions)
		roots []string
		want  func(s sourceRef) bool
	}{
		"files in a root": {files, "hmm", func(o *run.TrainOptions) {
			o.EM.Phases = append(o.EM.Phases, em.Phase{Rule: em.FullBatch, Epochs: 1, Pseudocount: 0.1})
		}, []string{data}, func(s sourceRef) bool { return len(s.Files) == 1 && s.Table == nil }},
		"files elsewhere": {files, "rat-spn", func(o *run.TrainOptions) {
			o.EM.Phases[0].Rule, o.EM.Phases[0].Momentum = em.Anemone, 0.9
		}, nil, func(s sourceRef) bool { return s.Files == nil && s.Table != nil && s.Table.Blob }},
		"wide codes, elsewhere": {wide, "hmm", func(o *run.TrainOptions) { o.EM.Phases[0].Epochs = 1 }, nil, func(s sourceRef) bool { return s.Table != nil }},
		"builtin":               {builtin, "hclt", func(o *run.TrainOptions) { o.Structure.HCLT.Tree = "grid" }, nil, func(s sourceRef) bool { return s.Builtin != "" }},
		"learned, its start kept": {builtin, "learnspn", func(o *run.TrainOptions) {
			o.Structure.LearnSPN.MinRows, o.Structure.LearnSPN.Threshold = 50, 0.3 // cut what is independent
		}, nil, func(s sourceRef) bool { return s.Builtin != "" }},
		"gaussian, elsewhere": {files, "hclt", func(o *run.TrainOptions) { o.Structure.Leaf.Type, o.Structure.Leaf.MinSigma = "gaussian", 0.1 }, nil,
			func(s sourceRef) bool { return s.Table != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			here := trainOptions(t, c.rows, c.kind)
			c.edit(&here)
			want, err := run.Train(t.Context(), here)
			if err != nil {
				t.Fatal(err)
			}
			there := trainOptions(t, c.rows, c.kind)
			c.edit(&there)
			lead := testLead(t, simnet.New(1, simnet.Faults{}).Host("c").Bus(), c.roots...)
			open := openPair(t, lead, there, c.rows, c.roots, func(d *trainSettings) {
				for _, source := range []string{trainSource, validSource, testSource} {
					if s, ok := d.Sources[source]; !ok || !c.want(s) {
						t.Errorf("source %s is %+v", source, s)
					}
				}
			})
			got, err := run.TrainElsewhere(t.Context(), there, run.Elsewhere{Flows: open})
			if err != nil {
				t.Fatal(err)
			}
			if got.TrainLL != want.TrainLL || got.ValidLL != want.ValidLL || got.TestLL != want.TestLL || got.PrecisionUsed != want.PrecisionUsed {
				t.Errorf("result %+v, want %+v", got, want)
			}
			for _, file := range []string{run.ModelFile, run.SamplesFile} {
				if !bytes.Equal(readFile(t, there.Dir, file), readFile(t, here.Dir, file)) {
					t.Errorf("%s differs", file)
				}
			}
		})
	}
}

// spoilt is a source whose rows have a code that their column does not have.
type spoilt struct{ dataset.Source }

func (s spoilt) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	err := s.Source.Gather(ctx, b, rows)
	b.Columns[2].Codes.Narrow[len(rows)-1] = 200
	return err
}

// TestEvaluationFails wants the error of an engine that cannot evaluate rows, and no result of them.
func TestEvaluationFails(t *testing.T) {
	rows := imageFiles(t, t.TempDir(), 4)
	o := trainOptions(t, rows, "hmm")
	lead := testLead(t, simnet.New(1, simnet.Faults{}).Host("c").Bus())
	open := openPair(t, lead, o, rows, nil, func(*trainSettings) {})
	_, err := run.TrainElsewhere(t.Context(), o, run.Elsewhere{Flows: func(ctx context.Context, b *run.Blueprint, load run.Load, valid, test dataset.Source) (run.Flows, error) {
		flows, err := open(ctx, b, load, valid, test)
		if err != nil {
			return nil, err
		}
		s := flows.(*pair).sessions[0].(*trainSession)
		span := dataset.Span{Lo: 1, Hi: 3}
		if got, err := s.LogLikelihood(ctx, validSource, span); err != nil || got.Rows != 2 {
			t.Errorf("%+v, %v; want two rows", got, err)
		}
		s.sources[validSource] = spoilt{s.sources[validSource]}
		if got, err := s.LogLikelihood(ctx, validSource, span); !errors.Is(err, dataset.ErrFormat) || got.Rows != 0 {
			t.Errorf("a row that the engine refuses: %+v, %v; want ErrFormat", got, err)
		}
		return nil, errList
	}})
	if !errors.Is(err, errList) {
		t.Error(err)
	}
}
