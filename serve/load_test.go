package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// TestLoad sends twice what the model can answer, in virtual time: only 200, 429 and
// 504 come back, the queue stays as short as it may be, and so those that are accepted
// are answered within the delay and three batches.
func TestLoad(t *testing.T) {
	bubble(t, Options{MaxBatchRows: 64, MaxQueueRows: 64, Timeout: time.Second}, func(t *testing.T, s *Server, m *fakeModel) {
		const batch, rate, seconds = 10 * time.Millisecond, 2 * 6400, 1 // a batch of 64 rows takes 10 ms
		var codes [600]atomic.Int64
		var slowest atomic.Int64
		var group sync.WaitGroup
		for i := range rate * seconds {
			group.Go(func() {
				time.Sleep(time.Duration(i) * time.Second / rate)
				from := time.Now()
				r, err := s.send(t.Context(), rowsRequest(1, i))
				status, _ := statusOf(err)
				codes[status].Add(1)
				if err != nil {
					return
				}
				checkRows(t, r, 1, i)
				took := int64(time.Since(from))
				for old := slowest.Load(); took > old && !slowest.CompareAndSwap(old, took); old = slowest.Load() {
				}
			})
		}
		group.Wait()
		good, full := codes[200].Load(), codes[429].Load()
		if good+full != rate*seconds || good < rate*seconds*45/100 || full == 0 {
			t.Errorf("%d answers, %d refusals of %d requests", good, full, rate*seconds)
		}
		if limit := s.opts.MaxQueueDelay + 3*batch; time.Duration(slowest.Load()) > limit {
			t.Errorf("the slowest answer took %v, want at most %v", time.Duration(slowest.Load()), limit)
		}
	})
}

// TestLoadNeighbour floods one model while another is asked now and then: the other's
// slowest answer takes less than twice what it takes alone, batches of both alike.
func TestLoadNeighbour(t *testing.T) {
	slowest := func(flood int) time.Duration {
		var slow time.Duration
		synctest.Test(t, func(t *testing.T) {
			l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
				return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", took: 2 * time.Millisecond}
			}}
			s := testServer(t, l, Options{MaxBatchRows: 64, MaxQueueDelay: 2 * time.Millisecond, ReloadEvery: -1}, "m", "quiet")
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			for i := range flood {
				group.Go(func() {
					for ctx.Err() == nil {
						if _, err := s.send(ctx, rowsRequest(1, i)); err != nil {
							time.Sleep(5 * time.Millisecond)
						}
					}
				})
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				time.Sleep(time.Duration(rng.IntN(10_000)) * time.Microsecond)
				req, from := rowsRequest(1, 0), time.Now()
				req.Model = "quiet"
				if _, err := s.send(t.Context(), req); err != nil {
					t.Error(err)
				}
				slow = max(slow, time.Since(from))
			}
			cancel()
			group.Wait()
			s.Close()
		})
		return slow
	}
	alone, beside := slowest(0), slowest(150)
	if beside >= 2*alone {
		t.Errorf("%v alone, %v beside a flood", alone, beside)
	}
}

