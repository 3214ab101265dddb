package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/internal/periodic"
)

// quietTime without an event makes a follower look whether its run has ended.
const quietTime = 2 * time.Second

// errQuiet is the cause of the end of following a run that says nothing more.
var errQuiet = errors.New("no more events")

// printEvents prints what a run has reported so far.
func printEvents(ctx context.Context, bus cluster.Bus, run string, w io.Writer) error {
	var broken error
	err := bus.Events().Read(ctx, run, func(event []byte) bool {
		_, broken = fmt.Fprintln(w, oneLine(string(event)))
		return broken == nil
	})
	return errors.Join(broken, err)
}

// follower prints the events of a run to its end.
type follower struct {
	bus cluster.Bus
	run string
	w   io.Writer
	// notes is told when the broker does not answer, and when it does.
	notes io.Writer
}

// print prints events until the run has ended. The end is that of the run, if an
// event said so.
func (f *follower) print(parent context.Context) (end *job.RunEnd, err error) {
	parent, stop := endWithStorage(parent, f.bus)
	defer stop()
	defer tellAbsence(parent, f.bus, f.notes)()
	ctx, cancel := context.WithCancelCause(parent)
	var heard atomic.Bool
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for f.listening(ctx, &heard) {
		}
		cancel(errQuiet)
	}()
	var broken error
	err = f.bus.Events().Follow(ctx, f.run, func(event []byte) bool {
		heard.Store(true)
		if _, broken = fmt.Fprintln(f.w, oneLine(string(event))); broken != nil {
			return false
		}
		var e job.RunEnd
		if json.Unmarshal(event, &e) == nil && e.Msg == job.EndMessage {
			end = &e
		}
		return end == nil
	})
	quiet := context.Cause(ctx) == errQuiet
	cancel(nil)
	<-watched
	switch {
	case broken != nil:
		return nil, broken
	case parent.Err() != nil:
		return nil, context.Cause(parent)
	case quiet:
		return end, nil
	}
	return end, err
}

// tellAbsence says when the broker does not answer, as what follows a run waits for it however long that takes, and when it answers, until
// stop is called.
func tellAbsence(ctx context.Context, bus cluster.Bus, w io.Writer) (stop func()) {
	away := false
	return periodic.Start(ctx, statusInterval, func(ctx context.Context) {
		call, end := context.WithTimeout(ctx, brokerPatience)
		_, err := bus.Bucket(cluster.LeadBucket).Get(call, cluster.LeadKey)
		end()
		now := errors.Is(err, cluster.ErrUnreachable)
		if now == away || ctx.Err() != nil {
			return
		}
		text := "the broker answers"
		if away = now; away {
			text = "the broker does not answer; waiting for it"
		}
		_ = tell(w, "note: %s", text) // who cannot write it finds that out with the events
	})
}

// listening waits, and reports whether events may still come. The event of the
// end may have been lost, so the run's record is asked.
func (f *follower) listening(ctx context.Context, heard *atomic.Bool) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(quietTime):
	}
	if heard.Swap(false) {
		return true
	}
	r, _, err := job.GetRun(ctx, f.bus, f.run)
	return err != nil || !r.Ended() // without the broker, silence says nothing
}

// clusterLogsCommand makes the command pce cluster logs RUN, which prints the log lines of a
// run and, with -f, follows it until it ends.
func (a *app) clusterLogsCommand() *cobra.Command {
	var flags clusterFlags
	var follow bool
	c := &cobra.Command{
		Use:   "logs --cluster URL|@FILE RUN",
		Short: "Print what a run reported so far, one JSON object a line; with -f on to its end",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := job.CheckID(args[0]); err != nil {
				return err
			}
			bus, err := flags.connect(cmd.Context(), "logs")
			if err != nil {
				return err
			}
			defer bus.Close()
			if _, _, err := job.GetRun(cmd.Context(), bus, args[0]); err != nil {
				return err
			}
			if !follow {
				return printEvents(cmd.Context(), bus, args[0], a.stdout)
			}
			_, err = (&follower{bus: bus, run: args[0], w: a.stdout, notes: a.stderr}).print(cmd.Context())
			if cmd.Context().Err() != nil {
				return nil // that is how people end it
			}
			return err
		},
	}
	flags.register(c.Flags())
	c.Flags().BoolVarP(&follow, "follow", "f", false, "continue until the run ends")
	return c
}
