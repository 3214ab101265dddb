package micro

import (
	"math"
	"unsafe"
)

func genericUpdatePanel(a *UpdateArgs) {
	keep, gain := unsafe.Slice(a.Keep, a.Rows), unsafe.Slice(a.Gain, a.Rows)
	prior, sum := unsafe.Slice(a.Prior, a.Rows), unsafe.Slice(a.Sum, a.Rows)
	for r := range a.Rows {
		t, g := row(a.T, r*a.W, a.W), row(a.G, r*a.W, a.W)
		var s float32
		for j, old := range t {
			f := g[j]
			if !a.Plain {
				f = float32(old * f)
			}
			t[j] = moved(old, onGrid(f, a.Grid), keep[r], gain[r], prior[r], a.Floor)
			s += t[j]
		}
		sum[r] += s
	}
}

func genericUpdateTable(a *TableArgs) {
	keep, gain := unsafe.Slice(a.Keep, a.Width), unsafe.Slice(a.Gain, a.Width)
	prior, sum := unsafe.Slice(a.Prior, a.Width), unsafe.Slice(a.Sum, a.Width)
	for r := range a.Rows {
		t, count := row(a.T, r*a.Row, a.Width), row(a.Count, r*a.Row, a.Width)
		for j, old := range t {
			t[j] = moved(old, onGrid(count[j], a.Grid), keep[j], gain[j], prior[j], a.Floor)
			sum[j] += t[j]
		}
		clear(count)
	}
}

// onGrid rounds f to a multiple of grid·2^-23; the conversion keeps compilers
// from fusing the product that f comes from.
func onGrid(f, grid float32) float32 {
	if f < grid {
		f = float32(f+grid) - grid
	}
	return f
}

// moved returns the new value of weight old; a weight of 0 stays.
func moved(old, f, keep, gain, prior, floor float32) float32 {
	if old == 0 {
		return 0
	}
	return max(old*keep+f*gain+prior, floor)
}

func genericQuantize(acc *int64, x, y *float32, n int, grid float32) {
	scale := 1 / float64(grid)
	xs, out := unsafe.Slice(x, n), unsafe.Slice(acc, n)
	if y == nil {
		for i, v := range xs {
			out[i] += int64(math.RoundToEven(float64(v) * scale))
		}
		return
	}
	for i, w := range unsafe.Slice(y, n) {
		out[i] += int64(math.RoundToEven(float64(float32(xs[i]*w)) * scale))
	}
}
