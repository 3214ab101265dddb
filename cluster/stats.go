package cluster

import (
	"sync"
	"time"
)

// Stats is what a worker has done in this life.
type Stats struct {
	State    string
	Run      string
	Term     Term
	Shards   int64
	Compute  time.Duration
	Received int64 // bytes of bulk data
}

type stats struct {
	mu  sync.Mutex
	now Stats
}

func (s *stats) computed(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Shards++
	s.now.Compute += took
}

func (s *stats) received(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Received += int64(bytes)
}

func (s *stats) at(state workerState, run string, t Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.State, s.now.Run, s.now.Term = string(state), run, t
}

func (s *stats) read() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}
