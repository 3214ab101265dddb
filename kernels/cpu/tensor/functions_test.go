package tensor_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestCellsWithoutDensity has cells that no unit of a leaf without a table can have, infinite ones included, which a scale makes
// of numbers of float64: their rows are impossible, and those between them and missing ones are what they are alone.
func TestCellsWithoutDensity(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	cells := []float32{1, inf, 2, -inf, nan, 3, -3, inf, inf, nan, 4}
	for _, set := range micro.All() {
		for _, leaf := range []circuit.Leaf{circuit.Gaussian{}, circuit.LogNormal{}, circuit.Poisson{}} {
			t.Run(fmt.Sprintf("%s/%s", set.Name, leaf.Name()), func(t *testing.T) {
				got := mixtureLogs(t, set, leaf, cells)
				for r, v := range cells {
					alone := mixtureLogs(t, set, leaf, cells[r:r+1])[0]
					if impossible := math.IsInf(float64(v), 0) || v < 0 && leaf != (circuit.Gaussian{}); impossible != math.IsInf(got[r], -1) {
						t.Errorf("cell %v: log-likelihood %v", v, got[r])
					}
					if got[r] != alone {
						t.Errorf("cell %v: log-likelihood %v, %v alone", v, got[r], alone)
					}
				}
			})
		}
	}
}

// mixtureLogs returns the log-likelihoods of cells under a mixture of 24 units over one column.
func mixtureLogs(t *testing.T, set *micro.Set, leaf circuit.Leaf, cells []float32) []float64 {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	g, err := structures.HMM(structures.HMMOptions{Length: 1, Latents: 24, Leaf: func(int) circuit.Leaf { return leaf }})
	must(err)
	res, err := compile.Compile(g, compile.DefaultOptions())
	must(err)
	dev, err := cputensor.Open(cpu.Options{Threads: 1, Set: set})
	must(err)
	defer dev.Close()
	own, err := kernels.LoadAs[tensor.Program](ctx, dev, layers.Module{Program: res.Program, Rows: len(cells)})
	must(err)
	params := make([]float32, res.Program.NumParams)
	for i := range res.Map.Len() {
		off, n := res.Map.Region(i)
		canonical := make([]float32, g.NumParams(res.Map.Node(i)))
		must(circuit.InitParams(g, res.Map.Node(i), 1, nil, canonical))
		must(res.Map.Pack(i, canonical, params[off:off+int64(n)]))
	}
	put := func(kind kernels.DType, n int, s any) kernels.Buffer {
		buf, err := dev.Alloc(ctx, kind, n)
		must(err)
		must(dev.Write(ctx, buf, 0, s))
		return buf
	}
	logs := make([]float64, len(cells))
	a := tensor.ForwardArgs{Params: put(kernels.Float32, len(params), params), Values: put(kernels.Float32, len(cells), cells), LL: put(kernels.Float64, len(logs), logs)}
	must(own.Forward(ctx, len(cells), &a))
	must(dev.Read(ctx, logs, a.LL, 0))
	return logs
}
