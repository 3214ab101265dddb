package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
)

// cancelInterval is how often a run looks for a request to cancel it.
const cancelInterval = time.Second

// requestCancel asks for the end of a run. One that nobody works on is cancelled
// at once, any other when its coordinator sees the request; the result says
// whether it was the former.
func requestCancel(ctx context.Context, bus cluster.Bus, id string) (atOnce bool, err error) {
	for {
		r, revision, err := job.GetRun(ctx, bus, id)
		if err != nil {
			return false, err
		}
		switch {
		case r.State == job.StateCancelled:
			return true, nil
		case r.Ended():
			return false, usagef("run %s is %s already", id, r.State)
		}
		runs := bus.Bucket(cluster.RunsBucket)
		if _, err := runs.Put(ctx, job.CancelPrefix+id, []byte(time.Now().UTC().Format(time.RFC3339))); err != nil {
			return false, err
		}
		if r.State == job.StateRunning {
			return false, nil
		}
		r.State = job.StateCancelled
		value, err := json.Marshal(&r)
		if err != nil {
			return false, err
		}
		switch _, err = runs.Update(ctx, id, value, revision); {
		case err == nil:
			return true, nil
		case !errors.Is(err, cluster.ErrConflict): // else somebody took it up: look again
			return false, err
		}
	}
}

// cancelRequested reports whether somebody asked for the end of a run.
func cancelRequested(ctx context.Context, bus cluster.Bus, id string) (bool, error) {
	_, err := bus.Bucket(cluster.RunsBucket).Get(ctx, job.CancelPrefix+id)
	if errors.Is(err, cluster.ErrNoRecord) {
		return false, nil
	}
	return err == nil, err
}

// watchCancel returns a context that ends, with the cause job.ErrCancelled, when
// somebody asks for the end of a run. Stop ends the watch and waits for it.
func watchCancel(parent context.Context, bus cluster.Bus, id string) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(cancelInterval)
		defer tick.Stop()
		for {
			// A broker that is away is no reason to stop: the next look may find it.
			if asked, err := cancelRequested(ctx, bus, id); err == nil && asked {
				cancel(job.ErrCancelled)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}

func (a *app) clusterCancelCommand() *cobra.Command {
	var flags clusterFlags
	c := &cobra.Command{
		Use:   "cancel --cluster URL|@FILE RUN",
		Short: "End a run that is queued or running; what it has written stays",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := job.CheckID(args[0]); err != nil {
				return err
			}
			bus, err := flags.connect(cmd.Context(), "cancel")
			if err != nil {
				return err
			}
			defer bus.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), brokerPatience)
			defer cancel()
			atOnce, err := requestCancel(ctx, bus, args[0])
			if err != nil {
				return err
			}
			text := "its coordinator was asked to end it"
			if atOnce {
				text = "cancelled"
			}
			_, err = fmt.Fprintf(a.stdout, "run %s: %s\n", args[0], text)
			return err
		},
	}
	flags.register(c.Flags())
	return c
}
