package em

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Resume continues from the newest checkpoint that is whole: its parameters
// replace those of the source. found is false if there is none, and the run
// starts afresh. If a fact that is not free has changed since, the error matches
// ErrChanged and names all such facts, unless Options.AllowChanges is set. Call
// it before Run.
func (t *Trainer) Resume(ctx context.Context) (found bool, err error) {
	t.resumed = true
	if t.dir == nil {
		return false, nil
	}
	var others []string // what the best was chosen by that is another now
	found, err = t.dir.load(ctx, func(path string, f io.ReaderAt, size int64) error {
		c, err := readCheckpoint(f, size)
		if err != nil {
			return err
		}
		changes, err := t.continues(c, path)
		if err != nil {
			return err
		}
		others = nil
		for _, name := range []string{ValidRowsFact, ObjectiveFact} {
			if valueOf(c.fingerprint, name) != valueOf(t.opts.fingerprint(t.flows.Rows()), name) {
				others = append(others, name)
			}
		}
		return t.restore(ctx, c, changes)
	})
	if err == nil && others != nil {
		t.state.Judged = t.state.At.Epoch
		if t.state.hasBest() {
			err = t.judgeAgain(ctx, strings.Join(others, " and "))
		}
	}
	if err != nil {
		return found, t.stopped(ctx, err)
	}
	if found {
		t.log.Info("resumed", "epoch", t.state.At.Epoch, "step", t.state.Steps)
	}
	return found, nil
}

// Resumed says where the run stands, after how many epochs and steps, and what
// has changed since the checkpoint that Resume continued from. Call it before Run.
func (t *Trainer) Resumed() (epochs int, steps int64, changes []Change) {
	return t.state.At.Epoch, t.state.Steps, t.changes
}

// BestValid returns the largest log-likelihood of the validation rows so far, of the epochs that had these rows and this objective;
// where the best parameters are kept, it is theirs. NaN if there is none. Call it before Run.
func (t *Trainer) BestValid() float64 {
	best := math.NaN()
	switch {
	case t.opts.Valid == nil:
		return best
	case t.state.hasBest():
		return float64(t.state.BestLL)
	}
	for line := range bytes.Lines(t.lines) {
		var x struct {
			Epoch   int
			ValidLL *float64 `json:"valid_ll"`
		}
		if json.Unmarshal(line, &x) == nil && x.Epoch > t.state.Judged && x.ValidLL != nil && !(*x.ValidLL <= best) {
			best = *x.ValidLL
		}
	}
	return best
}

// continues decides whether the run may continue from a checkpoint, and lists
// what has changed since it was written.
func (t *Trainer) continues(c *checkpoint, path string) ([]Change, error) {
	changes := CompareFacts(c.fingerprint, t.opts.fingerprint(t.flows.Rows()))
	if c.version == 1 {
		if c.state.At.Step > 0 {
			return nil, fmt.Errorf("%w: the version of pce that wrote it cut an epoch into other batches, and it was written inside epoch %d; finish the epoch with that version, or choose another directory",
				errOther, c.state.At.Epoch+1)
		}
		// Its settings are all that it knows of what the run was.
		was := Options{Seed: c.settings.Seed, ShardRows: c.settings.ShardRows, Phases: c.settings.Phases}
		changes = append(CompareFacts(was.Facts(), t.opts.Facts()), Change{Name: "checkpoint version", Was: "1 (no fingerprint of rows, kernels and settings)", Now: "2"})
	}
	bound := binding(changes)
	if err := c.fits(t.flows.Program()); err != nil {
		if !errors.Is(err, errOther) {
			return nil, err
		}
		if len(bound) > 0 {
			err = fmt.Errorf("%w: %s", err, ListChanges(bound))
		}
		return nil, fmt.Errorf("%w; restore what was, or choose another directory", err)
	}
	if len(bound) > 0 && !t.opts.AllowChanges {
		return nil, fmt.Errorf("%w since %s was written: %s; restore what was, or continue as it is with AllowChanges", ErrChanged, path, ListChanges(bound))
	}
	return changes, nil
}