// TestLoadHostile sends what must not hurt: the server refuses it, keeps no memory,
// and answers others.
func TestLoadHostile(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, MaxBody: 1 << 20}, "m")
	// Clients that do not finish meet a server of little patience, and the others one that
	// waits for them however busy the machine is.
	start := func(patience time.Duration) string {
		h := HTTPServer(s, time.Minute, s.opts.Log)
		if patience > 0 {
			h.ReadHeaderTimeout, h.ReadTimeout = patience, 2*patience
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			h.Serve(LimitListener(l, 64))
		}()
		t.Cleanup(func() {
			h.Close()
			<-served
		})
		return l.Addr().String()
	}
	hurried, patient := start(200*time.Millisecond), start(0)
	var before runtime.MemStats
	runtime.ReadMemStats(&before)

	head := "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n"
	dial := func(addr, text string) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	// Clients that never finish: headers, then bodies of a stated and an unstated length.
	var slow []net.Conn
	for range 20 {
		slow = append(slow, dial(hurried, head), dial(hurried, head+"Content-Length: 1000000\r\n\r\n{"), dial(hurried, head+"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"))
	}
	answer := func(text string) string {
		c := dial(patient, text)
		defer c.Close()
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(r.StatusCode, " ", string(body))
	}
	post := func(body string, header ...string) string {
		return answer(head + strings.Join(header, "") + fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body))
	}
	for want, got := range map[string]string{
		"413 ":                                   answer(head + "Content-Length: 1099511627776\r\n\r\n{"),
		"400 {\"error\":\"bad request: want '{'": post("]"),
		"400 {\"error\":\"bad request: arrays":   post(`{"a":` + strings.Repeat("[", 1000)),
		"400 {\"error\":\"bad request: inputs[0] \\\"x\\\": data: 5 bytes":            post(`{"inputs":[{"name":"x","datatype":"INT8","shape":[1152921504606846976,5],"data":[1,1,1,10,1]}]}`),
		"400 {\"error\":\"bad request: inputs[0] \\\"x\\\": shape: [":                 post(`{"inputs":[{"name":"x","datatype":"INT8","shape":[9223372036854775807,9223372036854775807],"data":[]}]}`),
		"400 {\"error\":\"bad request: inputs[0] \\\"x\\\": parameters: binary_data_": post(`{"inputs":[{"name":"x","datatype":"INT8","shape":[1,5],"parameters":{"binary_data_size":9223372036854775807}}]}`),
		"200 ": post(strings.Replace(row, "[1,150,2,20,3]", `["NaN",null,"NaN","NaN","NaN"]`, 1)),
	} {
		if !strings.HasPrefix(got, want) {
			t.Errorf("got %.200s\nwant %s", got, want)
		}
	}
	// The clients that did not finish are dropped.
	for _, c := range slow {
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("a client that does not finish is kept: %v", err)
		}
		c.Close()
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d MiB stay in use", grown>>20)
	}
	if n := s.metrics.Pending.Load(); n != 0 {
		t.Errorf("%d bytes stay reserved", n)
	}
	// A thousand streams on one connection of HTTP/2, whose clients are not slow.
	c, addr := client2(t), listen(t, s)
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			body := frame(rowsRequest(1, i).AppendProto(nil))
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+grpcService+"ModelInfer", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/grpc")
			w, err := c.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Body.Close()
			out, err := io.ReadAll(w.Body)
			if status := w.Header.Get("Grpc-Status") + w.Trailer.Get("Grpc-Status"); err != nil || status != "0" && status != "8" || status == "0" && len(out) < 5 {
				t.Errorf("status %s: %v", status, err)
			}
		})
	}
	group.Wait()
}

// TestSampleIsItsOwn: a sample is the same alone and in a crowd.
func TestSampleIsItsOwn(t *testing.T) {
	bubble(t, Options{MaxBatchRows: 16, MaxQueueRows: 1 << 20}, func(t *testing.T, s *Server, m *fakeModel) {
		sample := func(seed int64) []byte {
			r, err := s.send(t.Context(), &oip.Request{Model: "m", Params: oip.Params{"query": "sample", "seed": seed, "n_samples": int64(5)}})
			if err != nil {
				t.Error(err)
				return nil
			}
			return r.Outputs[0].Raw
		}
		var alone [20][]byte
		for i := range alone {
			alone[i] = sample(int64(i))
		}
		var group sync.WaitGroup
		for i := range alone {
			group.Go(func() {
				if got := sample(int64(i)); !bytes.Equal(got, alone[i]) {
					t.Errorf("seed %d: %v in a crowd, %v alone", i, got, alone[i])
				}
			})
		}
		group.Wait()
	})
}
