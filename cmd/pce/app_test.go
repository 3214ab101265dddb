package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset/datasettest"
)

// testApp is the app of a test, whose messages are lost.
func testApp() *app { return &app{stdout: io.Discard, stderr: io.Discard} }

// testConfig loads a config of a short run that writes to a directory of its own.
func testConfig(t *testing.T, set ...string) *configs.Config {
	t.Helper()
	all := append([]string{"model.latents=3", "threads=1", "device=cpu", "train.epochs=3", "train.batch_size=64", "train.shard_rows=16", "train.samples=4", "output=" + filepath.Join(t.TempDir(), "run")}, set...)
	cfg, _, err := configs.Load(configs.Options{Set: all})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// imageFiles writes small images and returns settings that read them.
func imageFiles(t *testing.T, dir string) []string {
	t.Helper()
	paths := datasettest.Images(t, dir, 4)
	return []string{"data.image=[4, 4]", "data.train=" + paths[0], "data.valid=" + paths[1], "data.test=" + paths[2]}
}

func readFile(t *testing.T, elements ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
