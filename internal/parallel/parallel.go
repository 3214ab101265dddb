package parallel

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Each calls work with 0 to n-1, from as many goroutines as there are processors, and waits.
// Each goroutine gets its own work from start, and takes numbers in ascending order. Each
// returns the error of the lowest number that has one; higher ones may not have been tried.
func Each(n int, start func() (work func(i int) error)) error {
	var next, failed atomic.Int64 // failed: one more than the lowest number with an error
	errs := map[int64]error{}
	var mu sync.Mutex // guards errs, and failed when it changes
	together(min(n, runtime.GOMAXPROCS(0)), func(int) {
		work := start()
		for failed.Load() == 0 {
			i := next.Add(1) - 1
			if i >= int64(n) {
				return
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
	together(threads, func(int) {
		work := start()
		if taken.CompareAndSwap(false, true) {
			produceInto(items, produce, work)
		}
		for item := range items {
			work(item)
		}
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

// together runs work in that many goroutines, of which the caller's is one, each with its number, and waits for them.
func together(threads int, work func(thread int)) {
	var done sync.WaitGroup
	var ended atomic.Int32
	var mu sync.Mutex // guards fault
	var fault any     // the first panic
	guarded := func(thread int) {
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
		work(thread)
	}
	for i := 1; i < threads; i++ {
		done.Go(func() {
			guarded(i)
			ended.Add(1)
		})
	}
	guarded(0)
	poll(&ended, threads-1)
	done.Wait()
	if fault != nil {
		panic(fault)
	}
}
