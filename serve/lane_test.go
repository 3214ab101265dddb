package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/cells"
	"github.com/pce-engine/pce/serve/oip"
)

// rowsRequest is a request for n rows, the k-th of which has the log_prob -k-first.
func rowsRequest(n, first int) *oip.Request {
	x := oip.Tensor{Name: "x", Datatype: oip.Int32, Shape: []int64{int64(n), 5}}
	for i := range n {
		for _, v := range []float64{0, float64((first + i) % 200), 0, 10, 1} {
			x.Raw, _ = oip.AppendFloat(x.Raw, oip.Int32, v)
		}
	}
	return &oip.Request{Model: "m", Inputs: []oip.Tensor{x}, Outputs: []oip.Output{{Name: "log_prob", Params: oip.Params{"datatype": "FP64"}}}}
}

// checkRows sees that the answer of rowsRequest is right.
func checkRows(t testing.TB, r *oip.Response, n, first int) {
	t.Helper()
	var wants []float64
	for i := range n {
		wants = append(wants, -float64((first+i)%200))
	}
	if got := cells.View[float64](r.Outputs[0].Raw); !slices.Equal(got, wants) {
		t.Errorf("rows %d to %d: got %v", first, first+n-1, got)
	}
}

// sizes returns the rows of the parts of the batches that a model ran.
func (m *fakeModel) sizes() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list [][]int
	for _, parts := range m.batches {
		var rows []int
		for _, p := range parts {
			rows = append(rows, p.Rows)
		}
		list = append(list, rows)
	}
	return fmt.Sprint(list)
}

// bubble runs f in virtual time with a server of one model that takes 10 ms a batch.
func bubble(t *testing.T, o Options, f func(t *testing.T, s *Server, m *fakeModel)) {
	bubbleOf(t, o, func(*fakeModel) {}, f)
}

// bubbleOf is bubble with a model that change has changed.
func bubbleOf(t *testing.T, o Options, change func(*fakeModel), f func(t *testing.T, s *Server, m *fakeModel)) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
			m := &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", took: 10 * time.Millisecond}
			change(m)
			return m
		}}
		o.ReloadEvery = -1
		s := testServer(t, l, o, "m")
		f(t, s, l.models()[0])
		if n := s.metrics.Pending.Load(); n != 0 {
			t.Errorf("%d bytes stay reserved", n)
		}
		s.Close()
	})
}

// TestTimeInQueue: the time that a request waited for a batch is not that in which its tensors were read.
func TestTimeInQueue(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: 3 * time.Millisecond}, func(t *testing.T, s *Server, m *fakeModel) {
		_, err := s.decodeAndInfer(t.Context(), "m", 100, func(oip.Reserve) (*oip.Request, error) {
			time.Sleep(time.Millisecond)
			return rowsRequest(1, 0), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := s.metrics.Reports("m")[0].Inference
		for name, d := range map[string][2]uint64{"queue": {got.Queue.NS, 2e6}, "input": {got.Input.NS, 1e6}, "infer": {got.Infer.NS, 10e6}, "success": {got.Success.NS, 13e6}} {
			if d[0] != d[1] {
				t.Errorf("%s took %d ns, want %d", name, d[0], d[1])
			}
		}
	})
}

// TestBatchDelay: a batch begins when its oldest request has waited for the delay, or
// when it is full.
func TestBatchDelay(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: 3 * time.Millisecond, MaxBatchRows: 8}, func(t *testing.T, s *Server, m *fakeModel) {
		start := time.Now()
		var group sync.WaitGroup
		ask := func(n, first int, want time.Duration) {
			group.Go(func() {
				r, err := s.send(t.Context(), rowsRequest(n, first))
				if err != nil {
					t.Error(err)
					return
				}
				checkRows(t, r, n, first)
				if got := time.Since(start); got != want {
					t.Errorf("%d rows from %d were answered after %v, want %v", n, first, got, want)
				}
			})
			synctest.Wait()
		}
		ask(1, 0, 13*time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		ask(3, 10, 13*time.Millisecond)
		time.Sleep(2 * time.Millisecond) // the batch has begun; the next one waits for it
		ask(4, 20, 23*time.Millisecond)
		group.Wait()

		start = time.Now()
		ask(5, 30, 10*time.Millisecond)
		ask(3, 40, 10*time.Millisecond) // full at once
		group.Wait()
		if got := m.sizes(); got != "[[1 3] [4] [5 3]]" {
			t.Error(got)
		}
	})
}

