package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// FlowSource is an em.FlowSource whose steps are done by the workers of a run.
// Write all parameters before the first step, and again after an error that
// matches ErrLost.
type FlowSource struct {
	run     *Run
	live    context.Context // ends when the run is to be left
	prog    *layers.Program
	layout  Layout
	rows    int
	sources map[dataset.Source]string
	plan    em.Plan
	at      dataset.Cursor
	done    int64 // steps of the run
	begun   bool
	draft   []float32 // a state that is being written; nil: none

	recomputed int64
}

var _ em.FlowSource = (*FlowSource)(nil)

// mirror is the coordinator's copy of the state of a version. It does not change.
type mirror struct {
	version Version
	state   []float32
}

// Flows returns the run's source of flows. Sources are the named rows that
// log-likelihoods may be asked of; the workers' sessions know them by the same
// names. averages says that the run keeps those of Anemone. Once ctx has ended, reading
// waits a lease for workers that have the parameters, and then fails with ErrLost: who saves
// a run that was stopped reads with a context of its own, and workers that are gone may
// never come back.
func (r *Run) Flows(ctx context.Context, prog *layers.Program, rows int, averages bool, sources map[dataset.Source]string) *FlowSource {
	return &FlowSource{run: r, live: ctx, prog: prog, layout: LayoutOf(prog, averages), rows: rows, sources: sources}
}

// LayoutOf returns the layout of a program's parameters and flows.
func LayoutOf(prog *layers.Program, averages bool) Layout {
	l := Layout{Params: prog.NumParams, Flows: prog.FlowLen(), Owners: prog.Owners()}
	if averages {
		l.Averages = prog.AverageLen()
	}
	return l
}

// Program is what the parameters belong to.
func (f *FlowSource) Program() *layers.Program { return f.prog }

// Rows is the number of training rows.
func (f *FlowSource) Rows() int { return f.rows }

// Recomputed is the number of (vector, row) pairs that were recomputed in log
// space for what counts.
func (f *FlowSource) Recomputed() int64 { return f.recomputed }

// Begin says which steps come next, and so how far the run is.
func (f *FlowSource) Begin(_ context.Context, p em.Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if n := (p.StepRows(0) + p.ShardRows - 1) / p.ShardRows; n > maxShards {
		return fmt.Errorf("%w: a step of %d shards, at most %d are possible; raise train.shard_rows", ErrJob, n, maxShards)
	}
	f.plan, f.at, f.done, f.begun = p, p.Start, p.Done, true
	f.run.Update(func(s *RunStatus) { s.Epoch, s.Step = p.Start.Epoch, p.Done })
	var err error
	if callErr := f.run.call(func() { err = f.run.audit.rewind(p.Done) }); callErr != nil {
		return callErr
	}
	return err
}

// Step does the next step of the plan on the workers.
func (f *FlowSource) Step(ctx context.Context, rule tensor.Rule) (res em.StepResult, err error) {
	switch {
	case !f.begun:
		return res, errors.New("cluster: step without a plan; call Begin first")
	case f.at.Epoch >= f.plan.Epochs:
		return res, errors.New("cluster: step after the end of the plan; call Begin for further ones")
	}
	if err := f.publish(); err != nil {
		return res, err
	}
	rows := f.plan.StepRows(f.at.Step)
	if rule.Anemone != nil {
		a := *rule.Anemone
		a.Rows, rule.Anemone = rows, &a
	}
	shards := (rows + f.plan.ShardRows - 1) / f.plan.ShardRows
	rd := newRound(task{Kind: flowTask, Step: Step{f.plan.Schedule, f.at}, Rows: rows, ShardRows: f.plan.ShardRows}, 0, shards)
	rd.rule, rd.step.At = &rule, f.at
	if err := f.run.do(ctx, rd); err != nil {
		return res, err
	}
	res = rd.total(em.Evaluation{}).StepResult
	f.recomputed += res.Recomputed
	f.done++
	f.at.Step++
	if f.at.Step == f.plan.Steps() {
		f.at = dataset.Cursor{Epoch: f.at.Epoch + 1}
	}
	f.run.Update(func(s *RunStatus) {
		s.Epoch, s.Step, s.Rows = f.at.Epoch, f.done, s.Rows+int64(rows)
	})
	return res, nil
}

// total adds the results of a round, shard by shard, to those before.
func (rd *round) total(before em.Evaluation) em.Evaluation {
	results := rd.results
	if rd.task.Kind == flowTask {
		results = rd.counted
	}
	for s := rd.first; s < rd.end; s++ {
		before.Follow(results[s].evaluation())
	}
	return before
}

// LogLikelihood evaluates the rows of src, which is one of the run's sources.
func (f *FlowSource) LogLikelihood(ctx context.Context, src dataset.Source) (all em.Evaluation, err error) {
	name, ok := f.sources[src]
	if !ok {
		return all, fmt.Errorf("%w: rows that the workers do not have", ErrJob)
	}
	if err := f.publish(); err != nil {
		return all, err
	}
	rows := src.Rows()
	shards := (rows + em.EvalRows - 1) / em.EvalRows
	for lo := 0; lo < shards; lo += maxShards {
		rd := newRound(task{Kind: evalTask, Source: name, Rows: rows, ShardRows: em.EvalRows}, lo, min(lo+maxShards, shards))
		if err := f.run.do(ctx, rd); err != nil {
			return all, err
		}
		all = rd.total(all)
	}
	f.recomputed += all.Recomputed
	return all, all.Check()
}

// ReadParams copies parameters.
func (f *FlowSource) ReadParams(ctx context.Context, offset int64, params []float32) error {
	return f.read(ctx, offset, params)
}

