package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// refuseTopics makes the help command of a tree refuse what is not a command: cobra's own prints the use of the whole program and succeeds.
func refuseTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Run, c.RunE = nil, printHelp
		}
	}
}

// printHelp prints the help of the command that the arguments name.
func printHelp(help *cobra.Command, args []string) error {
	c, rest, err := help.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %q for %q", rest[0], c.CommandPath())
	}
	if err != nil {
		return usagef("%s", explain(c, err))
	}
	c.InitDefaultHelpFlag()
	return c.Help()
}
