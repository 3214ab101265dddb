package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// takenBus has a queue whose jobs have become another's when their taker says for the third time that it works.
type takenBus struct {
	cluster.Bus
	ends *int // jobs that were done or given back
}

type takenQueue struct {
	cluster.Queue
	ends *int
}

type takenDelivery struct {
	cluster.Delivery
	words int
	ends  *int
}

func (b takenBus) Jobs() cluster.Queue { return takenQueue{b.Bus.Jobs(), b.ends} }

func (q takenQueue) Next(ctx context.Context) (cluster.Delivery, error) {
	d, err := q.Queue.Next(ctx)
	if err != nil {
		return nil, err
	}
	return &takenDelivery{Delivery: d, ends: q.ends}, nil
}

func (d *takenDelivery) Working(ctx context.Context) error {
	if d.words++; d.words >= 3 {
		return fmt.Errorf("job %s: %w", d.ID(), cluster.ErrConflict)
	}
	return d.Delivery.Working(ctx)
}

func (d *takenDelivery) Done(context.Context) error    { *d.ends++; return nil }
func (d *takenDelivery) Release(context.Context) error { *d.ends++; return nil }

// TestTakenOver has the job of a run become another coordinator's: the run ends here, and its record and its job are left to that one.
func TestTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: StateRunning, Step: 7}}); err != nil {
			t.Fatal(err)
		}
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		begin, took, ends := time.Now(), time.Duration(0), 0
		tk := &Taker{
			Bus: takenBus{bus, &ends}, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 0 },
			Run: func(ctx context.Context, _ string, _ []byte) error {
				<-ctx.Done()
				took = time.Since(begin)
				return ctx.Err()
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if unfinished, err := tk.Work(ctx); unfinished || err != nil {
			t.Errorf("work = %v, %v", unfinished, err)
		}
		if took == 0 || took >= 20*time.Second {
			t.Errorf("the run ended after %v, want it to when the job is another's", took)
		}
		r, _, err := GetRun(t.Context(), bus, "r-1")
		if err != nil || r.State != StateRunning || r.Step != 7 || ends != 0 {
			t.Errorf("record %+v, %v; the job was done or given back %d times, want none", r, err, ends)
		}
	})
}

// TestTakenOverAndEnded has the other coordinator end the run before this one, which was stopped meanwhile, uploads the rest of what it was
// at: that goes, and so do its answers. Of a run that the other still leads it stays, as that one removes it with its own.
func TestTakenOverAndEnded(t *testing.T) {
	for _, state := range []string{StateDone, StateRunning} {
		synctest.Test(t, func(t *testing.T) {
			bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
			if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
				t.Fatal(err)
			}
			ends, over := 0, 0
			tk := &Taker{
				Bus: takenBus{bus, &ends}, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 0 },
				Over: func(string) error { over++; return nil },
				Run: func(ctx context.Context, _ string, _ []byte) error {
					<-ctx.Done()
					if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: state}}); err != nil {
						t.Error(err)
					}
					upload(t, bus, ledPrefix+"r-1", "late")
					return ctx.Err()
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if unfinished, err := tk.Work(ctx); unfinished || err != nil {
				t.Errorf("work = %v, %v", unfinished, err)
			}
			if ended := state == StateDone; has(t, bus, "late") == ended || (over == 1) != ended || ends != 0 {
				t.Errorf("%s: uploads stay: %v; answers removed %d times, the job done or given back %d times", state, has(t, bus, "late"), over, ends)
			}
		})
	}
}

// TestEndedMeanwhile begins to take jobs where another taker has ended runs since: those of the queue are told of, as an earlier life may have
// kept answers of them, and no others.
func TestEndedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		for id, state := range map[string]string{"r-done": StateDone, "r-failed": StateFailed, "r-queued": StateQueued, "r-left": StateInterrupted, LocalPrefix + "1": StateDone} {
			if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: id, State: state}}); err != nil {
				t.Fatal(err)
			}
		}
		var over []string
		tk := &Taker{Bus: bus, Log: slog.New(slog.DiscardHandler), Over: func(id string) error { over = append(over, id); return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := tk.Work(ctx); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(over); !slices.Equal(over, []string{"r-done", "r-failed"}) {
			t.Errorf("told of %q, want those of the queue that have ended", over)
		}
	})
}

