// Package golden runs golden dialogues: test files that show commands, their
// input and the output that is expected.
//
// # Shapes and units
//
// A file is a list of cases with empty lines and # comments between them. A case
// is a command with arguments on one line, lines of input, a line ---- and lines
// of output up to an empty line or the end of the file:
//
//	levelize depth=3
//	s = sum p : 1.0
//	----
//	layer 0  input  n0 n1
//
// Output with empty lines is between two lines ---- and two more, before an
// empty line. Arguments are separated by blanks. With the flag -rewrite the files
// get the output that there is; read the difference before you keep it.
//
// # Errors
//
// Run fails the test with file and line. Only tests import this package: it
// defines a flag.
//
// # Source
//
// The form follows cockroachdb/datadriven; the code is ours.
package golden

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the output of golden dialogues to their files")

const separator = "----"

// block is one case with the lines before it.
type block struct {
	line    int      // of the command, from 1
	before  []string // empty lines and comments
	command string
	input   []string
	output  string // without the last newline
}

// Run calls do for every case of the file at path, in order, and compares what it
// returns with the file. The last newline of an output does not count.
func Run(t *testing.T, path string, do func(cmd string, args []string, input string) string) {
	t.Helper()
	faults, err := run(path, *rewrite, do)
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// run returns the cases of a file whose output differs; with rewrite it changes the file
// instead. An output that the format cannot hold is an error.
func run(path string, rewrite bool, do func(cmd string, args []string, input string) string) (faults []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	blocks, after, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	for i := range blocks {
		b := &blocks[i]
		words := strings.Fields(b.command)
		input := strings.Join(b.input, "\n")
		if len(b.input) > 0 {
			input += "\n"
		}
		got := strings.TrimSuffix(do(words[0], words[1:], input), "\n")
		if rewrite {
			b.output = got
		} else if got != b.output {
			faults = append(faults, fmt.Sprintf("%s:%d: %s\ngot:\n%s\nwant:\n%s\n(go test -rewrite accepts what it got)",
				path, b.line, b.command, got, b.output))
		}
		if strings.Contains("\n"+got+"\n", "\n"+separator+"\n"+separator+"\n\n") {
			return nil, fmt.Errorf("%s:%d: the output has two lines %s and an empty one, which ends an output; print it in another way", path, b.line, separator)
		}
	}
	if rewrite {
		return nil, os.WriteFile(path, []byte(format(blocks, after)), 0o644)
	}
	return faults, nil
}

// parse cuts a file into cases; after are the lines behind the last one. Comments and empty
// lines belong to the case that follows, so that a rewrite keeps them. Errors begin with the
// line.
func parse(text string) (blocks []block, after []string, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		var b block
		for i < len(lines) && (strings.TrimSpace(lines[i]) == "" || lines[i][0] == '#') {
			b.before = append(b.before, lines[i])
			i++
		}
		if i == len(lines) {
			return blocks, b.before, nil
		}
		b.line, b.command = i+1, lines[i]
		if b.command == separator {
			return nil, nil, fmt.Errorf("%d: %s without a command; an output with empty lines is written between two lines %[2]s", b.line, separator)
		}
		for i++; ; i++ {
			if i == len(lines) {
				return nil, nil, fmt.Errorf("%d: no %s after the command %q", b.line, separator, b.command)
			}
			if lines[i] == separator {
				break
			}
			b.input = append(b.input, lines[i])
		}
		i++
		var out []string
		if out, i, err = output(lines, i); err != nil {
			return nil, nil, fmt.Errorf("%d: %w", b.line, err)
		}
		b.output = strings.Join(out, "\n")
		blocks = append(blocks, b)
	}
	return blocks, nil, nil
}

// output reads the lines of an output from line i on and returns the line after.
func output(lines []string, i int) ([]string, int, error) {
	if i == len(lines) || lines[i] != separator { // the usual form
		start := i
		for i < len(lines) && lines[i] != "" {
			i++
		}
		return lines[start:i], i, nil
	}
	start := i + 1
	for end := start; end+1 < len(lines); end++ {
		if lines[end] == separator && lines[end+1] == separator && (end+2 == len(lines) || lines[end+2] == "") {
			return lines[start:end], end + 2, nil
		}
	}
	return nil, 0, errors.New("the output does not end with two lines " + separator)
}

// format is the inverse of parse: it writes outputs with empty lines between doubled
// separators, others as they are.
func format(blocks []block, after []string) string {
	var b strings.Builder
	lines := func(list ...string) {
		for _, l := range list {
			b.WriteString(l + "\n")
		}
	}
	for i := range blocks {
		x := &blocks[i]
		lines(x.before...)
		lines(x.command)
		lines(x.input...)
		lines(separator)
		switch {
		case strings.HasPrefix(x.output, "\n") || strings.Contains(x.output, "\n\n") || strings.HasSuffix(x.output, "\n") ||
			strings.HasPrefix(x.output+"\n", separator+"\n"):
			lines(separator, x.output, separator, separator)
		case x.output != "":
			lines(x.output)
		}
	}
	lines(after...)
	return b.String()
}
