package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/uploads"
	"github.com/pce-engine/pce/internal/periodic"
)

const (
	// workingInterval is how often a taker says that it works on a job; the queue gives a job
	// to another when it has not heard for two leases, and a lease is a second at least.
	// workingTime bounds how long that may take.
	workingInterval, workingTime = time.Second, 5 * time.Second
	// MaxSetbacks is how often in a row a run may lose its parameters, its lead or
	// the broker without a step, or answers about rows, that count between.
	MaxSetbacks = 10
	// cancelInterval is how often a run looks for a request to cancel it.
	cancelInterval = time.Second
	// sweepTime bounds the reading of all records when a taker begins. A run with uploads and without a record that is older than submitTime is
	// not being submitted any more, and who was asked that long ago to end one has heard it.
	sweepTime, submitTime = time.Minute, 7 * 24 * time.Hour
)

// Taker leads the runs of the queue, one after another.
type Taker struct {
	Bus cluster.Bus
	Log *slog.Logger
	ID  string // of the coordinator: it has the files of runs that are done here; "": the records keep what they say
	// Run leads a run, from where it stood, until it is done, as Runner.Do does. It
	// updates the record of the run meanwhile.
	Run func(ctx context.Context, id string, text []byte) error
	// Code is the exit code that the record of a run keeps: of the state in which it
	// was left, and of the error with which it failed.
	Code func(state string, err error) int
	// Over is called with each run that has ended and will not continue, as Runner.Forget is; may be nil.
	Over func(id string) error
	// Pause is how long the taker waits after the n-th setback in a row; nil: from half
	// a second to half a minute.
	Pause func(n int) time.Duration
}

// pause doubles from half a second to half a minute.
func pause(n int) time.Duration {
	return min(500*time.Millisecond<<min(n, 10), 30*time.Second)
}

