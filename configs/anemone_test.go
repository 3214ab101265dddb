package configs

import (
	"slices"
	"testing"
)

// TestAnemoneDefaults sets the rule and sees that its own defaults hold, that
// keys which are set win over them, and that a pseudocount for a batch is noted.
func TestAnemoneDefaults(t *testing.T) {
	for _, tc := range []struct {
		set                   []string
		from, to, pseudocount float64
		notes                 []string
	}{
		{nil, 0.9, 0.05, 0.01, nil},
		{[]string{"train.rule=anemone"}, 0.9, 0.05, 5e-6, nil},
		{[]string{"train.rule=anemone", "train.step_size.to=0.1", "train.pseudocount=0"}, 0.9, 0.1, 0, nil},
		{[]string{"train.rule=anemone", "train.rule=minibatch-em"}, 0.9, 0.05, 0.01, nil},
		{[]string{"train.rule=anemone", "train.pseudocount=0.1"}, 0.9, 0.05, 0.1, []string{
			"--set train.pseudocount=0.1: train.pseudocount 0.1 is heavy for train.rule anemone, whose counts are those of one row; 5e-6 is usual",
		}},
	} {
		cfg, notes, err := Load(Options{Set: tc.set})
		if err != nil {
			t.Fatal(err)
		}
		if s := cfg.Train.StepSize; s.From != tc.from || s.To != tc.to || cfg.Train.Pseudocount != tc.pseudocount || cfg.Train.Momentum != 0.5 {
			t.Errorf("%q: %+v", tc.set, cfg.Train)
		}
		if !slices.Equal(notes, tc.notes) {
			t.Errorf("%q: notes %q, want %q", tc.set, notes, tc.notes)
		}
		if len(notes) == 0 {
			roundTrip(t, cfg)
		}
	}
}
