package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// onceFlags are flags of a file that is read, where a command reads one.
var onceFlags = []string{"model", "given", "density", "expected", "other", "data"}

// onceValue is a value that is given once. Another one would take its place without a word, so that rows of the first were left out.
type onceValue struct {
	pflag.Value
	set bool
}

// Set refuses a second value.
func (v *onceValue) Set(text string) error {
	if v.set {
		return errors.New("it is given twice; give one")
	}
	v.set = true
	return v.Value.Set(text)
}

// refuseTwice makes all commands of the tree refuse a second value of these flags, but for lists.
func refuseTwice(c *cobra.Command) {
	for _, name := range onceFlags {
		if f := c.Flags().Lookup(name); f != nil && f.Value.Type() == "string" {
			f.Value = &onceValue{Value: f.Value}
		}
	}
	for _, sub := range c.Commands() {
		refuseTwice(sub)
	}
}
