package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// breaks are bins of a histogram that has the ends of several among its values, and none of most.
var breaks = circuit.RealHistogram{Breaks: []float64{-3.5, -1, -0.25, 0.0625, 1, 2, 2.5, 7, 1e5}, Floor: 1e-9}

// functionLeaves are function inputs with missing cells, far values and values that
// fit some units only, or are the ends of bins.
func functionLeaves(size, units, rows int) *leaves {
	w := newLeaves(size, rows, uint64(100*units+rows),
		leafInput{circuit.Gaussian{MinSigma: 1e-3}, units, 1, 0.2}, leafInput{circuit.Poisson{}, units, 1, 0.2}, leafInput{breaks, units, 1, 0.2},
		leafInput{circuit.RealHistogram{Breaks: []float64{0, 2}, Floor: 0x1p-140}, units, 1, 0.2})
	for i, in := range w.inputs {
		for r := range w.rows {
			x := &w.Values[int(in.At)+r]
			switch far := w.rng.IntN(4) == 0; {
			case far && in.Family == tensor.FamilyRealHistogram:
				*x = float32(breaks.Breaks[w.rng.IntN(len(breaks.Breaks))])
				if w.rng.IntN(3) == 0 {
					*x = math.Nextafter32(*x, float32(w.rng.NormFloat64()))
				}
			case far && in.Family == tensor.FamilyGaussian:
				*x *= float32(math.Exp(w.rng.Float64() * 4))
			case far:
				*x = float32(math.Floor(math.Exp(w.rng.Float64() * 12)))
			}
		}
		for u := range units {
			p := w.params(&in, u, w.cases[i].family)
			for k := range p {
				p[k] *= math.Exp(w.rng.NormFloat64())
			}
			w.putParams(&in, u, w.cases[i].family, p)
		}
	}
	return w
}

// TestLeaf compares densities with those of the families.
func TestLeaf(t *testing.T) {
	for _, c := range []struct{ size, units, rows int }{
		{1, 1, 1}, {1, 3, 64}, {2, 5, 33}, {4, 31, 65}, {8, 130, 20}, {16, 150, 3}, {32, 32, 130}, {32, 260, 70},
	} {
		t.Run(fmt.Sprintf("S=%d/units=%d/rows=%d", c.size, c.units, c.rows), func(t *testing.T) {
			w := functionLeaves(c.size, c.units, c.rows)
			w.launch(t, tensor.KernelLeaf, [3]int{4, (c.rows + tensor.LeafRows - 1) / tensor.LeafRows, 1}, map[string]any{tensor.ArgList: []uint32{0, 1, 2, 3}})
			subnormal := 0
			for i, in := range w.inputs {
				for r := range w.cap {
					e, row := w.Exp[int(in.Exp)+r], w.Val[int(in.Val)+r*int(in.Width):][:in.Width]
					if r >= w.rows {
						if e != 1<<20 || row[0] == row[0] {
							t.Fatalf("row %d of %d was written", r, w.rows)
						}
						continue
					}
					x, most := w.Values[int(in.At)+r], float32(0)
					for u, y := range row {
						want := 0.0
						switch {
						case u >= c.units:
						case x != x:
							want = 1
						default:
							want = math.Exp(w.cases[i].family.LogProb(w.params(&in, u, w.cases[i].family), float64(x)) - float64(e)*math.Ln2)
						}
						// The exponent holds digits of the logarithm: its own rounding counts.
						tol := want*(0x1p-23+math.Abs(float64(e))*0x1p-50) + 0x1p-149
						if !(math.Abs(float64(y)-want) <= tol) || u >= c.units && y != 0 {
							t.Fatalf("input %d row %d unit %d: %v, want %v with exponent %d", i, r, u, y, want, e)
						}
						if y > 0 && y < 0x1p-126 {
							subnormal++
						}
						most = max(most, y)
					}
					if !(most >= 0.5 && most <= 1) || x != x && e != 0 {
						t.Fatalf("input %d row %d: exponent %d, largest value %v", i, r, e, most)
					}
				}
			}
			if c.units > 200 && subnormal == 0 {
				t.Fatal("no density was subnormal")
			}
		})
	}
}

