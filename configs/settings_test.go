package configs

import (
	"slices"
	"strings"
	"testing"
)

// TestSettingsWithoutEffect lists a key where it has an effect, and only there: a run that is resumed with another value of one that
// has none is the same run, and a note has just said that the key is ignored.
func TestSettingsWithoutEffect(t *testing.T) {
	for _, tc := range []struct {
		key, with string // that the key has an effect with
	}{
		{"train.momentum", "train.rule=anemone"},
		{"train.finish.pseudocount", "train.finish.epochs=1"},
		{"model.hclt.inner", "model.hclt={tree: random, inner: 3}"},
		{"model.leaf.bins", "model.leaf.type=histogram"},
	} {
		for _, set := range [][]string{nil, {tc.with}} {
			c, _, err := Load(Options{Set: set})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(c.Settings(), func(s Setting) bool { return s.Key == tc.key })
			if (at >= 0) != (set != nil) {
				t.Errorf("with %q %s is setting %d", set, tc.key, at)
			}
			if at >= 0 && c.Settings()[at].Free {
				t.Errorf("%s may change with %s, and bits with it", tc.key, tc.with)
			}
		}
	}
}

// TestSettings wants all keys once, each on a line, and says which ones a resumed
// run may change: a new key may not unless this test says so.
func TestSettings(t *testing.T) {
	c := Default()
	c.Model.Structure = "rat-spn"
	c.Train.StepSize.Pieces = []Piece{{Length: 3, From: 0.9, To: 0.1}, {Length: 1, From: 0.1, To: 0.1}}
	c.Data.Expected = "two\nlines: of text"
	for range 40 {
		c.Data.Image = append(c.Data.Image, 1000)
	}
	list := c.Settings()
	values, free := map[string]string{}, []string{}
	for _, s := range list {
		if _, twice := values[s.Key]; twice || strings.Contains(s.Value, "\n") {
			t.Errorf("%s: %q, a second time (%t) or in several lines", s.Key, s.Value, twice)
		}
		if values[s.Key] = s.Value; s.Free {
			free = append(free, s.Key)
		}
	}
	for key, want := range map[string]string{
		"seed": "42", "model.structure": "rat-spn", "model.rat_spn.depth": "5", "train.pseudocount": "0.01", "train.checkpoint.interval": "0s",
		"train.step_size.schedule": "linear", "train.step_size.pieces": "[{length: 3, from: 0.9, to: 0.1}, {length: 1, from: 0.1, to: 0.1}]",
		"data.image": "[" + strings.Repeat("1000, ", 39) + "1000]",
	} {
		if got := values[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if _, ok := values["model.hclt.tree"]; ok {
		t.Error("a key of another structure is listed")
	}
	want := []string{
		"name", "device", "threads",
		"data.train", "data.valid", "data.test", "data.expected", "data.header", "data.text.max_bytes",
		"train.epochs", "train.steps", "train.patience", "train.finish.epochs",
		"train.checkpoint.epochs", "train.checkpoint.steps", "train.checkpoint.interval", "train.checkpoint.keep", "train.samples",
		"cluster.transport", "cluster.workers", "job.kind", "job.model", "job.data", "job.rows", "job.seed", "job.format", "job.columns", "job.levels", "job.of", "job.soft", "job.probabilities", "job.result", "job.schedule", "job.profile", "job.candidates", "job.search",
	}
	if !slices.Equal(free, want) {
		t.Errorf("free keys are\n%q, want\n%q", free, want)
	}
}
