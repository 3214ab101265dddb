package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// codesFile writes rows of four columns with the codes from least to most and returns its path.
func codesFile(t *testing.T, least, most int) string {
	t.Helper()
	var in strings.Builder
	for i := range 60 {
		n := most - least + 1
		fmt.Fprintf(&in, "%d,%d,%d,%d\n", least+i%n, least+i/3%n, least+i*i%n, least+(i+i/7)%n)
	}
	path := filepath.Join(t.TempDir(), "codes.csv")
	if err := os.WriteFile(path, []byte(in.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// onRows returns options of a short run on the rows of a path, which are its validation too.
func onRows(t *testing.T, kind, leaf, path string) run.TrainOptions {
	o := small(t, kind)
	o.Structure.Leaf.Type = leaf
	o.Train, o.Valid, o.Test, o.Samples = run.Files(path), run.Files(path), nil, 0
	o.EM.Phases[0].BatchRows, o.EM.ShardRows = 16, 16
	return o
}

// TestResumeLeaves stops runs with leaves of every family over columns that are told to be
// discrete, and resumes them once while they train and once when they have ended: rows are
// those of the first run, and the model has the bits of an unbroken one.
func TestResumeLeaves(t *testing.T) {
	kinds := []string{"hclt", "hmm", "rat-spn", "learnspn"}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		for _, leaf := range append(circuit.LeafTypes(), "auto") {
			if leaf == "indicator" {
				continue // a structure that is made for data has none
			}
			t.Run(kind+" "+leaf, func(t *testing.T) {
				path := codesFile(t, 0, 4)
				switch leaf {
				case "log-normal":
					path = codesFile(t, 1, 5)
				case "bernoulli":
					path = codesFile(t, 0, 1)
				}
				resumes(t, func() run.TrainOptions { return onRows(t, kind, leaf, path) })
			})
		}
	}
	t.Run("of columns", func(t *testing.T) {
		path := codesFile(t, 0, 4)
		resumes(t, func() run.TrainOptions {
			o := onRows(t, "hclt", "auto", path)
			o.Structure.Leaves = map[string]run.Leaf{"1": {Type: "poisson"}, "3": {Type: "gaussian"}, "4": {Type: "histogram"}}
			return o
		})
	})
	t.Run("builtin", func(t *testing.T) {
		resumes(t, func() run.TrainOptions {
			return onRows(t, "hclt", "gaussian", "builtin:random?rows=60&vars=5&categories=7")
		})
	})
}

// resumes stops a run of options after two steps and resumes it, twice.
func resumes(t *testing.T, options func() run.TrainOptions) {
	t.Helper()
	whole := options()
	if _, err := run.Train(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	want := read(t, filepath.Join(whole.Dir, run.ModelFile))
	o := options()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.EM.OnStep = func(p em.Progress) {
		if p.Step == 2 {
			cancel()
		}
	}
	if _, err := run.Train(ctx, o); !errors.Is(err, em.ErrStopped) {
		t.Fatalf("%v, want ErrStopped", err)
	}
	o.Resume, o.EM.OnStep = true, nil
	for _, when := range []string{"stopped", "ended"} {
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got := read(t, filepath.Join(o.Dir, run.ModelFile)); !bytes.Equal(got, want) {
			t.Errorf("%s: the model differs in %d of %d bytes", when, differ(got, want), len(want))
		}
	}
}

// TestFacts wants a checkpoint to name what computed the run: the numbers of another device, path or precision are others.
func TestFacts(t *testing.T) {
	o := small(t, "hclt")
	o.Options.Device = "cpu"
	res, err := run.Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	for _, f := range em.LastFingerprint(filepath.Join(o.Dir, run.CheckpointDir)) {
		facts[f.Name] = f.Value
	}
	if res.PrecisionUsed == "" || facts["precision used"] != res.PrecisionUsed || facts[run.KernelPathFact] == "" || facts["kind of device"] != "cpu" {
		t.Errorf("facts %v, and the precision used was %q", facts, res.PrecisionUsed)
	}
}

// TestResumeWorkers resumes a run with other numbers of goroutines that build its circuit, as on another machine.
func TestResumeWorkers(t *testing.T) {
	for _, kind := range []string{"hclt", "learnspn"} {
		o := small(t, kind)
		o.Structure.HCLT.ChowLiu.Workers, o.Structure.LearnSPN.Workers = 1, 1
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Resume = true
		o.Structure.HCLT.ChowLiu.Workers, o.Structure.LearnSPN.Workers = 3, 3
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestResumeWithoutSamples resumes runs that have samples, of images and of text, without any:
// those of the model that is replaced go with it, and come back where samples are wanted again.
func TestResumeWithoutSamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("the cat sat on the mat. ", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]run.TrainOptions{run.SamplesFile: small(t, "hclt"), run.TextSamplesFile: onRows(t, "hmm", "auto", path)} {
		for _, samples := range []int{4, 0, 4} {
			o.Samples = samples
			if _, err := run.Train(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(o.Dir, name)); (err == nil) != (samples > 0) {
				t.Errorf("%s of a run with %d samples: %v", name, samples, err)
			}
			o.Resume = true
			o.EM.Phases[len(o.EM.Phases)-1].Epochs++
		}
	}
}

// differ counts the bytes in which a differs from b.
func differ(a, b []byte) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// TestResumeDamagedCheckpoint resumes a run whose newest checkpoint is cut short, with other rows, of which another tree would be learned:
// it keeps its circuit, which is that of the checkpoint before.
func TestResumeDamagedCheckpoint(t *testing.T) {
	chain := func(order ...int) string { // columns of which each is most often like the one before
		rng := rand.New(rand.NewPCG(7, 7))
		return writeRows(t, "a,b,c,d", 300, func() []any {
			cells, x := make([]any, len(order)), rng.IntN(3)
			for _, v := range order {
				if rng.IntN(10) == 0 {
					x = rng.IntN(3)
				}
				cells[v] = x
			}
			return cells
		})
	}
	o := onRows(t, "hclt", "auto", chain(0, 1, 2, 3))
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	saved, err := filepath.Glob(filepath.Join(o.Dir, run.CheckpointDir, "step-*"))
	if err != nil || len(saved) < 2 {
		t.Fatalf("checkpoints %v, %v", saved, err)
	}
	if err := os.Truncate(saved[len(saved)-1], 1000); err != nil {
		t.Fatal(err)
	}
	o.Train, o.Resume, o.AllowChanges = run.Files(chain(0, 2, 3, 1)), true, true
	if r, err := run.Train(t.Context(), o); err != nil || r.Epochs != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}