// TestLeafFar checks a row whose densities no exponent holds: it keeps the values,
// as those of any other row, and its exponent is Lost.
func TestLeafFar(t *testing.T) {
	w := newLeaves(2, 2, 1, leafInput{circuit.Gaussian{MinSigma: 1e-3}, 2, 1, 0})
	in := &w.inputs[0]
	for u := range 2 {
		w.putParams(in, u, w.cases[0].family, []float64{0, 1e-3})
	}
	w.Values[in.At], w.Values[in.At+1] = 1e30, 1e-4
	w.launch(t, tensor.KernelLeaf, [3]int{1, 1, 1}, map[string]any{tensor.ArgList: []uint32{0}})
	v := w.Val[in.Val:]
	if w.Exp[in.Exp] != tensor.Lost || !(max(v[0], v[1]) >= 0.5 && max(v[0], v[1]) <= 1) || !(v[2] > 0.5) {
		t.Fatalf("exponents %d, values %v", w.Exp[in.Exp:in.Exp+2], v[:4])
	}
}

// TestLeafLog2 compares the logarithms for single units with the families'.
func TestLeafLog2(t *testing.T) {
	w := functionLeaves(4, 30, 40)
	for i, in := range w.inputs {
		for r := range 20 {
			x := w.Values[int(in.At)+r]
			y := make([]float64, 30)
			w.launch(t, "leaf_log2s", [3]int{1, 1, 1}, map[string]any{
				tensor.ArgList: []uint32{uint32(i)}, tensor.ArgValues: w.Values[in.At+uint32(r):], "y": y,
				tensor.ArgInputs: withAt(w.inputs, 0),
			})
			for u, got := range y {
				want, size := 0.0, 0.0
				if x == x {
					size = math.Abs(float64(x))
					want = w.cases[i].family.LogProb(w.params(&in, u, w.cases[i].family), float64(x)) / math.Ln2
				}
				if !(math.Abs(got-want) <= 1e-14*(math.Abs(want)+20*size+1)) {
					t.Fatalf("input %d unit %d at %v: %v, want %v", i, u, x, got, want)
				}
			}
		}
	}
}

// withAt encodes inputs whose columns start at a place.
func withAt(inputs []tensor.Input, at uint32) (b []byte) {
	for _, in := range inputs {
		in.At = at
		b = append(b, tensor.Words(in, tensor.InputSize)...)
	}
	return b
}

// TestLeafVisits compares visits with float64 sums over all rows.
func TestLeafVisits(t *testing.T) {
	eachLeaves(t, func(t *testing.T, w *leaves) {
		w.update(t, tensor.KernelLeafVisits)
		for i, in := range w.inputs {
			for u := range w.cases[i].units {
				_, _, want := w.evidence(i, u)
				if got := float64(w.Visits[int(in.Unit)+u]); !(math.Abs(got-want) <= 1e-5*want) {
					t.Fatalf("input %d unit %d: %v, want %v", i, u, got, want)
				}
			}
		}
	})
}

// TestLeafAverages follows averages and parameters over three updates.
func TestLeafAverages(t *testing.T) {
	eachLeaves(t, func(t *testing.T, w *leaves) {
		type average struct {
			stats []float64
			norm  float64
		}
		averages := map[[2]int]average{}
		w.step, w.pseudocount = 0.3, 0.2
		for round, keep := range []float32{0, 0.75, 0.75} {
			w.average, w.take, w.scale = keep, 0.25, w.step/(float64(w.rows)*0.7)
			w.update(t, tensor.KernelLeafCount)
			was := w.copy()
			w.update(t, tensor.KernelLeafUpdateAverages)
			w.compare(t, was, 1e-4, func(i, u int, p []float64) {
				stats, norm, _ := w.evidence(i, u)
				a, ok := averages[[2]int{i, u}]
				for k := range stats {
					stats[k] *= float64(w.take)
					if ok {
						stats[k] += float64(keep) * a.stats[k]
					}
				}
				norm = norm*float64(w.take) + float64(keep)*a.norm
				averages[[2]int{i, u}] = average{append([]float64(nil), stats...), norm}
				for k := range stats {
					stats[k] *= w.scale
				}
				norm *= w.scale
				d := norm + w.pseudocount
				step := d / ((1-w.step)*float64(w.Visits[int(w.inputs[i].Unit)+u]) + d)
				w.cases[i].family.MStep(p, stats, norm, w.pseudocount, step)
			})
			for i, in := range w.inputs {
				for u := range w.cases[i].units {
					a := averages[[2]int{i, u}]
					if got := float64(w.AverNorms[int(in.Unit)+u]); !(math.Abs(got-a.norm) <= 1e-5*a.norm) {
						t.Fatalf("update %d: input %d unit %d: average of norms %v, want %v", round, i, u, got, a.norm)
					}
					if in.Codes > 0 {
						continue
					}
					for k, want := range append(a.stats, a.norm) { // pairs have twice the digits
						high, scale := float64(w.AverNorms[int(in.Unit)+u]), 1.0
						if k < len(a.stats) {
							high, scale = float64(w.Averages[int(in.Params)+k*int(in.Width)+u]), w.Constants[int(in.Scales)+k]
						}
						got := (high + float64(w.Residues[int(in.Residue)+k*int(in.Width)+u])) * scale
						if !(math.Abs(got-want) <= 1e-11*math.Abs(want)+scale*0x1p-36) {
							t.Fatalf("update %d: input %d unit %d: average of statistic %d is %v, want %v", round, i, u, k, got, want)
						}
					}
				}
			}
			for k, f := range w.Flows {
				if f != 0 {
					t.Fatalf("flow %d was left at %d", k, f)
				}
			}
		}
	})
}

