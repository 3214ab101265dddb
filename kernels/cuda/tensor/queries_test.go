package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// asked is a circuit loaded for queries, with rows in its buffers.
type asked struct {
	tensor.Program
	*job
	t                         *testing.T
	rows                      *dataset.Batch
	cap                       int // rows that the module was loaded for
	params, codes, values, ll kernels.Buffer
}

// ask loads a circuit for queries of rows with missing cells.
func ask(t *testing.T, j *job) *asked {
	t.Helper()
	a := &asked{job: j, t: t, rows: holes(j.batch)}
	a.cap = a.rows.Rows + 3
	p := j.Result.Program
	var err error
	a.Program, err = kernels.LoadAs[tensor.Program](t.Context(), j.dev, layers.Module{Program: p, Rows: a.cap, Queries: true})
	a.must(err)
	var codes []uint16
	var values []float32
	for _, c := range p.Columns {
		for r := range a.cap {
			cell := &a.rows.Columns[c.Var]
			switch {
			case c.Codes == 0 && r < a.rows.Rows:
				values = append(values, cell.Values[r])
			case c.Codes == 0:
				values = append(values, 0)
			case r < a.rows.Rows:
				codes = append(codes, min(cell.Codes.Narrow[r], uint16(c.Codes)))
			default:
				codes = append(codes, 0)
			}
		}
	}
	params := make([]float32, p.NumParams)
	a.must(j.Engine.ReadParams(t.Context(), 0, params))
	a.params, a.codes = a.buffer(kernels.Float32, len(params), params), a.buffer(kernels.Uint16, len(codes), codes)
	a.values, a.ll = a.buffer(kernels.Float32, len(values), values), a.buffer(kernels.Float64, a.cap, make([]float64, a.cap))
	return a
}

func (a *asked) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// functionUnits is the number of units of all functions.
func (a *asked) functionUnits() (n int) {
	p := a.Result.Program
	for _, f := range p.Functions() {
		n += int(p.Vectors[p.Inputs[f].Vector].Units)
	}
	return n
}

// buffer returns a buffer with n numbers in it.
func (a *asked) buffer(kind kernels.DType, n int, data any) kernels.Buffer {
	a.t.Helper()
	b, err := a.dev.Alloc(a.t.Context(), kind, n)
	a.must(err)
	if n > 0 {
		a.must(a.dev.Write(a.t.Context(), b, 0, data))
	}
	return b
}

// posteriors evaluates the rows and returns the posteriors of columns, [rows, elements],
// and how many values were recomputed.
func (a *asked) posteriors(of []int32, length int) ([]float32, int64) {
	a.t.Helper()
	ctx := a.t.Context()
	forward := &tensor.ForwardArgs{Params: a.params, Codes: a.codes, Values: a.values, LL: a.ll}
	a.must(a.Forward(ctx, a.rows.Rows, forward))
	out := make([]float32, a.rows.Rows*length)
	for i := range out {
		out[i] = -7
	}
	b := a.buffer(kernels.Float32, len(out), out)
	a.must(a.Posteriors(ctx, a.rows.Rows, &tensor.PosteriorsArgs{Params: a.params, Codes: a.codes, Values: a.values, Of: of, Out: b}))
	a.must(a.dev.Read(ctx, out, b, 0))
	a.must(a.dev.Sync(ctx)) // there may be nothing to read
	return out, forward.Recomputed
}

// TestPosteriorQueries compares posteriors with float64: of every leaf, by the kernels on wide
// tiles and by the others, of rows in log space, and of columns chosen anew with each call.
func TestPosteriorQueries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		block      int
		processors int
		log        bool
	}{
		{"leaves", 1, 0, false}, {"leaves", 8, 0, false}, {"halves", 8, 1, false}, {"halves", 32, 1, false},
		{"elements", 32, 1, false}, {"harsh far", 8, 0, true}, {"top[2]", 1, 0, false},
	} {
		t.Run(fmt.Sprintf("%s/blocks=%d", tc.name, tc.block), func(t *testing.T) {
			if testing.Short() && (tc.block == 32 || tc.name == "leaves") {
				t.Skip("many units take the emulator seconds; run without -short")
			}
			dev := emulated(emulator.Options{Seed: 3, Races: true, Multiprocessors: tc.processors})(t)
			defer dev.Close()
			list := subjects(tc.block)
			if tc.processors == 1 && tc.block == 32 {
				list = wideSubjects()
			}
			for _, s := range list {
				if s.name != tc.name {
					continue
				}
				a := ask(t, s.build(t, dev, tc.block))
				columns := len(a.Result.Program.Columns)
				all, last := make([]int32, columns), []int32{int32(columns - 1)}
				for i := range all {
					all[i] = int32(columns - 1 - i)
				}
				calls := [][]int32{all}
				if tc.block < 32 { // blocks of 32 take the emulator seconds
					calls = append(calls, last, last, nil)
				}
				for _, of := range calls {
					if recomputed := a.compare(t, of); (recomputed > 0) != tc.log {
						t.Errorf("%d values recomputed in log space; want some: %v", recomputed, tc.log)
					}
				}
				return
			}
			t.Fatal("no such circuit")
		})
	}
}

