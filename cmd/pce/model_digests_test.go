package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/cpu"
)

// small replaces the images of a config by ones of 8 by 8 dots.
var small = slices.Clip([]string{
	"data.image=[8, 8]", "data.train=builtin:random?rows=512&vars=64&categories=16",
	"data.valid=builtin:random?rows=64&vars=64&categories=16&seed=2", "data.test=builtin:random?rows=64&vars=64&categories=16&seed=3",
})

// digestRuns are the runs whose models testdata/models.sha256 lists: a config of
// each structure, made small, and its data.
var digestRuns = []struct {
	name, config string
	set          []string
}{
	{"hclt", "../../configs/hclt.yaml", append(small, "model.latents=32")},
	{"hmm", "../../configs/hmm-text.yaml", []string{"data.train=letters.txt", "data.valid=letters.txt", "data.test=letters.txt"}},
	{"pd", "../../configs/pd.yaml", append(small, "model.latents=16")},
	{"rat-spn", "../../configs/ratspn.yaml", append(small, "model.latents=32")},
	{"gaussian", "testdata/gaussian.yaml", nil},
}

// TestModelDigests trains two steps of each run on every kernel path of this
// machine and compares the model files with their digests. A change that only
// moves code must keep them. One that is meant to move bits replaces the lines
// with those that the test prints, for all paths, and says why.
func TestModelDigests(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("the digests are those of amd64; %s may contract a product and a sum", runtime.GOARCH)
	}
	const path = "testdata/models.sha256"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] != "#" {
			digests[f[0]+" "+f[1]] = f[2]
		}
	}
	dir := t.TempDir()
	letters, rows := filepath.Join(dir, "letters.txt"), filepath.Join(dir, "rows.csv")
	writeDigestData(t, letters, rows)
	for _, r := range digestRuns {
		paths := cpu.KernelPaths()
		if testing.Short() {
			paths = paths[:1]
		}
		for _, kernels := range paths {
			family, _, _ := strings.Cut(kernels, "bf16") // kernels of fp32 are those without halves
			family, _, _ = strings.Cut(family, "fp16")
			name := r.name + " " + family
			t.Run(r.name+"/"+kernels, func(t *testing.T) {
				t.Setenv("PCE_CPU", kernels)
				out := filepath.Join(t.TempDir(), "run")
				args := []string{"train", "--config", r.config, "--device", "cpu", "--out", out, "--set", "precision=fp32", "--set", "train.steps=2"}
				for _, s := range append(r.set, "train.batch_size=256", "train.samples=0") {
					s = strings.ReplaceAll(s, "letters.txt", letters)
					args = append(args, "--set", s)
				}
				if r.name == "gaussian" {
					args = append(args, "--set", "data.train="+rows)
				}
				runJSON(t, args...)
				model := readFile(t, out, "model.safetensors")
				if got := fmt.Sprintf("%x", sha256.Sum256(model)); got != digests[name] {
					t.Errorf("the model has other bytes than %s says; its line would be\n%s %s", path, name, got)
				}
			})
		}
	}
}

// writeDigestData writes the text and the table that the runs are trained on.
func writeDigestData(t *testing.T, letters, rows string) {
	t.Helper()
	draw := rand.New(rand.NewPCG(7, 11))
	var text, table bytes.Buffer
	last := 0
	for i := range 32 * 512 {
		last = (last*3 + draw.IntN(5)) % 26
		text.WriteByte(byte('a' + last))
		if i%61 == 60 {
			text.WriteByte('\n')
		}
	}
	for range 512 {
		x, y := draw.NormFloat64(), draw.NormFloat64()
		fmt.Fprintf(&table, "%.4f,%.4f,%.4f,%d\n", 3+x, x*y, 100*y-x, draw.IntN(4))
	}
	for path, b := range map[string]*bytes.Buffer{letters: &text, rows: &table} {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
