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
	Step    int   // of which shares between the two are a multiple
	Pace    *Pace // of the rows; nil: not known
}

// Do calls work with share after share, at to at + n, and with the number of the thread that it runs on, and waits. Threads take
// shares in ascending order. The error is that of the first share that has one; later ones may not have been tried.
// Rows that a thread computes before another one would be awake are computed by the caller's.
func (s Shares) Do(rows int, work func(thread, at, n int) error) error {
	threads := min(s.Threads, (rows+s.Least-1)/s.Least)
	if threads > 1 && s.Pace != nil && s.Pace.alone(rows, startsIn(threads-1)) {
		threads = 1
	}
	if threads <= 1 {
		for at := 0; at < rows; at += s.Most {
			n, begin := min(s.Most, rows-at), time.Now()
			if err := work(0, at, n); err != nil {
				return err
			}
			s.Pace.note(at, n, begin)
		}
		return nil
	}
	var next atomic.Int64
	var failed atomic.Bool
	var mu sync.Mutex // guards the two below
	var first error
	from := rows
	together(threads, start, func(thread int) (patience time.Duration) {
		for !failed.Load() {
			at, n := s.take(rows, threads, &next)
			if n == 0 {
				break
			}
			begin := time.Now()
			if err := work(thread, at, n); err != nil {
				failed.Store(true)
				mu.Lock()
				if at < from {
					from, first = at, err
				}
				mu.Unlock()
			}
			s.Pace.note(at, n, begin)
			patience = time.Since(begin)
		}
		return patience // the others need no longer for theirs
	})
	return first
}

// take returns the next share, of no rows at the end.
func (s *Shares) take(rows, threads int, next *atomic.Int64) (at, n int) {
	for {
		from := next.Load()
		left := rows - int(from)
		n := min(max(left/(2*threads)/s.Step*s.Step, s.Least), s.Most, left)
		if next.CompareAndSwap(from, from+int64(n)) {
			return int(from), n
		}
	}
}

// Pace is how long a row takes, as the first share of the call before had it. The zero value does not know. It is for all goroutines.
type Pace struct {
	picoseconds atomic.Int64
	calls       atomic.Int64 // that were left alone
}

// note takes the time of a share, if it is the first one.
func (p *Pace) note(at, n int, begin time.Time) {
	if p != nil && at == 0 {
		p.picoseconds.Store(1 + 1000*int64(time.Since(begin))/int64(n))
	}
}

// Rows returns how many rows take at least that long, rounded up; 0 if that is not known.
func (p *Pace) Rows(d time.Duration) int {
	row := p.picoseconds.Load()
	if row == 0 {
		return 0
	}
	return int((1000*int64(d) + row - 1) / row)
}

// alone reports whether a thread computes rows before others have begun, which takes them that long. Once in a while it says no,
// as the time that waking takes changes.
func (p *Pace) alone(rows int, begin time.Duration) bool {
	row := p.picoseconds.Load()
	return row > 0 && row < 1000*int64(begin)/int64(rows) && p.calls.Add(1)%64 > 0
}

// A caller polls for other threads before it blocks, as waking up takes longer than most of them still need, for as long as its own last
// share took, or up to patience. One of them may have lost its core. The number of polls is bounded for systems whose clock has steps of
// milliseconds.
const (
	patience = 200 * time.Microsecond
	polls    = 10_000
)

// poll waits for a little while until that many threads have ended.
func poll(ended *atomic.Int32, threads int, wait time.Duration) {
	if threads == 0 || wait == 0 || threads >= runtime.GOMAXPROCS(0) { // with the caller's more than there are processors
		return
	}
	from := time.Now()
	for range polls {
		if int(ended.Load()) == threads || time.Since(from) > min(wait, patience) {
			return
		}
	}
}
