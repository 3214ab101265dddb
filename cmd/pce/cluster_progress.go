package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/internal/periodic"
)

// progressPause is how often a run in the middle of a long epoch says how far it is.
const progressPause = 10 * time.Second

// lockedWriter lets several goroutines write whole lines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes p while no other goroutine writes. Lines of two of them never mix as long as
// each comes in one call.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// reportProgress writes how far a run is, a line for each epoch and now and then
// one within an epoch, until stop is called.
func reportProgress(ctx context.Context, bus cluster.Bus, run string, w io.Writer) (stop func()) {
	var last cluster.RunStatus
	var failed error
	told := time.Now()
	return periodic.Start(ctx, statusInterval, func(ctx context.Context) {
		if failed != nil {
			return
		}
		call, end := context.WithTimeout(ctx, brokerPatience)
		r, _, err := job.GetRun(call, bus, run)
		end()
		moved := r.Epoch != last.Epoch || (r.Step != last.Step || r.Rows != last.Rows) && time.Since(told) >= progressPause
		if err != nil || r.State != job.StateRunning || !moved {
			return // a broker that is away is noticed by who follows the run
		}
		last, told = r.RunStatus, time.Now()
		_, failed = fmt.Fprintln(w, progressLine(&last))
	})
}

// howFar says how far a run is: in epochs if it trains, else in rows.
func howFar(s *cluster.RunStatus) string {
	if s.Kind == kindTrain {
		return fmt.Sprintf("epoch %d/%d, step %d", s.Epoch, s.Epochs, s.Step)
	}
	return several(s.Rows, "row")
}

// progressLine says how far a run is, and its figures.
func progressLine(s *cluster.RunStatus) string {
	text := howFar(s)
	if f := figures(s); f != "" {
		text += ", " + f
	}
	return text
}
