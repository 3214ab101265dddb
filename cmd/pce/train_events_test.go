package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTensorBoard writes events of a run that is interrupted and resumed: a file for each
// part, whose second one starts at the first step that is not in the checkpoint.
func TestTensorBoard(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	code := Run(ctx, append([]string{"train", "--out", "run", "--tensorboard", "events"}, tiny...), nil, nil, &out, cancelling{&errs, cancel})
	if want := "pce train --resume --out run --tensorboard events\n"; code != exitCheckpointed || !bytes.HasSuffix(errs.Bytes(), []byte(want)) {
		t.Fatalf("exit %d: %s, want a command that ends with %s", code, &errs, want)
	}
	first := eventFiles(t)
	runJSON(t, "train", "--resume", "--out", "run", "--tensorboard", "events")
	both := eventFiles(t)
	if len(first) != 1 || len(both) != 2 {
		t.Fatalf("files %v, then %v", first, both)
	}
	for i, want := range []int{1, 2} { // epochs of the parts
		text := readFile(t, both[i])
		if n := bytes.Count(text, []byte("log-likelihood/validation")); n != want {
			t.Errorf("%s has %d epochs, want %d", both[i], n, want)
		}
		// SessionLog, field 7, with START after step 5 of field 2.
		if got := bytes.Contains(text, []byte{2 << 3, 5, 7<<3 | 2, 2, 1 << 3, 1}); got != (i == 1) {
			t.Errorf("%s starts a session: %v", both[i], got)
		}
	}
	// Without checkpoints and a model, as after a kill in its first epoch, the run starts anew, and so do its curves.
	if err := errors.Join(os.RemoveAll("run/checkpoints"), os.Remove("run/model.safetensors")); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--resume", "--out", "run", "--tensorboard", "events")
	if all := eventFiles(t); len(all) != 3 || !bytes.Contains(readFile(t, all[2]), []byte{2 << 3, 1, 7<<3 | 2, 2, 1 << 3, 1}) {
		t.Errorf("the last of the files %v starts no session at step 1", all)
	}
	refused(t, exitUsage, "--tensorboard", append([]string{"train", "--out", "run2", "--tensorboard", "run/config.yaml"}, tiny...)...)
	if _, err := os.Stat("run2"); err == nil {
		t.Error("a run began whose events have no place")
	}
}

// TestTensorBoardCut ends a run within its second epoch by train.steps, and resumes it: what the first file has of this epoch
// does not count, as the whole epoch has a point in the second one.
func TestTensorBoardCut(t *testing.T) {
	t.Chdir(t.TempDir())
	args := append([]string{"train", "--out", "run", "--tensorboard", "events"}, tiny...)
	runJSON(t, append(args, "--set", "train.steps=6")...)
	first := eventFiles(t)
	runJSON(t, append(args, "--resume")...)
	both := eventFiles(t)
	if len(first) != 1 || len(both) != 2 {
		t.Fatalf("files %v, then %v", first, both)
	}
	if n := bytes.Count(readFile(t, both[0]), []byte("log-likelihood/validation")); n != 2 {
		t.Fatalf("the first file has %d epochs, want one and a part", n)
	}
	if text := readFile(t, both[1]); !bytes.Contains(text, []byte{2 << 3, 5, 7<<3 | 2, 2, 1 << 3, 1}) {
		t.Errorf("the second file starts no session at step 5, the first of the second epoch")
	}
}

// TestTensorBoardObjective: the curves of a discriminative run have the name of what they are.
func TestTensorBoardObjective(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("rows.csv", []byte("a,b\n0,0\n1,1\n0,1\n1,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--out", "run", "--tensorboard", "events", "--config", "preset:hclt", "--set", "data.train=rows.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "device=cpu", "--set", "model.class=b", "--set", "model.latents=2", "--set", "train.samples=0", "--set", "train.epochs=1", "--set", "train.discriminative=1")
	text := readFile(t, eventFiles(t)[0])
	if !bytes.Contains(text, []byte("objective/training")) || bytes.Contains(text, []byte("log-likelihood/")) {
		t.Errorf("the tags are of another measure: %q", text)
	}
}

func eventFiles(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("events/events.out.tfevents.*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}
