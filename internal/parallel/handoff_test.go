package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// idle waits until no helper looks for a job.
func idle(t *testing.T) {
	t.Helper()
	for begin := time.Now(); ; runtime.Gosched() {
		waiting.mu.Lock()
		n := len(waiting.list)
		waiting.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("%d helpers still look for a job", n)
		}
	}
}

// TestHelpers: several callers at the same time have each of their jobs run once, by a helper or by themselves, and helpers end.
func TestHelpers(t *testing.T) {
	const callers, calls, threads = 4, 300, 3
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				var ran [threads]atomic.Int32
				together(threads, start, func(thread int) time.Duration {
					ran[thread].Add(1)
					return time.Microsecond
				})
				for i := range ran {
					if n := ran[i].Load(); n != 1 {
						t.Errorf("thread %d ran %d times", i, n)
					}
				}
			}
		})
	}
	all.Wait()
	idle(t)
}

// TestHelperAgain: a helper that looks for a job gets the next one, whose panic it survives; more helpers than processors do not wait.
func TestHelperAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	defer wake.Store(wake.Load())
	idle(t)
	again := 0
	for range 200 {
		wake.Store(int64(mostWake))
		together(2, start, func(int) time.Duration { return 0 })
		waiting.mu.Lock()
		before := len(waiting.list)
		waiting.mu.Unlock()
		func() {
			defer func() { _ = recover() }()
			together(2, start, func(thread int) time.Duration {
				if thread == 1 {
					panic("a job")
				}
				return 0
			})
		}()
		if before > 0 {
			again++
		}
		waiting.mu.Lock()
		if n := len(waiting.list); n > 2 {
			t.Errorf("%d helpers wait on three processors", n)
		}
		waiting.mu.Unlock()
	}
	if again == 0 {
		t.Error("no helper was waiting for the second call")
	}
	idle(t)
}

// TestHelperLost: a job whose helper does not run, as its processor is taken, is the caller's own.
func TestHelperLost(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	lost := new(helper)
	for begin := time.Now(); !lost.wait(); idle(t) { // one of an earlier test may have a job still
		if time.Since(begin) > 10*time.Second {
			t.Fatal("no helper may wait on two processors")
		}
	}
	var ran [2]atomic.Int32
	together(2, start, func(thread int) time.Duration {
		ran[thread].Add(1)
		return time.Microsecond
	})
	if ran[0].Load() != 1 || ran[1].Load() != 1 {
		t.Errorf("the threads ran %d and %d times, want once", ran[0].Load(), ran[1].Load())
	}
	if lost.leave() {
		t.Error("a helper with a job waits for one")
	}
	if job := lost.job.Load(); job == nil {
		t.Error("the helper has no job, which it would wait for")
	} else {
		(*job)() // not that of the caller
	}
	if ran[1].Load() != 1 {
		t.Error("a job that was taken back ran again")
	}
}

// TestPace: rows that are computed before another thread has begun stay with the caller, except once in a while; a Pace that
// knows nothing leaves them to all threads.
func TestPace(t *testing.T) {
	const waking = 100 * time.Microsecond
	p := new(Pace)
	if p.alone(10, waking) {
		t.Error("rows of an unknown pace stay with one thread")
	}
	p.note(0, 1000, time.Now().Add(-50*time.Millisecond))
	if got := p.picoseconds.Load(); got < 50_000_000 {
		t.Errorf("a row of 50 µs takes %d ps", got)
	}
	p.picoseconds.Store(50_000)
	p.note(1000, 1, time.Now().Add(-time.Hour)) // not of the first share
	others := 0
	for range 640 {
		if !p.alone(1000, waking) {
			others++
		}
	}
	if others != 10 {
		t.Errorf("of 640 batches of half the time of waking %d were left to all threads, want 10", others)
	}
	if p.alone(2100, waking) || p.alone(1<<40, waking) {
		t.Error("rows of more than the time of waking stay with one thread")
	}
	p.picoseconds.Store(1<<44 + 1)
	if p.alone(1<<20, waking) { // 18 s for each, and a product that 64 bits do not hold
		t.Error("rows of months stay with one thread")
	}
}

// TestWaking: the time of waking follows what threads took, up to a bound.
func TestWaking(t *testing.T) {
	defer wake.Store(wake.Load())
	idle(t)
	for range 100 {
		noteWake(time.Hour)
	}
	if got := time.Duration(wake.Load()); got > mostWake || got < mostWake*9/10 {
		t.Errorf("waking takes %v after threads that took hours, want nearly %v", got, mostWake)
	}
	for range 100 {
		noteWake(5 * time.Microsecond)
	}
	if got := time.Duration(wake.Load()); got > 6*time.Microsecond || got < 4*time.Microsecond {
		t.Errorf("waking takes %v after threads that took 5 µs", got)
	}
}