// TestLeafIndicator checks that what has no parameters is left alone.
func TestLeafIndicator(t *testing.T) {
	for _, kernel := range []string{tensor.KernelLeafMove, tensor.KernelLeafCount, tensor.KernelLeafUpdate, tensor.KernelLeafUpdateAverages} {
		w := newLeaves(2, 5, 1, leafInput{circuit.Indicator{Domain: 3, Value: 1}, 3, 1, 0})
		was := w.copy()
		w.update(t, kernel)
		for k, p := range w.Params {
			if p != was.Params[k] {
				t.Fatalf("%s: parameter %d is %v, was %v", kernel, k, p, was.Params[k])
			}
		}
		for k, f := range append(w.Flows, w.FlowNorms...) {
			if f != 0 {
				t.Fatalf("%s: flow %d is %d", kernel, k, f)
			}
		}
	}
}

// TestFunctions compares the float64 functions with package math.
func TestFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(f func() float64, more ...float64) []float64 {
		for range 4000 {
			more = append(more, f())
		}
		return more
	}
	spread := func(lo, hi float64) float64 { return math.Exp(lo + (hi-lo)*rng.Float64()) }
	factorial := func(n float64) float64 { f, _ := math.Lgamma(n + 1); return f }
	for _, c := range []struct {
		name string
		want func(x float64) float64
		ulps float64
		xs   []float64
	}{
		{"log", math.Log, 2, draw(func() float64 { return spread(-700, 700) }, 0, 1, 2, 0.5, 0x1p-149, math.Nextafter(1, 2), math.Nextafter(1, 0))},
		{"log", math.Log, 2, draw(func() float64 { return spread(-1, 1) })},
		{"log1p", math.Log1p, 3, draw(func() float64 { return 2*rng.Float64() - 1 }, -1, 0, 1, -1+0x1p-53, 0x1p-60)},
		{"log1p", math.Log1p, 3, draw(func() float64 { return spread(-60, 40) })},
		{"exp", math.Exp, 2, draw(func() float64 { return -707 + 1400*rng.Float64() }, 0, 1, -1, math.Inf(-1), -800)},
		{"exp", math.Exp, 2, draw(func() float64 { return spread(-50, 0) * float64(1-2*rng.IntN(2)) })},
		{"exp2", math.Exp2, 2, draw(func() float64 { return -1021 + 2000*rng.Float64() }, 0, 1, -1, math.Inf(-1), -2000)},
		{"log1mexp", func(a float64) float64 {
			if a < math.Ln2 {
				return math.Log(-math.Expm1(-a))
			}
			return math.Log1p(-math.Exp(-a))
		}, 4, draw(func() float64 { return spread(-40, 6) }, math.Ln2)},
		{"softplus", func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 4,
			draw(func() float64 { return spread(-40, 6) * float64(1-2*rng.IntN(2)) }, 0)},
		{"factorial", factorial, 20, draw(func() float64 { return math.Floor(spread(0, 30)) }, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)},
	} {
		y := make([]float64, len(c.xs))
		control := make([]byte, tensor.ControlSize)
		control[0], control[1] = byte(len(y)), byte(len(y)>>8)
		launchLeaves(t, tensor.Variant{Block: 1, Major: 8}, "function_"+c.name, [3]int{(len(y) + 127) / 128, 1, 1},
			map[string]any{tensor.ArgControl: control, "x": c.xs, "y": y})
		for i, x := range c.xs {
			want := c.want(x)
			if !(math.Abs(y[i]-want) <= c.ulps*math.Abs(want)*0x1p-53+0x1p-1022) && y[i] != want {
				t.Errorf("%s(%v) = %v, want %v: off by %.1f units", c.name, x, y[i], want, (y[i]-want)/want*0x1p53)
				break
			}
		}
	}
}
