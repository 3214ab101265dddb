package cluster_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestBadShards plays shards that fail everywhere, or on one worker alone.
func TestBadShards(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault func(simnet.ToyWork) simnet.ToyFault
		dead  bool
	}{
		{"fails on all", func(w simnet.ToyWork) simnet.ToyFault { return when(w.Rows.Lo == 16, simnet.ToyFails) }, true},
		{"fails on one", func(w simnet.ToyWork) simnet.ToyFault {
			return when(w.Rows.Lo == 16 && w.Worker == "w0", simnet.ToyFails)
		}, false},
		{"negative on all", func(w simnet.ToyWork) simnet.ToyFault { return when(w.Rows.Lo == 32, simnet.ToyNegative) }, true},
		{"negative on one", func(w simnet.ToyWork) simnet.ToyFault { return when(w.Worker == "w1", simnet.ToyNegative) }, false},
		{"unconserved on one", func(w simnet.ToyWork) simnet.ToyFault { return when(w.Worker == "w1", simnet.ToyUnconserved) }, false},
		{"hangs on one", func(w simnet.ToyWork) simnet.ToyFault {
			return when(w.Rows.Lo == 16 && w.Worker == "w1", simnet.ToyHangs)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 7, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
				w.fault = tc.fault
				tr := w.addTraining("c-0")
				for i := range 3 {
					w.startWorker(fmt.Sprintf("w%d", i))
				}
				tr.startLeader()
				for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
					time.Sleep(time.Second)
				}
				letters, err := w.net.Host("reader").Bus().Jobs().Dead(context.Background())
				if err != nil {
					t.Error(err)
				}
				w.finish()
				if !tc.dead {
					if err := tr.check(); err != nil {
						t.Error(err)
					}
					return
				}
				if err := tr.fatal(); !errors.Is(err, cluster.ErrDead) || strings.Contains(err.Error(), "\n") {
					t.Errorf("training ended with %v, want one line that matches ErrDead", err)
				}
				if len(letters) == 0 || letters[0].Run != "c-0" || letters[0].Reason == "" {
					t.Errorf("dead letters %+v", letters)
				}
			})
		})
	}
}

// TestDeadlyShard plays a shard that takes the process down with it, while a
// supervisor starts workers again: it is given up, and others are not suspected.
func TestDeadlyShard(t *testing.T) {
	for n, back := range map[int]time.Duration{1: 2 * time.Second, 2: 25 * time.Second, 3: 2 * time.Second} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 7, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
				deaths, healed := 0, false
				w.fault = func(work simnet.ToyWork) simnet.ToyFault {
					if work.Rows.Lo != 32 || healed {
						return simnet.ToyFine
					}
					deaths++
					w.all.Go(func() {
						w.kill(work.Worker)
						time.Sleep(back)
						w.startWorker(work.Worker)
					})
					return simnet.ToyHangs
				}
				tr := w.addTraining("c-0")
				for i := range n {
					w.startWorker(fmt.Sprintf("w%d", i))
				}
				tr.startLeader()
				for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
					time.Sleep(time.Second)
				}
				healed = true
				time.Sleep(time.Minute) // for the last to start again
				letters, err := w.net.Host("reader").Bus().Jobs().Dead(context.Background())
				if err != nil {
					t.Error(err)
				}
				w.finish()
				if err := tr.fatal(); !errors.Is(err, cluster.ErrDead) {
					t.Errorf("training ended with %v, want one that matches ErrDead", err)
				}
				if len(letters) != 1 || letters[0].Shard != 2 {
					t.Errorf("dead letters %+v, want one of shard 2", letters)
				}
				if deaths > 10 {
					t.Errorf("%d workers died", deaths)
				}
			})
		})
	}
}

func when(cond bool, f simnet.ToyFault) simnet.ToyFault {
	if cond {
		return f
	}
	return simnet.ToyFine
}

// hang has every shard hang until free is called.
func (w *world) hang() (free func()) {
	hangs := true
	w.fault = func(simnet.ToyWork) simnet.ToyFault {
		w.mu.Lock()
		defer w.mu.Unlock()
		return when(hangs, simnet.ToyHangs)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		hangs = false
	}
}

// TestMap asks queries while workers die and messages are lost: every answer
// comes once, in order.
func TestMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 20 * time.Millisecond, Drop: 0.02, Duplicate: 0.05, Late: 0.05, LateBy: 3 * time.Second})
		tr := w.addTraining("c-0")
		for i := range 3 {
			w.startWorker(fmt.Sprintf("w%d", i))
		}
		host := w.net.Host("c-0")
		c := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
		w.all.Go(func() {
			for i := range 12 {
				time.Sleep(7 * time.Second)
				id := fmt.Sprintf("w%d", i%3)
				w.kill(id)
				time.Sleep(2 * time.Second)
				w.startWorker(id)
			}
		})
		r, err := c.Begin(context.Background(), cluster.RunOptions{Spec: tr.toy.Spec("toy"), Transport: "memory"})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := simnet.NewReference(tr.toy)
		if err != nil {
			t.Fatal(err)
		}
		const all = 300
		asked, got := 0, 0
		err = r.Map(context.Background(), func() ([]byte, bool, error) {
			asked++
			return binary.LittleEndian.AppendUint64(nil, uint64(asked-1)), asked <= all, nil
		}, func(answer []byte) error {
			if want := ref.Query(binary.LittleEndian.AppendUint64(nil, uint64(got))); string(answer) != string(want) {
				t.Errorf("answer %d is %x, want %x", got, answer, want)
			}
			got++
			if asked-got > 64 {
				t.Errorf("%d requests are under way", asked-got)
			}
			return nil
		})
		if err != nil || got != all {
			t.Errorf("Map = %v after %d of %d answers", err, got, all)
		}
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		w.finish()
		_ = host.Peers().Close()
	})
}

