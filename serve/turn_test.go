package serve

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// neighbours runs f in virtual time with a server of the models slow and fast, whose
// batches take 8 ms and 2 ms, and a tenth of a millisecond for each row.
func neighbours(t *testing.T, o Options, f func(t *testing.T, s *Server, slow, fast *fakeModel)) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 1, make: func(path string) *fakeModel {
			m := &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", took: 2 * time.Millisecond, perRow: 100 * time.Microsecond}
			if filepath.Base(path) == "slow" {
				m.took = 8 * time.Millisecond
			}
			return m
		}}
		o.ReloadEvery = -1
		s := testServer(t, l, o, "slow", "fast")
		f(t, s, l.models()[0], l.models()[1])
		s.Close()
	})
}

// ask sends rows to a model and returns how long the answer took.
func (s *Server) ask(t *testing.T, model string, rows int) time.Duration {
	req, from := rowsRequest(rows, 0), time.Now()
	req.Model = model
	if _, err := s.send(t.Context(), req); err != nil {
		t.Errorf("%d rows of %s: %v", rows, model, err)
	}
	return time.Since(from)
}

// TestTurnsByTime floods two models: they share the lane by time, though a batch of
// one takes twice that of the other, and by what is measured, whatever Flops say.
func TestTurnsByTime(t *testing.T) {
	neighbours(t, Options{MaxBatchRows: 20, MaxQueueRows: 40, MaxQueueDelay: -1}, func(t *testing.T, s *Server, slow, fast *fakeModel) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var group sync.WaitGroup
		for _, name := range []string{"slow", "fast"} {
			for i := range 3 {
				group.Go(func() {
					for ctx.Err() == nil {
						req := rowsRequest(20, i)
						req.Model = name
						if _, err := s.send(ctx, req); err != nil {
							time.Sleep(time.Millisecond)
						}
					}
				})
			}
		}
		group.Wait()
		a, b := time.Duration(slow.runs.Load())*10*time.Millisecond, time.Duration(fast.runs.Load())*4*time.Millisecond
		if a+b < 1900*time.Millisecond || max(a, b)-min(a, b) > 30*time.Millisecond {
			t.Errorf("of 2 s, slow had %v and fast %v", a, b)
		}
	})
}

// TestTurnIsNotDue: a request goes ahead of the next batch of a model that has used
// more, though it has not waited for others yet.
func TestTurnIsNotDue(t *testing.T) {
	neighbours(t, Options{MaxBatchRows: 8, MaxQueueRows: 64, MaxQueueDelay: 6 * time.Millisecond}, func(t *testing.T, s *Server, slow, fast *fakeModel) {
		if took := s.ask(t, "fast", 1); took != 8100*time.Microsecond {
			t.Errorf("alone, the answer took %v", took)
		}
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() { s.ask(t, "slow", 8) }) // batches of 8.8 ms, each full at once
		}
		synctest.Wait()
		time.Sleep(8 * time.Millisecond) // 0.8 ms are left of the first
		if took := s.ask(t, "fast", 1); took != 2900*time.Microsecond {
			t.Errorf("beside a flood, the answer took %v", took)
		}
		group.Wait()
	})
}

// TestTurnBatch: while another model is in use, batches are as short as neighbourTime
// says, by what rows have cost, and have fewestRows at least.
func TestTurnBatch(t *testing.T) {
	neighbours(t, Options{MaxBatchRows: 400, MaxQueueRows: 1000, MaxQueueDelay: -1}, func(t *testing.T, s *Server, slow, fast *fakeModel) {
		s.ask(t, "slow", 400)
		s.ask(t, "slow", 400)
		s.ask(t, "fast", 1)
		s.ask(t, "slow", 400)
		time.Sleep(inUse)
		s.ask(t, "slow", 400)
		if got := slow.sizes(); got != "[[400] [400] [64] [64] [64] [64] [64] [64] [16] [400]]" {
			t.Error(got)
		}
		s.ask(t, "fast", 400) // what one row cost says little of 400
		s.ask(t, "slow", 1)
		s.ask(t, "fast", 100)
		if got := fast.sizes(); got != "[[1] [64] [64] [64] [64] [64] [64] [16] [64] [36]]" {
			t.Error(got)
		}
	})
}

// TestTurnAfterLongBatch: a client that waits for each answer finds short batches of others behind the first one,
// however long that took.
func TestTurnAfterLongBatch(t *testing.T) {
	neighbours(t, Options{MaxBatchRows: 20000, MaxQueueRows: 100000, MaxQueueDelay: -1}, func(t *testing.T, s *Server, slow, fast *fakeModel) {
		s.ask(t, "slow", 20000) // 2 s: what rows cost is known
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() { s.ask(t, "slow", 20000) })
		}
		synctest.Wait()
		if took := s.ask(t, "fast", 1); took < inUse || took > 3*time.Second {
			t.Errorf("the first answer took %v", took)
		}
		for range 5 {
			time.Sleep(5 * time.Millisecond) // a batch of slow begins meanwhile
			if took := s.ask(t, "fast", 1); took > 50*time.Millisecond {
				t.Errorf("an answer behind it took %v", took)
			}
		}
		group.Wait()
	})
}

// TestTurnEstimate: how many rows make up neighbourTime.
func TestTurnEstimate(t *testing.T) {
	l := &lane{opts: &Options{MaxBatchRows: 1024}}
	now := time.Now()
	v := &version{name: "v", costs: make([]cost, 1)}
	q := &queue{version: v, jobs: []*job{{}}}
	l.arrive(v, now)
	l.arrive(&version{name: "w"}, now)
	if n := l.most(q, now); n != 1024 {
		t.Errorf("%d rows where nothing is known", n)
	}
	for _, tc := range []struct {
		rows int
		took time.Duration
		want int
	}{{1, neighbourTime / 5, 64}, {1000, 2 * neighbourTime, 457}, {1000, 0, 945}, {1000, 0, 1024}} {
		v.costs[0].add(tc.rows, tc.took)
		if n := l.most(q, now); n != tc.want {
			t.Errorf("after %d rows in %v: %d rows, want %d", tc.rows, tc.took, n, tc.want)
		}
	}
	v.costs[0] = cost{nanoseconds: float64(time.Hour), rows: 1}
	if n := l.most(q, now); n != fewestRows {
		t.Errorf("%d rows of an hour each", n)
	}
	l.opts.MaxBatchRows = 3
	if n := l.most(q, now); n != 3 {
		t.Errorf("%d rows, 3 may be", n)
	}
	if n := (&cost{}).perRow(); n != 0 {
		t.Errorf("%v before the first batch", n)
	}
}

// TestTurnInherits: a new version of a model takes its turn as the one before would.
func TestTurnInherits(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{ReloadEvery: -1}, "m")
	s.ask(t, "m", 3)
	state := func() (used float64, all, first cost) {
		v := s.models.current("m")
		defer v.release()
		v.lane.mu.Lock()
		defer v.lane.mu.Unlock()
		return v.used, v.cost, v.costs[0]
	}
	used, all, first := state()
	if err := s.models.load(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	again, all2, first2 := state()
	if !(used > 0) || again != used || all2 != all || first2 != first || first.rows != 3 {
		t.Errorf("%v %v %v, then %v %v %v", used, all, first, again, all2, first2)
	}
}