// compare compares the posteriors of columns with the reference's.
func (a *asked) compare(t *testing.T, of []int32) (recomputed int64) {
	t.Helper()
	p := a.Result.Program
	offsets, err := p.PosteriorOffsets(of)
	a.must(err)
	length := offsets[len(of)]
	out, recomputed := a.posteriors(of, length)
	ev, err := reference.New(a.Graph, a.Params)
	a.must(err)
	for r, row := range reference.Rows(a.rows) {
		want, err := ev.Conditionals(row)
		for i, c := range of {
			got, sum := out[r*length+offsets[i]:r*length+offsets[i+1]], 0.0
			for k, x := range got {
				if sum += float64(x); err != nil {
					if x == x {
						t.Fatalf("row %d, column %d: %v; want NaN: %v", r, c, x, err)
					}
				} else if w := want[p.Columns[c].Var]; w != nil && !(math.Abs(float64(x)-w[k]) <= 1e-5) {
					t.Fatalf("row %d, column %d, code %d: %v, want %v", r, c, k, x, w[k])
				}
			}
			if err == nil && !(math.Abs(sum-1) <= 1e-6) {
				t.Fatalf("row %d, column %d: %v adds up to %v", r, c, got, sum)
			}
		}
	}
	return recomputed
}

// TestQueriesRefused wants errors for programs that were not loaded for queries, columns that
// do not exist and buffers that are too short.
func TestQueriesRefused(t *testing.T) {
	t.Parallel()
	dev := emulated(emulator.Options{})(t)
	defer dev.Close()
	s := subjects(8)[7]
	a := ask(t, s.build(t, dev, 8))
	ctx, p := t.Context(), a.Result.Program
	out := a.buffer(kernels.Float32, a.rows.Rows*3-1, make([]float32, a.rows.Rows*3-1))
	for name, of := range map[string][]int32{"columns": {int32(len(p.Columns))}, "short": {0}} { // of three codes
		args := tensor.PosteriorsArgs{Params: a.params, Codes: a.codes, Values: a.values, Of: of, Out: out}
		if err := a.Posteriors(ctx, a.rows.Rows, &args); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%s: %v, want ErrDevice", name, err)
		}
	}
	n := a.rows.Rows
	fits := tensor.MaximiseArgs{
		Params: a.params, Codes: a.codes, Values: a.values, Modes: make([]float64, a.functionUnits()),
		Log: make([]float64, n), Bound: make([]float64, n), Units: make([]int32, n*len(p.Functions())),
	}
	a.must(a.Maximise(ctx, n, &fits))
	for name, shorten := range map[string]func(args *tensor.MaximiseArgs){
		"Modes": func(args *tensor.MaximiseArgs) { args.Modes = args.Modes[1:] },
		"Log":   func(args *tensor.MaximiseArgs) { args.Log = args.Log[1:] },
		"Bound": func(args *tensor.MaximiseArgs) { args.Bound = args.Bound[:0] },
		"Units": func(args *tensor.MaximiseArgs) { args.Units = args.Units[1:] },
	} {
		args := fits
		shorten(&args)
		if err := a.Maximise(ctx, n, &args); !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), name) {
			t.Errorf("short %s: %v, want ErrDevice with its name", name, err)
		}
	}
	for _, m := range []layers.Module{{Program: p, Rows: 3}, {Program: p, Rows: 3, Train: true}} {
		plain, err := kernels.LoadAs[tensor.Program](ctx, dev, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := plain.Posteriors(ctx, 3, &tensor.PosteriorsArgs{}); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("loaded for training %v: %v, want ErrDevice", m.Train, err)
		}
		if err := plain.Maximise(ctx, 3, &tensor.MaximiseArgs{}); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("loaded for training %v: %v, want ErrDevice", m.Train, err)
		}
	}
}

// TestFirstOfEqualQueries wants the first of many equal operands of a sum, of which each lane of a
// warp looks at several: each unit has its own code for a mode.
func TestFirstOfEqualQueries(t *testing.T) {
	t.Parallel()
	dev := emulated(emulator.Options{Seed: 4})(t)
	defer dev.Close()
	const units = 100
	for _, block := range []int{1, 8, 32} {
		for _, first := range []int{0, 1, 31, 41, 98} {
			if testing.Short() && (block != 8 || first == 1 || first == 98) {
				continue
			}
			s := &sketch{units: units}
			leaf := s.input(circuit.Categorical{Categories: units})
			g := s.root(leaf)
			params := make(reference.Params, len(g.Nodes))
			params[leaf] = make([]float64, units*units)
			for u := range units {
				for c := range units {
					params[leaf][u*units+c] = 0.5 / (units - 1)
				}
				params[leaf][u*units+u] = 0.5
			}
			weights := make([]float64, units)
			for u := first; u < units; u++ {
				weights[u] = 1 / float64(units-first)
			}
			params[g.Root] = weights
			co := compile.DefaultOptions()
			co.BlockSize = block
			m := kerneltest.Build(t, dev, g, params, co, engine.Options{Rows: 1})
			j := &job{Model: m, dev: dev, batch: reference.Batch(reference.Schema(g), slices.Repeat([][]float64{{math.NaN()}}, 3))}
			a := ask(t, j)
			args := tensor.MaximiseArgs{Params: a.params, Codes: a.codes, Values: a.values, Log: make([]float64, 3)}
			a.must(a.Maximise(t.Context(), 3, &args))
			codes := make([]uint16, 3)
			a.must(dev.Read(t.Context(), codes, a.codes, 0))
			if want := uint16(first); !slices.Equal(codes, []uint16{want, want, want}) {
				t.Errorf("blocks of %d, equal from %d on: codes %v", block, first, codes)
			}
			if want := math.Log(0.5 / float64(units-first)); !(math.Abs(args.Log[2]-want) <= 1e-6) {
				t.Errorf("blocks of %d, equal from %d on: value %v, want %v", block, first, args.Log[2], want)
			}
		}
	}
}
