package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNoScratch asks for hardware to be simulated where the folder for temporary files is missing.
func TestNoScratch(t *testing.T) {
	if _, err := exec.LookPath("iverilog"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"m.txt": "circuit 1\nx = input[1] x0 bernoulli 0.25\n", "rows.csv": "0\n1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "absent"))
	refused(t, exitMachine, "set TMPDIR", "check", "m.txt", "--data", "rows.csv", "--target", "rtl", "--simulator", "iverilog")
}

// TestRelativeScratch: a folder in one whose path is relative has an absolute path.
func TestRelativeScratch(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", "tmp")
	if dir, err := scratch("s-"); err != nil || !filepath.IsAbs(dir) {
		t.Errorf("%s, %v", dir, err)
	} else if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
