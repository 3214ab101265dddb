package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// places returns the rows of a version that are waiting, and those of requests that
// are being decoded.
func places(t *testing.T, s *Server) (waiting, reserved int) {
	t.Helper()
	v := s.models.current("m")
	defer v.release()
	v.lane.mu.Lock()
	defer v.lane.mu.Unlock()
	return v.account.waiting, v.account.reserved
}

// TestAdmitEstimate estimates rows by those of earlier requests, and never refuses
// rows that fit because the estimate is up to twice too high.
func TestAdmitEstimate(t *testing.T) {
	bubble(t, Options{MaxQueueRows: 100, MaxQueueDelay: -1}, func(t *testing.T, s *Server, m *fakeModel) {
		v := s.models.current("m")
		defer v.release()
		if n := v.account.expect(1 << 20); n != 1 {
			t.Errorf("%d rows are expected before any request has come", n)
		}
		v.account.learnSize(7, headBytes) // says nothing
		v.account.learnSize(50, headBytes+500)
		for bytes, want := range map[int]int{0: 1, headBytes: 1, headBytes + 1: 1, headBytes + 20: 2, headBytes + 500: 50, headBytes + 5000: 272} {
			if n := v.account.expect(bytes); n != want {
				t.Errorf("%d bytes: %d rows are expected, want %d", bytes, n, want)
			}
		}
		admit := func(bytes int) *admission {
			t.Helper()
			a, err := s.models.admit("m", bytes)
			if err != nil {
				t.Error(err)
			}
			return &a
		}
		held := []*admission{admit(headBytes + 5000)} // the first is always taken
		refused := func() {
			t.Helper()
			a, err := s.models.admit("m", 0)
			if !errors.Is(err, ErrFull) {
				t.Errorf("a row is admitted: %v", err)
			}
			a.end()
		}
		refused()
		held[0].end()
		held = []*admission{admit(headBytes + 500), admit(headBytes + 1000)} // 50 and 74, half of which must fit
		refused()
		for _, a := range held {
			a.end()
		}
		if _, n := places(t, s); n != 0 {
			t.Errorf("%d rows stay reserved", n)
		}
		if a, err := s.models.admit("other", 0); a.version != nil || err != nil {
			t.Errorf("a model that is not there: %v %v", a, err)
		}
		(&admission{}).end()
	})
}

// TestAdmitAfterShort: earlier requests that are hardly longer than a head, nearly all of whose bytes may be rows, do not make a
// longer one seem to have thousands. It was refused while a row waited, and others for the places that were reserved for it.
func TestAdmitAfterShort(t *testing.T) {
	bubble(t, Options{MaxQueueRows: 1000, MaxQueueDelay: -1}, func(t *testing.T, s *Server, m *fakeModel) {
		v := s.models.current("m")
		defer v.release()
		v.account.learnSize(10, headBytes+16)
		for _, bytes := range []int{headBytes + 16, 7000, 100} {
			a, err := s.models.admit("m", bytes)
			if err != nil {
				t.Errorf("%d bytes: %v", bytes, err)
			}
			defer a.end()
		}
		a, err := s.models.admit("m", 200_000) // 3787 in proportion
		if want := "this request alone seems by its bytes to have more, and is taken only while none wait; send fewer rows at once"; !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v; want %s", err, want)
		}
		a.end()
	})
}