// Work takes jobs until ctx ends, one at a time, and waits out times in which the broker does
// not answer. It reports whether a run was left unfinished when ctx ended; that job is back in
// the queue. First it removes uploads that are left of runs of the queue that have ended.
func (t *Taker) Work(ctx context.Context) (unfinished bool, err error) {
	t.sweep(ctx)
	for {
		d, err := t.Bus.Jobs().Next(ctx)
		switch {
		case ctx.Err() != nil:
			if d != nil {
				t.giveBack(d)
			}
			return false, nil
		case errors.Is(err, cluster.ErrUnreachable):
			t.Log.Warn("the broker does not answer, waiting for it", "err", err)
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

// sweep removes what was uploaded for runs of the queue that have ended, where that could not be removed at their end, and for those whose
// client went away before they were in the queue. So do old requests to cancel such runs, and what an earlier life has kept of a run that
// another taker has ended since.
func (t *Taker) sweep(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	records, err := t.Bus.Bucket(cluster.RunsBucket).List(call)
	if err != nil {
		return // the next life does it
	}
	ended := map[string]bool{}
	for _, rec := range records {
		var r Record
		ended[rec.Key] = !IsSideRecord(rec.Key) && json.Unmarshal(rec.Value, &r) == nil && r.Ended()
	}
	for run, over := range ended {
		if over && !strings.HasPrefix(run, LocalPrefix) {
			t.over(run)
		}
	}
	for _, rec := range records {
		if run, ok := strings.CutPrefix(rec.Key, CancelPrefix); ok {
			t.sweepCancel(ctx, run, ended, rec)
			continue
		}
		id, ok := strings.CutPrefix(rec.Key, uploads.Prefix)
		run := strings.TrimPrefix(id, ledPrefix)
		over, there := ended[run]
		if made, err := time.Parse("20060102-150405", run[:min(15, len(run))]); !there && err == nil { // as NewID makes it
			over = time.Since(made) > submitTime
		}
		if !ok || !over || strings.HasPrefix(run, LocalPrefix) { // one that is resumed has its old record until it begins
			continue
		}
		if err := uploads.Drop(ctx, t.Bus, id); err != nil && ctx.Err() == nil {
			t.Log.Warn("what was uploaded for a run that has ended was not removed", "run", id, "err", err)
		}
	}
}

// sweepCancel removes an old request to cancel a run that has ended, or has no record: no taker has come to it, as where its job never was in
// the queue. One that has led the run all the same has seen the request since.
func (t *Taker) sweepCancel(ctx context.Context, run string, ended map[string]bool, request cluster.Record) {
	over, there := ended[run]
	if asked, err := time.Parse(time.RFC3339, string(request.Value)); err != nil || there && !over || time.Since(asked) <= submitTime {
		return
	}
	call, cancel := context.WithTimeout(ctx, PartingTime)
	defer cancel()
	if err := t.Bus.Bucket(cluster.RunsBucket).Delete(call, request.Key, request.Revision); err != nil && ctx.Err() == nil {
		t.Log.Warn("an old request to cancel a run was not removed", "run", run, "err", err)
	}
}

// wait pauses, or returns early when ctx ends.
func (t *Taker) wait(ctx context.Context, n int) {
	wait := pause
	if t.Pause != nil {
		wait = t.Pause
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait(n)):
	}
}

// take sees a job through, and reports whether it was left unfinished because ctx ended. The
// job is kept alive in the queue meanwhile. It leaves the queue once the end of its run is
// recorded; else it comes again, also after this process has died.
func (t *Taker) take(ctx context.Context, d cluster.Delivery) (unfinished bool) {
	mine, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	stop := t.keepAlive(d, lose)
	defer stop()
	id := d.ID()
	log := t.Log.With("run", id)
	log.Info("run taken", "attempt", d.Attempt())
	watched, end := WatchCancel(mine, t.Bus, id)
	defer end()
	old, _, err := GetRun(ctx, t.Bus, id)
	switch {
	case err == nil && old.State == StateCancelled: // by a client, or here, and the queue did not learn of it
		err = ErrCancelled
	case err == nil && old.Ended():
		t.finish(d, stop) // it was done before, only the queue did not learn of it
		return false
	default:
		if err = t.begin(ctx, id, &old); err == nil {
			err = t.insist(watched, id, d.Job(), log)
		}
	}
	end()
	if err != nil && errors.Is(context.Cause(mine), cluster.ErrConflict) {
		t.leave(id) // or the other one would have counted a death
		log.Warn("run left to another coordinator, which has taken it over", "err", err)
		t.tidyEnded(id)
		return false
	}
	state, text := StateDone, "run done"
	switch {
	case errors.Is(err, ErrCancelled):
		state, text, err = StateCancelled, "run cancelled", nil
	case err != nil && ctx.Err() != nil:
		state, text, err = StateInterrupted, "run left unfinished", nil
	case err != nil:
		state, text = StateFailed, "run failed"
	}
	log.Info(text, "err", err)
	if err := t.conclude(id, state, err); err != nil { // then let it come again
		log.Error("the end of the run was not recorded", "err", err)
		stop()
		t.giveBack(d)
		return state == StateInterrupted
	}
	if state == StateInterrupted {
		t.leave(id)
		stop()
		t.giveBack(d)
		return true
	}
	t.finish(d, stop)
	return false
}

// progress is how far a run was at most.
type progress struct {
	Epoch int   `json:"epoch"`
	Step  int64 `json:"step"`
	Rows  int64 `json:"rows"`
}

// see takes what a record says, and reports whether the run is farther than it was at any time before. Rows are those of the whole run where
// it does not train, and else of this attempt.
func (p *progress) see(r *Record) bool {
	if r.Epoch > p.Epoch || r.Step > p.Step || r.Epochs == 0 && r.Rows > p.Rows {
		*p = progress{r.Epoch, r.Step, r.Rows}
		return true
	}
	return false
}

// begun is the note of a taker that it leads a run, removed when it does not any more. Who finds one knows that a taker died.
type begun struct {
	Deaths   int      `json:"deaths"` // of takers that led it, without progress between
	Progress progress `json:"progress"`
}

// begin notes that this process leads a run. A job that ends the process, as one for which it has too little memory, comes to the next one,
// and would keep all others in the queue from being run: after MaxSetbacks deaths without progress it is given up.
func (t *Taker) begin(ctx context.Context, id string, r *Record) error {
	ctx, cancel := context.WithTimeout(ctx, PartingTime)
	defer cancel()
	runs := t.Bus.Bucket(cluster.RunsBucket)
	note := begun{Deaths: -1, Progress: progress{-1, -1, -1}}
	rec, err := runs.Get(ctx, begunPrefix+id)
	if err == nil {
		err = json.Unmarshal(rec.Value, &note)
	}
	if note.Progress.see(r) && err == nil {
		note.Deaths = 0
	} else {
		note.Deaths++
	}
	if note.Deaths > MaxSetbacks {
		err := fmt.Errorf("%w: given up after the coordinator died %d times without progress as it led the run; look at its memory and its log", cluster.ErrCluster, note.Deaths)
		t.deadLetter(ctx, id, err)
		return err
	}
	value, err := json.Marshal(note)
	if err == nil {
		_, err = runs.Put(ctx, begunPrefix+id, value)
	}
	if err != nil { // the run is led all the same
		t.Log.Warn("the beginning of the run was not noted", "run", id, "err", err)
	}
	return nil
}

// leave removes the note of begin.
func (t *Taker) leave(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), PartingTime)
	defer cancel()
	if err := t.Bus.Bucket(cluster.RunsBucket).Delete(ctx, begunPrefix+id, 0); err != nil && !errors.Is(err, cluster.ErrNoRecord) {
		t.Log.Warn("the note that the run has begun was not removed", "run", id, "err", err)
	}
}

