package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// octal is a whole number that pflag takes for an octal one.
var octal = regexp.MustCompile(`^[-+]?0[0-7_]+$`)

// decimalValue is a whole number that does not begin with a 0, which configs refuse, too.
type decimalValue struct{ pflag.Value }

// Set refuses a number like 010, which pflag takes for 8 and people for 10.
func (v decimalValue) Set(text string) error {
	if octal.MatchString(text) {
		return fmt.Errorf("%.40s may be octal or decimal; write it without the 0 in front, or as %.40s if it is octal", text, strings.Replace(text, "0", "0o", 1))
	}
	return v.Value.Set(text)
}

// refuseOctal makes all commands of the tree refuse such numbers.
func refuseOctal(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "int", "int64", "uint64":
			f.Value = decimalValue{f.Value}
		}
	})
	for _, sub := range c.Commands() {
		refuseOctal(sub)
	}
}
