package em_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
)

// TestPatienceOffAndOn resumes a run that has a best epoch without patience, which trains it on,
// and then with patience again: the model of the part without it may not give way to the
// earlier epoch, with which it was not compared, and the best is chosen of the epochs that follow.
func TestPatienceOffAndOn(t *testing.T) {
	j := overfitting(t)
	dir := t.TempDir()
	part := func(epochs, patience int) (em.Result, []float32) {
		t.Helper()
		res, params, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.Phases, o.Patience = []em.Phase{{Rule: em.FullBatch, Epochs: epochs}}, patience
		})
		if err != nil {
			t.Fatal(err)
		}
		return res, params
	}
	first, _ := part(500, 4)
	if first.Best == 0 || first.Best == first.Epochs {
		t.Fatalf("%+v: the run has not stopped early", first)
	}
	total := first.Epochs + 3
	off, params := part(total, 0)
	if off.Epochs != total || off.Best != 0 {
		t.Fatalf("without patience: %+v, want %d epochs and the last one", off, total)
	}
	on, again := part(total, 4)
	if on.Epochs != total || on.Best != 0 || !sameBits(params, again) {
		t.Errorf("with patience again: %+v, %s; want the model as it was", on, firstDifference(params, again))
	}
	longer, _ := part(total+20, 4)
	if longer.Best != total+1 || longer.Epochs != total+1+4 { // each epoch is worse than the one before
		t.Errorf("longer: %+v, want the best of the epochs after %d and patience from there", longer, total)
	}
}