// restore takes the run to the place of a checkpoint that passed all checks: parameters,
// averages, the best ones, state and the lines of metrics. changes are those that the caller
// allows, and are logged. If it fails the parameters may be half written, so the run cannot
// continue.
func (t *Trainer) restore(ctx context.Context, c *checkpoint, changes []Change) error {
	best, err := c.best()
	if err != nil {
		return err
	}
	lines, err := c.lines()
	if err != nil {
		return err
	}
	if err := c.copyTo(ctx, paramsTensor, t.flows.Program().NumParams, t.flows.WriteParams); err != nil {
		return err
	}
	st := c.state
	if !t.opts.averages() {
		st.Averages = 0
	}
	// Averaged statistics of leaves without codes are in units of the largest number of the rows, those of earlier versions in others.
	why := ""
	switch {
	case slices.ContainsFunc(changes, func(c Change) bool { return c.Name == TrainRowsFact }):
		why = "they are of other training rows"
	case !st.Scaled:
		why = "an earlier version of pce kept them in other units"
	}
	if st.Averages > 0 && why != "" && len(t.flows.Program().Functions()) > 0 {
		st.Averages = 0
		t.log.Info("the averaged counts begin anew: "+why, "epoch", st.At.Epoch+1)
	}
	st.Scaled = true
	if st.Averages > 0 {
		if err := c.copyTo(ctx, averagesTensor, t.flows.Program().AverageLen(), t.flows.WriteAverages); err != nil {
			return err
		}
	}
	for _, change := range changes {
		if change.Free {
			t.log.Info("changed since the checkpoint: " + change.String())
		} else {
			t.log.Warn("changed since the checkpoint: " + change.String())
		}
	}
	now := t.opts.settings(t.flows.Rows())
	if st.recut(c.settings, now) {
		t.log.Warn("the epoch begins again: its rows are cut into other steps than before", "epoch", st.At.Epoch+1)
	}
	if st.hasBest() && !t.opts.KeepsBest() {
		// Epochs are not compared from here on, so it may not stay the best.
		t.log.Info("the best parameters so far are forgotten: this part of the run keeps its last ones", "epoch", st.BestEpoch)
		best = nil
		st.forgetBest()
	}
	t.state, t.best, t.lines, t.changes = st, best, lines, changes
	t.extend(c.settings.epochs(), now.epochs())
	return nil
}

// judgeAgain takes the log-likelihood of the best parameters so far on Valid, where they were
// chosen by other rows or another objective: those of the epochs to come can be compared with it
// alone. Patience counts from here, since the epochs after the best one were not judged like this.
func (t *Trainer) judgeAgain(ctx context.Context, by string) error {
	if err := t.swapBest(ctx); err != nil {
		return err
	}
	all, err := t.flows.LogLikelihood(ctx, t.opts.Valid)
	if err := errors.Join(err, t.swapBest(ctx)); err != nil {
		return err
	}
	st := &t.state
	was := st.BestLL
	st.BestLL, st.Waiting = exact(all.Mean()), st.At.Epoch
	t.log.Info("the best parameters so far are judged by the new "+by,
		"epoch", st.BestEpoch, "valid_ll", float64(st.BestLL), "was", float64(was))
	return nil
}

// swapBest exchanges the best parameters with those of the source.
func (t *Trainer) swapBest(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // half a swap would lose both
	return eachChunk(int64(len(t.best)), func(at int64, buf []float32) error {
		best := t.best[at:][:len(buf)]
		if err := t.flows.ReadParams(ctx, at, buf); err != nil {
			return err
		}
		if err := t.flows.WriteParams(ctx, at, best); err != nil {
			return err
		}
		copy(best, buf)
		return nil
	})
}

// extend says what another number of epochs does to the rest of the run.
func (t *Trainer) extend(was, now int) {
	if was == now {
		return
	}
	st := &t.state
	if now > was && st.At.Step == 0 && t.impatient() {
		st.Waiting = st.At.Epoch
		t.log.Info("the run had stopped early; it continues, with all of its patience", "epoch", st.At.Epoch)
	}
	how := "raised"
	if now < was {
		how = "lowered"
	}
	t.log.Info(fmt.Sprintf("epochs %s from %d to %d; the schedule runs over the new total from where the run stands", how, was, now), "epoch", st.At.Epoch)
}