// TestAdmitRepeated: how many rows are expected of a request does not depend on how many are drawn for each row of others. A
// request of few rows was refused as one of more than may wait.
func TestAdmitRepeated(t *testing.T) {
	bubble(t, Options{MaxQueueRows: 100, MaxQueueDelay: -1}, func(t *testing.T, s *Server, m *fakeModel) {
		ask := func(query oip.Params) error {
			req := rowsRequest(20, 0)
			if req.Params = query; query != nil {
				req.Outputs = nil
			}
			_, err := s.decodeAndInfer(t.Context(), "m", headBytes+2000, func(oip.Reserve) (*oip.Request, error) { return req, nil })
			return err
		}
		if err := ask(oip.Params{"query": "sample", "n_samples": int64(50)}); err != nil { // taken, as nothing waits
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 3 { // 20 rows are computed, 40 wait
			group.Go(func() {
				if err := ask(nil); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
	})
}

// TestAdmitBeforeDecoding: while as many rows wait or are being decoded as may, further
// requests are refused before they are decoded, and before their bodies are read.
func TestAdmitBeforeDecoding(t *testing.T) {
	bubble(t, Options{MaxQueueRows: 8, MaxBatchRows: 4, MaxQueueDelay: -1}, func(t *testing.T, s *Server, m *fakeModel) {
		var group sync.WaitGroup
		var decoded atomic.Int64
		gate := make(chan struct{})
		ask := func(rows int, want error) {
			group.Go(func() {
				_, err := s.decodeAndInfer(t.Context(), "m", headBytes+100*rows, func(oip.Reserve) (*oip.Request, error) {
					decoded.Add(1)
					<-gate
					return rowsRequest(rows, 0), nil
				})
				if !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			})
			synctest.Wait()
		}
		close(gate)
		ask(4, nil) // so that the server has seen how many bytes a row takes
		group.Wait()
		gate = make(chan struct{})
		ask(4, nil)
		ask(4, nil)
		ask(4, ErrFull)
		ask(1, ErrFull)
		if n := decoded.Swap(0); n != 3 {
			t.Errorf("%d requests were decoded, want 3", n)
		}
		if waiting, reserved := places(t, s); waiting != 0 || reserved != 8 {
			t.Errorf("%d rows wait, %d are reserved; want 0 and 8", waiting, reserved)
		}
		close(gate)
		synctest.Wait() // 4 rows are being computed, 4 wait
		ask(4, nil)
		ask(4, ErrFull)
		body := &readCounter{Reader: strings.NewReader(strings.Repeat(" ", 1000))}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "/v2/models/m/infer", body))
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || body.reads != 0 {
			t.Errorf("%d %s after %d reads of the body", w.Code, w.Body, body.reads)
		}
		group.Wait()
		if n := decoded.Load(); n != 1 {
			t.Errorf("%d requests were decoded, want 1", n)
		}
		if waiting, reserved := places(t, s); waiting != 0 || reserved != 0 {
			t.Errorf("%d rows wait, %d are reserved", waiting, reserved)
		}
		if text := s.metrics.Text(nil); !strings.Contains(text, `pce_inference_requests_total{model="m",query="",code="429"} 4`) {
			t.Errorf("the refusals are not counted:\n%.600s", text)
		}
	})
}

// readCounter counts the reads of a body.
type readCounter struct {
	io.Reader
	reads int
}

func (r *readCounter) Read(p []byte) (int, error) {
	r.reads++
	return r.Reader.Read(p)
}

// TestAdmitEnds: a place is given back by requests that cannot be decoded, ask for
// nothing, come for another version, or whose time is up.
func TestAdmitEnds(t *testing.T) {
	bubble(t, Options{MaxQueueRows: 8, MaxQueueDelay: -1}, func(t *testing.T, s *Server, m *fakeModel) {
		late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		<-late.Done()
		old := rowsRequest(2, 0)
		old.Version = "7"
		for _, tc := range []struct {
			ctx  context.Context
			req  *oip.Request
			fail error
			want error
		}{
			{t.Context(), nil, ErrRequest, ErrRequest},
			{t.Context(), rowsRequest(0, 0), nil, nil},
			{t.Context(), old, nil, ErrModel},
			{late, rowsRequest(2, 0), nil, ErrLate},
			{t.Context(), rowsRequest(2, 0), nil, nil},
		} {
			_, err := s.decodeAndInfer(tc.ctx, "m", 1000, func(oip.Reserve) (*oip.Request, error) { return tc.req, tc.fail })
			if !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if waiting, reserved := places(t, s); waiting != 0 || reserved != 0 {
				t.Errorf("%d rows wait, %d are reserved", waiting, reserved)
			}
		}
		// A request of gRPC names its model in the message, which is looked at first.
		if name := oip.ModelOf(rowsRequest(1, 0).AppendProto(nil)); name != "m" {
			t.Errorf("the model is %q", name)
		}
		for _, message := range [][]byte{nil, {0xff}, {8, 1}, bytes.Repeat([]byte{18, 0}, 3)} {
			if name := oip.ModelOf(message); name != "" {
				t.Errorf("%x names the model %q", message, name)
			}
		}
	})
}

// TestStale: a batch that is held up makes those behind it late. In an overloaded
// server they are refused instead, and requests that come later are answered in time;
// where no request was refused before, and where another model's batches were in the
// way, they are answered late.
func TestStale(t *testing.T) {
	neighbours(t, Options{MaxBatchRows: 10, MaxQueueRows: 10, MaxQueueDelay: -1}, func(t *testing.T, s *Server, slow, fast *fakeModel) {
		s.ask(t, "fast", 10) // 3 ms
		for _, tc := range []struct {
			name   string
			refuse bool          // before the batch is held up
			pause  time.Duration // after that
			held   time.Duration
			want   string
		}{
			{"held up in an overloaded server", true, 0, 3100 * time.Microsecond, "too many requests"},
			{"held up, but not for long enough", true, 0, 3 * time.Millisecond, "<nil>"},
			{"held up later", true, overload, 4 * time.Millisecond, "<nil>"},
			{"held up, and no request was refused", false, 0, 4 * time.Millisecond, "<nil>"},
		} {
			time.Sleep(2 * overload)
			var group sync.WaitGroup
			send := func(want string) {
				group.Go(func() {
					req := rowsRequest(10, 0)
					req.Model = "fast"
					_, err := s.send(t.Context(), req)
					if !strings.HasPrefix(fmt.Sprint(err), want) || err != nil && retryAfter(err) != 1 {
						t.Errorf("%s: %v, want %s", tc.name, err, want)
					}
				})
				synctest.Wait()
			}
			if tc.refuse {
				send("<nil>")
				send("<nil>")
				send("too many requests")
				group.Wait()
				time.Sleep(tc.pause)
			}
			v := s.models.current("fast")
			v.lane.mu.Lock()
			v.account.all = cost{48e6, 160} // 3 ms for 10 rows
			*v.costs[0] = v.account.all
			v.lane.mu.Unlock()
			v.release()
			fast.took = tc.held - time.Millisecond
			send("<nil>")
			fast.took = 2 * time.Millisecond
			send(tc.want)
			group.Wait()
			send("<nil>")
			group.Wait()
		}
		// A query that is slow by itself is not late because the others are fast, nor the other way round.
		v := s.models.current("fast")
		q := &queue{version: v}
		v.lane.mu.Lock()
		v.account.full = time.Now()
		for _, tc := range []struct{ all, own time.Duration }{{3 * time.Millisecond, time.Second}, {time.Second, 3 * time.Millisecond}} {
			v.account.all, *v.costs[1] = cost{float64(tc.all), 10}, cost{float64(tc.own), 10}
			for waited, stale := range map[time.Duration]bool{time.Second: false, time.Second + 1: true} {
				j := &job{query: 1, seen: time.Now().Add(-waited), others: v.lane.ran - v.account.ran}
				if err := v.lane.stale(q, j, 10, time.Now()); (err != nil) != stale {
					t.Errorf("10 rows of all take %v, of its query %v, it waited %v: %v", tc.all, tc.own, waited, err)
				}
			}
		}
		v.account.all = cost{48e6, 160}
		v.lane.mu.Unlock()
		v.release()
		// The time of another model's batch does not count.
		v = s.models.current("fast")
		defer v.release()
		v.lane.mu.Lock()
		v.account.full = time.Now()
		v.lane.mu.Unlock()
		var group sync.WaitGroup
		group.Go(func() { s.ask(t, "slow", 10) }) // 9 ms
		synctest.Wait()
		s.ask(t, "fast", 10)
		group.Wait()
	})
}
