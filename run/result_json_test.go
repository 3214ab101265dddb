package run_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/run"
)

// TestResultRead: a result that is read back from JSON is written as it was, and log-likelihoods that have no number there are NaN.
func TestResultRead(t *testing.T) {
	bits := run.Measure(1.5)
	r := run.Result{
		Nodes: 1, Edges: 2, Parameters: 3, TrainLL: -4, ValidLL: math.Inf(-1), TestLL: math.NaN(), Objective: "o", TestBPD: &bits, BestEpoch: 5,
		Warnings: []string{"w"}, StructureSeconds: 6, CompileSeconds: 7, TrainSeconds: 8, SamplesPerSecond: 9, Epochs: 10, Steps: 11,
		Device: "cpu", PrecisionUsed: "fp32", Recomputed: 12, Out: "runs/r", Version: run.ReadVersion(),
	}
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read run.Result
	if err := json.Unmarshal(want, &read); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(read); err != nil || string(got) != string(want) {
		t.Errorf("read and written as %s, error %v; was %s", got, err, want)
	}
	if !math.IsNaN(read.ValidLL) || !math.IsNaN(read.TestLL) {
		t.Errorf("without numbers: %v and %v", read.ValidLL, read.TestLL)
	}
	read.ValidLL, read.TestLL, r.ValidLL, r.TestLL = 0, 0, 0, 0
	if !reflect.DeepEqual(read, r) {
		t.Errorf("read as %+v, was %+v", read, r)
	}
}
