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
	Shards   int64         // computed, also those whose results did not count
	Compute  time.Duration // of shards, also those that failed or were dropped
	Received int64         // bytes of bulk data
}

type stats struct {
	mu  sync.Mutex
	now Stats
}

// computed counts the time of a shard whatever becomes of its result, and the shard if there is one.
func (s *stats) computed(took time.Duration, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole {
		s.now.Shards++
	}
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
