package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestLargeSamples: samples whose picture is too large are refused before training, and others not.
func TestLargeSamples(t *testing.T) {
	s := &dataset.Schema{Columns: make([]dataset.Column, 300*300), Image: [3]int{300, 300, 1}}
	for i := range s.Columns {
		s.Columns[i] = dataset.Column{Categories: 2}
	}
	rows, err := dataset.NewTable(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	for samples, ok := range map[int]bool{0: true, 100: true, MaxSamples: false} {
		r := &training{opts: TrainOptions{Samples: samples}, plan: &Blueprint{Schema: s, Train: rows}}
		err := r.checkSamples()
		if ok != (err == nil) || !ok && (!errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "too large")) {
			t.Errorf("%d samples: %v", samples, err)
		}
	}
}
