package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/xgboost"
)

// TestCheckForestOnCard plays pce check for a forest on the emulator: under the default schedule and those that are given,
// scores and leaves of code there are equal to the plain evaluator's, and none is made for the CPU.
func TestCheckForestOnCard(t *testing.T) {
	dir := t.TempDir()
	f := &forest.Forest{Target: "reg:squarederror", Features: 2, Outputs: 1, Base: []float64{0.5}, Trees: []forest.Tree{{Weight: 1,
		Nodes:  []forest.Node{{Test: forest.Less, Threshold: 2, MissingYes: true, Yes: 1, No: 2}, {Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}},
		Values: []forest.Value{{Value: 0.25}, {Value: -1.5}}}}}
	var text bytes.Buffer
	if err := xgboost.Write(&text, f); err != nil {
		t.Fatal(err)
	}
	model, rows := filepath.Join(dir, "model"), filepath.Join(dir, "rows.csv")
	for name, content := range map[string]string{model: text.String(), rows: "1,0\n3,0\n,0\n"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const team = "../../bench/gpu/schedules/team128.schedule" // of which leaves want other blocks than sums
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"check", model, "--data", rows, "--set", "data.header=no", "--json", "--device", "emulator", "--schedule", "preset:tahoe-direct", "--schedule", "preset:padded", "--schedule", team}, nil, nil, &out, &errs)
	var r forestCheck
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != exitOK || !r.OK || r.Rows != 3 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out.String(), errs.String())
	}
	var schedules []string
	for _, p := range r.Paths {
		if p.Path != "code" {
			continue
		}
		if p.Device != "emulator" || p.KernelPath != "ptx sm_90" || !p.OK || p.MaxError != 0 {
			t.Errorf("%+v", p)
		}
		schedules = append(schedules, p.Schedule)
	}
	if !slices.Equal(schedules, []string{"default", "preset:tahoe-direct", "preset:padded", team}) {
		t.Errorf("schedules %q", schedules)
	}
}
