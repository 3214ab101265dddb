package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels"
)

// TestExitCodes wraps an error of each class as a command would.
func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("odd"), 1},
		{usagef("x"), 2},
		{configs.ErrConfig, 2},
		{dataset.ErrSetting, 2},
		{dataset.ErrFormat, 3},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, 3},
		{&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.ENOTDIR}, 3},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENAMETOOLONG}, 3},
		{&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EEXIST}, 3},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENXIO}, 3},
		{&os.LinkError{Op: "rename", Old: "x", New: "y", Err: syscall.EBUSY}, 3},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ETXTBSY}, 3},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, 4},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENFILE}, 4},
		{atomicfile.Write(".", 0o600, nil), 3},
		{kernels.ErrMemory, 4},
		{&exec.Error{Name: "go", Err: exec.ErrNotFound}, 4},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, 4},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.EPIPE}, 3},
		{fmt.Errorf("%w: %w", cluster.ErrUnreachable, syscall.EPIPE), 5},
		{fmt.Errorf("%w: %w", em.ErrStopped, context.Canceled), 75},
		{em.ErrOptions, 2},
		{em.ErrCheckpoint, 3},
		{context.Canceled, 130},
	} {
		err := tc.err
		if err != nil {
			err = fmt.Errorf("deep: %w", fmt.Errorf("deeper: %w", err))
		}
		if got := exitCode(err); got != tc.want {
			t.Errorf("exitCode(%v) = %d, want %d", err, got, tc.want)
		}
	}
}

// TestInterrupted wants a command that a signal ends to say so, as a line that people know.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := Run(ctx, []string{"data", "stats", "builtin:random?rows=2&vars=2"}, nil, strings.NewReader(""), &out, &errs); code != exitInterrupted || !strings.HasSuffix(errs.String(), "interrupted\n") {
		t.Errorf("exit %d: %s", code, &errs)
	}
	if got := asFlags(fmt.Errorf("rows.csv: %w", context.Canceled)); got != "rows.csv: interrupted" {
		t.Errorf("an interrupt is told as %q", got)
	}
}

// broken fails every write, as a full disk does.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFullDisk wants exit code 4, not silence, when results cannot be written.
func TestFullDisk(t *testing.T) {
	program := filepath.Join("..", "..", "configs", "equations", "hmm.red")
	for _, args := range [][]string{
		{"version"}, {"version", "--json"}, {"doctor"}, {"doctor", "--json"}, {"config", "schema"},
		{"config", "show", "--config", "preset:hclt"}, {"data", "list"}, {"data", "stats", "builtin:random?rows=2&vars=2"},
		{"data", "sample", "builtin:random?rows=2&vars=2"},
		{"reduce", "show", program}, {"reduce", "simplify", program},
		{"reduce", "run", program, "-p", "T=2,S=2,C=2", "--out", t.TempDir(), "--count"}, {"reduce", "run", program, "-p", "T=2,S=2,C=2", "--out", t.TempDir(), "--check"},
		{}, {"--help"}, {"help"}, {"help", "query", "mpe"}, {"query", "--help"},
	} {
		var errs bytes.Buffer
		if code := Run(context.Background(), args, nil, nil, broken{}, &errs); code != exitMachine {
			t.Errorf("%v: exit %d, want %d; stderr %s", args, code, exitMachine, &errs)
		}
	}
}

// TestHelp: help about a command is what its --help prints.
func TestHelp(t *testing.T) {
	for _, topic := range [][]string{nil, {"query"}, {"query", "mpe"}, {"help"}} {
		print := func(args ...string) string {
			var out, errs bytes.Buffer
			if code := Run(t.Context(), args, nil, nil, &out, &errs); code != exitOK || errs.Len() > 0 || out.Len() == 0 {
				t.Errorf("%v: exit %d, %d bytes: %s", args, code, out.Len(), &errs)
			}
			return out.String()
		}
		if got, want := print(append([]string{"help"}, topic...)...), print(append(slices.Clone(topic), "--help")...); got != want {
			t.Errorf("help about %v is\n%s\nwant\n%s", topic, got, want)
		}
	}
}

