package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
)

const (
	// workingInterval is how often a taker says that it works on a job; the queue
	// gives a job to another when it has not heard for several of them.
	workingInterval = 5 * time.Second
	// maxSetbacks is how often in a row a run may lose its parameters, its lead or
	// the broker without a step that counts between.
	maxSetbacks = 10
	// partingTime bounds what is said to the broker at the end.
	partingTime = 10 * time.Second
)

// taker leads the runs of the queue, one after another.
type taker struct {
	bus cluster.Bus
	log *slog.Logger
	// run leads a run, from where it stood, until it is done. It changes the
	// record of the run while it goes on.
	run func(ctx context.Context, id string, text []byte) error
	// pause is what it waits after the n-th setback.
	pause func(n int) time.Duration
}

// setbackPause doubles from half a second to half a minute.
func setbackPause(n int) time.Duration { return min(firstPause<<min(n, 10), longestPause) }

// work takes jobs until ctx ends. It reports whether a run was left unfinished.
func (t *taker) work(ctx context.Context) (unfinished bool, err error) {
	for {
		d, err := t.bus.Jobs().Next(ctx)
		switch {
		case ctx.Err() != nil:
			if d != nil {
				t.giveBack(d)
			}
			return false, nil
		case errors.Is(err, cluster.ErrUnreachable):
			t.log.Warn("the broker does not answer, waiting for it", "err", err)
			t.wait(ctx, 1)
			continue
		case err != nil:
			return false, err
		}
		if t.take(ctx, d) {
			return true, nil
		}
	}
}

// wait pauses, or returns early when ctx ends.
func (t *taker) wait(ctx context.Context, n int) {
	select {
	case <-ctx.Done():
	case <-time.After(t.pause(n)):
	}
}

// take sees a job through, and reports whether it was left unfinished because
// ctx ended.
func (t *taker) take(ctx context.Context, d cluster.Delivery) (unfinished bool) {
	stop := t.keepAlive(d)
	defer stop()
	id := d.ID()
	log := t.log.With("run", id)
	log.Info("run taken", "attempt", d.Attempt())
	watched, end := watchCancel(ctx, t.bus, id)
	defer end()
	if old, _, err := job.GetRun(ctx, t.bus, id); err == nil && old.Ended() && old.State != job.StateCancelled {
		t.finish(d) // it was done before, only the queue did not learn of it
		return false
	}
	err := t.insist(watched, id, d.Job(), log)
	end()
	state, text := job.StateDone, "run done"
	switch {
	case errors.Is(err, job.ErrCancelled):
		state, text, err = job.StateCancelled, "run cancelled", nil
	case err != nil && ctx.Err() != nil:
		state, text, err = job.StateInterrupted, "run left unfinished", nil
	case err != nil:
		state, text = job.StateFailed, "run failed"
	}
	log.Info(text, "err", err)
	if err := t.conclude(id, state, err); err != nil { // then let it come again
		log.Error("the end of the run was not recorded", "err", err)
		t.giveBack(d)
		return state == job.StateInterrupted
	}
	if state == job.StateInterrupted {
		t.giveBack(d)
		return true
	}
	t.finish(d)
	return false
}

// insist runs the job until it is done or cannot be. Setbacks only cost time, as
// long as there is progress.
func (t *taker) insist(ctx context.Context, id string, text []byte, log *slog.Logger) error {
	if asked, err := cancelRequested(ctx, t.bus, id); err == nil && asked || context.Cause(ctx) == job.ErrCancelled {
		return job.ErrCancelled
	}
	count, epoch, step := 0, -1, int64(-1)
	for {
		err := t.run(ctx, id, text)
		if err != nil && context.Cause(ctx) == job.ErrCancelled {
			return job.ErrCancelled
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !job.IsSetback(err) {
			return err
		}
		if r, _, e := job.GetRun(ctx, t.bus, id); e == nil && (r.Epoch > epoch || r.Step > step) {
			count, epoch, step = 0, r.Epoch, r.Step
		}
		if count++; count > maxSetbacks {
			err = fmt.Errorf("%w: given up after %d setbacks without progress, the last one: %w", cluster.ErrCluster, count, err)
			letter := cluster.DeadLetter{Run: id, Shard: -1, Reason: err.Error(), Time: time.Now().UTC()}
			if e := t.bus.Jobs().Bury(ctx, letter); e != nil {
				log.Error("dead letter not written", "err", e)
			}
			return err
		}
		log.Warn("run set back, going on from its last checkpoint", "err", err, "setback", count)
		t.wait(ctx, count-1)
	}
}

// keepAlive says that the job is worked on until stop is called.
func (t *taker) keepAlive(d cluster.Delivery) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(workingInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				call, cancel := context.WithTimeout(ctx, workingInterval)
				if err := d.Working(call); err != nil && ctx.Err() == nil {
					t.log.Warn("the queue was not told that the run goes on", "run", d.ID(), "err", err)
				}
				cancel()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// runEnd is the last event of a run, in the form of its other log lines.
type runEnd struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Msg   string    `json:"msg"` // endMessage
	Run   string    `json:"run"`
	State string    `json:"state"`
	Code  int       `json:"code"`
	Error string    `json:"err,omitempty"`
}

const endMessage = "run ended"

// conclude records how a run stands now that nobody works on it.
func (t *taker) conclude(id, state string, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	r, _, err := job.GetRun(ctx, t.bus, id)
	if err != nil && !errors.Is(err, job.ErrNoRun) { // without a record a new one does
		return err
	}
	r.Run, r.State, r.Error, r.Code = id, state, "", exitOK
	level := slog.LevelInfo
	switch {
	case cause != nil:
		r.Error, r.Code, level = cause.Error(), exitCode(cause), slog.LevelError
	case state == job.StateCancelled:
		r.Code = exitInterrupted
	case state == job.StateInterrupted:
		r.Code = exitCheckpointed
	}
	if err := job.PutRun(ctx, t.bus, &r); err != nil || !r.Ended() {
		return err
	}
	event, err := json.Marshal(runEnd{
		Time: time.Now().UTC(), Level: level.String(), Msg: endMessage, Run: id, State: state, Code: r.Code, Error: r.Error,
	})
	if err != nil {
		return err
	}
	if err := t.bus.Events().Publish(id, event); err != nil {
		t.log.Warn("the end of the run was not published", "run", id, "err", err)
	}
	err = t.bus.Bucket(cluster.RunsBucket).Delete(ctx, job.CancelPrefix+id, 0)
	if err != nil && !errors.Is(err, cluster.ErrNoRecord) {
		t.log.Warn("the request to cancel the run was not removed", "run", id, "err", err)
	}
	return nil
}

// finish removes a job from the queue, and what was uploaded for it. If that fails
// it comes again, and its record says that it is done.
func (t *taker) finish(d cluster.Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	if err := job.DropUploads(ctx, t.bus, d.ID()); err != nil {
		t.log.Warn("what was uploaded for the run was not removed", "run", d.ID(), "err", err)
	}
	if err := d.Done(ctx); err != nil {
		t.log.Error("the run was not removed from the queue", "run", d.ID(), "err", err)
	}
}

// giveBack lets another taker have the job at once; else it has to wait until
// the queue notices.
func (t *taker) giveBack(d cluster.Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	if err := d.Release(ctx); err != nil {
		t.log.Warn("the run was not handed back", "run", d.ID(), "err", err)
	}
}
