package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// modelArguments lets every command of the tree that takes --model, and no arguments, take
// the model as its argument too: pce eval MODEL is pce eval --model MODEL.
func modelArguments(c *cobra.Command) {
	if f := c.Flags().Lookup("model"); f != nil && f.Value.Type() == "string" && c.Args != nil && c.Args(c, nil) == nil && c.Args(c, []string{"x"}) != nil {
		none := c.Args
		c.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return none(cmd, args)
			}
			if cmd.Flags().Changed("model") {
				return fmt.Errorf("a model by --model and another one, %s, without it; give one", args[0])
			}
			return cmd.Flags().Set("model", args[0])
		}
		c.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 || cmd.Flags().Changed("model") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeModel(cmd, args, typed)
		}
	}
	for _, sub := range c.Commands() {
		modelArguments(sub)
	}
}
