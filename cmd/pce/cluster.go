package main

import "github.com/spf13/cobra"

func (a *app) clusterCommand() *cobra.Command {
	c := &cobra.Command{Use: "cluster", Short: "Train and evaluate on many machines"}
	c.AddCommand(
		a.clusterCancelCommand(),
		a.clusterClientCommand(),
		a.clusterFetchCommand(),
		a.clusterLogsCommand(),
		a.clusterStatusCommand(),
		a.clusterSubmitCommand(),
		a.clusterUpCommand(),
	)
	return c
}
