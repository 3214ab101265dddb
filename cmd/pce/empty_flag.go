package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// neverEmpty are flags without which a command does something else: trains here and not on the cluster, answers requests without a
// token, makes the inputs of a program from a seed, interprets one that is to be timed, or takes the working directory.
var neverEmpty = []string{
	"given", "density", "expected", "schedule", "profile", "data", "represent", "emit", "target", "predict-card", "tensorboard",
	"cluster", "token-file", "tls-cert", "tls-key", "keys", "url-file", "root", "dir", "time",
}

// refuseEmpty makes commands refuse these flags without a value, as that of a variable of a shell that is not set. The command
// would do something else without a word, such as draw rows that are not given what a file says.
func refuseEmpty(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			for _, name := range neverEmpty {
				if f := cmd.Flags().Lookup(name); f != nil && f.Changed && isEmpty(f.Value) {
					return usagef("--%s is empty; give it a value, or leave it out", name)
				}
			}
			return run(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		refuseEmpty(sub)
	}
}

// isEmpty reports whether a value, or one of those of a flag that is repeatable, is empty.
func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		return slices.Contains(list.GetSlice(), "")
	}
	return v.String() == ""
}
