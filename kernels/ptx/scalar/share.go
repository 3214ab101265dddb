package scalar

import (
	"math/bits"

	"github.com/pce-engine/pce/kernels/ptx"
)

// rowsOf is how many rows a block of some threads has.
func (g *generator) rowsOf(threads int) int {
	if s := g.o.Share; s != nil {
		return threads / s.Threads
	}
	return threads
}

// team makes what a thread of a row that has several needs, and returns the thread's row of those of the block, which was within.
// Threads with the same number for their rows are neighbours. A block without rows ends; in one with some, threads without a row
// compute the last one again, as all have to meet at barriers.
func (g *generator) team(rows ptx.Value, threads int, thread, within ptx.Value) ptx.Value {
	first := g.Sub(g.local, within)
	g.ReturnIf(g.Ge(first, rows))
	g.row = g.Builder.Min(g.local, g.Sub(rows, 1))
	g.member = g.Shr(thread, bits.Len(uint(g.rowsOf(threads)))-1).As(ptx.S32)
	q := &g.m.Outputs[0]
	g.partial = g.At(g.Shared("partials", 8, g.o.partials(g.m)), thread, q.Type.Bits()/8)
	return g.Sub(g.row, first)
}

// keepPartial stores what a thread has for a column of the output.
func (g *generator) keepPartial(column, threads int, x any) {
	t := g.m.Outputs[0].Type
	g.Builder.Store(typeOf(t), g.partial, column*threads*t.Bits()/8, x)
}

// addTeam adds the sums of the threads of each row, a half to the other, and the last one to the row's own.
func (g *generator) addTeam(rows ptx.Value, threads int) {
	q, n := &g.m.Outputs[0], g.rowsOf(threads)
	t, size := typeOf(q.Type), q.Type.Bits()/8
	for half := g.o.Share.Threads / 2; half > 0; half /= 2 {
		g.Sync()
		g.Builder.If(g.Lt(g.member, half), func() {
			for k := range q.Width {
				at := k * threads * size
				sum := g.Builder.Add(g.Builder.Load(t, g.partial, at), g.Builder.Load(t, g.partial, at+half*n*size))
				g.Builder.Store(t, g.partial, at, sum)
			}
		})
	}
	// A thread of the first row of threads wrote the last sum itself, so it waits for none.
	first := g.And(g.Eq(g.member, 0), g.Lt(g.local, rows))
	g.Builder.If(first, func() {
		for k := range q.Width {
			own := g.read(q.Type, g.columns[0][g.o.Share.Sums], &g.m.Inputs[g.o.Share.Sums], k)
			sum := g.Builder.Add(own, g.Builder.Load(t, g.partial, k*threads*size))
			at, offset := g.element(g.columns[1][0], q, k)
			g.Builder.Store(t, at, offset, sum)
		}
	})
}