// TestPatienceSaysWhatIsLeft wants a log line of the epochs that patience leaves out, those of a later phase included, and none of a
// run without patience, which does them all.
func TestPatienceSaysWhatIsLeft(t *testing.T) {
	for _, patience := range []int{0, 4} {
		j := overfitting(t)
		var log bytes.Buffer
		res, _, err := j.try(t, context.Background(), t.TempDir(), j.model.table, func(o *em.Options) {
			o.Phases, o.Patience = []em.Phase{{Rule: em.FullBatch, Epochs: 100}, {Rule: em.FullBatch, Epochs: 3}}, patience
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("epoch=%d left=%d\n", res.Epochs, 103-res.Epochs)
		if said := strings.Contains(log.String(), "patience has ended the run"); said != (patience > 0) || said && !strings.Contains(log.String(), want) {
			t.Errorf("patience %d, %d epochs of 103: want a line with %q if there are fewer in\n%s", patience, res.Epochs, want, log.String())
		}
	}
}

// TestEndBeforePlace resumes runs that were stopped a step after an epoch, with no more epochs than those before it: the best of
// these, or the start, is what they keep.
func TestEndBeforePlace(t *testing.T) {
	j := newJob(t)
	part := func(dir string, epochs int, edit func(*em.Options)) (em.Result, []float32) {
		t.Helper()
		res, params, err := j.try(t, t.Context(), dir, j.model.table, func(o *em.Options) {
			o.Phases, o.Patience = []em.Phase{{Rule: em.FullBatch, Epochs: epochs, Subsets: 4}}, 0
			edit(o)
		})
		if err != nil {
			t.Fatal(err)
		}
		return res, params
	}
	for epochs, keep := range []func(*em.Options){
		func(o *em.Options) { o.KeepStart = true },
		func(o *em.Options) { o.Patience = 5 },
	} {
		_, want := part(t.TempDir(), epochs, func(*em.Options) {})
		dir := t.TempDir()
		part(dir, 9, func(o *em.Options) {
			keep(o)
			o.Steps = int64(4*epochs + 1)
		})
		res, params := part(dir, epochs, keep)
		if res.Best != epochs || res.BestStart != (epochs == 0) || !sameBits(params, want) {
			t.Errorf("%+v, %s; want the parameters after %d epochs", res, firstDifference(want, params), epochs)
		}
	}
}

// TestEndWhereEpochBegins resumes a run that its limit of steps has ended within an epoch, with that limit and other steps of an epoch.
// The epoch begins again, and the run ends there: what it keeps is the best epoch, without the steps of the one after it.
func TestEndWhereEpochBegins(t *testing.T) {
	j := newJob(t)
	part := func(dir string, subsets, steps int) (em.Result, []float32) {
		t.Helper()
		res, params, err := j.try(t, t.Context(), dir, j.model.table, func(o *em.Options) {
			o.Phases, o.Patience, o.AllowChanges, o.Steps = []em.Phase{{Rule: em.FullBatch, Epochs: 4, Subsets: subsets}}, 5, true, int64(steps)
		})
		if err != nil {
			t.Fatal(err)
		}
		return res, params
	}
	_, want := part(t.TempDir(), 4, 4)
	dir := t.TempDir()
	part(dir, 4, 5)
	for range 2 { // also from the checkpoint that notes the change
		res, params := part(dir, 3, 5)
		if res.Best != 1 || res.Epochs != 1 || !sameBits(params, want) {
			t.Errorf("%+v, %s; want the parameters after the first epoch", res, firstDifference(want, params))
		}
	}
}

// TestOtherValidationRows resumes runs that keep their best epoch, or a start, with validation
// rows that are less likely than those before. The best so far is judged by the new rows: epochs
// compete with that number, patience counts from there, and what the run ends with is its best
// on these rows. That holds to the bit where the run is stopped while it judges or in a step.
func TestOtherValidationRows(t *testing.T) {
	for name, keep := range map[string]func(*em.Options){
		"patience": func(o *em.Options) { o.Patience = 4 },
		"a start":  func(o *em.Options) { o.Patience, o.KeepStart = 0, true },
	} {
		t.Run(name, func(t *testing.T) {
			j := overfitting(t)
			hard := j.opts.Valid.(*dataset.Table)
			easy := hard.Slice(160, 170) // the best epoch of these is more likely than that of all rows, and comes earlier
			part := func(ctx context.Context, dir string, fact string, valid dataset.Source, edit func(*em.Options)) (em.Result, []float32, error) {
				return j.try(t, ctx, dir, j.model.table, func(o *em.Options) {
					o.Phases, o.Valid = []em.Phase{{Rule: em.FullBatch, Epochs: 40}}, valid
					o.Fingerprint = []em.Fact{{Name: em.ValidRowsFact, Value: fact}}
					if keep(o); edit != nil {
						edit(o)
					}
				})
			}
			from := t.TempDir()
			first, kept, err := part(t.Context(), from, "easy", easy, func(o *em.Options) { o.Steps = 14 })
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := part(t.Context(), from, "hard", hard, nil); !errors.Is(err, em.ErrChanged) {
				t.Fatalf("other validation rows that decide: %v, want ErrChanged", err)
			}
			copied := func() string {
				dir := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				return dir
			}
			score := func(params []float32) float64 {
				eng := j.model.engine(t, cpu.Options{}, 64)
				if err := eng.WriteParams(t.Context(), 0, params); err != nil {
					t.Fatal(err)
				}
				all, err := em.Evaluate(t.Context(), eng, hard)
				if err != nil {
					t.Fatal(err)
				}
				return all.Mean()
			}
			alone := map[int]float64{}
			if _, _, err := part(t.Context(), t.TempDir(), "hard", hard, func(o *em.Options) {
				o.Patience, o.OnEpoch = 0, func(m em.Metrics) { alone[m.Epoch] = m.ValidLL }
			}); err != nil {
				t.Fatal(err)
			}
			want := em.Result{Best: first.Best, ValidLL: score(kept)}
			var log bytes.Buffer
			whole := copied()
			epochs := 0
			res, params, err := part(t.Context(), whole, "hard", hard, func(o *em.Options) {
				o.AllowChanges, o.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
				o.OnEpoch = func(m em.Metrics) {
					if epochs++; m.ValidLL != alone[m.Epoch] {
						t.Errorf("epoch %d: %v on these rows, and %v in a run that had no others", m.Epoch, m.ValidLL, alone[m.Epoch])
					}
					if m.ValidLL > want.ValidLL {
						want.Best, want.ValidLL = m.Epoch, m.ValidLL
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if !(want.Best > first.Epochs) || !(first.ValidLL > want.ValidLL) {
				t.Fatalf("%+v, then %+v: the rows show nothing", first, want)
			}
			if res.Best != want.Best || res.ValidLL != want.ValidLL || score(params) != want.ValidLL || !(epochs >= 4) {
				t.Errorf("after %d epochs: %+v, with %v on these rows; want epoch %d with %v", epochs, res, score(params), want.Best, want.ValidLL)
			}
			if !strings.Contains(log.String(), "judged by the new validation rows") {
				t.Errorf("the log does not say so: %s", &log)
			}
			for read := 1; read <= 3; read++ { // the first one judges
				dir := copied()
				ctx, cancel := context.WithCancel(t.Context())
				_, _, err := part(ctx, dir, "hard", &interrupting{hard, read, cancel}, func(o *em.Options) { o.AllowChanges = true })
				if cancel(); !errors.Is(err, em.ErrStopped) {
					t.Fatalf("stopped at read %d: %v", read, err)
				}
				again, other, err := part(t.Context(), dir, "hard", hard, func(o *em.Options) { o.AllowChanges = read == 1 })
				if again.Seconds = res.Seconds; err != nil || again != res || !sameBits(params, other) {
					t.Errorf("stopped at read %d and resumed: %+v, %v, %s; want %+v", read, again, err, firstDifference(params, other), res)
				}
			}
		})
	}
}

// TestBestValid resumes a run without patience, with other validation rows and then with these: the best figure so far is that of the
// epochs which had the same rows, whichever of the two are more likely.
func TestBestValid(t *testing.T) {
	j := newJob(t)
	all := j.opts.Valid.(*dataset.Table)
	for _, rows := range [][2]dataset.Source{{all, all.Slice(0, 7)}, {all.Slice(0, 7), all}} {
		dir := t.TempDir()
		var of [2][]float64 // of the epochs with each rows
		part := func(epochs, which int) (before float64) {
			t.Helper()
			tr, flows := j.trainer(t, dir, j.model.table, func(o *em.Options) {
				o.Phases, o.Patience, o.Valid = []em.Phase{{Rule: em.FullBatch, Epochs: epochs}}, 0, rows[which]
				o.Fingerprint = []em.Fact{{Name: em.ValidRowsFact, Value: fmt.Sprint(which), Free: true}}
				o.OnEpoch = func(m em.Metrics) { of[which] = append(of[which], m.ValidLL) }
			})
			defer flows.Close()
			if _, err := tr.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			before = tr.BestValid()
			if _, err := tr.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			return before
		}
		if got := part(2, 0); !math.IsNaN(got) {
			t.Errorf("%v before the first epoch", got)
		}
		if want, got := slices.Max(of[0]), part(3, 0); got != want {
			t.Errorf("%v after two epochs, want %v", got, want)
		}
		if got := part(5, 1); !math.IsNaN(got) {
			t.Errorf("%v of other rows", got)
		}
		if want, got := slices.Max(of[1]), part(6, 1); got != want {
			t.Errorf("%v after two epochs with these rows, want %v", got, want)
		}
	}
}

// TestCutBeyondEnd resumes a run that was stopped within an epoch with fewer epochs, which end before that one, and then with more of them.
// The epoch continues where it is cut as before, and else begins again, as where the run is resumed with these epochs at once.
func TestCutBeyondEnd(t *testing.T) {
	j := newJob(t)
	part := func(dir string, steps int64, phases ...em.Phase) []float32 {
		t.Helper()
		_, params, err := j.try(t, t.Context(), dir, j.model.table, func(o *em.Options) {
			o.Phases, o.Steps, o.Patience, o.AllowChanges = phases, steps, 0, true
		})
		if err != nil {
			t.Fatal(err)
		}
		return params
	}
	epochs := func(n, subsets int) em.Phase { return em.Phase{Rule: em.FullBatch, Epochs: n, Subsets: subsets} }
	for _, then := range [][]em.Phase{{epochs(4, 4)}, {epochs(2, 4), epochs(2, 1)}} {
		atOnce, later := t.TempDir(), t.TempDir()
		for _, dir := range []string{atOnce, later} {
			part(dir, 10, epochs(4, 4))
		}
		for range 2 {
			part(later, 0, epochs(1, 4))
		}
		if want, got := part(atOnce, 0, then...), part(later, 0, then...); !sameBits(got, want) {
			t.Errorf("%d phases: %s", len(then), firstDifference(want, got))
		}
	}
}
