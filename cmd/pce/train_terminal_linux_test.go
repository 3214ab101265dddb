package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/digits"
)

// terminalConfig trains in a moment, on small random images that are called digits.
const terminalConfig = `
name: small
threads: 1
device: cpu
model: {structure: hclt, latents: 3}
data: {train: "builtin:digits/train", valid: "builtin:digits/valid", test: "builtin:digits/test", image: [4, 4]}
train: {epochs: 3, batch_size: 50, samples: 4, shard_rows: 512}
`

// TestTerminal plays testdata/terminal/*.txt, each in an empty directory with the file
// small.yaml, as TestDialogues does but on a terminal and into a pipe:
//
//	pty COLUMNS ARGS    the screen when the command has ended, then the exit code unless 0;
//	                    lines that are broken are joined again below 60 columns
//	dumb COLUMNS ARGS   likewise, with TERM=dumb
//	pipe ARGS           stdout, then stderr after "! ", then the exit code
//	stop COLUMNS ARGS   as pty, but interrupted in its second epoch
//	halt ARGS           as pipe, but interrupted after its first epoch
//
// Times, speeds and decimals are masked. Every line of a terminal has to fit, no number may have more
// than six digits, and the first line has to be there before any row is read.
func TestTerminal(t *testing.T) {
	playDialogues(t, "testdata/terminal/*.txt", func(t *testing.T) line {
		writeLines(t, "small.yaml", strings.Split(terminalConfig, "\n"))
		return func(cmd string, args []string, input string) string {
			if err := os.WriteFile("in.csv", []byte(input), 0o644); err != nil {
				t.Fatal(err)
			}
			return masked(terminalCase(t, cmd, args))
		}
	})
}

func terminalCase(t *testing.T, cmd string, args []string) string {
	t.Helper()
	if cmd == "pipe" || cmd == "halt" {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		log := &stopAfter{&errs, "epoch done", 1, cancel}
		if cmd == "pipe" {
			log.times = 1 << 30
		}
		read := watchedDigits(t, func() bool { return args[0] != "train" || bytes.IndexByte(errs.Bytes(), '\n') >= 0 })
		code := Run(ctx, args, nil, strings.NewReader(""), &out, log)
		if args[0] == "train" && *read == 0 && code == exitOK {
			t.Error("no rows were read")
		}
		return judged(t, transcript(out.String(), errs.String(), code), 0)
	}
	cols, err := strconv.Atoi(args[0])
	if err != nil {
		t.Fatal(err)
	}
	p := openPTY(t, cols)
	watchedDigits(t, func() bool {
		if args[1] != "train" {
			return true
		}
		select {
		case <-p.first:
			return true
		case <-time.After(2 * time.Minute):
			return false
		}
	})
	var env []string
	on := ""
	switch cmd {
	case "dumb":
		env = []string{"TERM=dumb"}
	case "stop":
		on = "epoch 2/"
	}
	text, code := p.play(t, args[1:], env, on)
	if cmd == "dumb" && strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), "\r\x1b") {
		t.Errorf("a terminal that cannot redraw gets %q", text)
	}
	if strings.Contains(text, "m") && regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(text) {
		t.Errorf("colours in %q", text)
	}
	lines, wraps := show(t, text, cols)
	if verbose := slices.Contains(args, "-v"); !verbose && cols > mostColumns {
		cols = mostColumns // a wide window gets no wider lines, but for the log
	}
	if wraps > 0 {
		t.Errorf("%q: %d lines are longer than the screen", args, wraps)
	}
	text = judged(t, transcript(strings.Join(lines, "\n")+"\n", "", code), cols)
	if cols < 60 { // where lines are broken depends on the digits of times and speeds
		text = strings.NewReplacer(" \\\n      ", " ", "\n  ", " ").Replace(text)
	}
	return text
}

// judged holds a text to the width, if there is one, and to six digits.
func judged(t *testing.T, text string, cols int) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); cols > 0 && len(line) > cols {
			t.Errorf("%d columns, want %d or fewer: %s", len(line), cols, line)
		}
		if n := long.FindString(line); n != "" {
			t.Errorf("%s has more than six digits: %s", n, line)
		}
	}
	return text
}

// watchedDigits makes the builtin digits small random images for the rest of the test, and
// wants ready to hold whenever they are opened.
func watchedDigits(t *testing.T, ready func() bool) (read *int) {
	t.Helper()
	read = new(int)
	small := digits.Builtin
	small.Open = func(ctx context.Context, path string, _ int64) (*dataset.Table, error) {
		if *read++; !ready() {
			t.Errorf("%s is read before anything is said", path)
		}
		rows, err := dataset.OpenAll(ctx, []string{fmt.Sprintf("builtin:random?rows=200&vars=16&categories=4&seed=%d", len(path))}, dataset.Options{})
		if err != nil {
			return nil, err
		}
		return rows.(*dataset.Table), nil
	}
	dataset.RegisterBuiltin("digits", small)
	t.Cleanup(func() { dataset.RegisterBuiltin("digits", digits.Builtin) })
	return read
}

// masks replace what differs between runs and machines.
var masks = []struct {
	is *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\b([0-9]+m)?[0-9.]+s\b`), "Ts"},
	{regexp.MustCompile(`dur=\S+`), "dur=T"},
	{regexp.MustCompile(`[0-9.]+[kMG]? rows/s`), "N rows/s"},
	{regexp.MustCompile(`[0-9]+ epochs and [0-9]+ steps`), "N epochs and N steps"},
	{regexp.MustCompile(`after [0-9]+ epochs?`), "after N epochs"},
	{regexp.MustCompile(`epoch       [0-9]+ of [0-9]+`), "epoch       N of N"},
	{regexp.MustCompile(`[0-9]+ steps`), "N steps"},
	{regexp.MustCompile(`[0-9]+\.[0-9]+`), "X"},
	// A run that was stopped between two epochs, and has no step left, ends without another one.
	{regexp.MustCompile(`best validation X bits/dim, `), ""},
}

func masked(text string) string {
	for _, m := range masks {
		text = m.is.ReplaceAllString(text, m.by)
	}
	return text
}
