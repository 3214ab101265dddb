package main

import (
	"sync"
	"time"

	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// peakTime is how long peak multiplies.
const peakTime = 150 * time.Millisecond

// peak returns the GFLOP/s that the panel product of a set of kernels reaches on
// operands that stay in the first-level caches, on all threads together; 0 for
// an unknown set.
func peak(threads int, path string) float64 {
	set, err := micro.ByName(path)
	if err != nil {
		return 0
	}
	const rows, k, w = 48, 128, 32
	rates := make([]float64, threads)
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			a, b, c := make([]float32, rows*k), make([]float32, k*w), make([]float32, rows*w)
			args := micro.PanelArgs{Rows: rows, K: k, W: w, A: &a[0], ARow: k, ACol: 1, B: &b[0], BRow: w, C: &c[0], CRow: w}
			const calls = 50
			for end := time.Now().Add(peakTime); ; {
				begin := time.Now()
				if begin.After(end) {
					return
				}
				for range calls {
					set.Panel(&args)
				}
				rates[t] = max(rates[t], 2*rows*k*w*calls/time.Since(begin).Seconds()/1e9)
			}
		})
	}
	wg.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}
