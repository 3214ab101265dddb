package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// listValue is a flag of names with commas between them, which may be repeated. pflag's own reads the first line alone, so that of
// columns which a file lists one a line all but the first were left out.
type listValue struct {
	names *[]string
	set   bool // what was there before is not the default
}

// addList adds a flag of names, which are nil without it.
func addList(flags *pflag.FlagSet, names *[]string, name, usage string) {
	*names = nil
	flags.Var(&listValue{names: names}, name, usage)
}

// Set reads a list.
func (l *listValue) Set(text string) error {
	names, err := readList(text)
	if err != nil {
		return err
	}
	if l.set {
		names = append(*l.names, names...)
	}
	*l.names, l.set = names, true
	return nil
}

// Type is what help calls the value.
func (l *listValue) Type() string { return "strings" }

// String is the value as text, empty where the flag was not given.
func (l *listValue) String() string {
	if l.names == nil {
		return ""
	}
	return strings.Join(*l.names, ",")
}

// readList returns the names of a list, which is empty or a line of a table with commas: a name with a comma or a line end is in
// double quotes.
func readList(text string) ([]string, error) {
	if text == "" {
		return []string{}, nil
	}
	lines := csv.NewReader(strings.NewReader(text))
	names, err := lines.Read()
	if _, end := lines.Read(); err != nil || end != io.EOF {
		return nil, fmt.Errorf("%.80q is not a list of names; separate them by commas, and put one with a comma or a line end in double quotes", text)
	}
	return names, nil
}
