package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx"
)

// kernelNames returns the card that a text of kernels is for, and their names.
func kernelNames(t *testing.T, text string) (target string, names []string) {
	t.Helper()
	m, err := ptx.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range m.Kernels {
		names = append(names, k.Name)
	}
	return m.Target, names
}

// TestCompileForest: the text that compile prints of a forest is that of all its kernels, for the card that --arch says; the files that it
// writes have one each.
func TestCompileForest(t *testing.T) {
	dir := t.TempDir()
	model, file := filepath.Join(dir, "single.json"), filepath.Join(dir, "apart.schedule")
	for path, text := range map[string]string{model: singleForest, file: "reorder tree batch\nunroll tree"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"compile", model, "--schedule", file, "--arch", "sm_80"}
	code, out, stderr := do(t, "", append(args, "--emit", "ptx")...)
	if code != exitOK {
		t.Fatal(stderr)
	}
	target, names := kernelNames(t, out)
	if want := []string{"forest_0_rows", "forest_1_rows"}; !slices.Equal(names, want) || target != "sm_80" { // one for each tree
		t.Errorf("kernels %v for %s, want %v", names, target, want)
	}
	if code, out, stderr = do(t, "", append(args, "-o", dir)...); code != exitOK || strings.Count(out, ".ptx\n") != len(names) {
		t.Fatalf("%s%s", out, stderr)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name+".ptx"))
		if err != nil {
			t.Fatal(err)
		}
		if one, err := ptx.Parse(text); err != nil || len(one.Kernels) != 1 || one.Kernels[0].Name != name {
			t.Errorf("%s.ptx: %v", name, err)
		}
	}
}
