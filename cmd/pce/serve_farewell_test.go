package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestFarewellFull: while as many connections are open as may be, answers of HTTP/1 end theirs, for others that wait. Clients that kept
// theirs kept all others out.
func TestFarewellFull(t *testing.T) {
	f := newFarewell(http.NotFoundHandler(), 2)
	for _, tc := range []struct {
		state http.ConnState
		proto int
		want  string
	}{
		{http.StateNew, 1, ""}, {http.StateNew, 2, ""}, {http.StateIdle, 1, "close"}, {http.StateActive, 1, "close"}, {http.StateClosed, 1, ""},
	} {
		f.count(nil, tc.state)
		if got := lastOfItsConnection(f, tc.proto); got != tc.want {
			t.Errorf("%v: Connection: %q, want %q", tc.state, got, tc.want)
		}
	}
}

// lastOfItsConnection asks a server and returns the header with which an answer ends its connection.
func lastOfItsConnection(f *farewell, proto int) string {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.ProtoMajor = proto
	f.ServeHTTP(w, r)
	return w.Header().Get("Connection")
}

// TestFarewell: after a signal answers of HTTP/1 end their connections, for as long as there are some and clients ask, a second at most and
// not beyond the time to drain. Connections that were closed at once lost the requests that were on their way.
func TestFarewell(t *testing.T) {
	for _, tc := range []struct {
		name  string
		open  int           // connections
		every time.Duration // requests come so, and end one each
		times int
		proto int
		drain time.Duration
		want  time.Duration
	}{
		{"without clients", 0, time.Second, 0, 1, time.Minute, 0},
		{"none asks", 1, time.Second, 0, 1, time.Minute, farewellQuiet},
		{"some ask", 9, 90 * time.Millisecond, 3, 1, time.Minute, 270*time.Millisecond + farewellQuiet},
		{"all ask", 3, 90 * time.Millisecond, 3, 1, time.Minute, 270 * time.Millisecond},
		{"they ask again and again", 1000, 90 * time.Millisecond, 100, 1, time.Minute, farewellMost},
		{"clients of HTTP/2 are told otherwise", 1000, 90 * time.Millisecond, 100, 2, time.Minute, farewellQuiet},
		{"there is little time to drain", 1000, 90 * time.Millisecond, 100, 1, 200 * time.Millisecond, 200 * time.Millisecond},
		{"there is none", 1000, 90 * time.Millisecond, 100, 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFarewell(http.NotFoundHandler(), 4096)
			for range tc.open {
				f.count(nil, http.StateNew)
				f.count(nil, http.StateActive)
			}
			if got := lastOfItsConnection(f, 1); got != "" {
				t.Errorf("%s: Connection: %s before the signal", tc.name, got)
			}
			began, ended := time.Now(), make(chan time.Duration, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), tc.drain)
				defer cancel()
				f.wait(ctx)
				ended <- time.Since(began)
			}()
			want := map[int]string{1: "close", 2: ""}[tc.proto]
			for range tc.times {
				time.Sleep(tc.every)
				if got := lastOfItsConnection(f, tc.proto); got != want {
					t.Errorf("%s: HTTP/%d: Connection: %q, want %q", tc.name, tc.proto, got, want)
				}
				f.count(nil, http.StateClosed)
			}
			if got := <-ended; got != tc.want {
				t.Errorf("%s: the server went on for %v, want %v", tc.name, got, tc.want)
			}
		})
	}
}

// TestFarewellLate: a request that came before the signal is answered by a header that does not tell its client to leave, so the client has as
// long as others to ask again. Its connection was closed as early as if it had rested all the time.
func TestFarewellLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 200 * time.Millisecond
		f := newFarewell(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }), 4096)
		f.count(nil, http.StateNew)
		answered := make(chan string, 1)
		go func() { answered <- lastOfItsConnection(f, 1) }()
		synctest.Wait()
		began := time.Now()
		f.wait(t.Context())
		if got, want := time.Since(began), takes+farewellQuiet; got != want {
			t.Errorf("the server went on for %v, want %v", got, want)
		}
		if got := <-answered; got != "" {
			t.Errorf("Connection: %s, before the signal", got)
		}
	})
}

// TestFarewellServe: pce serve ends connections where no more may be open, and waits for what those that rest may ask.
func TestFarewellServe(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("net.spn", []byte("P ProductNode(B, C){\n  B Bernoulli(b|p=0.25)\n  C Bernoulli(c|p=0.5)\n}\n# b;c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop := serving(t, nil, "--model", "m=net.spn", "--max-connections", "2")
	for _, last := range []bool{false, true} {
		transport := new(http.Transport)
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v2/health/live", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		w, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, w.Body) // or the client closes the connection
		if w.Body.Close(); err != nil || w.StatusCode != 200 || w.Close != last {
			t.Errorf("status %d, %v, and the connection ends: %v, want %v", w.StatusCode, err, w.Close, last)
		}
	}
	began := time.Now()
	if code, said := stop(); code != 0 || time.Since(began) < farewellQuiet {
		t.Errorf("exit %d after %v, while a client may ask: %s", code, time.Since(began), said)
	}
}
