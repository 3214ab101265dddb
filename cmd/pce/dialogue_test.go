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
	files, err := filepath.Glob("testdata/*.txt")
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
			var env []string
			golden.Run(t, file, func(cmd string, args []string, input string) string {
				switch cmd {
				case "pce":
					return converse(args, env, input)
				case "file":
					if err := os.WriteFile(args[0], []byte(input), 0o644); err != nil {
						return err.Error()
					}
				case "env":
					env = args
				default:
					t.Fatalf("unknown line %q", cmd)
				}
				return ""
			})
		})
	}
}

func converse(args, env []string, input string) string {
	var out, errs bytes.Buffer
	code := Run(context.Background(), args, env, strings.NewReader(input), &out, &errs)
	text := out.String()
	for line := range strings.Lines(errs.String()) {
		text += "! " + line
	}
	if code != exitOK {
		text += fmt.Sprintf("exit %d\n", code)
	}
	return text
}
