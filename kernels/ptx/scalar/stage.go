package scalar

import (
	"fmt"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/simt"
)

// stride is the distance of rows of an input in shared memory: an odd number of words as large as
// its elements, at least 4 bytes, so that the lanes of a warp that read one column find it in
// different banks.
func stride(q *simt.Param) int {
	word := max(4, q.Type.Bits()/8)
	words := (q.Width*q.Type.Bits()/8 + word - 1) / word
	return (words | 1) * word
}

// pays says whether staging the rows of an input takes less than reading them where they are, in
// turns of the first-level cache for a warp: a read of a column takes one for each line of 128 bytes
// on which its 32 rows lie; staging copies rows one after the other, 32 columns at a time in two
// turns, and then reads a column in one.
func pays(q *simt.Param, loads int) bool {
	bytes := q.Width * q.Type.Bits() / 8
	lines := min(32, (32*bytes+127)/128)
	return 32*2*((q.Width+31)/32)+loads < lines*loads
}

// wants says which inputs would be staged if there were room, of those that a part loads from so
// many times.
func (g *generator) wants(loads []int) []bool {
	want := make([]bool, len(loads))
	for k := range loads {
		q := &g.m.Inputs[k]
		want[k] = loads[k] > 0 && q.Layout == simt.Rows && q.Width > 1 &&
			(g.o.Staging == Always || g.o.Staging == Auto && pays(q, loads[k]))
	}
	return want
}

// staged says which inputs a kernel stages, in order, as long as there is room.
func (g *generator) staged(loads []int, threads int) []bool {
	want, room := g.wants(loads), mostShared-g.o.partials(g.m)
	if g.o.Shared {
		room -= g.tableBytes
	}
	for k := range want {
		if bytes := stride(&g.m.Inputs[k]) * g.rowsOf(threads); want[k] && bytes <= room {
			room -= bytes
		} else {
			want[k] = false
		}
	}
	return want
}

// block is the number of threads of a block: what the options say, else 128, or the most below with
// which all inputs are staged that should be. With 128 threads a thread may have all 255 registers
// while two blocks fit on a multiprocessor.
func (g *generator) block() int {
	const usual = 128
	if g.o.Threads != 0 {
		return g.o.Threads
	}
	for threads := usual; threads >= 32; threads /= 2 {
		all := true
		for _, p := range g.cuts.parts {
			_, params := g.used(p)
			staged := g.staged(params[0], threads)
			for k, want := range g.wants(params[0]) {
				all = all && want == staged[k]
			}
		}
		if all {
			return threads
		}
	}
	return usual
}

// shareTables copies the tables to shared memory, which is there after a barrier, and returns its address. What is behind
// the last whole word of four bytes is copied by one thread.
func (g *generator) shareTables(address ptx.Value, threads int, thread ptx.Value) ptx.Value {
	shared := g.Shared("alltables", 8, g.tableBytes)
	words := g.tableBytes / 4
	g.For(ptx.U32, thread, words, threads, func(i ptx.Value) {
		g.Builder.Store(ptx.B32, g.At(shared, i, 4), 0, g.Builder.Load(ptx.B32, g.At(address, i, 4), 0, "nc"))
	})
	if rest := g.tableBytes % 4; rest > 0 {
		g.Builder.If(g.Eq(thread, 0), func() {
			for i := range rest {
				g.Builder.Store(ptx.U8, shared, 4*words+i, g.Builder.Load(ptx.U8, address, 4*words+i, "nc"))
			}
		})
	}
	return shared
}

// stage copies the rows of a block from an input to shared memory, a row to each warp at a time, and
// returns where the thread's own, row within of the block, will be after a barrier. Rows that the launch does not have are
// left out.
func (g *generator) stage(k int, address ptx.Value, threads int, thread, within, rows ptx.Value) ptx.Value {
	q := &g.m.Inputs[k]
	size, distance, t := q.Type.Bits()/8, stride(q), inMemory(q.Type)
	n := g.rowsOf(threads)
	shared := g.Shared(fmt.Sprintf("rows%d", k), 8, distance*n)
	lane, first := g.And(thread, 31), g.Sub(g.row, within)
	g.For(ptx.U32, g.Shr(thread, 5), n, threads/32, func(i ptx.Value) {
		g.Builder.If(g.Lt(g.Add(first, i), rows), func() {
			from, to := g.At(address, g.Add(first, i), size*q.Width), g.Mad(i, distance, shared)
			g.For(ptx.U32, lane, q.Width, 32, func(c ptx.Value) {
				x := g.Builder.Load(t, g.At(from, c, size), 0)
				if q.Type == simt.U16 {
					x = g.Cvt(ptx.U16, x)
				}
				g.Builder.Store(t, g.At(to, c, size), 0, x)
			})
		})
	})
	return g.Mad(within, distance, shared)
}