// deadLetter writes that letter of a run that is given up.
func (t *Taker) deadLetter(ctx context.Context, id string, reason error) {
	letter := cluster.DeadLetter{Run: id, Shard: -1, Reason: TextOf(reason), Time: time.Now().UTC()}
	if err := t.Bus.Jobs().Bury(ctx, letter); err != nil {
		t.Log.Error("dead letter not written", "run", id, "err", err)
	}
}

// insist runs the job until it is done or cannot be. Setbacks only cost time, as
// long as there is progress.
func (t *Taker) insist(ctx context.Context, id string, text []byte, log *slog.Logger) error {
	if asked, err := cancelRequested(ctx, t.Bus, id); err == nil && asked || context.Cause(ctx) == ErrCancelled {
		return ErrCancelled
	}
	count, far := 0, progress{-1, -1, -1}
	for {
		err := t.Run(ctx, id, text)
		if err != nil && context.Cause(ctx) == ErrCancelled {
			return ErrCancelled
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !IsSetback(err) {
			return err
		}
		if r, _, e := GetRun(ctx, t.Bus, id); e == nil && far.see(&r) {
			count = 0
		}
		if count++; count > MaxSetbacks {
			err = fmt.Errorf("%w: given up after %d setbacks without progress, the last one: %w", cluster.ErrCluster, count, err)
			t.deadLetter(ctx, id, err)
			return err
		}
		log.Warn("run set back, continuing from its last checkpoint", "err", err, "setback", count)
		t.wait(ctx, count-1)
	}
}

// keepAlive says that the job is worked on until stop is called, which comes before the job is done or given back: a word behind that would
// take the job anew, and keep it from the next taker. Where another has the job, as after a time without the
// broker, it calls lose: both would lead the run, one after the other.
func (t *Taker) keepAlive(d cluster.Delivery, lose context.CancelCauseFunc) (stop func()) {
	return periodic.Start(context.Background(), workingInterval, func(ctx context.Context) {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), workingTime) // one that was cut off might have been heard all the same
		defer cancel()
		if err := d.Working(call); errors.Is(err, cluster.ErrConflict) {
			lose(err)
		} else if err != nil && ctx.Err() == nil {
			t.Log.Warn("the queue was not told that the run is being worked on", "run", d.ID(), "err", err)
		}
	})
}

// RunEnd is the last event of a run, in the form of its other log lines.
type RunEnd struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Msg   string    `json:"msg"` // EndMessage
	Run   string    `json:"run"`
	State string    `json:"state"`
	Code  int       `json:"code"`
	Error string    `json:"err,omitempty"`
}

// EndMessage is the text of the last event of a run.
const EndMessage = "run ended"

