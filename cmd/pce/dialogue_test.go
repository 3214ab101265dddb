package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/internal/golden"
)

// TestDialogues plays testdata/*.txt against the commands, in-process and in an
// empty directory. The lines of a dialogue are
//
//	pce ARGS    run; stdout, then stderr after "! ", then the exit code unless 0
//	file NAME   write the input to a file
//	env K=V...  set variables for the runs that follow
func TestDialogues(t *testing.T) {
	playDialogues(t, "testdata/*.txt", func(t *testing.T) line {
		var env []string
		return func(cmd string, args []string, input string) string {
			switch cmd {
			case "pce":
				return converse(args, env, input)
			case "file":
				if err := os.WriteFile(args[0], []byte(input), 0o644); err != nil {
					return err.Error()
				}
			case "env":
				env = args
				for _, arg := range args { // the CPU's kernels are chosen by the process's own variable
					if cpu, ok := strings.CutPrefix(arg, "PCE_CPU="); ok {
						t.Setenv("PCE_CPU", cpu)
					}
				}
			default:
				t.Fatalf("unknown line %q", cmd)
			}
			return ""
		}
	})
}

// line plays a line of a dialogue and returns what it prints.
type line func(cmd string, args []string, input string) string

// playDialogues plays the files that match pattern, each in an empty directory, with what
// begin returns for it.
func playDialogues(t *testing.T, pattern string, begin func(t *testing.T) line) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues (%v)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			file, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			golden.Run(t, file, begin(t))
		})
	}
}

// converse runs a command in this process and returns its transcript.
func converse(args, env []string, input string) string {
	var out, errs bytes.Buffer
	code := Run(context.Background(), args, env, strings.NewReader(input), &out, &errs)
	return transcript(out.String(), errs.String(), code)
}

// transcript is how dialogues show a command that has ended: stdout, then stderr after "! ",
// then the exit code unless it is 0.
func transcript(out, errs string, code int) string {
	for line := range strings.Lines(errs) {
		out += "! " + line
	}
	if code != exitOK {
		out += fmt.Sprintf("exit %d\n", code)
	}
	return out
}
