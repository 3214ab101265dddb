package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

// testApp is the app of a test, whose messages are lost.
func testApp() *app { return &app{stdout: io.Discard, stderr: io.Discard} }

// testConfig loads a config of a short run that writes to a directory of its own.
func testConfig(t *testing.T, set ...string) *configs.Config {
	t.Helper()
	all := append([]string{"model.latents=3", "threads=1", "device=cpu", "train.epochs=3", "train.batch_size=64", "train.shard_rows=16", "train.samples=4", "output=" + filepath.Join(t.TempDir(), "run")}, set...)
	cfg, _, err := configs.Load(configs.Options{Set: all})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// imageFiles writes train.csv, valid.csv and test.csv, 4×4 images with missing
// cells, and returns settings that read them.
func imageFiles(t *testing.T, dir string) []string { return shadedFiles(t, dir, 4) }

// shadedFiles is imageFiles with the four brightest of so many shades.
func shadedFiles(t *testing.T, dir string, shades int) []string {
	t.Helper()
	set := []string{"data.image=[4, 4]"}
	for i, name := range []string{trainSource, validSource, testSource} {
		var text strings.Builder
		for row := range 200 - 80*i {
			for v := range 16 {
				cell := fmt.Sprint((row*(v+3)+row*row/7+i)%4 + shades - 4)
				if (row*5+v)%23 == 0 {
					cell = "?"
				}
				text.WriteString(cell)
				if v < 15 {
					text.WriteByte(',')
				}
			}
			text.WriteByte('\n')
		}
		path := filepath.Join(dir, name+".csv")
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		set = append(set, "data."+name+"="+path)
	}
	return set
}

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
			p.sessions[i%2].(*trainSession).Prepare(step, shards[i-2])
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
		a.Rows, rule.Anemone = res.Rows, &a
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

// openPair is a run.OpenFlows over two loaders.
func openPair(t *testing.T, c *clusterRun, roots []string, check func(*description)) run.OpenFlows {
	return func(ctx context.Context, b *run.Blueprint, l run.Load, valid, test dataset.Source) (run.Flows, error) {
		d, err := c.describe(ctx, b, l, valid, test)
		if err != nil {
			return nil, err
		}
		check(d)
		spec, err := c.publish(ctx, d, b.Program.Digest())
		if err != nil {
			return nil, err
		}
		p := &pair{t: t, prog: b.Program, names: map[dataset.Source]string{b.Train: trainSource, valid: validSource, test: testSource}, rows: b.Train.Rows(), prepare: true}
		for i := range p.sessions {
			w, err := newLoader(t.TempDir(), roots, run.Options{Device: "cpu", Threads: 1 + i})
			if err != nil {
				return nil, err
			}
			if p.sessions[i], err = w.Load(ctx, spec, c.bus.Blobs()); err != nil {
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
	files := imageFiles(t, data)
	shades := shadedFiles(t, t.TempDir(), 70_000)
	builtin := []string{"data.image=[4, 4]", "data.train=builtin:random?rows=200&vars=16&categories=4",
		"data.valid=builtin:random?rows=60&vars=16&categories=4&seed=2", "data.test=builtin:random?rows=530&vars=16&categories=4&seed=3"}
	for name, c := range map[string]struct {
		set   []string
		roots []string
		want  func(s sourceRef) bool
	}{
		"files in a root": {append(files, "model.structure=hmm", "train.finish.epochs=1"), []string{data}, func(s sourceRef) bool { return len(s.Files) == 1 && s.Table == nil }},
		"files elsewhere": {append(files, "train.rule=anemone", "model.structure=rat-spn", "model.rat_spn.depth=2"), nil, func(s sourceRef) bool { return s.Files == nil && s.Table != nil && s.Table.Blob }},
		"wide codes, elsewhere": {append(shades, "model.structure=hmm", "data.columns=[{name: '*', type: discrete, categories: 70000}]", "train.epochs=1"), nil,
			func(s sourceRef) bool { return s.Table != nil }},
		"builtin":             {append(builtin, "model.hclt.tree=grid"), nil, func(s sourceRef) bool { return s.Builtin != "" }},
		"gaussian, elsewhere": {append(files, "model.leaf.type=gaussian", "model.leaf.min_sigma=0.1"), nil, func(s sourceRef) bool { return s.Table != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			a := testApp()
			here := testConfig(t, c.set...)
			o := a.trainOptions(here)
			want, err := run.Train(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			there := testConfig(t, c.set...)
			lead := &clusterRun{
				app: a, bus: simnet.New(1, simnet.Faults{}).Host("c").Bus(), cfg: there, id: "run-1", dir: there.Output, log: slog.New(slog.DiscardHandler),
				members: []cluster.Member{{ID: "w", Roots: c.roots}},
			}
			o = a.trainOptions(there)
			open := openPair(t, lead, c.roots, func(d *description) {
				for _, source := range []string{trainSource, validSource, testSource} {
					if s, ok := d.Sources[source]; !ok || !c.want(s) {
						t.Errorf("source %s is %+v", source, s)
					}
				}
			})
			got, err := run.TrainElsewhere(t.Context(), o, run.Elsewhere{Flows: open})
			if err != nil {
				t.Fatal(err)
			}
			if got.TrainLL != want.TrainLL || got.ValidLL != want.ValidLL || got.TestLL != want.TestLL || got.PrecisionUsed != want.PrecisionUsed {
				t.Errorf("result %+v, want %+v", got, want)
			}
			for _, file := range []string{run.ModelFile, run.SamplesFile} {
				if !bytes.Equal(readFile(t, there.Output, file), readFile(t, here.Output, file)) {
					t.Errorf("%s differs", file)
				}
			}
		})
	}
}

func readFile(t *testing.T, elements ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// gathered counts the reads of a source.
type gathered struct {
	dataset.Source
	calls chan []int
}

func (g *gathered) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	g.calls <- slices.Clone(rows)
	return g.Source.Gather(ctx, b, rows)
}

// TestShardReader reads shards in and out of turn, ahead and not, and wants the
// rows of the schedule, each read once.
func TestShardReader(t *testing.T) {
	for _, categories := range []int{9, 70_000} {
		t.Run(fmt.Sprint(categories), func(t *testing.T) { readShards(t, categories) })
	}
}

func readShards(t *testing.T, categories int) {
	table, err := dataset.Open(t.Context(), fmt.Sprintf("builtin:random?rows=50&vars=3&categories=%d", categories), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	src := &gathered{table, make(chan []int, 100)}
	r := newShardReader(src)
	defer r.close()
	plan := dataset.Schedule{Rows: 50, BatchRows: 20, Seed: 7} // steps of 17, 17 and 16 rows
	type shard struct {
		epoch, step, lo, hi int
		ahead               bool
	}
	shards := []shard{{0, 0, 0, 8, true}, {0, 0, 8, 16, true}, {0, 2, 0, 10, false}, {0, 0, 16, 17, true}, {1, 1, 0, 5, true}, {1, 1, 5, 17, true}, {0, 1, 0, 17, false}}
	at := func(s shard) (cluster.Step, dataset.Span) {
		return cluster.Step{Schedule: plan, At: dataset.Cursor{Epoch: s.epoch, Step: s.step}}, dataset.Span{Lo: s.lo, Hi: s.hi}
	}
	want := new(dataset.Batch)
	r.prepare(at(shard{0, 1, 3, 4, false})) // nobody takes it
	for i, s := range shards {
		if i+1 < len(shards) && shards[i+1].ahead {
			r.prepare(at(shards[i+1]))
		}
		step, span := at(s)
		got, err := r.read(t.Context(), step, span)
		if err != nil {
			t.Fatal(err)
		}
		rows := plan.Step(plan.Order(s.epoch), s.step)[s.lo:s.hi]
		if err := table.Gather(t.Context(), want, rows); err != nil {
			t.Fatal(err)
		}
		for v := range want.Columns {
			if a, b := got.Columns[v].Codes, want.Columns[v].Codes; !slices.Equal(a.Narrow, b.Narrow) || !slices.Equal(a.Wide, b.Wide) || a.Len() == 0 {
				t.Fatalf("shard %d: column %d is %v, want %v", i, v, a, b)
			}
		}
	}
	if n := len(src.calls); n != len(shards)+1 {
		t.Errorf("%d reads for %d shards and one that nobody took", n, len(shards))
	}
	for name, bad := range map[string]shard{
		"no such step": {0, 3, 0, 1, false}, "negative epoch": {-1, 0, 0, 1, false}, "beyond the step": {0, 2, 0, 17, false}, "empty": {0, 0, 4, 4, false}, "negative": {0, 0, -1, 4, false},
	} {
		step, span := at(bad)
		r.prepare(step, span)
		if _, err := r.read(t.Context(), step, span); !errors.Is(err, cluster.ErrJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plan.Rows = 51
	if _, err := r.read(t.Context(), cluster.Step{Schedule: plan}, dataset.Span{Hi: 1}); !errors.Is(err, cluster.ErrJob) {
		t.Errorf("a plan over other rows: %v", err)
	}
}
