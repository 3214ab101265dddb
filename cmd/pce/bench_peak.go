package main

import (
	"runtime"
	"sync"
	"time"

	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// peakTime is how long peak multiplies. Tests, which print the peak and know nothing of its height, take less.
var peakTime = 150 * time.Millisecond

// peak returns the GFLOP/s that the panel product of a set of kernels reaches on
// operands that stay in the first-level caches, on all threads together; 0 for
// an unknown set.
func peak(threads int, path string) float64 {
	set, err := micro.ByName(path)
	if err != nil {
		return 0
	}
	const rows, k, w = 48, 128, 32
	return together(threads, func() (fastest float64) {
		a, b, c := make([]float32, rows*k), make([]float32, k*w), make([]float32, rows*w)
		args := micro.PanelArgs{Rows: rows, K: k, W: w, A: &a[0], ARow: k, ACol: 1, B: &b[0], BRow: w, C: &c[0], CRow: w}
		const calls = 50
		for end := time.Now().Add(peakTime); ; {
			begin := time.Now()
			if begin.After(end) {
				return fastest
			}
			for range calls {
				set.Panel(&args)
			}
			fastest = max(fastest, 2*rows*k*w*calls/time.Since(begin).Seconds()/1e9)
		}
	})
}

// together adds up the rates that threads find at the same time. Those that are more than the cores take turns on
// these, and each would find the rate of a core.
func together(threads int, rate func() float64) (sum float64) {
	rates := make([]float64, min(threads, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for t := range rates {
		wg.Go(func() { rates[t] = rate() })
	}
	wg.Wait()
	for _, r := range rates {
		sum += r
	}
	return sum
}