// TestDoneAfterAnother has a coordinator find the result of a run that another one has led since, without an end: the files of the run are
// those of the first one. A run that fails, or is cancelled, stays with the one that led it last.
func TestDoneAfterAnother(t *testing.T) {
	for want, failure := range map[string]error{"c-first": nil, "c-second": fs.ErrNotExist} {
		synctest.Test(t, func(t *testing.T) {
			bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
			if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: StateInterrupted, Lead: "c-second"}}); err != nil {
				t.Fatal(err)
			}
			if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
				t.Fatal(err)
			}
			tk := &Taker{
				Bus: bus, Log: slog.New(slog.DiscardHandler), ID: "c-first", Code: func(string, error) int { return 0 },
				Run: func(context.Context, string, []byte) error { return failure },
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := tk.Work(ctx); err != nil {
				t.Fatal(err)
			}
			if r, _, err := GetRun(t.Context(), bus, "r-1"); err != nil || !r.Ended() || r.Lead != want {
				t.Errorf("with the error %v: record %+v, %v; want it led by %s", failure, r, err, want)
			}
		})
	}
}

// TestAnswersForgotten wants the answers of a job that failed to be removed, and those of one that was left unfinished to stay.
func TestAnswersForgotten(t *testing.T) {
	for name, failed := range map[string]bool{"failed": true, "left unfinished": false} {
		r := &Runner{Dir: t.TempDir()}
		dir := filepath.Join(r.Dir, "runs", "r-1")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
			if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
				t.Fatal(err)
			}
			tk := &Taker{
				Bus: bus, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 1 }, Over: r.Forget,
				Run: func(ctx context.Context, _ string, _ []byte) error {
					j, err := openJournal(dir)
					if err == nil {
						err = errors.Join(j.append([]byte("answer"), 1), j.close())
					}
					if err != nil {
						t.Error(err)
					}
					if failed {
						return cluster.ErrDead
					}
					<-ctx.Done()
					return ctx.Err()
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if unfinished, err := tk.Work(ctx); unfinished == failed || err != nil {
				t.Errorf("%s: work = %v, %v", name, unfinished, err)
			}
		})
		for _, file := range []string{AnswersFile, JournalFile} {
			if _, err := os.Stat(filepath.Join(dir, file)); errors.Is(err, fs.ErrNotExist) != failed {
				t.Errorf("%s: %s: %v", name, file, err)
			}
		}
	}
	if err := (&Runner{Dir: t.TempDir()}).Forget("r-2"); err != nil {
		t.Errorf("a run without answers: %v", err)
	}
}

// TestCancelledStays has the job of a run come that was cancelled and recorded so, whose end the queue did not learn: it is not run.
func TestCancelledStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: StateCancelled}, Code: 130}); err != nil {
			t.Fatal(err)
		}
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		tk := &Taker{
			Bus: bus, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 130 },
			Run: func(context.Context, string, []byte) error { t.Error("a run that was cancelled is run"); return nil },
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if unfinished, err := tk.Work(ctx); unfinished || err != nil {
			t.Errorf("work = %v, %v", unfinished, err)
		}
		if r, _, err := GetRun(t.Context(), bus, "r-1"); err != nil || r.State != StateCancelled || r.Code != 130 {
			t.Errorf("record %+v, %v", r, err)
		}
		wantEmptyQueue(t, bus)
	})
}