// TestLoad plays workers that cannot load a run: one for a while, or none ever.
func TestLoad(t *testing.T) {
	play := func(t *testing.T, load func(n int, worker string) error) (tries map[string]int, err error) {
		tries = map[string]int{}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
			w.load = func(worker string) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				tries[worker]++
				return load(tries[worker], worker)
			}
			tr := w.addTraining("c-0")
			tr.steps = 12
			for i := range 2 {
				w.startWorker(fmt.Sprintf("w%d", i))
			}
			tr.startLeader()
			for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
				time.Sleep(time.Second)
			}
			w.finish()
			err = tr.check()
		})
		return tries, err
	}
	t.Run("for a while", func(t *testing.T) {
		tries, err := play(t, func(n int, worker string) error {
			if worker == "w1" && n < 3 {
				return errors.New("the disk is full")
			}
			return nil
		})
		if err != nil || tries["w1"] != 3 || tries["w0"] != 1 {
			t.Errorf("%v, after tries %v", err, tries)
		}
	})
	t.Run("never", func(t *testing.T) {
		tries, err := play(t, func(int, string) error { return fmt.Errorf("%w: no such rows", cluster.ErrJob) })
		if !errors.Is(err, cluster.ErrJob) || !strings.Contains(err.Error(), "no such rows") || tries["w0"] != 1 {
			t.Errorf("training ended with %v after tries %v", err, tries)
		}
	})
}

// TestUnfit plays a worker that fails to load a run for two reasons, each some times, and then
// succeeds: each reason is told once, and is in the status until the worker is ready.
func TestUnfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
		tries := 0
		w.load = func(worker string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if tries++; tries > 6 {
				return nil
			}
			return fmt.Errorf("reason %d: %s", (tries+2)/3, strings.Repeat("x", 300))
		}
		tr := w.addTraining("c-0")
		var told []string
		tr.unfit = func(worker, why string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			told = append(told, worker+" "+why[:8])
		}
		w.startWorker("w0")
		tr.startLeader()
		bus := w.net.Host("c-9").Bus()
		var seen []string
		for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			var s cluster.RunStatus
			rec, err := bus.Bucket(cluster.RunsBucket).Get(t.Context(), "c-0")
			if err != nil {
				continue // it has not begun
			}
			if err := json.Unmarshal(rec.Value, &s); err != nil {
				t.Fatal(err)
			}
			why := s.Unfit["w0"]
			if len(why) > 200 {
				t.Errorf("a reason of %d bytes", len(why))
			}
			if why = why[:min(8, len(why))]; len(seen) == 0 || seen[len(seen)-1] != why {
				seen = append(seen, why)
			}
		}
		w.finish()
		if err := tr.check(); err != nil {
			t.Error(err)
		}
		if want := []string{"w0 reason 1", "w0 reason 2"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if want := []string{"", "reason 1", "reason 2", ""}; !slices.Equal(seen, want) {
			t.Errorf("the status had %q, want %q", seen, want)
		}
	})
}

// TestOtherBuild starts workers of three builds: that of another than the run's computes nothing and is told why, one that does
// not know its build takes part.
func TestOtherBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
		tr := w.addTraining("c-0")
		tr.rows = 160 // shards for both workers in each step
		var told []string
		tr.unfit = func(worker, why string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			told = append(told, worker+" "+why)
		}
		for _, worker := range []struct{ id, build string }{{"other", "v1"}, {"unknown", ""}, {"same", "v2"}} {
			w.build = worker.build
			w.startWorker(worker.id)
		}
		tr.startLeader()
		bus := w.net.Host("c-9").Bus()
		shards := map[string]int{}
		for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			var s cluster.RunStatus
			rec, err := bus.Bucket(cluster.RunsBucket).Get(t.Context(), "c-0")
			if err != nil {
				continue // it has not begun
			}
			if err := json.Unmarshal(rec.Value, &s); err != nil {
				t.Fatal(err)
			}
			shards = s.Shards
		}
		w.finish()
		if err := tr.check(); err != nil {
			t.Error(err)
		}
		if shards["other"] > 0 || shards["same"] == 0 || shards["unknown"] == 0 {
			t.Errorf("shards %v", shards)
		}
		if want := []string{"other it is pce v1, this is v2; give all members the same version of pce"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// TestFenceNotKept starts a run while the only worker cannot write its fence: the status says why, and the run is done once it can.
func TestFenceNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
		tr := w.addTraining("c-0")
		var told []string
		tr.unfit = func(worker, why string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			told = append(told, worker+" "+why)
		}
		w.startWorker("w0")
		fence := filepath.Join(w.dir, "w0", "fence")
		if err := os.Mkdir(fence, 0o700); err != nil { // no file can take its place
			t.Fatal(err)
		}
		tr.startLeader()
		time.Sleep(10 * cluster.DefaultLease)
		var s cluster.RunStatus
		rec, err := w.net.Host("c-9").Bus().Bucket(cluster.RunsBucket).Get(t.Context(), "c-0")
		if err == nil {
			err = json.Unmarshal(rec.Value, &s)
		}
		if err != nil || !strings.Contains(s.Unfit["w0"], "fence") {
			t.Errorf("the status has %q, %v", s.Unfit, err)
		}
		if err := os.Remove(fence); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
			time.Sleep(100 * time.Millisecond)
		}
		w.finish()
		if err := tr.check(); err != nil {
			t.Error(err)
		}
		if len(told) != 1 || !strings.HasPrefix(told[0], "w0 atomicfile: ") {
			t.Errorf("told %q", told)
		}
	})
}
