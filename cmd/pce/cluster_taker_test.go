package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/cluster/uploads"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/em"
)

// queued puts a run into the queue, as submit does.
func queued(t *testing.T, bus cluster.Bus, id string) {
	t.Helper()
	if err := job.PutRun(t.Context(), bus, &job.Record{RunStatus: cluster.RunStatus{Run: id, State: job.StateQueued}}); err != nil {
		t.Fatal(err)
	}
	if err := bus.Jobs().Submit(t.Context(), id, []byte(id)); err != nil {
		t.Fatal(err)
	}
}

// advance writes what the coordinator of a run does.
func advance(t *testing.T, bus cluster.Bus, id string, step int64) {
	r := job.Record{RunStatus: cluster.RunStatus{Run: id, State: job.StateRunning, Step: step, Term: cluster.Term{Fence: 3}}}
	if err := job.PutRun(t.Context(), bus, &r); err != nil {
		t.Error(err)
	}
}

// inBubble runs a test of a taker in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, bus cluster.Bus)) {
	synctest.Test(t, func(t *testing.T) { f(t, simnet.New(1, simnet.Faults{}).Host("c-up").Bus()) })
}

func quietTaker(bus cluster.Bus, run func(ctx context.Context, id string, text []byte) error) *job.Taker {
	return &job.Taker{Bus: bus, Log: slog.New(slog.DiscardHandler), Run: run, Code: stateCode}
}

// ends waits for the end of a run, and returns its record.
func ends(t *testing.T, bus cluster.Bus, id string) job.Record {
	t.Helper()
	for range 10000 {
		r, _, err := job.GetRun(t.Context(), bus, id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ended() {
			return r
		}
		<-time.After(time.Second)
	}
	t.Fatalf("run %s does not end", id)
	return job.Record{}
}

// TestTaker leads runs that end in each way, and wants the record, the exit
// code, and an empty queue.
func TestTaker(t *testing.T) {
	lost := fmt.Errorf("%w: no worker has them", cluster.ErrLost)
	for name, tc := range map[string]struct {
		errs  []error // of one attempt after another; each makes a step
		still bool    // but no steps
		state string
		code  int
		text  string
		dead  int
	}{
		"done":            {nil, false, job.StateDone, 0, "", 0},
		"bad config":      {[]error{fmt.Errorf("%w: no such key", configs.ErrConfig)}, false, job.StateFailed, exitUsage, "no such key", 0},
		"bad job":         {[]error{fmt.Errorf("%w: version 9", cluster.ErrJob)}, false, job.StateFailed, exitData, "version 9", 0},
		"bad job, config": {[]error{fmt.Errorf("%w: %w", cluster.ErrJob, configs.ErrConfig)}, false, job.StateFailed, exitUsage, "", 0},
		"dead shard":      {[]error{cluster.ErrDead}, false, job.StateFailed, exitCluster, "dead shard", 0},
		"setbacks":        {[]error{lost, cluster.ErrDeposed, cluster.ErrUnreachable, lost}, true, job.StateDone, 0, "", 0},
		"many setbacks with progress": {func() (all []error) {
			for range 3 * job.MaxSetbacks {
				all = append(all, lost)
			}
			return all
		}(), false, job.StateDone, 0, "", 0},
		"many setbacks with answers": {func() (all []error) {
			for range 3 * job.MaxSetbacks {
				all = append(all, cluster.ErrDeposed)
			}
			return all
		}(), true, job.StateDone, 0, "", 0},
		"no progress": {func() (all []error) {
			for range job.MaxSetbacks + 1 {
				all = append(all, lost)
			}
			return all
		}(), true, job.StateFailed, exitCluster, "given up after", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, bus cluster.Bus) {
				attempt := 0
				tk := quietTaker(bus, func(_ context.Context, id string, text []byte) error {
					if id != "r-1" || string(text) != "r-1" {
						t.Errorf("job %q of run %q", text, id)
					}
					attempt++
					step := int64(attempt)
					if tc.still {
						step = 1
					}
					advance(t, bus, id, step)
					if name == "many setbacks with answers" {
						r := job.Record{RunStatus: cluster.RunStatus{Run: id, State: job.StateRunning, Step: step, Rows: int64(attempt)}}
						if err := job.PutRun(t.Context(), bus, &r); err != nil {
							t.Error(err)
						}
					}
					if attempt <= len(tc.errs) {
						return tc.errs[attempt-1]
					}
					return nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan bool, 1)
				go func() {
					unfinished, err := tk.Work(ctx)
					if err != nil {
						t.Error(err)
					}
					ended <- unfinished
				}()
				queued(t, bus, "r-1")
				r := ends(t, bus, "r-1")
				if r.State != tc.state || r.Code != tc.code || !strings.Contains(r.Error, tc.text) || (r.Error == "") != (tc.state == job.StateDone) || r.Step == 0 {
					t.Errorf("ended as %+v, want %s with code %d and %q", r, tc.state, tc.code, tc.text)
				}
				var end job.RunEnd
				err := bus.Events().Follow(ctx, "r-1", func(event []byte) bool { return json.Unmarshal(event, &end) == nil && end.Msg != job.EndMessage })
				if err != nil || end.State != tc.state || end.Code != tc.code {
					t.Errorf("last event %+v, %v", end, err)
				}
				if dead, err := bus.Jobs().Dead(ctx); err != nil || len(dead) != tc.dead || tc.dead > 0 && (dead[0].Run != "r-1" || dead[0].Shard != -1) {
					t.Errorf("dead letters %v, %v; want %d", dead, err, tc.dead)
				}
				synctest.Wait()
				cancel()
				if <-ended {
					t.Error("a run is said to be unfinished")
				}
				short, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				if d, err := bus.Jobs().Next(short); err == nil {
					t.Errorf("run %s is still in the queue", d.ID())
				}
			})
		})
	}
}