// WriteParams replaces parameters.
func (f *FlowSource) WriteParams(ctx context.Context, offset int64, params []float32) error {
	return f.write(ctx, offset, params)
}

// ReadAverages copies averages of Anemone.
func (f *FlowSource) ReadAverages(ctx context.Context, offset int64, averages []float32) error {
	return f.read(ctx, f.layout.Params+offset, averages)
}

// WriteAverages replaces averages of Anemone.
func (f *FlowSource) WriteAverages(ctx context.Context, offset int64, averages []float32) error {
	return f.write(ctx, f.layout.Params+offset, averages)
}

func (f *FlowSource) read(ctx context.Context, offset int64, dst []float32) error {
	state := f.draft
	if state == nil {
		m, err := f.copyState(ctx)
		if err != nil {
			return err
		}
		state = m.state
	}
	if err := within(state, offset, len(dst)); err != nil {
		return err
	}
	copy(dst, state[offset:])
	return nil
}

// write changes the draft, which begins as a copy of what counts. Parameters that
// are lost are written anew.
func (f *FlowSource) write(ctx context.Context, offset int64, src []float32) error {
	if f.draft == nil {
		m, err := f.copyState(ctx)
		switch {
		case errors.Is(err, ErrLost):
			f.draft = make([]float32, f.layout.stateLen())
		case err != nil:
			return err
		default:
			f.draft = slices.Clone(m.state)
		}
	}
	if err := within(f.draft, offset, len(src)); err != nil {
		return err
	}
	copy(f.draft[offset:], src)
	return nil
}

func within(state []float32, offset int64, n int) error {
	if offset < 0 || offset+int64(n) > int64(len(state)) {
		return fmt.Errorf("%w: floats %d to %d of a state of %d", ErrCluster, offset, offset+int64(n), len(state))
	}
	return nil
}

// publish makes the draft the parameters that count.
func (f *FlowSource) publish() error {
	if f.draft == nil {
		return nil
	}
	state := f.draft
	f.draft = nil
	return f.run.call(func() {
		r := f.run
		r.version, r.movedIn = Version{Lineage: lineage()}, Term{}
		r.mirror = &mirror{r.version, state}
		if r.started {
			r.newTerm("parameters were written")
		}
	})
}

// copyState returns the mirror, up to date with the parameters that count.
func (f *FlowSource) copyState(ctx context.Context) (*mirror, error) {
	r := f.run
	var stopped time.Time // when the run was seen to be over; zero: it is not
	for {
		var m *mirror
		var want Version
		var term Term
		var inTerm context.Context
		var from []string
		var changed <-chan struct{}
		var runErr error
		err := r.call(func() {
			m, want, term, inTerm, runErr = r.mirror, r.version, r.term, r.inTerm, r.err
			from, changed = r.holders(), r.changed
		})
		switch {
		case err != nil:
			return nil, err
		case m != nil && want == m.version && want != Version{}:
			return m, nil
		case runErr != nil:
			return nil, runErr
		case want == Version{}:
			return nil, fmt.Errorf("%w: none were written, or no worker is left that has them", ErrLost)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found := false
		for i := 0; i < len(from) && !found && inTerm.Err() == nil; i++ {
			got, err := f.fetchState(ctx, inTerm, term, want, from[i])
			if err != nil {
				r.log.Warn("parameters not fetched", "worker", from[i], "err", err)
				continue
			}
			callErr := r.call(func() {
				r.mirror = got
				err = r.audit.sync()
			})
			if err = errors.Join(callErr, err); err != nil {
				return nil, err
			}
			found = true
		}
		if found {
			continue
		}
		if f.live.Err() != nil {
			if stopped.IsZero() {
				stopped = time.Now()
			}
			if time.Since(stopped) > r.c.lease() {
				return nil, fmt.Errorf("%w: the run was stopped, and no worker gave them within %v", ErrLost, r.c.lease())
			}
		}
		select {
		case <-changed:
		case <-time.After(r.c.lease() / 20):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fetchState asks a worker for the state of a version. The end of the term ends
// the attempt, because the worker answers questions of its own term only.
func (f *FlowSource) fetchState(ctx, inTerm context.Context, t Term, v Version, from string) (*mirror, error) {
	r, n := f.run, f.layout.stateLen()
	got := newFetch(t, v, n)
	r.gate.setFetch(got)
	defer r.gate.setFetch(nil)
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(inTerm, cancel)()
	if err := got.get(attempt, r.peers, from, fetchPatience*r.c.lease()); err != nil {
		return nil, err
	}
	return &mirror{version: v, state: got.state}, nil
}

// holders lists the members that have reported the parameters that count in the
// present term.
func (r *Run) holders() (ids []string) {
	for _, w := range r.members {
		if r.phase == open_ || w.enrolled && w.have == r.version {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// serve answers a worker that asks for the mirror, once at a time and until the term ends. A request of an earlier term is that of a fetch
// that was given up: the answer would keep the worker's next fetch waiting.
func (r *Run) serve(to string, ask *Frame) {
	if r.serving[to] || ask.Term != r.term {
		return
	}
	r.serving[to] = true
	m, serving, patience := r.mirror, r.inTerm, fetchPatience*r.c.lease()
	r.background.Go(func() { // the mirror it has now
		var err error
		if m == nil || m.version != ask.Version {
			err = refuse(serving, r.peers, to, ask, "the coordinator has another version")
		} else {
			err = answer(serving, r.peers, to, ask, int64(len(m.state)), patience, func(at int64, x []float32) error {
				copy(x, m.state[at:])
				return nil
			})
		}
		if err != nil {
			r.log.Warn("parameters not sent", "to", to, "err", err)
		}
		_ = r.call(func() { delete(r.serving, to) }) // else the run is over
	})
}
