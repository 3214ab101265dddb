package parallel

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Each calls work with 0 to n-1, from as many goroutines as there are processors, and waits.
// Each goroutine gets its own work from start, and takes numbers in ascending order. Each
// returns the error of the lowest number that has one; higher ones may not have been tried.
func Each(n int, start func() (work func(i int) error)) error {
	var next, failed atomic.Int64 // failed: one more than the lowest number with an error
	errs := map[int64]error{}
	var mu sync.Mutex // guards errs, and failed when it changes
	together(min(n, runtime.GOMAXPROCS(0)), newGoroutine, func(int) time.Duration {
		work := start()
		for failed.Load() == 0 {
			i := next.Add(1) - 1
			if i >= int64(n) {
				break
			}
			if err := work(int(i)); err != nil {
				mu.Lock()
				errs[i+1] = err
				if at := failed.Load(); at == 0 || i < at {
					failed.Store(i + 1)
				}
				mu.Unlock()
			}
		}
		return 0
	})
	return errs[failed.Load()]
}

// Stream calls work with each item that produce puts, from as many goroutines as there are
// processors, and waits. Each goroutine gets its own work from start. One of them runs
// produce first, and works on an item itself where the others do not keep up.
func Stream[T any](produce func(put func(T)), start func() (work func(T))) {
	threads := runtime.GOMAXPROCS(0)
	items := make(chan T, threads)
	var taken atomic.Bool // a goroutine runs produce
	together(threads, newGoroutine, func(int) time.Duration {
		work := start()
		if taken.CompareAndSwap(false, true) {
			produceInto(items, produce, work)
		}
		for item := range items {
			work(item)
		}
		return 0
	})
}

// produceInto runs produce and closes items, also after a panic, because the others wait for it.
func produceInto[T any](items chan<- T, produce func(put func(T)), work func(T)) {
	defer close(items)
	produce(func(item T) {
		select {
		case items <- item:
		default:
			work(item)
		}
	})
}

// newGoroutine is the start of a job of which a goroutine does nothing else.
func newGoroutine(job func()) (back func() bool) {
	go job()
	return nil
}

// together runs work in that many goroutines, of which the caller's is one and start gives the others, each with its number, and waits for
// them. The caller polls for as long as its own work says before it blocks, and does itself what has not begun by then.
func together(threads int, start func(job func()) (back func() bool), work func(thread int) (patience time.Duration)) {
	var done sync.WaitGroup
	var ended atomic.Int32
	var mu sync.Mutex // guards fault
	var fault any     // the first panic
	guarded := func(thread int) (patience time.Duration) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if r := recover(); r != nil {
				mu.Lock()
				defer mu.Unlock()
				if fault == nil {
					fault = r
				}
			}
		}()
		return work(thread)
	}
	jobs, back := make([]func(), threads), make([]func() bool, threads)
	for i := 1; i < threads; i++ {
		done.Add(1)
		jobs[i] = func() {
			guarded(i)
			ended.Add(1)
			done.Done()
		}
		back[i] = start(jobs[i])
	}
	poll(&ended, threads-1, guarded(0))
	for i, back := range back {
		if back != nil && int(ended.Load()) < threads-1 && back() {
			jobs[i]()
		}
	}
	done.Wait()
	if fault != nil {
		panic(fault)
	}
}
