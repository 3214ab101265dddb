package job

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/datasettest"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// kinds are the kind of jobs of this package and one with settings of its own, as a worker knows
// them.
func kinds() Kinds {
	k := Kinds{}
	k.Register("train", workerKind{Training{}.Load})
	k.Register("toy", workerKind{toyKind{}.Load})
	return k
}

// workerKind is a kind that no coordinator of this process leads.
type workerKind struct {
	load func(context.Context, *Loading) (cluster.Session, error)
}

func (k workerKind) Load(ctx context.Context, in *Loading) (cluster.Session, error) {
	return k.load(ctx, in)
}

func (workerKind) Lead(context.Context, *Lead, *Job) error { panic("a worker leads a job") }

// testLoader returns the loader of a worker with these roots.
func testLoader(t *testing.T, roots []string, threads int) *Loader {
	t.Helper()
	files, err := NewFiles(t.TempDir(), roots)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLoader(kinds(), files, run.Options{Device: "cpu", Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// testLead returns the lead of a run for a worker with these roots.
func testLead(t *testing.T, bus cluster.Bus, roots ...string) *Lead {
	return &Lead{
		Bus: bus, ID: "run-1", Name: "test", Kind: "train", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		members: []cluster.Member{{ID: "w", Roots: roots}},
	}
}

// imageFiles writes small images in the brightest of so many shades, and names them.
func imageFiles(t *testing.T, dir string, shades int) TrainRows {
	t.Helper()
	paths := datasettest.Images(t, dir, shades)
	rows := func(path string) Rows {
		r, err := FindRows(t.Context(), []string{path}, dataset.Options{Image: [3]int{4, 4, 1}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return TrainRows{Train: rows(paths[0]), Valid: rows(paths[1]), Test: rows(paths[2])}
}

// open returns what opens the rows.
func (r Rows) open(ctx context.Context, schema *dataset.Schema) (dataset.Source, error) {
	o := r.Options
	o.Schema = schema
	return dataset.OpenAll(ctx, r.Paths, o)
}

// trainOptions are those of a short run.
func trainOptions(t *testing.T, rows TrainRows, kind string) run.TrainOptions {
	s := run.DefaultStructure()
	s.Kind, s.Latents, s.RATSPN.Depth = kind, 3, 2
	return run.TrainOptions{
		Structure: s, Train: rows.Train.open, Valid: rows.Valid.open, Test: rows.Test.open,
		EM: em.Options{
			Phases: []em.Phase{{
				Rule: em.MiniBatch, Epochs: 3, BatchRows: 64, Pseudocount: 0.1,
				StepSize: em.Schedule{{Shape: em.Linear, Length: 1, From: 0.9, To: 0.05}},
			}},
			Seed: 42, ShardRows: 16, Checkpoints: em.Checkpoints{Epochs: 1},
		},
		Options: run.Options{Device: "cpu", Threads: 1}, Mixed: true, Dir: filepath.Join(t.TempDir(), "run"), Samples: 4,
	}
}

func readFile(t *testing.T, elements ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
