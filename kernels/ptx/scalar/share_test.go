package scalar_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
)

// TestShare lets several threads of a block have a row, each of which adds its number, and refuses what there cannot be.
func TestShare(t *testing.T) {
	b := simt.NewBuilder("share")
	x, sums, thread := b.Input("x", simt.F32, simt.Rows, 3), b.Input("sums", simt.F32, simt.Columns, 2), b.Input("thread", simt.I32, simt.Columns, 1)
	out := b.Output("total", simt.F32, simt.Columns, 2)
	b.Store(out, 0, b.Add(b.Load(sums, 0), b.Convert(simt.F32, b.Load(thread, 0))))
	b.Store(out, 1, b.Add(b.Load(sums, 1), b.Load(x, 1)))
	m, err := b.Module()
	check(t, err)
	const room = 70
	rng := rand.New(rand.NewPCG(1, 2))
	for _, o := range []scalar.Options{{Threads: 32}, {Threads: 64, Staging: scalar.Always}, {Threads: 512, Staging: scalar.Always}, {Threads: 256, Major: 9}} {
		for _, threads := range []int{2, 8, 32, o.Threads} {
			o.Share = &scalar.Share{Thread: 2, Sums: 1, Threads: threads}
			d := open(t, o, uint64(threads))
			p, err := kernels.LoadAs[kernels.CodeProgram](t.Context(), d, m)
			check(t, err)
			for _, rows := range []int{1, 17, 65} { // a graph for 128 rows has blocks without any
				cells, total := make([]float32, 3*room), make([]float32, 2*room)
				for i := range cells {
					cells[i] = float32(rng.IntN(100))
				}
				for i := range total {
					total[i] = float32(i)
				}
				buffers := upload(t, d, []any{cells, total, make([]int32, room)})
				check(t, p.Run(t.Context(), rows, buffers, buffers[1:2]))
				check(t, d.Read(t.Context(), total, buffers[1], 0))
				for i, got := range total {
					want := float32(i)
					switch r := i % room; {
					case r >= rows:
					case i < room:
						want += float32(threads * (threads - 1) / 2)
					default:
						want += float32(threads) * cells[3*r+1]
					}
					if got != want {
						t.Fatalf("%d threads for each of %d rows, blocks of %d: element %d is %v, want %v", threads, rows, o.Threads, i, got, want)
					}
				}
			}
			p.Free()
		}
	}
	for _, o := range []scalar.Options{
		{Threads: 64, Share: &scalar.Share{Thread: 1, Sums: 2, Threads: 2}}, {Threads: 64, Share: &scalar.Share{Thread: 3, Sums: 1, Threads: 2}}, {Threads: 64, Share: &scalar.Share{Thread: 2, Sums: 0, Threads: 2}},
		{Threads: 64, Share: &scalar.Share{Thread: 2, Sums: 1, Threads: 1}}, {Threads: 64, Share: &scalar.Share{Thread: 2, Sums: 1, Threads: 6}}, {Threads: 32, Share: &scalar.Share{Thread: 2, Sums: 1, Threads: 64}}, {Share: &scalar.Share{Thread: 2, Sums: 1, Threads: 2}},
	} {
		if _, err := scalar.Lower(m, o); !errors.Is(err, scalar.ErrOptions) {
			t.Errorf("%+v: %v, want ErrOptions", o.Share, err)
		}
	}
	wide := simt.NewBuilder("wide")
	sums, thread = wide.Input("sums", simt.F64, simt.Columns, 13), wide.Input("thread", simt.I32, simt.Columns, 1)
	wide.Store(wide.Output("total", simt.F64, simt.Columns, 13), 0, wide.Load(sums, 0))
	if m, err = wide.Module(); err != nil {
		t.Fatal(err)
	}
	for threads, want := range map[int]error{512: scalar.ErrOptions, 256: nil} { // 52 KiB and 26 KiB of sums
		if _, err := scalar.Lower(m, scalar.Options{Threads: threads, Share: &scalar.Share{Thread: thread, Sums: sums, Threads: 2}}); !errors.Is(err, want) {
			t.Errorf("13 sums of %d threads: %v, want %v", threads, err, want)
		}
	}
	// Tables in shared memory lie beside the sums.
	table := make([]uint64, 22<<10)
	table[1] = 1
	wide.Store(0, 1, wide.Convert(simt.F64, wide.Gather(wide.Table(simt.U8, table), wide.Load(thread, 0))))
	for more, want := range []error{nil, scalar.ErrOptions} {
		if more > 0 {
			wide.Table(simt.U8, []uint64{1})
		}
		if m, err = wide.Module(); err != nil {
			t.Fatal(err)
		}
		o := scalar.Options{Threads: 256, Shared: true, Share: &scalar.Share{Thread: thread, Sums: sums, Threads: 2}}
		p, err := scalar.Lower(m, o)
		if !errors.Is(err, want) {
			t.Errorf("22 KiB and %d bytes of tables beside 26 KiB of sums: %v, want %v", more, err, want)
		}
		if err == nil {
			check(t, p.Text.Verify())
		}
	}
}

// TestPages divides tables, in shared memory and in global, and clamps an index to the launch's part.
func TestPages(t *testing.T) {
	b := simt.NewBuilder("pages")
	first, at := b.Input("first", simt.I32, simt.Columns, 1), b.Input("at", simt.I32, simt.Columns, 1)
	table := b.Table(simt.I32, []uint64{10, 11, 20, 21, 30, 31})
	other := b.Table(simt.U8, []uint64{1, 2, 3}) // one element to a page
	sum := b.Add(b.Gather(table, b.Load(at, 0)), b.Convert(simt.I32, b.Gather(other, b.Load(at, 0))))
	b.Store(b.Output("out", simt.I32, simt.Columns, 1), 0, sum)
	m, err := b.Module()
	check(t, err)
	for _, o := range []scalar.Options{{}, {Shared: true}} {
		o.Pages = &scalar.Pages{Count: 3, First: first, Step: 5}
		d := open(t, o, 3)
		p, err := kernels.LoadAs[kernels.CodeProgram](t.Context(), d, m)
		check(t, err)
		for page := range int32(3) {
			out := make([]int32, 4)
			buffers := upload(t, d, []any{[]int32{5 * page, 5 * page, 5 * page, 5 * page}, []int32{-3, 0, 1, 9}, out})
			check(t, p.Run(t.Context(), 4, buffers[:2], buffers[2:]))
			check(t, d.Read(t.Context(), out, buffers[2], 0))
			for i, want := range []int32{10, 10, 11, 11} {
				if want += 10*page + page + 1; out[i] != want {
					t.Errorf("page %d, shared %t: element %d is %d, want %d", page, o.Shared, i, out[i], want)
				}
			}
		}
		p.Free()
	}
	for _, o := range []scalar.Pages{{Count: 3, First: first, Step: 0}, {Count: 0, First: first, Step: 1}, {Count: 2, First: first, Step: 1}, {Count: 3, First: 2, Step: 1}, {Count: 3, First: -1, Step: 1}} {
		if _, err := scalar.Lower(m, scalar.Options{Pages: &o}); !errors.Is(err, scalar.ErrOptions) {
			t.Errorf("%+v: %v, want ErrOptions", o, err)
		}
	}
}
