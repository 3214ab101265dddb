package run_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestMeasures wants bits per dimension of rows without a continuous column, and the perplexity
// of text: JSON leaves out what rows do not have, and has null for what is infinite.
func TestMeasures(t *testing.T) {
	labels := []string{"<unk>", "a"}
	codes, words, number := dataset.Column{Categories: 2}, dataset.Column{Categories: 2, Labels: labels}, dataset.Column{Kind: dataset.Continuous}
	counts, unread := dataset.Column{Kind: dataset.Continuous, Counts: true}, dataset.Column{Kind: dataset.Continuous, Unread: true}
	ll := -2 * math.Ln2
	for _, tc := range []struct {
		name   string
		schema dataset.Schema
		ll     float64
		want   string
	}{
		{"table", dataset.Schema{Columns: []dataset.Column{codes, words}}, ll, `{"bpd":1}`},
		{"certain rows", dataset.Schema{Columns: []dataset.Column{codes, words}}, 0, `{"bpd":0}`},
		{"text", dataset.Schema{Columns: []dataset.Column{words, words}, Unit: dataset.Word}, ll, `{"bpd":1,"perplexity":2}`},
		{"density", dataset.Schema{Columns: []dataset.Column{codes, number}}, ll, `{}`},
		{"counts", dataset.Schema{Columns: []dataset.Column{codes, counts}}, ll, `{"bpd":1}`},
		{"a column that the model does not read", dataset.Schema{Columns: []dataset.Column{codes, counts, unread}}, ll, `{"bpd":1}`},
		{"columns that the model does not read alone", dataset.Schema{Columns: []dataset.Column{unread}}, 0, `{}`},
		{"impossible text", dataset.Schema{Columns: []dataset.Column{words, words}, Unit: dataset.Word}, math.Inf(-1), `{"bpd":null,"perplexity":null}`},
	} {
		var out struct {
			BPD        *run.Measure `json:"bpd,omitempty"`
			Perplexity *run.Measure `json:"perplexity,omitempty"`
		}
		out.BPD, out.Perplexity = run.Measures(tc.ll, &tc.schema)
		if text, err := json.Marshal(out); err != nil || string(text) != tc.want {
			t.Errorf("%s: %s (%v), want %s", tc.name, text, err, tc.want)
		}
	}
}

// TestBitsOfCounts trains on images of counts and wants their progress to be in bits per dimension, as the result is.
func TestBitsOfCounts(t *testing.T) {
	o := small(t, "hclt")
	o.Samples, o.Structure.Leaves = 0, map[string]run.Leaf{"*": {Type: "poisson"}}
	var stage run.Stage
	o.OnStage = func(s run.Stage) {
		if s.Name == run.StageTrain {
			stage = s
		}
	}
	r, err := run.Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.TestBPD == nil || !stage.Bits || run.BitsPerDimension(r.TestLL, stage.Variables) != float64(*r.TestBPD) {
		t.Errorf("progress over %d variables in bits: %t; the result has %v nats, and bits per dimension: %t", stage.Variables, stage.Bits, r.TestLL, r.TestBPD != nil)
	}
}
