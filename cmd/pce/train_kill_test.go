package main

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var kills = flag.Int("kills", 4, "processes that TestKillLeavesNothing kills")

// temps lists the temporaries below a directory.
func temps(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it vanished meanwhile
			return nil
		}
		if err == nil && strings.HasSuffix(path, ".pce-tmp") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestKillLeavesNothing kills runs with SIGKILL, most of them while a file is being
// written: the run that comes after them leaves no temporaries, and the model and
// the picture of an unbroken run.
func TestKillLeavesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	args := append([]string{"train", "--resume"}, tiny...)
	args = append(args, "--set", "train.epochs=8", "--set", "train.checkpoint.steps=1", "--out")
	var out, errs bytes.Buffer
	if code := Run(t.Context(), append(args, "whole"), nil, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	rng := rand.New(rand.NewPCG(11, 13))
	hits := 0
	var left []string // by the last one that was killed
	for hits < *kills {
		cmd := exec.Command(os.Args[0], append(args, "broken")...)
		cmd.Env = append(os.Environ(), roleVariable+"=pce")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// A few writes pass, then one is interrupted.
		for seen := rng.IntN(20); seen >= 0 && len(ended) == 0; {
			if slices.ContainsFunc(temps(t, "."), func(name string) bool { return !slices.Contains(left, name) }) {
				seen--
			}
		}
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if err := <-ended; err == nil { // the run is whole: begin another one
			sameRun(t)
			if err := os.RemoveAll("broken"); err != nil {
				t.Fatal(err)
			}
			left = nil
			continue
		}
		hits++
		left = temps(t, ".")
	}
	if code := Run(t.Context(), append(args, "broken"), nil, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	sameRun(t)
}

// sameRun compares the end of a run that was killed with that of a whole one.
func sameRun(t *testing.T) {
	t.Helper()
	if left := temps(t, "."); len(left) > 0 {
		t.Errorf("temporaries are left: %v", left)
	}
	for _, name := range []string{"model.safetensors", "samples.png"} {
		a, errA := os.ReadFile(filepath.Join("whole", name))
		b, errB := os.ReadFile(filepath.Join("broken", name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v, %v)", name, errA, errB)
		}
	}
}
