package run_test

import (
	"bytes"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// TestDrawsOfLearned wants the samples of a learned circuit, of single units, to be drawn with room for a few rows: the engine that trains has
// none for draws, and would make it for all rows of a launch, several times what else the run takes. The samples are those that it would draw.
func TestDrawsOfLearned(t *testing.T) {
	const launch = 2048
	o := small(t, "learnspn")
	o.Train, o.Samples = images(t, 1, launch), 70 // in two launches
	o.EM.ShardRows = launch
	o.EM.Phases = []em.Phase{{Rule: em.FullBatch, Epochs: 1, Pseudocount: 0.1}}
	var before, after runtime.MemStats
	o.OnStage = func(s run.Stage) {
		if s.Name == run.StageDraw && !s.Done {
			runtime.ReadMemStats(&before)
		} else if s.Name == run.StageDraw {
			runtime.ReadMemStats(&after)
		}
	}
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b, err := run.OpenModel(filepath.Join(o.Dir, run.ModelFile), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if vectors := len(b.Program.Vectors); after.TotalAlloc == before.TotalAlloc || after.TotalAlloc-before.TotalAlloc > uint64(8*vectors*launch) {
		t.Errorf("%d samples by %d vectors allocate %d bytes", o.Samples, vectors, after.TotalAlloc-before.TotalAlloc)
	}
	drawn := dataset.NewBatch(b.Schema, o.Samples)
	e, err := b.Engine(t.Context(), run.Load{Options: run.Options{Rows: launch, Engines: 1, Device: "cpu"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Sample(t.Context(), drawn, o.EM.Seed, 0); err != nil {
		t.Fatal(err)
	}
	src, err := o.Train(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var real dataset.Batch
	spread := make([]int, o.Samples)
	for i := range spread {
		spread[i] = i * launch / o.Samples
	}
	if err := src.Gather(t.Context(), &real, spread); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := dataset.WriteBeside(&want, b.Schema, drawn, src.Schema(), &real); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, filepath.Join(o.Dir, run.SamplesFile)), want.Bytes()) {
		t.Error("the samples are not those of an engine of many rows")
	}
}
