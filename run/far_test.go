package run_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// fitLogged trains a circuit in the text format on rows by steps of all of them, and returns what came of it and what was logged.
func fitLogged(t *testing.T, circuit, train, test string, epochs int) (*run.Result, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "circuit.txt")
	if err := os.WriteFile(path, []byte(circuit), 0o600); err != nil {
		t.Fatal(err)
	}
	s := run.DefaultStructure()
	s.Kind, s.File = "file", path
	var log strings.Builder
	res, err := run.Train(context.Background(), run.TrainOptions{
		Structure: s, Train: run.Files(train), Test: run.Files(test), Dir: t.TempDir(), Options: run.Options{Device: "cpu", Threads: 1},
		EM: em.Options{Seed: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)), Phases: []em.Phase{{Rule: em.FullBatch, Epochs: epochs}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return res, log.String()
}

// twoKinds writes rows of two columns, which are of two kinds: the first column is normal around 2 or 8, times unit, the second one
// around 1 or -1. The last rows are more.
func twoKinds(t *testing.T, seed uint64, rows int, unit float64, more ...string) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	var b strings.Builder
	for range rows {
		x, y := 2.0, 1.0
		if rng.Float64() < 0.4 {
			x, y = 8, -1
		}
		fmt.Fprintf(&b, "%v,%v\n", unit*(x+0.5*rng.NormFloat64()), y+2*rng.NormFloat64())
	}
	for _, row := range more {
		b.WriteString(row + "\n")
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFarNumbersOfFiles trains a circuit whose columns are stored as they are on rows of which one has a number far from all
// others, and wants the others to be described as without it, and a warning.
func TestFarNumbersOfFiles(t *testing.T) {
	test := twoKinds(t, 2, 300, 1)
	given := "circuit 2\na = input[2] x0 gaussian 2 0.5 / 8 0.5\nb = input[2] x1 gaussian 1 2 / -1 2\np = product a b\ns = sum p : 0.6 0.4\n"
	open := "circuit 2\na = input[2] x0 gaussian\nb = input[2] x1 gaussian\np = product a b\ns = sum p\n"
	for _, circuit := range []string{given, open} {
		without, log := fitLogged(t, circuit, twoKinds(t, 1, 500, 1), test, 40)
		if strings.Contains(log, "takes those as missing") {
			t.Errorf("without a far number: %s", log)
		}
		for far, shown := range map[string]string{"-999999": "-999999", "1e9": "1e+09", "9e9": "9e+09", "1e12": "1e+12"} {
			got, log := fitLogged(t, circuit, twoKinds(t, 1, 500, 1, far+",0.5"), test, 40)
			if !(math.Abs(got.TestLL-without.TestLL) < 0.02) {
				t.Errorf("with %s in %q: %v nats per test row, without %v", far, circuit, got.TestLL, without.TestLL)
			}
			if strings.Count(log, "takes those as missing") != 1 || !strings.Contains(log, "numbers such as "+shown+", more than 16384 times") {
				t.Errorf("with %s: %s", far, log)
			}
		}
	}
}

// TestFarFromTheMedian trains a circuit of a column far from 0 on rows of which one is as far from 0 on the other side, and wants the others
// to be described as without it: how far a number is counts from the column's median.
func TestFarFromTheMedian(t *testing.T) {
	const given = "circuit 1\na = input[2] x0 gaussian 999999 1 / 1000001 1\ns = sum a : 0.5 0.5\n"
	rows := func(more string) string {
		rng := rand.New(rand.NewPCG(4, 3))
		var b strings.Builder
		for range 500 {
			fmt.Fprintf(&b, "%v\n", 1e6+rng.NormFloat64())
		}
		path := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(path, []byte(b.String()+more), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	test := rows("")
	without, log := fitLogged(t, given, rows(""), test, 20)
	if strings.Contains(log, "takes those as missing") {
		t.Errorf("without a far number: %s", log)
	}
	for _, far := range []string{"-1e6", "0", "970000", "1030000"} {
		got, log := fitLogged(t, given, rows(far+"\n"), test, 20)
		if !(math.Abs(got.TestLL-without.TestLL) < 0.002) || strings.Count(log, "takes those as missing") != 1 {
			t.Errorf("with %s: %v nats per test row, without %v; %s", far, got.TestLL, without.TestLL, log)
		}
	}
}

// TestFarOfModels trains a model further, and resumes a run, on numbers that are far from all of the model's, and wants to be told of
// those: rows that are read in the units of a model are not looked at for others.
func TestFarOfModels(t *testing.T) {
	far := normalRows(t, "far.csv", 2, 100, 2, 1e6, 1)
	var log strings.Builder
	o := run.TrainOptions{
		Structure: run.DefaultStructure(), Train: run.Files(normalRows(t, "rows.csv", 1, 100, 2, 0, 1)), Dir: t.TempDir(),
		Options: run.Options{Device: "cpu", Threads: 1},
		EM:      em.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 1}}},
	}
	o.Structure.Latents = 2
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "takes those as missing") {
		t.Errorf("without far numbers: %s", log.String())
	}
	further := o
	further.Structure.Kind, further.Structure.File, further.Train, further.Dir = "file", filepath.Join(o.Dir, run.ModelFile), run.Files(far), t.TempDir()
	resumed := o
	resumed.Train, resumed.Resume, resumed.AllowChanges = run.Files(far), true, true
	for what, o := range map[string]run.TrainOptions{"trained further": further, "resumed": resumed} {
		log.Reset()
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if strings.Count(log.String(), "times the model's spread of") != 2 || !strings.Contains(log.String(), "takes those as missing") {
			t.Errorf("%s: %s", what, log.String())
		}
	}
}

// TestFarUnread trains a circuit on rows with a far number in a column that it does not read, and wants no warning about it.
func TestFarUnread(t *testing.T) {
	rows := twoKinds(t, 1, 300, 1, "2,1e9")
	if _, log := fitLogged(t, "circuit 2\na = input[2] x0 gaussian 2 0.5 / 8 0.5\ns = sum a : 0.6 0.4\n", rows, rows, 2); strings.Contains(log, "takes those as missing") {
		t.Error(log)
	}
}