// TestJSON wants one JSON object as the last line of stdout.
func TestJSON(t *testing.T) {
	for _, tc := range []struct {
		args []string
		keys []string
	}{
		{[]string{"version"}, []string{"version", "go", "os", "arch"}},
		{[]string{"doctor"}, []string{"cores", "cpu_features", "kernel_path", "cards", "memory_bytes", "disk_free_bytes", "presets", "variables"}},
		{[]string{"config", "show", "--config", "preset:hclt"}, []string{"name", "model", "train", "output"}},
		{[]string{"config", "validate", "--config", "preset:hclt"}, []string{"valid"}},
		{[]string{"data", "list"}, []string{"builtin", "files"}},
		{[]string{"data", "stats", "builtin:random?rows=2&vars=2"}, []string{"rows", "variables", "columns"}},
	} {
		var out, errs bytes.Buffer
		if code := Run(context.Background(), append(tc.args, "--json"), nil, nil, &out, &errs); code != 0 {
			t.Errorf("%v: exit %d: %s", tc.args, code, &errs)
			continue
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		var object map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &object); err != nil {
			t.Errorf("%v: %v in %q", tc.args, err, lines[len(lines)-1])
		}
		for _, k := range tc.keys {
			if _, ok := object[k]; !ok {
				t.Errorf("%v: no key %q in %v", tc.args, k, object)
			}
		}
	}
}

// TestShowRoundTrips feeds what config show prints back to it.
func TestShowRoundTrips(t *testing.T) {
	t.Chdir(t.TempDir())
	show := func(file string) []byte {
		var out, errs bytes.Buffer
		if code := Run(context.Background(), []string{"config", "show", "--config", file}, nil, nil, &out, &errs); code != 0 || errs.Len() > 0 {
			t.Fatalf("%s: exit %d: %s", file, code, &errs)
		}
		return out.Bytes()
	}
	for _, preset := range configs.Presets() {
		first := show(preset)
		if err := os.WriteFile("c.yaml", first, 0o644); err != nil {
			t.Fatal(err)
		}
		if second := show("c.yaml"); !bytes.Equal(first, second) {
			t.Errorf("%s: printed\n%s\nthen\n%s", preset, first, second)
		}
	}
}

// TestEveryCommandIsDocumented wants a use line for every command and that no
// command takes arguments that it then ignores.
func TestEveryCommandIsDocumented(t *testing.T) {
	a := &app{stdout: io.Discard, stderr: io.Discard}
	commands := slices.Clone(a.root().Commands())
	for len(commands) > 0 {
		c := commands[0]
		commands = append(commands[1:], c.Commands()...)
		if c.Short == "" {
			t.Errorf("%s has no short text", c.CommandPath())
		}
		if c.Args == nil && !strings.Contains(c.Use, "[") && c.RunE != nil {
			t.Errorf("%s does not say what arguments it takes", c.CommandPath())
		}
	}
}

// TestFlagsOfPages wants each flag that a page writes as code, by itself or behind pce, to be one of a command.
func TestFlagsOfPages(t *testing.T) {
	known, commands := map[string]bool{"help": true}, []*cobra.Command{(&app{stdout: io.Discard, stderr: io.Discard}).root()}
	for len(commands) > 0 {
		c := commands[0]
		commands = append(commands[1:], c.Commands()...)
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	code, flag, found := regexp.MustCompile("\x60((?:--|pce )[^\x60]*)\x60"), regexp.MustCompile("--([a-z][a-z-]*)"), 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range code.FindAllStringSubmatch(string(text), -1) {
			for _, name := range flag.FindAllStringSubmatch(span[1], -1) {
				if found++; !known[name[1]] {
					t.Errorf("%s: %s: no command has the flag --%s", page, span[1], name[1])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d flags in %d pages", found, len(pages))
	}
}

// TestPanicIsInternal breaks a command and wants exit code 1, not the Go
// runtime's 2, which would read as a usage error.
func TestPanicIsInternal(t *testing.T) {
	var errs bytes.Buffer
	code := Run(context.Background(), []string{"version"}, nil, nil, nil, &errs) // a nil stdout panics
	if code != exitInternal || !strings.HasPrefix(errs.String(), "pce: internal error: ") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

func TestGoroot(t *testing.T) {
	a := &app{env: []string{"GOROOT=/opt/go"}}
	got, err := a.expandPaths(context.Background(), []string{"$GOROOT/src/*.go", "x/$GOROOT/y", "builtin:digits/train"})
	if want := []string{"/opt/go/src/*.go", "x/$GOROOT/y", "builtin:digits/train"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("expandPaths = %q, %v; want %q", got, err, want)
	}
	a.env = nil
	t.Setenv("PATH", t.TempDir())
	// Queries refuse the setting that names other paths of training.
	if _, err := a.expandPaths(context.Background(), []string{"$GOROOT/src"}); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), "in training with --set data.train=PATH") {
		t.Errorf("without Go: %v, want a usage error", err)
	}
}
