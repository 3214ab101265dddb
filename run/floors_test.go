package run_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// fitCircuit is fitLogged without the log.
func fitCircuit(t *testing.T, circuit, train, test string, epochs int) *run.Result {
	t.Helper()
	res, _ := fitLogged(t, circuit, train, test, epochs)
	return res
}

// TestFloorsOfFiles trains circuits of which units are narrower than 0.01, or have to become so, and wants no likelihood lost: the
// columns of a circuit that was made elsewhere are stored as they are.
func TestFloorsOfFiles(t *testing.T) {
	rows := twoKinds(t, 1, 500, 1e-3)
	mixture := func(sigma float64) string {
		return fmt.Sprintf("circuit 2\na = input[2] x0 gaussian 0.002 %v / 0.008 %v\nb = input[2] x1 gaussian 1 2 / -1 2\np = product a b\ns = sum p : 0.6 0.4\n", sigma, sigma)
	}
	start := fitCircuit(t, mixture(0.0005), rows, rows, 0).TrainLL
	for _, sigma := range []float64{0.0005, 0.003, 0.02} {
		if got := fitCircuit(t, mixture(sigma), rows, rows, 40).TrainLL; !(got >= start-1e-4) {
			t.Errorf("from units of %v: %v nats per row, the truth has %v", sigma, got, start)
		}
	}
	tied := "circuit 2\na = input x0 gaussian 0 1\nb = input x1 gaussian tied a\np = product a b\ns = sum p : 1\n"
	if got := fitCircuit(t, tied, rows, rows, 2).TrainLL; math.IsNaN(got) {
		t.Errorf("tied units of two columns: %v nats per row", got)
	}
	logs := filepath.Join(t.TempDir(), "logs.csv")
	if err := os.WriteFile(logs, []byte("2.717\n2.718\n2.719\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	narrow := "circuit 1\na = input x0 log-normal 1 0.0005\ns = sum a : 1\n"
	start = fitCircuit(t, narrow, logs, logs, 0).TrainLL
	if got := fitCircuit(t, narrow, logs, logs, 3).TrainLL; !(got >= start-1e-4) {
		t.Errorf("log-normal: %v nats per row, the start has %v", got, start)
	}
}

// fileRun returns options of a run of a circuit in the text format by steps of all rows.
func fileRun(t *testing.T, circuit, train string, epochs int) run.TrainOptions {
	t.Helper()
	s := run.DefaultStructure()
	s.Kind, s.File = "file", filepath.Join(t.TempDir(), "circuit.txt")
	if err := os.WriteFile(s.File, []byte(circuit), 0o600); err != nil {
		t.Fatal(err)
	}
	return run.TrainOptions{
		Structure: s, Train: run.Files(train), Dir: t.TempDir(), Options: run.Options{Device: "cpu", Threads: 1},
		EM: em.Options{Seed: 1, Phases: []em.Phase{{Rule: em.FullBatch, Epochs: epochs}}},
	}
}

// TestFloorsOfTinyNumbers: units are as narrow as their column is, however small its numbers are, but for those far below 2^-60. Those of
// equal numbers stay as they are given.
func TestFloorsOfTinyNumbers(t *testing.T) {
	for _, unit := range []float64{1e-5, 1e-8, 1e-12, 1e-15} {
		rows := twoKinds(t, 1, 500, unit)
		circuit := fmt.Sprintf("circuit 2\na = input[2] x0 gaussian %v %v / %v %v\nb = input[2] x1 gaussian 1 2 / -1 2\np = product a b\ns = sum p : 0.6 0.4\n", 2*unit, unit/2, 8*unit, unit/2)
		start := fitCircuit(t, circuit, rows, rows, 0).TrainLL
		if got := fitCircuit(t, circuit, rows, rows, 20).TrainLL; !(got >= start-1e-4) {
			t.Errorf("numbers near %v: %v nats per row, the truth has %v", unit, got, start)
		}
	}
	equal := filepath.Join(t.TempDir(), "equal.csv")
	if err := os.WriteFile(equal, []byte(strings.Repeat("912\n912\n2\n3\n4\n", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	const narrow = "circuit 1\na = input[2] x0 gaussian 912 1e-8 / 3 1\ns = sum a : 0.4 0.6\n"
	start := fitCircuit(t, narrow, equal, equal, 0).TrainLL
	if got := fitCircuit(t, narrow, equal, equal, 5).TrainLL; !(got >= start-1e-4) {
		t.Errorf("units of equal numbers: %v nats per row, the start has %v", got, start)
	}
}

// TestFloorsOfCodes: whole numbers that a structure is made for are stored as they are, and their leaves keep the floor of the family.
func TestFloorsOfCodes(t *testing.T) {
	s := run.DefaultStructure()
	s.Latents, s.Leaf.Type = 2, "gaussian"
	b, err := run.Build(t.Context(), s, run.Files("builtin:random?rows=50&vars=3&categories=2"), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range b.Graph.Nodes {
		if n := &b.Graph.Nodes[i]; n.Kind == circuit.Input && n.Leaf != (circuit.Gaussian{}) {
			t.Errorf("node %d is %+v", i, n.Leaf)
		}
	}
}

// TestScaleOfFiles trains a circuit whose columns are stored as they are on numbers and on the same ones in other units, and wants the
// log-likelihoods to differ by the log of the unit alone.
func TestScaleOfFiles(t *testing.T) {
	const open = "circuit 2\na = input[2] x0 gaussian\nb = input[2] x1 gaussian\np = product a b\ns = sum p\n"
	want := fitCircuit(t, open, twoKinds(t, 1, 500, 1), twoKinds(t, 2, 300, 1), 30)
	for _, unit := range []float64{1e-3, 1e-6, 1e-8, 1e-14} {
		got := fitCircuit(t, open, twoKinds(t, 1, 500, unit), twoKinds(t, 2, 300, unit), 30)
		for what, diff := range map[string]float64{"train": got.TrainLL - want.TrainLL, "test": got.TestLL - want.TestLL} {
			if !(math.Abs(diff+math.Log(unit)) < 1e-3) {
				t.Errorf("in units of %v the %s ll differs by %v, want %v", 1/unit, what, diff, -math.Log(unit))
			}
		}
	}
}

// TestFloorsOfWholeNumbers trains a model that pce has made over whole numbers once more: its leaves keep the floor that they have.
func TestFloorsOfWholeNumbers(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.csv")
	if err := os.WriteFile(whole, []byte(strings.Repeat("0,1\n1,1\n0,0\n0,1\n", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	o := fileRun(t, "circuit 2\na = input[2] x0 gaussian\nb = input[2] x1 gaussian\np = product a b\ns = sum p\n", whole, 1)
	b, err := run.Build(t.Context(), o.Structure, o.Train, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range b.Graph.Nodes {
		if n := &b.Graph.Nodes[i]; n.Kind == circuit.Input && n.Leaf != (circuit.Gaussian{}) {
			t.Errorf("node %d is %+v", i, n.Leaf)
		}
	}
}

// TestFloorsOfOtherRows resumes a run whose floors follow from its rows with rows of another spread, which would have other floors.
func TestFloorsOfOtherRows(t *testing.T) {
	const open = "circuit 2\na = input[2] x0 gaussian\nb = input[2] x1 gaussian\np = product a b\ns = sum p\n"
	for _, unit := range []float64{1, 1e-4} {
		o := fileRun(t, open, twoKinds(t, 1, 200, 1e-3), 1)
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Train = run.Files(twoKinds(t, 1, 200, unit))
		o.Resume, o.AllowChanges, o.EM.Phases[0].Epochs = true, true, 3
		for range 2 { // what was taken over is kept
			if res, err := run.Train(t.Context(), o); err != nil || res.Epochs != o.EM.Phases[0].Epochs {
				t.Errorf("rows in units of %v: %+v, %v", 1/unit, res, err)
			}
			o.EM.Phases[0].Epochs++
		}
	}
}

// TestFloorsOfResumedRuns resumes a run that began without lower floors, as those of earlier versions did: its checkpoints fit no other
// circuit.
func TestFloorsOfResumedRuns(t *testing.T) {
	const mixture = "circuit 2\na = input[2] x0 gaussian 2 0.5 / 8 0.5\nb = input[2] x1 gaussian 1 2 / -1 2\np = product a b\ns = sum p : 0.6 0.4\n"
	o := fileRun(t, mixture, twoKinds(t, 1, 200, 1), 1)
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Train = run.Files(twoKinds(t, 1, 200, 1e-3)) // for which floors would be lower
	o.Resume, o.AllowChanges, o.EM.Phases[0].Epochs = true, true, 3
	res, err := run.Train(t.Context(), o)
	if err != nil || res.Epochs != 3 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestFloorsCompare compares a circuit with what was trained of it, which has other floors, by a pass: floors are for training.
func TestFloorsCompare(t *testing.T) {
	o := fileRun(t, "circuit 2\na = input x0 gaussian 0.005 0.002\nb = input x1 gaussian 0 2\np = product a b\ns = sum p : 1\n", twoKinds(t, 1, 200, 1e-3), 3)
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var models []*run.Blueprint
	for _, path := range []string{o.Structure.File, filepath.Join(o.Dir, run.ModelFile)} {
		b, err := run.OpenModel(path, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		models = append(models, b)
	}
	if ok, err := models[0].Comparable(models[1]); err != nil || !ok {
		t.Errorf("%t, %v; want them to differ in parameters alone", ok, err)
	}
}