// TestTakerStops ends a taker in the midst of a run, and wants the run handed
// back, taken up by the next one and not taken twice although it takes hours.
func TestTakerStops(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		queued(t, bus, "r-1")
		ctx, cancel := context.WithCancel(t.Context())
		tk := quietTaker(bus, func(ctx context.Context, id string, _ []byte) error {
			advance(t, bus, id, 5)
			<-time.After(2 * time.Hour)
			cancel()
			<-ctx.Done()
			return fmt.Errorf("%w: checkpoint written", em.ErrStopped)
		})
		other := make(chan cluster.Delivery, 1)
		began := time.Now()
		go func() {
			<-time.After(time.Minute)
			d, err := bus.Jobs().Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			other <- d
		}()
		if unfinished, err := tk.Work(ctx); !unfinished || err != nil {
			t.Errorf("work = %v, %v", unfinished, err)
		}
		d := <-other
		if d.ID() != "r-1" || d.Attempt() != 2 || time.Since(began) < 2*time.Hour {
			t.Errorf("attempt %d after %v", d.Attempt(), time.Since(began))
		}
		if r, _, err := job.GetRun(t.Context(), bus, "r-1"); err != nil || r.State != job.StateInterrupted || r.Step != 5 || r.Code != exitCheckpointed {
			t.Errorf("record %+v, %v", r, err)
		}
		if err := d.Done(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTakerAgain gives a taker a job whose end the queue did not learn of.
func TestTakerAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		queued(t, bus, "r-1")
		if err := job.PutRun(t.Context(), bus, &job.Record{RunStatus: cluster.RunStatus{Run: "r-1", State: job.StateDone}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		tk := quietTaker(bus, func(context.Context, string, []byte) error {
			t.Error("a run that is done is run again")
			return nil
		})
		if unfinished, err := tk.Work(ctx); unfinished || err != nil {
			t.Errorf("work = %v, %v", unfinished, err)
		}
	})
}

// TestCancel cancels runs that wait, that run, that are over and that never were.
func TestCancel(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan string, 8)
		tk := quietTaker(bus, func(ctx context.Context, id string, _ []byte) error {
			advance(t, bus, id, 1)
			running <- id
			<-ctx.Done()
			return fmt.Errorf("%w: %w", em.ErrStopped, ctx.Err())
		})
		ended := make(chan struct{})
		go func() {
			tk.Work(ctx)
			close(ended)
		}()
		for _, id := range []string{"r-1", "r-2", "r-3"} {
			queued(t, bus, id)
		}
		if id := <-running; id != "r-1" {
			t.Fatalf("%s runs first", id)
		}
		if atOnce, err := job.RequestCancel(ctx, bus, "r-2", exitInterrupted); !atOnce || err != nil {
			t.Errorf("queued: %v, %v", atOnce, err)
		}
		// Who waits for it learns of it now, and not when its turn comes.
		if err := (&submission{Run: "r-2"}).await(ctx, bus, io.Discard); err == nil || exitCode(err) != exitInterrupted || err.Error() != "run r-2 cancelled" {
			t.Errorf("waiting for a queued run that was cancelled ends with %v", err)
		}
		if atOnce, err := job.RequestCancel(ctx, bus, "r-1", exitInterrupted); atOnce || err != nil {
			t.Errorf("running: %v, %v", atOnce, err)
		}
		for _, id := range []string{"r-1", "r-2"} {
			if r := ends(t, bus, id); r.State != job.StateCancelled || r.Error != "" {
				t.Errorf("%s: %+v", id, r)
			}
		}
		if id := <-running; id != "r-3" {
			t.Errorf("then %s runs, want r-3", id)
		}
		if atOnce, err := job.RequestCancel(ctx, bus, "r-1", exitInterrupted); !atOnce || err != nil {
			t.Errorf("cancelled: %v, %v", atOnce, err)
		}
		if _, err := job.RequestCancel(ctx, bus, "r-9", exitInterrupted); !errors.Is(err, job.ErrNoRun) {
			t.Errorf("unknown: %v", err)
		}
		if err := job.PutRun(ctx, bus, &job.Record{RunStatus: cluster.RunStatus{Run: "r-8", State: job.StateDone}}); err != nil {
			t.Error(err)
		}
		if _, err := job.RequestCancel(ctx, bus, "r-8", exitInterrupted); !errors.Is(err, job.ErrNoRun) {
			t.Errorf("done: %v", err)
		}
		records, err := bus.Bucket(cluster.RunsBucket).List(ctx)
		for _, r := range records {
			if strings.HasPrefix(r.Key, job.CancelPrefix) {
				t.Errorf("request %s stays", r.Key)
			}
		}
		if runs, e := job.ListRuns(ctx, bus); err != nil || e != nil || len(runs) != 4 {
			t.Errorf("%d runs, %v, %v", len(runs), err, e)
		}
		cancel()
		<-ended
	})
}

