package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSettingsOfOtherRules chooses rules over those of presets and files, and wants
// settings that were made for another rule to be left out, with a note, and those of
// the same source, of a later one or of no rule at all to hold.
func TestSettingsOfOtherRules(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := Default().Train
	anemone := own
	anemone.Pseudocount = 5e-6
	type figures struct {
		from, to, pseudocount, momentum float64
		batch, subsets                  int
	}
	of := func(t Train) figures {
		return figures{t.StepSize.From, t.StepSize.To, t.Pseudocount, t.Momentum, t.BatchSize, t.Subsets}
	}
	with := func(t Train, change func(*figures)) figures {
		f := of(t)
		change(&f)
		return f
	}
	for _, tc := range []struct {
		name  string
		o     Options
		want  figures
		notes []string // what each says
	}{
		{"the preset's own rule", Options{Files: []string{"preset:audio"}}, figures{0.9, 0.02, 0.01, own.Momentum, 256, 1}, nil},
		{"the same rule again", Options{Files: []string{"preset:audio"}, Set: []string{"train.rule=minibatch-em"}}, figures{0.9, 0.02, 0.01, own.Momentum, 256, 1}, nil},
		{"anemone over a preset", Options{Files: []string{"preset:audio"}, Set: []string{"train.rule=anemone"}},
			with(anemone, func(f *figures) { f.batch = 256 }), []string{"preset:audio:16:"}},
		{"full batches over a preset", Options{Files: []string{"preset:audio"}, Set: []string{"train.rule=fullbatch-em"}},
			with(own, func(f *figures) { f.batch = 256 }), []string{"made for train.rule minibatch-em and not used by fullbatch-em", "train.batch_size is ignored"}},
		{"from the environment", Options{Files: []string{"preset:audio"}, Env: []string{"PCE_TRAIN__RULE=anemone"}},
			with(anemone, func(f *figures) { f.batch = 256 }), []string{"train.step_size.schedule, train.step_size.from, train.step_size.to, train.pseudocount"}},
		{"set again", Options{Files: []string{"preset:audio"}, Set: []string{"train.pseudocount=2e-6", "train.rule=anemone", "train.step_size.from=0.3"}},
			with(anemone, func(f *figures) { f.batch, f.pseudocount, f.from = 256, 2e-6, 0.3 }), []string{"preset:audio"}},
		{"a file over a file", Options{Files: []string{file("train: {rule: anemone, momentum: 0.7, pseudocount: 1e-7}"), file("train: {momentum: 0.8}")}},
			with(anemone, func(f *figures) { f.momentum, f.pseudocount = 0.8, 1e-7 }), nil},
		{"back again", Options{Files: []string{"preset:audio"}, Env: []string{"PCE_TRAIN__RULE=anemone", "PCE_TRAIN__PSEUDOCOUNT=1e-7"}, Set: []string{"train.rule=minibatch-em"}},
			figures{0.9, 0.02, 0.01, own.Momentum, 256, 1}, []string{"variable PCE_TRAIN__PSEUDOCOUNT"}},
		{"subsets", Options{Files: []string{file("train: {rule: fullbatch-em, subsets: 5}")}, Set: []string{"train.rule=minibatch-em"}}, of(own), []string{"train.subsets: made for"}},
		{"no rule named", Options{Files: []string{file("train: {pseudocount: 0.5}")}, Set: []string{"train.rule=anemone"}}, of(anemone), []string{"train.pseudocount: made for train.rule minibatch-em"}},
	} {
		cfg, notes, err := Load(tc.o)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := of(cfg.Train); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		if len(notes) != len(tc.notes) || !slices.EqualFunc(notes, tc.notes, strings.Contains) {
			t.Errorf("%s: notes %q, want %q", tc.name, notes, tc.notes)
		}
		roundTrip(t, cfg)
	}
}
