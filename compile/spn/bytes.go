package spn

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// checkBytes reports whether every variable's cells fit bytes.
func (c *code) checkBytes() error {
	for i := range c.ops {
		o := &c.ops[i]
		switch {
		case o.kind != circuit.Input:
		case o.gaussian:
			return fmt.Errorf("%w: variable %d is continuous, and a byte has no fractions; compile for columns of float32", ErrOptions, o.variable)
		case !o.histograms && len(o.table) > MissingByte:
			return fmt.Errorf("%w: variable %d has %d codes, and bytes have %d; compile for columns of float32", ErrOptions, o.variable, len(o.table), MissingByte)
		case o.histograms && slices.ContainsFunc(o.histogram.Breaks, func(x float64) bool { return x != math.Trunc(x) }):
			return fmt.Errorf("%w: variable %d has histograms with fractions as breaks; compile for columns of float32", ErrOptions, o.variable)
		}
	}
	return nil
}

// fitBytes reports whether modules may read every variable's cells as bytes: codes as they are, and numbers rounded down, those
// below 0 and from Outside on as Outside. No leaf of the circuit tells such numbers apart.
func fitBytes(g *circuit.Graph) bool {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != circuit.Input {
			continue
		}
		if l, ok := n.Leaf.(circuit.RealHistogram); ok {
			apart := func(x float64) bool { return x != math.Trunc(x) || x < 0 || x > Outside }
			if slices.ContainsFunc(l.Breaks, apart) {
				return false
			}
		} else if codes := n.Leaf.Codes(); codes == 0 || codes > MissingByte {
			return false
		}
	}
	return true
}

// direct is the size of tables up to which leaves are looked up by the cell itself: that many elements fit a
// register, so that classes of cells would save nothing.
const direct = 16

// planBytes is plan for cells of bytes. One more than a cell, in eight bits, is its place: 0 that of missing cells.
// There is a power of 2 of places, so that columns share the bound: cells of four are limited at a time.
func (e *emitter) planBytes(col *column) {
	first := &e.c.ops[col.leaves[0]]
	known := len(first.table) - 1 // what is above is alike
	if first.histograms {
		e.histogramBreaks(col)
		known = max(0, int(min(col.breaks[len(col.breaks)-1], MissingByte-1)))
	}
	col.last = 1<<bits.Len(uint(known+1)) - 2
	if !first.histograms || col.last+2 <= direct {
		col.points = append(col.points, math.NaN())
		for x := range col.last + 1 {
			col.points = append(col.points, float64(min(x, known)))
		}
		return
	}
	classes := e.classes(col)
	col.classes = []uint64{uint64(len(col.points))}
	for x := range col.last + 1 {
		n, _ := slices.BinarySearch(col.breaks, float64(x)+0.5)
		col.classes = append(col.classes, classes[n])
	}
	col.points = append(col.points, math.NaN())
}

// openBytes loads a variable of bytes and finds a row's class.
func (e *emitter) openBytes(col *column, variable int) {
	b := e.b
	place := b.Add(b.Convert(simt.I32, b.Load(0, variable)), b.Int(simt.I32, 1))
	place = b.Binary(simt.And, place, b.Int(simt.I32, 255))
	if col.last < MissingByte-1 {
		place = b.Binary(simt.Min, place, b.Int(simt.I32, int64(col.last+1)))
	}
	col.class = place
	if col.classes != nil {
		col.class = b.Gather(b.Table(simt.I32, col.classes), place)
	}
}
