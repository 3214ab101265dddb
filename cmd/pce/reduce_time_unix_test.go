//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReduceTimeFails: where the go command fails, the machine is at fault, or pce if the output speaks of the program. A
// signal interrupts it, leaves nothing of its work, and is not kept waiting by what the go command has started.
func TestReduceTimeFails(t *testing.T) {
	t.Chdir(t.TempDir())
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	temporaries := t.TempDir()
	t.Setenv("TMPDIR", temporaries)
	started := filepath.Join(bin, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("p.red", "param N : N >= 2;\nsize N = 4;\ninput float x[N];\narray float y[N];\noutput y;\ny[i] += x[j] : { [i,j] : 0 <= i < N, 0 <= j <= i };\n", 0o600)
	write("x.txt", "1 2 3 4\n", 0o600)
	for _, tc := range []struct {
		script, want string
		code         int
	}{
		{"echo go: no cache\nexit 1", "go build: exit status 1: go: no cache; --time wants", exitMachine},
		{"echo '# emitted'\necho './main.go:3: undefined'\nexit 1", "p.red: go build: exit status 1: # emitted ./main.go:3: undefined", exitInternal},
		{"printf '#!/bin/sh\\necho \"$@\" >&2\\nexit 1\\n' > program\nchmod +x program", "-max-memory 1073741824", exitData},
		{"mkdir ${GOTMPDIR:-$TMPDIR}/go-build1\n: > " + started + "\nexec sleep 60", "interrupted", exitInterrupted},
		{": > " + started + "\nsleep 20 & wait", "interrupted", exitInterrupted},
	} {
		write(filepath.Join(bin, "go"), "#!/bin/sh\n"+tc.script+"\n", 0o700)
		ctx, cancel := context.WithCancel(t.Context())
		if tc.code == exitInterrupted {
			go func() { // opening it waits for the script
				f, err := os.Open(started)
				if err == nil {
					f.Close()
				}
				cancel()
			}()
		}
		var out, errs bytes.Buffer
		began := time.Now()
		code := Run(ctx, []string{"reduce", "run", "p.red", "--data", ".", "--time"}, os.Environ(), strings.NewReader(""), &out, &errs)
		if cancel(); code != tc.code || !strings.Contains(errs.String(), tc.want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%q: exit %d: %s; want exit %d, %q", tc.script, code, &errs, tc.code, tc.want)
		}
		if left, err := os.ReadDir(temporaries); err != nil || len(left) > 0 {
			t.Errorf("%q leaves %v, error %v", tc.script, left, err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%q: it took %v", tc.script, took)
		}
	}
}

// TestReduceTimeLeaves: a go command that ends well and leaves a program behind, which keeps its output open, has built what is timed.
func TestReduceTimeLeaves(t *testing.T) {
	t.Chdir(t.TempDir())
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	script := "#!/bin/sh\necho 1 3 > y.txt\nprintf '#!/bin/sh\\necho 0.5\\n' > program\nchmod +x program\nsleep 20 &\n"
	for path, text := range map[string]string{
		"p.red":                  "param N : N >= 2;\nsize N = 2;\ninput float x[N];\narray float y[N];\noutput y;\ny[i] += x[j] : { [i,j] : 0 <= i < N, 0 <= j <= i };\n",
		"x.txt":                  "1 2\n",
		filepath.Join(bin, "go"): script,
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"reduce", "run", "p.red", "--data", ".", "--time"}, os.Environ(), strings.NewReader(""), &out, &errs)
	if code != 0 || !strings.Contains(out.String(), "0.5 as written") {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
}
