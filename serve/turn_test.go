package serve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/oip"
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
	v, w := &version{name: "v", lane: l, queries: make([]Query, 1)}, &version{name: "w", lane: l}
	l.open(v, nil)
	l.open(w, nil)
	q := &queue{version: v, jobs: []*job{{}}}
	l.arrive(v, now)
	l.arrive(w, now)
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
	*v.costs[0] = cost{nanoseconds: float64(time.Hour), rows: 1}
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

// TestTurnOfVersions: a new version of a model finds the room and the turn that requests for the one before have left,
// and answers after them.
func TestTurnOfVersions(t *testing.T) {
	neighbours(t, Options{MaxBatchRows: 10, MaxQueueRows: 30, MaxQueueDelay: -1}, func(t *testing.T, s *Server, slow, fast *fakeModel) {
		s.ask(t, "fast", 3)
		s.ask(t, "slow", 10) // 9 ms
		var group sync.WaitGroup
		var mu sync.Mutex
		var order []int
		send := func(rows, name int, want error) {
			group.Go(func() {
				req := rowsRequest(rows, 0)
				req.Model = "slow"
				_, err := s.send(t.Context(), req)
				if !errors.Is(err, want) {
					t.Errorf("request %d: %v, want %v", name, err, want)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			})
			synctest.Wait()
		}
		send(10, 1, nil) // runs
		send(10, 2, nil) // waits, as the next does
		send(10, 3, nil)
		before := s.models.current("slow")
		used := before.account.used
		before.release()
		if err := s.models.load(t.Context(), "slow"); err != nil {
			t.Fatal(err)
		}
		v := s.models.current("slow")
		if v == before || !(used > 0) || v.account.used != used || v.costs[0].perRow() != 9e5 {
			t.Errorf("the new version has used %v, the one before %v; a row took %v", v.account.used, used, v.costs[0].perRow())
		}
		v.release()
		send(10, 4, nil)
		send(1, 5, ErrFull)
		s.ask(t, "fast", 1) // after the batch that runs
		mu.Lock()
		if got := fmt.Sprint(order); got != "[5 1]" {
			t.Errorf("a neighbour was answered after requests %s", got)
		}
		mu.Unlock()
		group.Wait()
		if got := fmt.Sprint(order); got != "[5 1 2 3 4]" {
			t.Errorf("answered in the order %s", got)
		}
	})
}

// TestTurnOfQueries: a query that is asked now and then is answered beside a flood of another one of its model, whose
// queue never is empty.
func TestTurnOfQueries(t *testing.T) {
	neighbours(t, Options{MaxBatchRows: 10, MaxQueueRows: 1000, MaxQueueDelay: -1}, func(t *testing.T, s *Server, slow, fast *fakeModel) {
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				for ctx.Err() == nil {
					s.ask(t, "slow", 10) // 9 ms
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Second)
		req := rowsRequest(1, 0)
		req.Model, req.Params, req.Outputs = "slow", oip.Params{"query": "sample"}, nil
		from := time.Now()
		if _, err := s.send(t.Context(), req); err != nil {
			t.Error(err)
		}
		if took := time.Since(from); took > 60*time.Millisecond {
			t.Errorf("the answer took %v; five batches of 9 ms were before it", took)
		}
		cancel()
		group.Wait()
	})
}
