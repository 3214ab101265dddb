package job

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestDeathsOfTakers has coordinators die as they lead a run: it is led once more as long as it gets farther, and given up, with a dead
// letter, after MaxSetbacks of them without progress. A run that ends or is left leaves no note.
func TestDeathsOfTakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		ran := 0
		tk := &Taker{
			Bus: bus, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 1 },
			Run: func(ctx context.Context, _ string, _ []byte) error {
				ran++
				<-ctx.Done()
				return ctx.Err()
			},
		}
		die := func(times int, r Record) {
			t.Helper()
			for range times {
				if err := tk.begin(t.Context(), "r-1", &r); err != nil {
					t.Fatal(err)
				}
			}
		}
		die(MaxSetbacks, Record{}) // before there is a record
		for step := range int64(3) {
			die(MaxSetbacks, Record{RunStatus: cluster.RunStatus{Epochs: 9, Step: step + 1}})
		}
		work := func() (unfinished bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			unfinished, err := tk.Work(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bus.Bucket(cluster.RunsBucket).Get(t.Context(), begunPrefix+"r-1"); !errors.Is(err, cluster.ErrNoRecord) {
				t.Errorf("the note of a run that is not led: %v", err)
			}
			return unfinished
		}
		if !work() || ran != 1 {
			t.Errorf("a run that got farther is led %d times, want once", ran)
		}
		die(MaxSetbacks+1, Record{RunStatus: cluster.RunStatus{State: StateRunning}})
		if work() || ran != 1 {
			t.Errorf("a run by which %d coordinators died is led %d times more", MaxSetbacks+1, ran-1)
		}
		r, _, err := GetRun(t.Context(), bus, "r-1")
		if err != nil || r.State != StateFailed || !strings.Contains(r.Error, "died 11 times") {
			t.Errorf("record %+v, %v", r, err)
		}
		if dead, err := bus.Jobs().Dead(t.Context()); err != nil || len(dead) != 1 || dead[0].Run != "r-1" || dead[0].Reason != r.Error {
			t.Errorf("dead letters %+v, %v", dead, err)
		}
		wantEmptyQueue(t, bus)
	})
}

// TestOftenTakenOver has the job of a run that waits, as for workers, become another coordinator's more often than coordinators may
// die by it: none has died, and the run is not given up.
func TestOftenTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: StateRunning}}); err != nil {
			t.Fatal(err)
		}
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		led, ends := 0, 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		tk := &Taker{
			Bus: takenBus{bus, &ends}, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 0 },
			Run: func(run context.Context, _ string, _ []byte) error {
				if led++; led > 2*MaxSetbacks {
					cancel()
				}
				<-run.Done()
				return run.Err()
			},
		}
		if _, err := tk.Work(ctx); err != nil {
			t.Error(err)
		}
		if r, _, err := GetRun(t.Context(), bus, "r-1"); err != nil || r.Ended() || led <= 2*MaxSetbacks {
			t.Errorf("after it was led %d times: record %+v, %v", led, r, err)
		}
	})
}
