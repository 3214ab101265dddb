package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster/job"
)

// longestLead bounds how long cancel waits to see whether a process leads its own run.
const longestLead = 30 * time.Second

// clusterCancelCommand makes the command pce cluster cancel, which asks the cluster to end a
// run or to take a job out of the queue.
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
			// A process that was killed as it led its own run has the lead for a lease more.
			ctx, cancel := context.WithTimeout(cmd.Context(), brokerPatience+min(bus.Lease(), longestLead))
			defer cancel()
			atOnce, err := job.RequestCancel(ctx, bus, args[0], exitInterrupted)
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
