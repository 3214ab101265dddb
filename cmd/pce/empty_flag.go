package main

import "github.com/spf13/cobra"

// neverEmpty are flags without which a command does something else.
var neverEmpty = []string{"given", "density", "expected", "schedule", "profile"}

// refuseEmpty makes commands refuse these flags without a value, as that of a variable of a shell that is not set. The command
// would do something else without a word, such as draw rows that are not given what a file says.
func refuseEmpty(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			for _, name := range neverEmpty {
				if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
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
