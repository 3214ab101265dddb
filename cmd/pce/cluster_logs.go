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
)

// quietTime without an event means that all that are kept have come.
const quietTime = 2 * time.Second

// errQuiet is the cause of the end of following a run that says nothing more.
var errQuiet = errors.New("no more events")

// follower prints the events of a run.
type follower struct {
	bus    cluster.Bus
	run    string
	w      io.Writer
	follow bool // on to the end of the run, instead of to the newest event
}

// print prints events until the run has ended, or all are printed. The end is
// that of the run, if an event said so.
func (f *follower) print(parent context.Context) (end *runEnd, err error) {
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
		var e runEnd
		if json.Unmarshal(event, &e) == nil && e.Msg == endMessage {
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
	r, _, err := getRun(ctx, f.bus, f.run)
	return err != nil || f.follow && !r.ended() // without the broker, silence says nothing
}

func (a *app) clusterLogsCommand() *cobra.Command {
	var flags clusterFlags
	var follow bool
	c := &cobra.Command{
		Use:   "logs --cluster URL|@FILE RUN",
		Short: "Print what a run reported, one JSON object a line",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkRunID(args[0]); err != nil {
				return err
			}
			bus, err := flags.connect(cmd.Context(), "logs")
			if err != nil {
				return err
			}
			defer bus.Close()
			if _, _, err := getRun(cmd.Context(), bus, args[0]); err != nil {
				return err
			}
			_, err = (&follower{bus: bus, run: args[0], w: a.stdout, follow: follow}).print(cmd.Context())
			if follow && cmd.Context().Err() != nil {
				return nil // that is how people end it
			}
			return err
		},
	}
	flags.register(c.Flags())
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends")
	return c
}