// TestOldCancels has requests to cancel runs left: a taker that begins removes those that are old, of runs that have ended or have no record.
func TestOldCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		runs := bus.Bucket(cluster.RunsBucket)
		old, now := time.Now().UTC().Format(time.RFC3339), time.Now().Add(submitTime).UTC().Format(time.RFC3339)
		for run, c := range map[string]struct{ state, asked string }{
			"gone": {"", old}, "ended": {StateCancelled, old}, "running": {StateRunning, old}, "new": {StateCancelled, now}, "odd": {StateCancelled, "?"},
		} {
			_, err := runs.Put(t.Context(), CancelPrefix+run, []byte(c.asked))
			if err == nil && c.state != "" {
				err = PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: run, State: c.state}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(submitTime + time.Hour)
		(&Taker{Bus: bus, Log: slog.New(slog.DiscardHandler)}).sweep(t.Context())
		records, err := runs.List(t.Context())
		var left []string
		for _, r := range records {
			if run, ok := strings.CutPrefix(r.Key, CancelPrefix); ok {
				left = append(left, run)
			}
		}
		if slices.Sort(left); err != nil || !slices.Equal(left, []string{"new", "odd", "running"}) {
			t.Errorf("requests %v are left, %v", left, err)
		}
	})
}

// TestDoneStays stops a coordinator, which was cut off, before it hears that another one has ended its run: the run stays done.
func TestDoneStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		tk := &Taker{
			Bus: bus, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 8 },
			Run: func(ctx context.Context, _ string, _ []byte) error {
				if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: StateDone, Lead: "c-other"}}); err != nil {
					t.Error(err)
				}
				stop()
				<-ctx.Done()
				return ctx.Err()
			},
		}
		if _, err := tk.Work(ctx); err != nil {
			t.Error(err)
		}
		if r, _, err := GetRun(t.Context(), bus, "r-1"); err != nil || r.State != StateDone || r.Code != 0 || r.Lead != "c-other" {
			t.Errorf("record %+v, %v; want what the other one has recorded", r, err)
		}
	})
}

// TestFirstEndStays fails a run, or has it cancelled, that another coordinator or a client has ended meanwhile: that end stays, also where
// it is recorded while this one records its own. A run that is done here is done, whatever it came to elsewhere.
func TestFirstEndStays(t *testing.T) {
	for _, c := range []struct {
		name, first, want string
		late              bool // the first end comes between the last look at the record and the word of this one
		err               error
	}{
		{"done elsewhere, failed here", StateDone, StateDone, false, cluster.ErrDead},
		{"done elsewhere at the last moment, failed here", StateDone, StateDone, true, cluster.ErrDead},
		{"done elsewhere, cancelled here", StateDone, StateDone, false, ErrCancelled},
		{"cancelled by a client, failed here", StateCancelled, StateCancelled, false, cluster.ErrDead},
		{"failed elsewhere, done here", StateFailed, StateDone, false, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			plain := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
			other := func() {
				if err := PutRun(t.Context(), plain, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: c.first, Lead: "c-other"}}); err != nil {
					t.Error(err)
				}
			}
			bus := &betweenBus{Bus: plain}
			if err := PutRun(t.Context(), plain, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: StateRunning, Lead: "c-here"}}); err != nil {
				t.Fatal(err)
			}
			if c.first == StateCancelled {
				if _, err := plain.Bucket(cluster.RunsBucket).Put(t.Context(), CancelPrefix+"r-1", nil); err != nil {
					t.Fatal(err)
				}
			}
			tk := &Taker{Bus: bus, Log: slog.New(slog.DiscardHandler), ID: "c-here", Code: func(string, error) int { return 0 }}
			if c.late {
				bus.between = other
			} else {
				other()
			}
			state := StateDone
			switch {
			case errors.Is(c.err, ErrCancelled):
				state, c.err = StateCancelled, nil
			case c.err != nil:
				state = StateFailed
			}
			if err := tk.conclude("r-1", state, c.err); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			r, _, err := GetRun(t.Context(), plain, "r-1")
			if lead := map[bool]string{true: "c-here", false: "c-other"}[c.err == nil && state == StateDone]; err != nil || r.State != c.want || r.Lead != lead {
				t.Errorf("%s: record %+v, %v; want %s, led by %s", c.name, r, err, c.want, lead)
			}
			if asked, err := cancelRequested(t.Context(), plain, "r-1"); asked || err != nil {
				t.Errorf("%s: a request to cancel the run is left: %v", c.name, err)
			}
		})
	}
}

