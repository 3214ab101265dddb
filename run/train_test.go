package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/run"
)

// small returns options of a short run on small random images.
func small(t *testing.T, kind string) run.TrainOptions {
	s := run.DefaultStructure()
	s.Kind, s.Latents = kind, 4
	s.PD.SplitInterval = 1
	s.RATSPN.Depth = 2
	s.LearnSPN.MinRows, s.LearnSPN.Threshold = 60, 0.3 // the rows are independent: cut them all the same
	return run.TrainOptions{
		Structure: s,
		Train:     images(t, 1, 300),
		Valid:     images(t, 2, 50),
		Test:      images(t, 3, 50),
		EM: em.Options{
			Phases: []em.Phase{
				{Rule: em.MiniBatch, Epochs: 3, BatchRows: 64, Pseudocount: 0.1, StepSize: em.Schedule{{Shape: em.Linear, Length: 1, From: 0.9, To: 0.1}}},
				{Rule: em.FullBatch, Epochs: 1, Pseudocount: 0.1},
			},
			ShardRows:   100,
			Checkpoints: em.Checkpoints{Epochs: 1},
		},
		Options: run.Options{Threads: 1},
		Dir:     t.TempDir(),
		Samples: 4,
		Config:  []byte("name: small\n"),
	}
}

// images returns 4×4 binary images: random rows of a few stripes.
func images(t *testing.T, seed, rows int) run.Rows {
	src, err := dataset.Open(t.Context(), fmt.Sprintf("builtin:random?rows=%d&vars=16&categories=2&seed=%d", rows, seed),
		dataset.Options{Image: [3]int{4, 4, 1}})
	if err != nil {
		t.Fatal(err)
	}
	return run.Table(src)
}

