package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// shardsIn reads train.shard_rows from the config.yaml of a run.
func shardsIn(t *testing.T, dir string) int {
	t.Helper()
	cfg, _, err := configs.Load(configs.Options{Files: []string{filepath.Join(dir, run.ConfigFile)}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Train.ShardRows
}

// TestChosenShards leaves train.shard_rows out: each worker that is there at the
// start gets a shard of every step, the run keeps the number over a restart with
// more workers, and its config.yaml gives the same bits on this machine.
func TestChosenShards(t *testing.T) {
	data := t.TempDir()
	set := append(imageFiles(t, data), "train.shard_rows=0")
	c := newTestCluster(t, 2, data)
	dir := t.TempDir()
	r := c.runner(t, dir, data)
	a := testApp()
	j, err := a.newJob(t.Context(), "run-1", testConfig(t, append(set, "cluster.workers=2")...))
	if err != nil {
		t.Fatal(err)
	}
	text, err := j.Encode(r.Bus.MaxPayload())
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "runs", "run-1")
	// The first part of the run ends with a checkpoint in its first epoch.
	first, cancel := context.WithCancel(t.Context())
	log := &stopAt{after: "epoch done", stop: cancel}
	r.Log = log
	if err := r.Do(first, "run-1", text); !errors.Is(err, em.ErrStopped) {
		t.Fatalf("the first part ends with %v", err)
	}
	if n := shardsIn(t, out); n != 25 { // 200 rows make 4 steps of 50
		t.Errorf("config.yaml says shards of %d rows, want 25", n)
	}
	if !strings.Contains(log.text.String(), fmt.Sprintf("shard_rows=%d workers=2", shardsIn(t, out))) {
		t.Errorf("the log does not say what was chosen:\n%s", &log.text)
	}
	chosen := shardsIn(t, out)
	c.start(t, "worker-002", []string{data})
	r.Log = io.Discard
	if err := r.Do(t.Context(), "run-1", text); err != nil {
		t.Fatal(err)
	}
	if n := shardsIn(t, out); n != chosen {
		t.Errorf("with a worker more there are shards of %d rows, %d before", n, chosen)
	}
	here, _, err := configs.Load(configs.Options{Files: []string{filepath.Join(out, run.ConfigFile)}})
	if err != nil {
		t.Fatal(err)
	}
	here.Output, here.Device, here.Threads = filepath.Join(t.TempDir(), "here"), "cpu", 1
	if _, err := run.Train(t.Context(), a.trainOptions(here)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, here.Output, run.ModelFile), readFile(t, out, run.ModelFile)) {
		t.Error("config.yaml gives another model on this machine")
	}
}

// stopAt is a log that calls stop at the first line with some text.
type stopAt struct {
	text  bytes.Buffer
	after string
	stop  func()
}

func (s *stopAt) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(s.after)) {
		s.stop()
	}
	return s.text.Write(line)
}

// TestKeptShards wants a run that is continued to keep the shards of its config.yaml
// where the settings leave them out, and a run on this machine to note its own.
func TestKeptShards(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	args := []string{
		"--config", "preset:hclt", "--set", "model.latents=3", "--set", "train.samples=0", "--set", "data.valid=", "--set", "data.test=",
		"--set", "data.train=builtin:random?rows=60&vars=16&categories=4", "--set", "data.image=[4, 4]", "--device", "cpu", "--threads", "1", "--out", out,
	}
	runJSON(t, append([]string{"train", "--set", "train.epochs=1", "--set", "train.shard_rows=13"}, args...)...)
	runJSON(t, append([]string{"train", "--set", "train.epochs=2", "--resume"}, args...)...)
	if n := shardsIn(t, out); n != 13 {
		t.Errorf("the run continues with shards of %d rows, want 13", n)
	}
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	runJSON(t, append([]string{"train", "--set", "train.epochs=1"}, args...)...)
	if n := shardsIn(t, out); n != em.DefaultShardRows {
		t.Errorf("a run on this machine has shards of %d rows, want %d", n, em.DefaultShardRows)
	}
}

// TestSpareWorkers wants one line about workers that get nothing to do.
func TestSpareWorkers(t *testing.T) {
	data := t.TempDir()
	c := newTestCluster(t, 3, data)
	cfg := testConfig(t, append(imageFiles(t, data), "train.shard_rows=64", "cluster.workers=3")...)
	a := testApp()
	o := a.trainOptions(cfg)
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	r := c.runner(t, t.TempDir())
	if _, err := testTraining(r, cfg, log).lead(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "fewer shards than there are workers"); n != 1 {
		t.Errorf("%d lines say that workers have nothing to do, want 1:\n%s", n, &text)
	}
}