// betweenBus has something happen after the first look at a record.
type betweenBus struct {
	cluster.Bus
	between func() // nil: nothing more
}

type betweenBucket struct {
	cluster.Bucket
	bus *betweenBus
}

func (b *betweenBus) Bucket(name string) cluster.Bucket { return betweenBucket{b.Bus.Bucket(name), b} }

func (k betweenBucket) Get(ctx context.Context, key string) (cluster.Record, error) {
	r, err := k.Bucket.Get(ctx, key)
	if between := k.bus.between; between != nil {
		k.bus.between = nil
		between()
	}
	return r, err
}

// TestEndRecorded fails a run with an error that is longer than a message of the broker, and whose record cannot be read: the end is
// recorded with the beginning of the error, and the job does not come once more.
func TestEndRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		if _, err := bus.Bucket(cluster.RunsBucket).Put(t.Context(), "r-1", []byte(`{"run":"r-1","step":"many"}`)); err != nil {
			t.Fatal(err)
		}
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		attempts := 0
		tk := &Taker{
			Bus: bus, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 1 },
			Run: func(context.Context, string, []byte) error {
				attempts++
				time.Sleep(time.Second)
				return fmt.Errorf("%w: %s", cluster.ErrDead, strings.Repeat("ä", simnet.MaxPayload))
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if unfinished, err := tk.Work(ctx); unfinished || err != nil {
			t.Errorf("work = %v, %v", unfinished, err)
		}
		r, _, err := GetRun(t.Context(), bus, "r-1")
		if attempts != 1 || err != nil || r.State != StateFailed || !strings.HasPrefix(r.Error, cluster.ErrDead.Error()+": ää") || !utf8.ValidString(r.Error) {
			t.Errorf("%d attempts, record %.200v, %v; want one attempt that failed", attempts, r, err)
		}
	})
}

// wordyBus has a queue whose jobs take a while to be done or given back, and counts what is said of them meanwhile.
type wordyBus struct {
	cluster.Bus
	late *atomic.Int64
}

type wordyQueue struct {
	cluster.Queue
	late *atomic.Int64
}

type wordyDelivery struct {
	cluster.Delivery
	ending atomic.Bool
	late   *atomic.Int64
}

func (b wordyBus) Jobs() cluster.Queue { return wordyQueue{b.Bus.Jobs(), b.late} }

func (q wordyQueue) Next(ctx context.Context) (cluster.Delivery, error) {
	d, err := q.Queue.Next(ctx)
	if err != nil {
		return nil, err
	}
	return &wordyDelivery{Delivery: d, late: q.late}, nil
}

func (d *wordyDelivery) Working(ctx context.Context) error {
	if d.ending.Load() {
		d.late.Add(1)
	}
	return d.Delivery.Working(ctx)
}

func (d *wordyDelivery) Done(ctx context.Context) error {
	d.ending.Store(true)
	time.Sleep(3 * time.Second)
	return d.Delivery.Done(ctx)
}

func (d *wordyDelivery) Release(ctx context.Context) error {
	d.ending.Store(true)
	time.Sleep(3 * time.Second)
	return d.Delivery.Release(ctx)
}

// TestLastWord ends a job and gives one back over a slow line: the queue does not hear any more that it is worked on, which would take it
// from the next taker.
func TestLastWord(t *testing.T) {
	for name, back := range map[string]bool{"done": false, "given back": true} {
		synctest.Test(t, func(t *testing.T) {
			bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
			if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
				t.Fatal(err)
			}
			var late atomic.Int64
			tk := &Taker{
				Bus: wordyBus{bus, &late}, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 0 },
				Run: func(ctx context.Context, _ string, _ []byte) error {
					if back {
						<-ctx.Done()
					}
					return ctx.Err()
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if unfinished, err := tk.Work(ctx); unfinished != back || err != nil {
				t.Errorf("%s: work = %v, %v", name, unfinished, err)
			}
			if n := late.Load(); n != 0 {
				t.Errorf("%s: %d times it is said that the job is worked on, behind its end", name, n)
			}
		})
	}
}