// TestPartErrors: a request that the model refuses has an error, and those in its batch have answers.
func TestPartErrors(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: time.Millisecond}, func(t *testing.T, s *Server, m *fakeModel) {
		var group sync.WaitGroup
		for i, note := range []string{"", "unknown", "x", "unknown"} {
			group.Go(func() {
				req := rowsRequest(2, 0)
				w := oip.Tensor{Name: "w", Datatype: oip.FP64, Shape: []int64{2, 5}, Raw: make([]byte, 80)}
				req.Inputs, req.Outputs, req.Params = append(req.Inputs, w), nil, oip.Params{"query": "weighted", "note": note}
				if _, err := s.send(t.Context(), req); (err != nil) != (note == "unknown") || err != nil && !errors.Is(err, ErrRequest) {
					t.Errorf("request %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if got := m.sizes(); got != "[[2 2 2 2]]" {
			t.Error(got)
		}
	})
}

// TestBadRows: a request with a row that the model refuses has an error, and those in its batch have answers, whatever they
// share a batch with.
func TestBadRows(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: time.Millisecond, MaxBatchRows: 6, MaxQueueRows: 100}, func(t *testing.T, s *Server, m *fakeModel) {
		m.refuses = 100
		var group sync.WaitGroup
		for _, first := range []int{10, 99, 20, 95, 30} { // the second and the fourth have a bad row
			group.Go(func() {
				n := 2
				if first == 95 {
					n = 8 // in several batches
				}
				r, err := s.send(t.Context(), rowsRequest(n, first))
				if first != 99 && first != 95 {
					if err != nil {
						t.Errorf("rows from %d: %v", first, err)
					} else {
						checkRows(t, r, n, first)
					}
				} else if !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "the model lacks 100") {
					t.Errorf("rows from %d: %v", first, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if got := m.sizes(); got != "[[2 2 2] [2] [2] [2] [6] [2 2]]" {
			t.Error(got)
		}
	})
}

// TestBatchCuts: long requests are cut into batches, which others may share.
func TestBatchCuts(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: time.Millisecond, MaxBatchRows: 4, MaxQueueRows: 100}, func(t *testing.T, s *Server, m *fakeModel) {
		var group sync.WaitGroup
		for i, n := range []int{6, 1, 4, 1} {
			group.Go(func() {
				r, err := s.send(t.Context(), rowsRequest(n, 20*i))
				if err != nil {
					t.Error(err)
					return
				}
				checkRows(t, r, n, 20*i)
			})
			synctest.Wait()
		}
		group.Wait()
		if got := m.sizes(); got != "[[4] [2 1 1] [3 1]]" {
			t.Error(got)
		}
		// A sample knows the number of its row, whatever batch it was in.
		req := &oip.Request{Model: "m", Params: oip.Params{"query": "sample", "seed": int64(1), "n_samples": int64(6)}}
		r, err := s.send(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range cells.View[float32](r.Outputs[0].Raw) {
			if x != float32(1000+i/5) {
				t.Fatalf("cell %d is %v", i, x)
			}
		}
	})
}

// TestDeadlines: a request whose time is up is answered at once; what of it has not
// begun is not begun, and what has begun ends when nobody else waits for it.
func TestDeadlines(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: -1, MaxBatchRows: 4, MaxQueueRows: 100, Timeout: time.Second}, func(t *testing.T, s *Server, m *fakeModel) {
		start := time.Now()
		req := rowsRequest(12, 0) // three batches of 10 ms
		req.Params = oip.Params{"timeout": int64(15_000)}
		_, err := s.send(t.Context(), req)
		if got := time.Since(start); !errors.Is(err, ErrLate) || got != 15*time.Millisecond {
			t.Errorf("%v after %v", err, got)
		}
		synctest.Wait()
		if got := m.sizes(); got != "[[4] [4]]" {
			t.Error(got)
		}
		// The second batch was cut off: the next request begins at once.
		start = time.Now()
		if _, err := s.send(t.Context(), rowsRequest(1, 0)); err != nil || time.Since(start) != 10*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}

		// A batch goes on while one of its clients waits.
		gone, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { s.send(t.Context(), rowsRequest(4, 0)) })
		synctest.Wait()
		start = time.Now()
		group.Go(func() {
			if _, err := s.send(gone, rowsRequest(1, 0)); !errors.Is(err, context.Canceled) || time.Since(start) != 15*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
		group.Go(func() {
			r, err := s.send(t.Context(), rowsRequest(1, 7))
			if err != nil || time.Since(start) != 20*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(start))
				return
			}
			checkRows(t, r, 1, 7)
		})
		time.Sleep(15 * time.Millisecond)
		cancel()
		group.Wait()

		// Time that is up before the request came, and time that ends in the queue.
		runs := m.runs.Load()
		late, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		if _, err := s.send(late, rowsRequest(1, 0)); !errors.Is(err, ErrLate) {
			t.Error(err)
		}
		group.Go(func() { s.send(t.Context(), rowsRequest(4, 0)) })
		synctest.Wait()
		req = rowsRequest(1, 0)
		req.Params = oip.Params{"timeout": int64(1)}
		if _, err := s.send(t.Context(), req); !errors.Is(err, ErrLate) {
			t.Error(err)
		}
		group.Wait()
		if n := m.runs.Load() - runs; n != 1 {
			t.Errorf("%d batches, want that of the request that waited", n)
		}
	})
}

