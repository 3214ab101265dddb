package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// BenchmarkQueries times queries of an HCLT-64 over a 28×28 grid of 256 categories, without
// evidence and given the upper half: the forward pass, with it the posteriors of all
// columns and of one, and completions by maxima.
func BenchmarkQueries(b *testing.B) {
	for _, threads := range []int{1, 2} {
		q := newQueryBench(b, cpu.Options{Threads: threads}, 64, 512)
		for _, given := range []int{0, 28 * 14} {
			for _, call := range []struct {
				name string
				do   func() error
			}{{"loglik", q.forward}, {"posteriors", q.posteriors}, {"one", q.one}, {"maximise", q.maximise}} {
				b.Run(fmt.Sprintf("threads=%d/given=%d/%s", threads, given, call.name), func(b *testing.B) {
					if err := errors.Join(q.observe(given), call.do()); err != nil {
						b.Fatal(err)
					}
					for b.Loop() {
						if err := call.do(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(q.rows), "us/row")
				})
			}
		}
	}
}

// queryBench is a program with rows.
type queryBench struct {
	dev   *cpu.Device
	own   tensor.Program
	rows  int
	args  tensor.ForwardArgs
	codes []uint16
	all   tensor.PosteriorsArgs
}

func newQueryBench(b testing.TB, o cpu.Options, latents, rows int) *queryBench {
	b.Helper()
	ctx := context.Background()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	tree, err := structures.GridTree(28, 28, 1)
	must(err)
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: latents, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 256} }})
	must(err)
	res, err := compile.Compile(g, compile.DefaultOptions())
	must(err)
	q := &queryBench{rows: rows}
	q.dev, err = cputensor.Open(o)
	must(err)
	q.own, err = kernels.LoadAs[tensor.Program](ctx, q.dev, layers.Module{Program: res.Program, Rows: rows, Queries: true})
	must(err)
	params := make([]float32, res.Program.NumParams)
	for i := range res.Map.Len() {
		off, n := res.Map.Region(i)
		id := res.Map.Node(i)
		canonical := make([]float32, g.NumParams(id))
		must(circuit.InitParams(g, id, 1, nil, canonical))
		must(res.Map.Pack(i, canonical, params[off:off+int64(n)]))
	}
	q.codes = make([]uint16, len(res.Program.Columns)*rows)
	of := make([]int32, len(res.Program.Columns))
	for c := range of {
		of[c] = int32(c)
	}
	offsets, err := res.Program.PosteriorOffsets(of)
	must(err)
	put := func(kind kernels.DType, n int, s any) kernels.Buffer {
		buf, err := q.dev.Alloc(ctx, kind, n)
		must(err)
		if s != nil {
			must(q.dev.Write(ctx, buf, 0, s))
		}
		return buf
	}
	q.args = tensor.ForwardArgs{
		Params: put(kernels.Float32, len(params), params), Codes: put(kernels.Uint16, len(q.codes), q.codes), LL: put(kernels.Float64, rows, nil),
	}
	q.all = tensor.PosteriorsArgs{Params: q.args.Params, Codes: q.args.Codes, Of: of, Out: put(kernels.Float32, rows*offsets[len(of)], nil)}
	return q
}

// observe gives the rows random cells in the first columns.
func (q *queryBench) observe(given int) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range q.codes {
		if q.codes[i] = 256; i < given*q.rows {
			q.codes[i] = uint16(rng.IntN(256))
		}
	}
	return q.dev.Write(context.Background(), q.args.Codes, 0, q.codes)
}

// give gives the rows the cells of another's rows, from its row first on.
func (q *queryBench) give(from *queryBench, first int) error {
	for c := range len(q.codes) / q.rows {
		copy(q.codes[c*q.rows:][:q.rows], from.codes[c*from.rows+first:])
	}
	return q.dev.Write(context.Background(), q.args.Codes, 0, q.codes)
}

func (q *queryBench) forward() error { return q.own.Forward(context.Background(), q.rows, &q.args) }

func (q *queryBench) posteriors() error {
	if err := q.forward(); err != nil {
		return err
	}
	return q.own.Posteriors(context.Background(), q.rows, &q.all)
}

// one is posteriors of one column.
func (q *queryBench) one() error {
	if err := q.forward(); err != nil {
		return err
	}
	a := q.all
	a.Of = a.Of[:1]
	return q.own.Posteriors(context.Background(), q.rows, &a)
}

func (q *queryBench) maximise() error {
	if err := q.dev.Write(context.Background(), q.args.Codes, 0, q.codes); err != nil {
		return err
	}
	return q.own.Maximise(context.Background(), q.rows, &tensor.MaximiseArgs{Params: q.args.Params, Codes: q.args.Codes, Log: make([]float64, q.rows)})
}

// TestFarPosteriors compares the posteriors of a launch whose output is more than caches hold,
// and is written past them, with those of launches that are not, bit by bit.
func TestFarPosteriors(t *testing.T) {
	for _, set := range sets() {
		t.Run(set.Name, func(t *testing.T) {
			far := newQueryBench(t, cpu.Options{Threads: 2, Set: set}, 3, 43) // of 42 rows on, 803 KB each
			near := newQueryBench(t, cpu.Options{Threads: 1, Set: set}, 3, 8)
			if err := errors.Join(far.observe(100), far.posteriors()); err != nil {
				t.Fatal(err)
			}
			var want []float32
			got := far.answers(t)
			for first := 0; first < far.rows; first += near.rows {
				first = min(first, far.rows-near.rows)
				if err := errors.Join(near.give(far, first), near.posteriors()); err != nil {
					t.Fatal(err)
				}
				want = near.answers(t)
				for i, x := range got[first*784*256:][:len(want)] {
					if math.Float32bits(x) != math.Float32bits(want[i]) {
						t.Fatalf("rows from %d on: number %d is %v, want %v", first, i, x, want[i])
					}
				}
			}
			sum := 0.0
			for _, x := range want[len(want)-256:] {
				sum += float64(x)
			}
			if !(math.Abs(sum-1) < 1e-5) {
				t.Errorf("the last distribution has the mass %v", sum)
			}
		})
	}
}

// answers returns what posteriors wrote.
func (q *queryBench) answers(t *testing.T) []float32 {
	t.Helper()
	if err := q.dev.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, q.rows*784*256)
	if err := q.dev.Read(t.Context(), out, q.all.Out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}
