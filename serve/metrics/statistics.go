package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// Statistics counts what happened to a model, over all its versions.
type Statistics struct {
	name string

	mu       sync.Mutex
	version  string // the one in memory, or the last one that was
	bytes    int64  // that it takes; 0: it is not in memory
	failures int64  // to load
	last     time.Time
	requests map[requestKey]*requestCount
	queries  map[string]*queryTimes
	batches  map[int]*oip.Duration // by rows
	rows     histogram             // of batches
	totals   oip.InferStatistics
	counted  uint64 // rows that were answered
}

// requestKey tells counters of requests apart.
type requestKey struct {
	query  string
	status int
}

type requestCount struct{ requests, rows int64 }

// queryTimes are the durations of a query's requests.
type queryTimes struct{ total, queue, compute histogram }

func newStatistics(name string) *Statistics {
	return &Statistics{
		name: name, requests: map[requestKey]*requestCount{}, queries: map[string]*queryTimes{},
		batches: map[int]*oip.Duration{}, rows: histogram{bounds: rowBounds},
	}
}

// Request counts a request that has ended, with how long it took in all, waiting and computing.
// query is one of the model's, or empty if none was found. Times are of requests that
// succeeded.
func (s *Statistics) Request(query string, status, rows int, total, queue, compute time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := requestKey{query, status}
	c := s.requests[key]
	if c == nil {
		c = new(requestCount)
		s.requests[key] = c
	}
	c.requests++
	s.last = time.Now()
	if status != 200 {
		add(&s.totals.Fail, total)
		return
	}
	c.rows += int64(rows)
	q := s.queries[query]
	if q == nil {
		q = &queryTimes{histogram{bounds: timeBounds}, histogram{bounds: timeBounds}, histogram{bounds: timeBounds}}
		s.queries[query] = q
	}
	q.total.observe(total.Seconds())
	q.queue.observe(queue.Seconds())
	q.compute.observe(compute.Seconds())
	add(&s.totals.Success, total)
	add(&s.totals.Queue, queue)
	add(&s.totals.Infer, compute)
	s.counted += uint64(rows)
}

// Tensors adds the time that the tensors of a request that succeeded took to read and to write.
func (s *Statistics) Tensors(read, write time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.totals.Input, read)
	add(&s.totals.Output, write)
}

func add(d *oip.Duration, took time.Duration) {
	d.Count++
	d.NS += uint64(max(0, took))
}

// Batch counts a batch that was run.
func (s *Statistics) Batch(rows int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.batches[rows]
	if d == nil {
		d = new(oip.Duration)
		s.batches[rows] = d
	}
	add(d, took)
	s.rows.observe(float64(rows))
}

// Loaded notes which version is in memory and what it takes; 0 bytes: none is.
func (s *Statistics) Loaded(version string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes > 0 || s.version == version {
		s.version, s.bytes = version, bytes
	}
}

// report is what the statistics extension shows.
func (s *Statistics) report() oip.Statistics {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := oip.Statistics{Name: s.name, Version: s.version, InferenceCount: s.counted, Inference: s.totals, Batches: []oip.BatchStatistics{}}
	if !s.last.IsZero() {
		r.LastInference = uint64(s.last.UnixMilli())
	}
	for _, rows := range slices.Sorted(maps.Keys(s.batches)) {
		d := s.batches[rows]
		r.ExecutionCount += d.Count
		r.Batches = append(r.Batches, oip.BatchStatistics{Size: uint64(rows), Infer: *d})
	}
	return r
}