// conclude records in which state a run was left, with its error and exit code, and publishes
// the end for those who follow it. It has a time of its own, as the job's context may have
// ended. Only a record that cannot be written is an error. Where the run has ended otherwise, by another coordinator that had it or by a
// client, that end stays, as this one may have failed because the other had done the run and removed its files. A run that is done here is done.
func (t *Taker) conclude(id, state string, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), PartingTime)
	defer cancel()
	var r Record
	for {
		now, revision, err := GetRun(ctx, t.Bus, id)
		if err != nil && !errors.Is(err, ErrNoRun) && !errors.Is(err, errUnreadable) { // without a record that can be read a new one does
			return err
		}
		if now.Ended() && now.State != state && state != StateDone {
			if state != StateInterrupted { // else who takes the job next does it
				t.forgetCancel(ctx, id)
			}
			return nil
		}
		r = now
		r.Run, r.State, r.Error, r.Code = id, state, "", t.Code(state, cause)
		if state == StateDone { // its results lie here, also where another one led it last and came to less
			r.Lead = cmp.Or(t.ID, r.Lead)
		}
		if cause != nil {
			r.Error = TextOf(cause)
		}
		err = putRunAt(ctx, t.Bus, &r, revision)
		if errors.Is(err, cluster.ErrConflict) { // another has written it since it was read
			continue
		}
		if err != nil || !r.Ended() {
			return err
		}
		break
	}
	level := slog.LevelInfo
	if cause != nil {
		level = slog.LevelError
	}
	event, err := json.Marshal(RunEnd{
		Time: time.Now().UTC(), Level: level.String(), Msg: EndMessage, Run: id, State: state, Code: r.Code, Error: r.Error,
	})
	if err != nil {
		return err
	}
	if err := t.Bus.Events().Publish(id, event); err != nil {
		t.Log.Warn("the end of the run was not published", "run", id, "err", err)
	}
	t.forgetCancel(ctx, id)
	return nil
}

// forgetCancel removes a request to cancel a run that has ended.
func (t *Taker) forgetCancel(ctx context.Context, id string) {
	if err := ForgetCancel(ctx, t.Bus, id); err != nil {
		t.Log.Warn("the request to cancel the run was not removed", "run", id, "err", err)
	}
}

// tidy removes what only a run that continues needs: answers that are kept here, and what was uploaded for it, by its leads too.
func (t *Taker) tidy(run string) {
	t.over(run)
	for _, id := range []string{run, ledPrefix + run} {
		if err := uploads.Drop(context.Background(), t.Bus, id); err != nil {
			t.Log.Warn("what was uploaded for the run was not removed", "run", run, "err", err)
		}
	}
}

// over tells who wants to know it that a run has ended.
func (t *Taker) over(run string) {
	if t.Over == nil {
		return
	}
	if err := t.Over(run); err != nil {
		t.Log.Warn("what the run would have continued from was not removed", "run", run, "err", err)
	}
}

// tidyEnded tidies a run that was left to another coordinator, if that one has ended it: what was uploaded here since then, as by a process
// that had been stopped, was not there when the other one tidied. If it leads the run still, it will.
func (t *Taker) tidyEnded(run string) {
	ctx, cancel := context.WithTimeout(context.Background(), PartingTime)
	defer cancel()
	if r, _, err := GetRun(ctx, t.Bus, run); err == nil && r.Ended() {
		t.tidy(run)
	}
}

// finish removes a job from the queue, once it is tidied. If that fails it comes again, and its record says that it is done. The queue is
// told whatever became of the uploads, and has its time however long these took. Until then it hears that the job is worked on, which stop
// ends.
func (t *Taker) finish(d cluster.Delivery, stop func()) {
	t.leave(d.ID())
	t.tidy(d.ID())
	stop()
	ctx, cancel := context.WithTimeout(context.Background(), PartingTime)
	defer cancel()
	if err := d.Done(ctx); err != nil {
		t.Log.Error("the run was not removed from the queue", "run", d.ID(), "err", err)
	}
}

// giveBack lets another taker have the job at once; else it has to wait until
// the queue notices.
func (t *Taker) giveBack(d cluster.Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), PartingTime)
	defer cancel()
	if err := d.Release(ctx); err != nil {
		t.Log.Warn("the run was not handed back", "run", d.ID(), "err", err)
	}
}

