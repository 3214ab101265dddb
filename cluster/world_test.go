package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
)

// world is a cluster of toys on an in-memory network, with a trainer that keeps
// checkpoints. It lives in a synctest bubble.
type world struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	net   *simnet.Network
	dir   string // of the fences and audits
	log   *slog.Logger
	fault func(simnet.ToyWork) simnet.ToyFault
	plant string                            // a defect of all workers and coordinators
	load  func(worker string) error         // what loading fails with, if not nil
	quick bool                              // computing takes no time
	pace  func(worker string) time.Duration // that a shard takes, if not nil
	kinds map[string]string                 // devices by worker; others have the device toy
	line  func(cluster.Peers) cluster.Peers // between a worker and the others, if not nil

	mu        sync.Mutex
	processes map[string]*process
	trainings []*training
	all       sync.WaitGroup
	build     string // of the processes that are started from now on
}

// training is what a coordinator does, and what outlives it on its disk.
type training struct {
	*world
	leader    string
	toy       simnet.ToySpec
	steps     int
	rows      int // of all, and of a step
	shardRows int
	save      int // steps between checkpoints
	audit     string
	unfit     func(worker, why string)

	saved int // steps
	state []float32
	lls   []em.StepResult // by step
	evals []evaluated

	doneFlag bool  // guarded by the world's mu, as is fatalErr
	fatalErr error // why there is no going on
}

// finished ends the training, with an error if it could not be done.
func (tr *training) finished(err error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.doneFlag, tr.fatalErr = err == nil, err
}

// done reports whether the training is over.
func (tr *training) done() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.doneFlag || tr.fatalErr != nil
}

// fatal is why the training could not be done.
func (tr *training) fatal() error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.fatalErr
}

type process struct {
	id   string
	stop context.CancelFunc
	gone chan struct{}
}

func newWorld(t *testing.T, seed uint64, f simnet.Faults) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, seed: seed, rng: rng, net: simnet.New(seed, f), processes: map[string]*process{}, log: slog.New(slog.DiscardHandler)}
	if os.Getenv("PCE_TRACE") != "" {
		start := time.Now()
		w.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Duration("t", time.Since(start))
			}
			return a
		}}))
	}
	// Fences are put on the disk each time: a disk in memory is faster.
	base := "/dev/shm"
	if _, err := os.Stat(base); err != nil {
		base = ""
	}
	dir, err := os.MkdirTemp(base, "pce-schedule")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w.dir = dir
	return w
}

// addTraining gives a coordinator something to do.
func (w *world) addTraining(leader string) *training {
	tr := &training{
		world: w, leader: leader, toy: simnet.ToySpec{Params: 24, Owners: 6, Seed: w.seed + uint64(len(w.trainings))},
		steps: 3 + w.rng.IntN(4), rows: 64 + w.rng.IntN(100), shardRows: 16, save: 1 + w.rng.IntN(3), audit: filepath.Join(w.dir, leader+".jsonl"),
	}
	tr.state = tr.first()
	w.trainings = append(w.trainings, tr)
	return tr
}

