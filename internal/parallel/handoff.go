package parallel

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Batch after batch wants the same threads, and waking one takes longer than many batches. So a helper, the goroutine that runs a job of a
// caller, looks for another job for as long as it takes to wake one, and then ends: it costs at most twice what sleeping at once would.

// helper runs jobs.
type helper struct {
	job atomic.Pointer[func()] // the next one; nil: it is not there yet
}

// none is the job of a helper whose own was taken back.
var none = func() {}

// waiting are the helpers that look for a job, the last one to come last.
var waiting struct {
	mu   sync.Mutex
	list []*helper
}

// How long a thread takes to begin, in nanoseconds: some 5 µs, and more than 100 on virtual machines whose idle processors sleep. One that
// looks for jobs begins at once.
const (
	atOnce   = 2 * time.Microsecond
	mostWake = 200 * time.Microsecond
	turn     = 20 * time.Microsecond // after which a helper that waits lets other goroutines run: to ask more often would keep the scheduler busy
)

var wake atomic.Int64

func init() { wake.Store(int64(30 * time.Microsecond)) }

// noteWake moves wake towards what was seen; a thread that had to wait for a processor says little.
func noteWake(took time.Duration) {
	old := wake.Load()
	wake.Store(old + (min(int64(took), 2*old+1000, int64(mostWake))-old)/8)
}

// start runs a job in another goroutine. A helper that has lost its processor would run it late: back, which may be nil, takes the job
// back, and reports whether it had not begun.
func start(job func()) (back func() bool) {
	waiting.mu.Lock()
	if n := len(waiting.list); n > 0 {
		h := waiting.list[n-1]
		waiting.list = slices.Delete(waiting.list, n-1, n)
		waiting.mu.Unlock()
		h.job.Store(&job)
		return func() bool { return h.job.CompareAndSwap(&job, &none) }
	}
	waiting.mu.Unlock()
	begin := time.Now()
	go func() {
		noteWake(time.Since(begin))
		new(helper).run(job)
	}()
	return nil
}

// wait puts a helper among those that wait, and reports whether it may: no more than there are other processors.
func (h *helper) wait() bool {
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	if len(waiting.list) >= runtime.GOMAXPROCS(0)-1 {
		return false
	}
	waiting.list = append(waiting.list, h)
	return true
}

// startsIn is how long a number of other threads are likely to take to begin.
func startsIn(threads int) time.Duration {
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	if len(waiting.list) >= threads {
		return atOnce
	}
	return time.Duration(wake.Load())
}

// run runs a job and those that come soon after.
func (h *helper) run(job func()) {
	for job != nil {
		job()
		job = h.next()
	}
}

// next waits for a job for a little while; nil: none came.
func (h *helper) next() func() {
	if !h.wait() {
		return nil
	}
	begin := time.Now()
	yielded := begin
	for n := 0; ; n++ {
		if h.job.Load() != nil {
			return *h.job.Swap(nil)
		}
		now := time.Now()
		if (n >= polls || now.Sub(begin) > time.Duration(wake.Load())) && h.leave() {
			return nil
		}
		if n >= polls || now.Sub(yielded) > turn {
			runtime.Gosched()
			yielded = time.Now()
		}
	}
}

// leave reports whether a helper still was among those that wait; if not, a job is on its way to it.
func (h *helper) leave() bool {
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	i := slices.Index(waiting.list, h)
	if i >= 0 {
		waiting.list = slices.Delete(waiting.list, i, i+1)
	}
	return i >= 0
}