// TestQueueFull: rows beyond the limit get 429 and a time to come back; a single
// request is always taken.
func TestQueueFull(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: -1, MaxBatchRows: 4, MaxQueueRows: 6}, func(t *testing.T, s *Server, m *fakeModel) {
		var group sync.WaitGroup
		ask := func(n int) {
			group.Go(func() {
				r, err := s.send(t.Context(), rowsRequest(n, 3))
				if err != nil {
					t.Error(err)
					return
				}
				checkRows(t, r, n, 3)
			})
			synctest.Wait()
		}
		ask(20) // more than may wait: 16 do
		if _, err := s.send(t.Context(), rowsRequest(1, 0)); !errors.Is(err, ErrFull) || retryAfter(err) != 1 {
			t.Error(err)
		}
		group.Wait()
		ask(4)
		ask(6)
		if w := ask429(t, s); w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `6 rows of model \"m\" wait, 6 may`) {
			t.Error(w.Code, w.Header(), w.Body)
		}
		group.Wait()
		ask(4)
		ask(5)
		for rows, want := range map[int]string{2: "6 may; try again later", 7: "6 may; this request alone has more, and is taken only while none wait; send fewer rows at once"} {
			if _, err := s.send(t.Context(), rowsRequest(rows, 0)); !errors.Is(err, ErrFull) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%d rows: %v; want %s", rows, err, want)
			}
		}
		ask(1) // the sixth row
		group.Wait()
	})
	bubble(t, Options{MaxInFlight: 1, MaxQueueDelay: -1}, func(t *testing.T, s *Server, m *fakeModel) {
		if err := s.enter(); err != nil {
			t.Fatal(err)
		}
		if w := ask429(t, s); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Error(w.Code, w.Body)
		}
		checkHealth(t, s)
		s.leave()
		if w := ask429(t, s); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
	})
	bubble(t, Options{MaxPending: 2000, MaxQueueDelay: -1}, func(t *testing.T, s *Server, m *fakeModel) {
		if err := s.reserve(1990, 0); err != nil {
			t.Fatal(err)
		}
		if w := ask429(t, s); w.Code != 429 {
			t.Error(w.Code, w.Body)
		}
		checkHealth(t, s)
		s.metrics.Pending.Add(-1990)
		if w := ask429(t, s); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
	})
}

// checkHealth sees that a server that refuses requests for want of room says all the same that it lives, in both protocols: who looks
// after it would start it anew.
func checkHealth(t *testing.T, s *Server) {
	t.Helper()
	if w := ask(t, s, "GET", "/v2/health/live", ""); w.Code != 200 {
		t.Error(w.Code, w.Body)
	}
	for path, code := range map[string]string{grpcHealth + "Check": "0", grpcService + "ServerLive": "0", grpcService + "ServerReady": "0", grpcService + "ModelInfer": "8"} {
		message := string(frame(rowsRequest(1, 0).AppendProto(nil)))
		if path != grpcService+"ModelInfer" {
			message = "\x00\x00\x00\x00\x00"
		}
		if w := ask(t, s, "POST", path, message, "Content-Type", "application/grpc"); w.Header().Get("Grpc-Status") != code {
			t.Errorf("%s: %v, want code %s", path, w.Header(), code)
		}
	}
}

