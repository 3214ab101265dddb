package main

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// How long the server of pce serve answers on the connections that are open, after a signal, before it closes them: until none is left,
// or none has been answered for a while, and for a second at most.
const (
	farewellQuiet = 300 * time.Millisecond
	farewellMost  = time.Second
)

// farewell tells clients of HTTP/1 to leave: those that are answered while there are as many connections as may be, since others wait for
// one, and all of them when the server is about to end. A server that closes a connection between two requests cannot know
// whether one is on its way. That one is lost, and a client must not ask again by itself, as a POST may have had an effect. So each answer
// says that it is the last one of its connection. HTTP/2 has a message for that, which http.Server.Shutdown sends.
type farewell struct {
	http.Handler
	most    int64        // connections that may be open
	open    atomic.Int64 // connections
	leaving atomic.Bool
	answers chan struct{} // a token where a request has been answered since leaving
	empty   chan struct{} // a token where the last connection was closed since leaving
}

func newFarewell(h http.Handler, most int) *farewell {
	return &farewell{Handler: h, most: int64(most), answers: make(chan struct{}, 1), empty: make(chan struct{}, 1)}
}

// count is told by http.Server what becomes of its connections.
func (f *farewell) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		f.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		if f.open.Add(-1) == 0 && f.leaving.Load() {
			notice(f.empty)
		}
	}
}

// notice leaves a token where there is none.
func notice(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ServeHTTP answers a request.
func (f *farewell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := r.ProtoMajor < 2
	if one && (f.leaving.Load() || f.open.Load() >= f.most) {
		w.Header().Set("Connection", "close")
	}
	f.Handler.ServeHTTP(w, r)
	if one && f.leaving.Load() { // also where the request came before, and its answer does not tell the client to leave
		notice(f.answers)
	}
}

// wait says farewell to the clients that ask, until none is answered, all connections are closed, or ctx ends.
func (f *farewell) wait(ctx context.Context) {
	f.leaving.Store(true)
	if f.open.Load() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewellMost)
	defer cancel()
	quiet := time.NewTimer(farewellQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-f.answers:
			quiet.Reset(farewellQuiet)
		case <-f.empty:
			if f.open.Load() == 0 { // else one has come since
				return
			}
		case <-quiet.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
