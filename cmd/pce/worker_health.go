package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// healthServer answers probes and scrapes about a worker:
//
//	/healthz  200 while the process answers
//	/readyz   200 while the worker hears from the broker, else 503
//	/metrics  numbers, in Prometheus' text format
type healthServer struct {
	state func() (cluster.Stats, error) // cluster.Worker.Health
	peers []*meteredPeers
}

func (h *healthServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		state, err := h.state()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, state.State)
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		io.WriteString(w, h.metrics())
	})
	return mux
}

// metrics is the worker's numbers in Prometheus' text format. It may be called at any time,
// also while a shard is computed.
func (h *healthServer) metrics() string {
	var b strings.Builder
	family := func(name, kind, help string, lines ...string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		for _, l := range lines {
			fmt.Fprintf(&b, "%s%s\n", name, l)
		}
	}
	s, err := h.state()
	ready := 1
	if err != nil {
		ready = 0
	}
	var sent, received []string
	for _, p := range h.peers {
		label := fmt.Sprintf("{transport=%q} ", p.Endpoint().Transport)
		sent = append(sent, label+fmt.Sprint(p.sent.Load()))
		received = append(received, label+fmt.Sprint(p.received.Load()))
	}
	family("pce_worker_ready", "gauge", "1 while the worker hears from the broker.", fmt.Sprintf(" %d", ready))
	family("pce_worker_shards_total", "counter", "Shards that were computed.", fmt.Sprintf(" %d", s.Shards))
	family("pce_worker_computing_seconds_total", "counter", "Time spent computing shards.", fmt.Sprintf(" %g", s.Compute.Seconds()))
	family("pce_worker_sent_bytes_total", "counter", "Flows and parameters sent to peers.", sent...)
	family("pce_worker_received_bytes_total", "counter", "Flows and parameters received from peers.", received...)
	family("pce_worker_term_fence", "gauge", "Fence of the current term.", fmt.Sprintf(" %d", s.Term.Fence))
	family("pce_worker_term_generation", "gauge", "Generation of the current term.", fmt.Sprintf(" %d", s.Term.Generation))
	return b.String()
}

// meteredPeers counts the bytes of frames.
type meteredPeers struct {
	cluster.Peers
	sent, received atomic.Int64
}

// Ways says how others are reached, where there are several ways.
func (p *meteredPeers) Ways() map[string]string {
	if w, ok := p.Peers.(cluster.Wayfarer); ok {
		return w.Ways()
	}
	return nil
}

// Handle has handle called with each frame that comes, after its bytes are counted.
func (p *meteredPeers) Handle(handle func(from string, f *cluster.Frame)) {
	p.Peers.Handle(func(from string, f *cluster.Frame) {
		p.received.Add(int64(len(f.Payload)))
		handle(from, f)
	})
}

// Send sends f, and counts its bytes once it was sent. f is the caller's again after the call.
func (p *meteredPeers) Send(ctx context.Context, to string, f *cluster.Frame) error {
	n := int64(len(f.Payload)) // f is the caller's again afterwards
	err := p.Peers.Send(ctx, to, f)
	if err == nil {
		p.sent.Add(n)
	}
	return err
}

// start listens at addr and serves health and metrics in a goroutine of its own until stop is
// called, which waits for it. It returns the address, whose port was chosen if addr has port
// 0.
func (h *healthServer) start(ctx context.Context, addr string, log *slog.Logger) (at string, stop func(), err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err != nil && ctx.Err() != nil: // a signal, and no fault of the address
		return "", nil, ctx.Err()
	case err != nil:
		return "", nil, usagef("--health-addr %s: %v; give another HOST:PORT", addr, err)
	}
	s := &http.Server{
		Handler:           h.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("health endpoint ended", "err", err)
		}
	}()
	return l.Addr().String(), func() {
		s.Close()
		<-done
	}, nil
}
