package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// fakePeers send nowhere.
type fakePeers struct {
	cluster.Peers
	handle func(string, *cluster.Frame)
	err    error
}

func (p *fakePeers) Endpoint() cluster.Endpoint                         { return cluster.Endpoint{Transport: "tcp"} }
func (p *fakePeers) Handle(handle func(string, *cluster.Frame))         { p.handle = handle }
func (p *fakePeers) Send(context.Context, string, *cluster.Frame) error { return p.err }

// TestHealth asks a worker that works and then loses its broker.
func TestHealth(t *testing.T) {
	inner := &fakePeers{}
	peers := &meteredPeers{Peers: inner}
	var lost error
	h := &healthServer{peers: []*meteredPeers{peers}, state: func() (cluster.Stats, error) {
		return cluster.Stats{State: "idle", Term: cluster.Term{Fence: 7, Generation: 2}, Shards: 6, Compute: 1500 * time.Millisecond}, lost
	}}
	at, stop, err := h.start(t.Context(), "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}

	peers.Handle(func(string, *cluster.Frame) {})
	inner.handle("b", &cluster.Frame{Payload: make([]byte, 100)})
	if err := peers.Send(t.Context(), "b", &cluster.Frame{Payload: make([]byte, 30)}); err != nil {
		t.Fatal(err)
	}
	inner.err = errors.New("gone")
	if err := peers.Send(t.Context(), "b", &cluster.Frame{Payload: make([]byte, 30)}); err == nil {
		t.Error("the error of a send is lost")
	}
	if code, text := get("/healthz"); code != 200 || text != "ok\n" {
		t.Errorf("healthz: %d %q", code, text)
	}
	if code, text := get("/readyz"); code != 200 || text != "idle\n" {
		t.Errorf("readyz: %d %q", code, text)
	}
	code, text := get("/metrics")
	for _, want := range []string{
		"pce_worker_ready 1\n", "pce_worker_shards_total 6\n", "pce_worker_computing_seconds_total 1.5\n", "pce_worker_term_fence 7\n",
		"pce_worker_term_generation 2\n", `pce_worker_sent_bytes_total{transport="tcp"} 30` + "\n", `pce_worker_received_bytes_total{transport="tcp"} 100` + "\n",
	} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("metrics: %d, no %q in\n%s", code, want, text)
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) pce_[a-z_]+ .+|pce_[a-z_]+(\{transport="[a-z]+"\})? [0-9.e+-]+)$`)
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("metrics: odd line %q", l)
		}
	}

	lost = errors.New("no word from the broker for 12s")
	if code, text := get("/readyz"); code != 503 || !strings.Contains(text, "no word") {
		t.Errorf("readyz without a broker: %d %q", code, text)
	}
	if _, text := get("/metrics"); !strings.Contains(text, "pce_worker_ready 0\n") {
		t.Errorf("metrics without a broker:\n%s", text)
	}
	if code, _ := get("/else"); code != 404 {
		t.Errorf("an unknown path gives %d", code)
	}
	if _, _, err := h.start(t.Context(), at, slog.New(slog.DiscardHandler)); exitCode(err) != exitUsage || !strings.Contains(err.Error(), at) {
		t.Errorf("an address in use: %v", err)
	}
}
