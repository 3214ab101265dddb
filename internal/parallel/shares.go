package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Shares says how rows are divided among threads: large shares at first and small ones at the end, so that all threads end
// together, also where one starts late.
type Shares struct {
	Threads int // the caller's is one
	Least   int // rows of a share, the last one excepted, which may have fewer
	Most    int
	Step    int // of which shares between the two are a multiple
}

// Do calls work with share after share, at to at + n, and with the number of the thread that it runs on, and waits. Threads take
// shares in ascending order. The error is that of the first share that has one; later ones may not have been tried.
func (s Shares) Do(rows int, work func(thread, at, n int) error) error {
	threads := min(s.Threads, (rows+s.Least-1)/s.Least)
	if threads <= 1 {
		for at := 0; at < rows; at += s.Most {
			if err := work(0, at, min(s.Most, rows-at)); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var failed atomic.Bool
	var mu sync.Mutex // guards the two below
	var first error
	from := rows
	together(threads, func(thread int) {
		for !failed.Load() {
			at, n := s.take(rows, threads, &next)
			if n == 0 {
				return
			}
			if err := work(thread, at, n); err != nil {
				failed.Store(true)
				mu.Lock()
				if at < from {
					from, first = at, err
				}
				mu.Unlock()
			}
		}
	})
	return first
}

// take returns the next share, of no rows at the end.
func (s Shares) take(rows, threads int, next *atomic.Int64) (at, n int) {
	for {
		from := next.Load()
		left := rows - int(from)
		n := min(max(left/(2*threads)/s.Step*s.Step, s.Least), s.Most, left)
		if next.CompareAndSwap(from, from+int64(n)) {
			return int(from), n
		}
	}
}

// A caller polls for other threads for patience before it blocks, as waking up takes longer than most of them still
// need. One of them may have lost its core. The number of polls is bounded for systems whose clock has steps of milliseconds.
const (
	patience = 25 * time.Microsecond
	polls    = 2000
)

// poll waits for a little while until so many threads have ended.
func poll(ended *atomic.Int32, threads int) {
	if threads == 0 || threads >= runtime.GOMAXPROCS(0) { // with the caller's more than there are processors
		return
	}
	from := time.Now()
	for range polls {
		if int(ended.Load()) == threads || time.Since(from) > patience {
			return
		}
	}
}