// TestUploadsEnd wants what was uploaded for a run to go with the last run that
// needs it.
func TestUploadsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		digest := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
		there := func(content string) bool { return bus.Blobs().Get(t.Context(), digest(content), io.Discard) == nil }
		for id, contents := range map[string][]string{"r-1": {"shared", "own"}, "r-2": {"shared"}} {
			var digests []string
			for _, c := range contents {
				digests = append(digests, digest(c))
				if err := bus.Blobs().Put(t.Context(), digest(c), strings.NewReader(c), int64(len(c))); err != nil {
					t.Fatal(err)
				}
			}
			if err := uploads.Note(t.Context(), bus, id, digests); err != nil {
				t.Fatal(err)
			}
		}
		queued(t, bus, "r-1")
		queued(t, bus, "r-2")
		if runs, err := job.ListRuns(t.Context(), bus); err != nil || len(runs) != 2 {
			t.Errorf("runs %v, %v", runs, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		tk := &job.Taker{Bus: bus, Log: slog.New(slog.DiscardHandler), Code: stateCode, Pause: func(int) time.Duration { return 0 }, Run: func(_ context.Context, id string, _ []byte) error {
			if !there("shared") || id == "r-2" && there("own") {
				t.Errorf("during %s: shared %v, own %v", id, there("shared"), there("own"))
			}
			if id == "r-2" {
				time.AfterFunc(time.Minute, stop)
			}
			return nil
		}}
		if unfinished, err := tk.Work(ctx); unfinished || err != nil {
			t.Errorf("work = %v, %v", unfinished, err)
		}
		if there("shared") || there("own") {
			t.Error("contents are left that nobody needs")
		}
	})
}
