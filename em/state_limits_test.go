package em

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestStateOfAverages takes weights of averages up to 1 and its rounding.
func TestStateOfAverages(t *testing.T) {
	for _, tc := range []struct {
		weight float64
		ok     bool
	}{
		{0, true}, {1, true}, {1 + 0x1p-41, true}, {1 + 0x1p-40, true}, {1 + 0x1p-39, false}, {2, false}, {-0x1p-60, false}, {math.NaN(), false}, {math.Inf(1), false},
	} {
		s := newState()
		s.Averages = exact(tc.weight)
		if err := s.validate(); (err == nil) != tc.ok {
			t.Errorf("weight %v: %v, want ok: %v", tc.weight, err, tc.ok)
		}
	}
}

// TestStateOfNoRun spoils one number of a state at a time.
func TestStateOfNoRun(t *testing.T) {
	good := newState()
	good.At, good.Steps, good.Rows, good.TotalRows, good.BestEpoch, good.Waiting = dataset.Cursor{Epoch: 3, Step: 2}, 11, 20, 110, 3, 3
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(s *state){
		"epoch below 0":                func(s *state) { s.At.Epoch, s.BestEpoch, s.Waiting = -1, 0, 0 },
		"step below 0":                 func(s *state) { s.At.Step, s.Rows = -1, 0 },
		"fewer steps than epochs":      func(s *state) { s.Steps = 3 },
		"more epochs than time":        func(s *state) { s.At.Epoch, s.Steps, s.TotalRows = 1<<40+1, 1<<41, 1<<41 },
		"rows below 0":                 func(s *state) { s.At.Step, s.Rows = 0, -1 },
		"rows before the first step":   func(s *state) { s.At.Step = 0 },
		"steps without rows":           func(s *state) { s.Rows = 0 },
		"more rows in the epoch":       func(s *state) { s.TotalRows = 19 },
		"best epoch below 0":           func(s *state) { s.BestEpoch = -1 },
		"best epoch to come":           func(s *state) { s.BestEpoch = 4 },
		"best epoch and the start":     func(s *state) { s.BestStart = true },
		"patience before the first":    func(s *state) { s.Waiting = -1 },
		"patience from one that comes": func(s *state) { s.Waiting = 4 },
	} {
		s := good
		if spoil(&s); s.validate() == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}

// TestRecutEnd: a state at the end of an epoch stays one that can be resumed where the epoch is cut into more steps than were done.
func TestRecutEnd(t *testing.T) {
	set := func(rows int) settings {
		return settings{Seed: 5, Rows: 100, Phases: []Phase{{Rule: MiniBatch, Epochs: 3, BatchRows: rows}}}
	}
	s := newState()
	s.At.Step, s.Steps, s.Rows, s.TotalRows = 2, 2, 100, 100
	if s.recut(set(50), set(10)) || s.At.Step != 10 {
		t.Errorf("%+v", s.At)
	}
	if err := s.validate(); err != nil {
		t.Error(err)
	}
}

// TestLostMetrics: a file does not get lines for any number of epochs of which it has none.
func TestLostMetrics(t *testing.T) {
	for _, epochs := range []int{mostLost + 1, mostEpochs} {
		if _, _, _, err := openMetrics(filepath.Join(t.TempDir(), "metrics.jsonl"), epochs, nil); err == nil || !strings.Contains(err.Error(), "restore the file") {
			t.Errorf("%d epochs: %v", epochs, err)
		}
	}
}

// TestRecutPhases moves the place in an epoch of the second of three phases, whose steps alone count.
func TestRecutPhases(t *testing.T) {
	set := func(rows ...int) settings {
		s := settings{Seed: 5, Rows: 100}
		for _, n := range rows {
			s.Phases = append(s.Phases, Phase{Rule: MiniBatch, Epochs: 3, BatchRows: n})
		}
		return s
	}
	was := set(50, 10, 20)
	for _, tc := range []struct {
		name  string
		now   settings
		epoch int
		step  int // at which the state is
		want  int
		anew  bool
	}{
		{"no change", set(50, 10, 20), 3, 4, 4, false},
		{"another phase before it", set(25, 10, 20), 3, 4, 4, false},
		{"another phase behind it", set(50, 10, 25), 5, 4, 4, false},
		{"other steps", set(50, 20, 20), 3, 4, 0, true},
		{"other steps in its last epoch", set(50, 20, 20), 5, 4, 0, true},
		{"other steps at the end of the epoch", set(50, 20, 20), 4, 10, 5, false},
		{"other steps before the first", set(50, 20, 20), 4, 0, 0, false},
		{"other steps in the last phase", set(50, 10, 25), 8, 4, 0, true},
		{"behind the last phase", set(50, 20, 25), 9, 4, 4, false},
	} {
		s := newState()
		s.At = dataset.Cursor{Epoch: tc.epoch, Step: tc.step}
		s.LLSum, s.Rows, s.Impossible, s.Seconds = -7, 40, 2, 3
		if got := s.recut(was, tc.now); got != tc.anew || s.At.Step != tc.want || s.At.Epoch != tc.epoch {
			t.Errorf("%s: %+v, anew: %t; want step %d, anew: %t", tc.name, s.At, got, tc.want, tc.anew)
		}
		if tc.anew && (s.LLSum != 0 || s.Rows != 0 || s.Impossible != 0 || s.Seconds != 0) || !tc.anew && s.Rows != 40 {
			t.Errorf("%s: sums %v, %d, %d and %v of the epoch", tc.name, s.LLSum, s.Rows, s.Impossible, s.Seconds)
		}
	}
}