// RequestCancel asks for the end of a run. One that is not being worked on is cancelled at once, and its record gets that exit code, any
// other when its coordinator sees the request; the result says which. It waits to see whether a process still leads a run of pce train
// --cluster. What that has uploaded for a run that it left goes, too,
// also where the run was cancelled before and that could not be removed, where it has failed, or a process waits to continue it.
func RequestCancel(ctx context.Context, bus cluster.Bus, id string, code int) (atOnce bool, err error) {
	for {
		r, revision, err := GetRun(ctx, bus, id)
		if err != nil {
			return false, err
		}
		leaves, err := leavesUploads(ctx, bus, id, &r)
		switch {
		case err != nil:
			return false, err
		case r.State == StateCancelled && !strings.HasPrefix(id, LocalPrefix):
			return true, nil
		case r.State != StateCancelled && r.Ended() && !leaves:
			return false, fmt.Errorf("%w: run %s is %s already", ErrNoRun, id, r.State)
		}
		runs := bus.Bucket(cluster.RunsBucket)
		if _, err := runs.Put(ctx, CancelPrefix+id, []byte(time.Now().UTC().Format(time.RFC3339))); err != nil {
			return false, err
		}
		if r.State == StateRunning && !ledByNone(ctx, bus, id) {
			if !strings.HasPrefix(id, LocalPrefix) || renewed(ctx, bus, id) {
				return false, nil
			}
			continue // the process that led it has died, or has ended it
		}
		r.State, r.Error, r.Code = StateCancelled, "", code
		value, err := json.Marshal(&r)
		if err != nil {
			return false, err
		}
		switch _, err = runs.Update(ctx, id, value, revision); {
		case err == nil && strings.HasPrefix(id, LocalPrefix): // no taker will come to it
			if err := uploads.Drop(ctx, bus, ledPrefix+id); err != nil {
				return true, fmt.Errorf("run %s is cancelled, and what it has uploaded was not removed: %w", id, err)
			}
			return true, nil
		case err == nil:
			return true, nil
		case !errors.Is(err, cluster.ErrConflict): // else a coordinator took it meanwhile: look again
			return false, err
		}
	}
}

// leavesUploads reports whether a run of pce train --cluster has failed and left what it has uploaded, as it may continue: after the loss of
// the lead or of the broker, say.
func leavesUploads(ctx context.Context, bus cluster.Bus, id string, r *Record) (bool, error) {
	if r.State != StateFailed || !strings.HasPrefix(id, LocalPrefix) {
		return false, nil
	}
	noted, err := uploads.Noted(ctx, bus, ledPrefix+id)
	return len(noted) > 0, err
}

// ledByNone reports whether no process leads a run of pce train --cluster: one that is killed leaves its record as it was.
func ledByNone(ctx context.Context, bus cluster.Bus, id string) bool {
	var h cluster.Holder
	rec, err := bus.Bucket(cluster.LeadBucket).Get(ctx, cluster.LeadKey)
	return (err == nil && json.Unmarshal(rec.Value, &h) == nil || errors.Is(err, cluster.ErrNoRecord)) && h.Run != id && strings.HasPrefix(id, LocalPrefix)
}

// renewed reports whether a process that leads a run of pce train --cluster renews its lead. One that was killed has it until its lease is
// over, which is waited for as long as ctx lasts.
func renewed(ctx context.Context, bus cluster.Bus, id string) bool {
	for first := uint64(0); ; {
		var h cluster.Holder
		rec, err := bus.Bucket(cluster.LeadBucket).Get(ctx, cluster.LeadKey)
		switch {
		case errors.Is(err, cluster.ErrNoRecord):
			return false
		case err != nil || json.Unmarshal(rec.Value, &h) != nil:
			return true // as far as is known
		case h.Run != id:
			return false
		case first != 0 && rec.Revision != first:
			return true
		}
		first = rec.Revision
		select {
		case <-time.After(memberInterval):
		case <-ctx.Done():
			return true
		}
	}
}

// cancelRequested reports whether a client asked for the end of a run.
func cancelRequested(ctx context.Context, bus cluster.Bus, id string) (bool, error) {
	_, err := bus.Bucket(cluster.RunsBucket).Get(ctx, CancelPrefix+id)
	if errors.Is(err, cluster.ErrNoRecord) {
		return false, nil
	}
	return err == nil, err
}

// WatchCancel returns a context that ends, with the cause ErrCancelled, when
// a client asks for the end of a run. Stop ends the watch and waits for it.
func WatchCancel(parent context.Context, bus cluster.Bus, id string) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ended := periodic.StartNow(ctx, cancelInterval, func(ctx context.Context) {
		// An unreachable broker does not end the run: the next look may find it.
		if asked, err := cancelRequested(ctx, bus, id); err == nil && asked {
			cancel(ErrCancelled)
		}
	})
	return ctx, func() {
		cancel(context.Canceled)
		ended()
	}
}

// ForgetCancel removes a request to cancel a run.
func ForgetCancel(ctx context.Context, bus cluster.Bus, id string) error {
	err := bus.Bucket(cluster.RunsBucket).Delete(ctx, CancelPrefix+id, 0)
	if errors.Is(err, cluster.ErrNoRecord) {
		return nil
	}
	return err
}