// TestTrain trains each structure and wants its mass over all states to be 1.
func TestTrain(t *testing.T) {
	states := make([][]float64, 1<<16)
	for i := range states {
		states[i] = make([]float64, 16)
		for v := range states[i] {
			states[i][v] = float64(i >> v & 1)
		}
	}
	for _, kind := range []string{"hclt", "hmm", "pd", "rat-spn", "learnspn"} {
		t.Run(kind, func(t *testing.T) {
			o := small(t, kind)
			r, err := run.Train(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for name, ll := range map[string]float64{"train": r.TrainLL, "valid": r.ValidLL, "test": r.TestLL} {
				if !(ll > -16 && ll < -8) { // uniform rows: -16·ln 2 = -11.1
					t.Errorf("%s ll is %v", name, ll)
				}
			}
			if r.Epochs != 4 || r.Steps != 16 || r.Variables != 16 || r.Device != "cpu" {
				t.Errorf("result %+v", r)
			}
			for _, name := range []string{run.ModelFile, run.MetricsFile, run.ConfigFile, run.CheckpointDir, run.SamplesFile} {
				if _, err := os.Stat(filepath.Join(o.Dir, name)); err != nil {
					t.Error(err)
				}
			}
			m, err := pce.Open(t.Context(), filepath.Join(o.Dir, run.ModelFile), run.Options{Rows: 2048})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			lls, err := m.LogLikelihood(t.Context(), states)
			if err != nil {
				t.Fatal(err)
			}
			mass := 0.0
			for _, ll := range lls {
				mass += math.Exp(ll)
			}
			if !(math.Abs(mass-1) <= 1e-5) {
				t.Errorf("mass %v, want 1 ± 1e-5", mass)
			}
			if m.Schema().Image != [3]int{4, 4, 1} {
				t.Errorf("model's images are %v", m.Schema().Image)
			}
		})
	}
}

// TestTrainResume stops a run after every number of steps and wants the same
// model as that of an unbroken one.
func TestTrainResume(t *testing.T) {
	whole := small(t, "hclt")
	if _, err := run.Train(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	want := read(t, filepath.Join(whole.Dir, run.ModelFile))
	for stop := 1; stop < 16; stop += 3 {
		o := small(t, "hclt")
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		o.EM.OnStep = func(em.Progress) {
			if steps++; steps == stop {
				cancel()
			}
		}
		_, err := run.Train(ctx, o)
		cancel()
		if !errors.Is(err, em.ErrStopped) {
			t.Fatalf("stopped after %d steps: %v, want ErrStopped", stop, err)
		}
		if steps != stop {
			t.Errorf("did %d steps, want %d", steps, stop)
		}
		o.Resume = true
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, filepath.Join(o.Dir, run.ModelFile)), want) {
			t.Errorf("stopped after %d steps: the model differs", stop)
		}
		if n := bytes.Count(read(t, filepath.Join(o.Dir, run.MetricsFile)), []byte("\n")); n != 4 {
			t.Errorf("stopped after %d steps: %d lines of metrics, want 4", stop, n)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTrainChanged resumes runs of options alone, without a config, with other rows,
// settings or kernels: each is refused by name.
func TestTrainChanged(t *testing.T) {
	t.Setenv("PCE_CPU", "") // the best kernels, whatever the other tests are run with
	for _, kind := range []string{"hclt", "pd"} {
		dir := t.TempDir()
		try := func(edit func(*run.TrainOptions)) error {
			o := small(t, kind)
			o.Dir, o.Resume = dir, true
			edit(&o)
			_, err := run.Train(t.Context(), o)
			return err
		}
		if err := try(func(o *run.TrainOptions) { o.EM.Steps = 2 }); err != nil {
			t.Fatal(err)
		}
		for want, edit := range map[string]func(*run.TrainOptions){
			"training rows: 300 (":         func(o *run.TrainOptions) { o.Train = images(t, 9, 300) },
			"phase 1: pseudocount: 0.1":    func(o *run.TrainOptions) { o.EM.Phases[0].Pseudocount = 0.2 },
			"mixed: false, now true":       func(o *run.TrainOptions) { o.Mixed = true },
			"kernel path: ":                func(o *run.TrainOptions) { o.Options.KernelPath = cpu.KernelPaths()[len(cpu.KernelPaths())-1] },
			"the circuit differs: structu": func(o *run.TrainOptions) { o.Structure.Latents++ },
		} {
			if strings.HasPrefix(want, "kernel") && len(cpu.KernelPaths()) == 1 {
				continue
			}
			err := try(edit)
			if !errors.Is(err, em.ErrChanged) && !errors.Is(err, em.ErrCheckpoint) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0x") {
				t.Errorf("%s: error is %v, want %q", kind, err, want)
			}
		}
		if err := try(func(o *run.TrainOptions) { o.Valid, o.Test, o.Options.Threads = images(t, 8, 40), nil, 2 }); err != nil {
			t.Errorf("%s: rows that decide nothing: %v", kind, err)
		}
	}
}

// TestTrainDirectory wants a directory that holds a run or is locked to be
// refused and left as it was.
func TestTrainDirectory(t *testing.T) {
	o := small(t, "hclt")
	if err := os.WriteFile(filepath.Join(o.Dir, run.MetricsFile), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(t.Context(), o); !errors.Is(err, run.ErrRun) {
		t.Errorf("directory with a run: %v, want ErrRun", err)
	}
	if got := read(t, filepath.Join(o.Dir, run.MetricsFile)); string(got) != "kept" {
		t.Errorf("metrics are now %q", got)
	}
	for _, name := range []string{run.SamplesFile, run.TextSamplesFile} { // of another program, in a directory without a run
		for _, o.Resume = range []bool{false, true} {
			o.Dir = t.TempDir()
			file := filepath.Join(o.Dir, name)
			if err := os.WriteFile(file, []byte("kept"), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := run.Train(t.Context(), o); !errors.Is(err, run.ErrRun) {
				t.Errorf("%s, resume %t: %v, want ErrRun", name, o.Resume, err)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != "kept" {
				t.Errorf("%s is now %q, %v", name, got, err)
			}
		}
	}
	o.Resume = false
	o.Dir = t.TempDir()
	lock, err := atomicfile.Lock(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(t.Context(), o); !errors.Is(err, atomicfile.ErrLocked) {
		t.Errorf("locked directory: %v, want ErrLocked", err)
	}
	lock.Close()
	o.Dir = ""
	if _, err := run.Train(t.Context(), o); !errors.Is(err, run.ErrOptions) {
		t.Errorf("no directory: %v, want ErrOptions", err)
	}
}

// TestResumeWithoutCheckpoints resumes a directory that has a model and no checkpoints: it is refused, and stays as it is. Without a
// model, as where a run was killed before its first checkpoint, it begins anew.
func TestResumeWithoutCheckpoints(t *testing.T) {
	o := small(t, "hclt")
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	model := read(t, filepath.Join(o.Dir, run.ModelFile))
	saved, err := filepath.Glob(filepath.Join(o.Dir, run.CheckpointDir, "step-*"))
	if err != nil || len(saved) == 0 {
		t.Fatalf("checkpoints %v, %v", saved, err)
	}
	for _, path := range saved { // the circuit stays
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	o.Resume, o.EM.Seed = true, 5
	if _, err := run.Train(t.Context(), o); !errors.Is(err, run.ErrRun) || !strings.Contains(err.Error(), "no checkpoint to continue from") {
		t.Errorf("a model without checkpoints: %v, want ErrRun", err)
	}
	if !bytes.Equal(read(t, filepath.Join(o.Dir, run.ModelFile)), model) || len(read(t, filepath.Join(o.Dir, run.MetricsFile))) == 0 {
		t.Error("the run that was refused is not as it was")
	}
	if err := os.Remove(filepath.Join(o.Dir, run.ModelFile)); err != nil {
		t.Fatal(err)
	}
	if r, err := run.Train(t.Context(), o); err != nil || r.Epochs != 4 {
		t.Errorf("without a model: %+v, %v", r, err)
	}
}

// TestTrainStrings: a name that the model file could not hold is refused before anything is trained.
func TestTrainStrings(t *testing.T) {
	o := small(t, "hclt")
	o.Name = "caf\xe9"
	if _, err := run.Train(t.Context(), o); !errors.Is(err, run.ErrOptions) || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("error is %v, want ErrOptions", err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, run.MetricsFile)); err == nil {
		t.Error("it was trained")
	}
}

// TestTrainSamples: a number of samples that no run draws is refused before anything is written.
func TestTrainSamples(t *testing.T) {
	for _, n := range []int{-1, run.MaxSamples + 1} {
		o := small(t, "hclt")
		o.Samples = n
		if _, err := run.Train(t.Context(), o); !errors.Is(err, run.ErrOptions) {
			t.Errorf("%d samples: %v, want ErrOptions", n, err)
		}
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("%d samples: %v, %v in the directory", n, left, err)
		}
	}
}

// TestTrainMemory wants a run that does not fit to be refused before anything is
// allocated, and the message to say how many rows would fit.
func TestTrainMemory(t *testing.T) {
	o := small(t, "hclt")
	o.Structure.Latents = 512
	b, err := run.Build(t.Context(), o.Structure, o.Train, o.Compile)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l := run.TrainLoad(o, 300)
	if few := run.TrainLoad(o, 60); l.Rows != 100 || !l.Shards || few.Rows != 60 || few.Shards {
		t.Errorf("load %+v for 300 rows and %+v for 60, want shards of 100, and one of 60", l, few)
	}
	l.Rows /= 4
	m, err := b.Memory(l)
	if err != nil {
		t.Fatal(err)
	}
	o.Options.MaxMemory = m.Total + 4096 // and the tables of other rows
	_, err = run.Train(t.Context(), o)
	if !errors.Is(err, kernels.ErrMemory) || !strings.Contains(err.Error(), "with 25 rows") {
		t.Errorf("%v, want ErrMemory with the rows that fit", err)
	}
}

// TestTrainMemoryOfShards wants the rows that a refusal names to fit with the flows that are kept once a step has several shards:
// here these take more than fewer rows save.
func TestTrainMemoryOfShards(t *testing.T) {
	o := small(t, "hclt")
	o.Structure.Latents, o.EM.Phases = 512, o.EM.Phases[:1]
	b, err := run.Build(t.Context(), o.Structure, o.Train, o.Compile)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l := run.TrainLoad(o, 300)
	m, err := b.Memory(l)
	if err != nil {
		t.Fatal(err)
	}
	fewer := o
	fewer.EM.ShardRows = l.Rows / 2
	if n, err := b.Memory(run.TrainLoad(fewer, 300)); err != nil || n.Total <= m.Total {
		t.Fatalf("%v: half of the rows take %d bytes, all %d; the test compares nothing", err, n.Total, m.Total)
	}
	o.Options.MaxMemory = m.Total - 1
	if _, err := run.Train(t.Context(), o); !errors.Is(err, kernels.ErrMemory) || !strings.Contains(err.Error(), "fewer rows do not help") {
		t.Errorf("%v, want ErrMemory without rows that would fit", err)
	}
}

// TestTrainFile goes on from a saved model, whose schema binds the data.
func TestTrainFile(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := small(t, "hclt")
	first.Train = run.Files(write("a.csv", "colour,size,n\nred,1.5,0\nblue,2.5,1\nred,,2\nblue,1.75,0\n"))
	first.Valid, first.Test = nil, run.Files(write("b.csv", "n,colour,size\n0,red,3\n"))
	r, err := run.Train(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if math.IsNaN(r.TestLL) || !math.IsNaN(r.ValidLL) {
		t.Errorf("valid %v, want NaN; test %v, want a number", r.ValidLL, r.TestLL)
	}
	second := small(t, "file")
	second.Structure.File = filepath.Join(first.Dir, run.ModelFile)
	second.Train, second.Valid, second.Test = run.Files(write("c.csv", "size,n,colour\n1,0,blue\n2,1,red\n")), nil, nil
	if _, err := run.Train(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(t.Context(), filepath.Join(second.Dir, run.ModelFile), run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if c := m.Schema().Columns[0]; c.Name != "colour" || len(c.Labels) != 2 || c.Labels[0] != "blue" {
		t.Errorf("column 0 is %+v", c)
	}
	second.Dir, second.Train = t.TempDir(), run.Files(write("d.csv", "size,n,colour\n1,0,green\n"))
	if _, err := run.Train(t.Context(), second); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("a label that the model lacks: %v, want ErrFormat", err)
	}
}

// TestTrainGraph trains a circuit made by hand.
func TestTrainGraph(t *testing.T) {
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 2} }
	g, err := structures.RATSPN(structures.RATSPNOptions{Vars: 16, Latents: 3, Depth: 1, Repetitions: 1, Pieces: 2, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	o := small(t, "")
	o.Structure = run.Structure{Graph: g}
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Error(err)
	}
	o = small(t, "")
	o.Structure = run.Structure{Graph: g}
	o.Train = run.Files("builtin:random?rows=9&vars=16&categories=3")
	if _, err := run.Train(t.Context(), o); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("three categories for leaves of two: %v, want ErrFormat", err)
	}
}