func ask429(t *testing.T, s *Server) *httptest.ResponseRecorder {
	return ask(t, s, "POST", "/v2/models/m/infer", row)
}

// TestTurns: models of a device take turns by what they used, so that a flood on one
// does not keep the other waiting for more than a batch.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
			return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", took: 10 * time.Millisecond}
		}}
		s := testServer(t, l, Options{MaxQueueDelay: -1, MaxBatchRows: 4, MaxQueueRows: 1000, ReloadEvery: -1}, "m", "other")
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if _, err := s.send(t.Context(), rowsRequest(4, 0)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		time.Sleep(35 * time.Millisecond) // in the middle of a batch
		for range 5 {
			start := time.Now()
			req := rowsRequest(1, 0)
			req.Model = "other"
			if _, err := s.send(t.Context(), req); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > 20*time.Millisecond {
				t.Errorf("the other model's request took %v", took)
			}
		}
		group.Wait()
		s.Close()
	})
}

// TestTurnsAreNotSaved: a model that was idle cannot make up for it at the cost of one
// that was not.
func TestTurnsAreNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
			return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", took: 10 * time.Millisecond}
		}}
		s := testServer(t, l, Options{MaxQueueDelay: -1, MaxBatchRows: 4, MaxQueueRows: 1000, ReloadEvery: -1}, "m", "other")
		for range 50 {
			if _, err := s.send(t.Context(), rowsRequest(4, 0)); err != nil {
				t.Error(err)
			}
		}
		var group sync.WaitGroup
		for range 40 {
			group.Go(func() {
				req := rowsRequest(4, 0)
				req.Model = "other"
				if _, err := s.send(t.Context(), req); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		time.Sleep(15 * time.Millisecond)
		start := time.Now()
		if _, err := s.send(t.Context(), rowsRequest(4, 0)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 30*time.Millisecond {
			t.Errorf("the model that was busy before waited %v", took)
		}
		group.Wait()
		s.Close()
	})
}

// TestLateInQueue: a job whose time is up is not run, even if its client has not
// noticed yet.
func TestLateInQueue(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: time.Millisecond}, func(t *testing.T, s *Server, m *fakeModel) {
		v, err := s.models.acquire(t.Context(), "m", "")
		if err != nil {
			t.Fatal(err)
		}
		defer v.release()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for _, j := range []*job{
			{ctx: gone, end: time.Now().Add(time.Hour), rows: v.batch(3), seen: time.Now()},
			{ctx: t.Context(), end: time.Now(), rows: v.batch(3), seen: time.Now()},
		} {
			if err := v.lane.submit(v, j, nil); err != nil {
				t.Fatal(err)
			}
			<-j.done
		}
		if n := m.runs.Load(); n != 0 {
			t.Errorf("%d batches were run", n)
		}
		v.lane.mu.Lock()
		defer v.lane.mu.Unlock()
		if v.account.waiting != 0 || len(v.lane.queues) != 0 {
			t.Errorf("%d rows, %d queues", v.account.waiting, len(v.lane.queues))
		}
	})
}

// TestLaneClose: what is queued when the server is closed is answered.
func TestLaneClose(t *testing.T) {
	bubble(t, Options{MaxQueueDelay: 50 * time.Millisecond}, func(t *testing.T, s *Server, m *fakeModel) {
		var group sync.WaitGroup
		group.Go(func() {
			w := ask429(t, s)
			if w.Code != 200 {
				t.Error(w.Code, w.Body)
			}
		})
		synctest.Wait()
		s.Drain()
		if w := ask(t, s, "GET", "/v2/health/ready", ""); w.Code != 503 {
			t.Error(w.Code)
		}
		if w := ask(t, s, "GET", "/v2/health/live", ""); w.Code != 200 {
			t.Error(w.Code)
		}
		s.Close()
		s.Close()
		group.Wait()
		if m.closed.Load() != 1 {
			t.Errorf("the model was closed %d times", m.closed.Load())
		}
		if w := ask429(t, s); w.Code != 503 {
			t.Error(w.Code, w.Body)
		}
	})
}