// startWorker begins a life of a worker.
func (w *world) startWorker(id string) {
	host := w.net.Host(id)
	toy := &simnet.Toy{Worker: id, Seed: w.seed, MinTime: 100 * time.Millisecond, MaxTime: 2 * time.Second, Fault: w.fault}
	if w.quick {
		toy.MinTime, toy.MaxTime = 0, 0
	}
	if w.pace != nil {
		toy.MinTime = w.pace(id)
		toy.MaxTime = toy.MinTime
	}
	dir := filepath.Join(w.dir, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	peers := host.Peers()
	if w.line != nil {
		peers = w.line(peers)
	}
	o := cluster.WorkerOptions{
		ID: id, Bus: host.Bus(), Peers: []cluster.Peers{peers}, Loader: loader{toy, id, w}, Dir: dir, Log: w.log,
		Member: cluster.Member{Paths: toy.Paths(), Device: cmp.Or(w.kinds[id], "toy"), Build: w.build},
	}
	worker, err := cluster.NewPlantedWorker(o, w.plant)
	if err != nil {
		w.t.Fatal(err)
	}
	w.begin(id, func(ctx context.Context) {
		if err := worker.Run(ctx); err != nil && ctx.Err() == nil {
			w.t.Errorf("seed %d: worker %s: %v", w.seed, id, err)
		}
		_ = host.Peers().Close()
	})
}

func (w *world) begin(id string, run func(ctx context.Context)) *process {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{id, stop, make(chan struct{})}
	w.mu.Lock()
	w.processes[id] = p
	w.mu.Unlock()
	w.all.Go(func() {
		defer close(p.gone)
		run(ctx)
	})
	return p
}

// kill ends a process as SIGKILL does: nothing that it does reaches anybody.
func (w *world) kill(id string) {
	w.mu.Lock()
	p := w.processes[id]
	delete(w.processes, id)
	w.mu.Unlock()
	if p != nil {
		w.net.Crash(id)
		p.stop()
	}
}

// stop ends a worker as SIGTERM does.
func (w *world) stop(id string) {
	w.mu.Lock()
	p := w.processes[id]
	delete(w.processes, id)
	w.mu.Unlock()
	if p != nil {
		p.stop()
		<-p.gone
		w.net.Crash(id)
	}
}

// startLeader begins a life of a coordinator, which trains to the end.
func (tr *training) startLeader() {
	host := tr.net.Host(tr.leader)
	c := cluster.NewPlantedCoordinator(cluster.CoordinatorOptions{ID: tr.leader, Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: tr.log}, tr.plant)
	tr.begin(tr.leader, func(ctx context.Context) {
		defer func() { _ = host.Peers().Close() }()
		for ctx.Err() == nil && !tr.done() {
			err := tr.lead(ctx, c)
			select {
			case <-host.Crashed():
				return
			default:
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, cluster.ErrDeposed) && !errors.Is(err, cluster.ErrUnreachable) {
				tr.finished(err)
			}
		}
	})
}

// lead leads the run from the last checkpoint on.
func (tr *training) lead(ctx context.Context, c *cluster.Coordinator) (err error) {
	r, err := c.Begin(ctx, cluster.RunOptions{Spec: tr.toy.Spec(tr.leader), Build: tr.build, Transport: "memory", AuditFile: tr.audit, OnUnfit: tr.unfit})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
	for {
		err := tr.train(ctx, r)
		if !errors.Is(err, cluster.ErrLost) {
			return err
		}
		tr.log.Info("lost: from the checkpoint", "step", tr.saved)
	}
}

func (tr *training) sources() (valid dataset.Source, named map[dataset.Source]string) {
	valid = rowsOnly(700)
	return valid, map[dataset.Source]string{valid: "valid"}
}

// rowsOnly is a source that only has a number of rows.
type rowsOnly int

func (rowsOnly) Schema() *dataset.Schema { return nil }
func (n rowsOnly) Rows() int             { return int(n) }
func (rowsOnly) Gather(context.Context, *dataset.Batch, []int) error {
	return errors.New("no cells")
}

func (tr *training) schedule() dataset.Schedule {
	return dataset.Schedule{Rows: tr.rows, BatchRows: tr.rows, Seed: tr.seed}
}

func (tr *training) rule(step int) tensor.Rule {
	r := tensor.Rule{Step: 1 / float64(step+1), Pseudocount: 0.5}
	if step%2 == 1 {
		r.Anemone = &tensor.Anemone{Momentum: 0.5}
	}
	return r
}

// moves is the rule of a step with what came of its rows, as the workers get it.
func (tr *training) moves(step int, res em.StepResult) tensor.Rule {
	r := tr.rule(step)
	if a := r.Anemone; a != nil {
		a.Rows, a.Impossible = res.Rows, res.Impossible
	}
	return r
}

func (tr *training) train(ctx context.Context, r *cluster.Run) error {
	valid, named := tr.sources()
	layout := tr.layout()
	f := r.FlowsOf(ctx, layout, tr.rows, named)
	tr.lls, tr.evals = tr.lls[:tr.saved], tr.evals[:tr.saved]
	if err := f.WriteParams(ctx, 0, tr.state); err != nil {
		return err
	}
	plan := em.Plan{Schedule: tr.schedule(), ShardRows: tr.shardRows, Epochs: tr.steps, Start: dataset.Cursor{Epoch: tr.saved}, Done: int64(tr.saved)}
	if tr.saved < tr.steps {
		if err := f.Begin(ctx, plan); err != nil {
			return err
		}
	}
	for step := tr.saved; step < tr.steps; step++ {
		res, err := f.Step(ctx, tr.rule(step))
		if err != nil {
			return err
		}
		ll, err := f.LogLikelihood(ctx, valid)
		if err != nil {
			return err
		}
		tr.lls, tr.evals = append(tr.lls, res), append(tr.evals, evaluated{ll.Mean(), ll.Lowest})
		if (step+1)%tr.save == 0 || step+1 == tr.steps {
			state := make([]float32, layout.Params)
			if err := f.ReadParams(ctx, 0, state); err != nil {
				return err
			}
			tr.state, tr.saved = state, step+1
		}
	}
	tr.finished(nil)
	return nil
}

func (tr *training) layout() cluster.Layout {
	s, err := (&simnet.Toy{}).Load(context.Background(), tr.toy.Spec(tr.leader), nil)
	if err != nil {
		tr.t.Fatal(err)
	}
	return s.Layout()
}

// truth is what the run must come to.
func (tr *training) truth() (state []float32, lls []em.StepResult, evals []evaluated) {
	ref, err := simnet.NewReference(tr.toy)
	if err != nil {
		tr.t.Fatal(err)
	}
	ref.SetState(tr.first())
	valid, _ := tr.sources()
	for step := range tr.steps {
		at := cluster.Step{Schedule: tr.schedule(), At: dataset.Cursor{Epoch: step}}
		lls = append(lls, ref.Flows(at, dataset.Shards(tr.rows, tr.shardRows)))
		ref.Apply(tr.moves(step, lls[step]))
		total, lowest := 0.0, em.RowLL{}
		for _, span := range dataset.Shards(valid.Rows(), em.EvalRows) {
			one := ref.LogLikelihood("valid", span)
			if total += one.LogLikelihood; span.Lo == 0 || one.Lowest.LL < lowest.LL {
				lowest = em.RowLL{Row: span.Lo + one.Lowest.Row, LL: one.Lowest.LL}
			}
		}
		evals = append(evals, evaluated{total / float64(valid.Rows()), lowest})
	}
	return ref.State(), lls, evals
}

func (tr *training) first() []float32 {
	state := make([]float32, tr.layout().Params)
	for i := range state {
		state[i] = float32(i) * 0.25
	}
	return state
}

// finish stops everything.
func (w *world) finish() {
	w.mu.Lock()
	var ids []string
	for id := range w.processes {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	slices.Sort(ids)
	for _, id := range ids {
		w.kill(id)
	}
	w.all.Wait()
}

// evaluated is what an evaluation came to.
type evaluated struct {
	mean   float64
	lowest em.RowLL
}

// check compares what the run came to with the truth.
func (tr *training) check() error {
	if err := tr.fatal(); err != nil {
		return err
	}
	if !tr.done() {
		return fmt.Errorf("not done: %d of %d steps are saved", tr.saved, tr.steps)
	}
	state, lls, evals := tr.truth()
	switch {
	case !slices.Equal(tr.state, state):
		return fmt.Errorf("state %v, want %v", tr.state, state)
	case !slices.Equal(tr.lls, lls):
		return fmt.Errorf("steps %v, want %v", tr.lls, lls)
	case !slices.Equal(tr.evals, evals):
		return fmt.Errorf("evaluations %v, want %v", tr.evals, evals)
	}
	audit, err := os.Open(tr.audit)
	if err != nil {
		return err
	}
	defer audit.Close()
	steps, err := cluster.CheckAudit(audit)
	if err == nil && steps != int64(tr.steps) {
		err = fmt.Errorf("the audit has %d steps, want %d", steps, tr.steps)
	}
	return err
}

// loader is a toy whose loading the world may let fail.
type loader struct {
	*simnet.Toy
	id string
	w  *world
}

func (l loader) Load(ctx context.Context, spec cluster.Spec, blobs cluster.Blobs) (cluster.Session, error) {
	if l.w.load != nil {
		if err := l.w.load(l.id); err != nil {
			return nil, err
		}
	}
	return l.Toy.Load(ctx, spec, blobs)
}
