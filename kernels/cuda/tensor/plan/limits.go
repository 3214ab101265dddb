package plan

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// mostRows is the most rows of a launch.
const mostRows = 1 << 20

// indices is how many places an index of 32 bits tells apart. Offsets that can be
// larger have 64 bits in the records (tensor.Sum.Val, for example), and kernels multiply
// rows, codes and edge blocks by their pitches in 64 bits. What is left with 32 bits is
// listed in checkIndices.
const indices = 1 << 32

// checkRows refuses launches of no rows, and of more than mostRows.
func checkRows(rows int) error {
	if rows < 1 || rows > mostRows {
		return fmt.Errorf("%w: cuda: a module for %d rows a launch; want 1..%d", kernels.ErrDevice, rows, mostRows)
	}
	return nil
}

// checkIndices refuses a program for which an index of 32 bits would wrap, so that
// kernels would read and write the places of others.
func (t *Tables) checkIndices() error {
	p := t.Program
	var residues, exps, elements int64
	spread := 0
	for i := range p.Inputs {
		in := &p.Inputs[i]
		residues += p.Residues(int32(i))
		exps = max(exps, in.Exps-in.Table)
		if in.Codes == 0 && t.spread[in.Vector] {
			spread = max(spread, p.Width(in.Vector))
		}
	}
	for _, v := range t.Variables { // of queries
		elements += int64(v.Codes)
		for _, l := range t.Leaves[v.Leaf : v.Leaf+v.Leaves] {
			if v.Codes == 0 {
				elements += int64(l.Units)
			}
		}
	}
	for _, c := range []struct {
		what    string
		n, most int64
		hint    string
	}{
		{"units of nodes, for each part of the largest tables", p.VisitLen() << t.partShift(), indices - 1, "use fewer latents"},
		{"residues of averages", residues, indices, "use fewer latents"},
		{"elements of a row of posteriors", elements, indices - 1, "use fewer latents or categories"},
		{"words of modes", t.modesLen, indices, "use fewer latents"},
		{"numbers from a table to its exponents", exps, indices - 1, "use fewer latents or categories"},
	} {
		if c.n > c.most {
			return fmt.Errorf("%w: cuda: %d %s, kernels index %d; %s, or --device cpu", kernels.ErrDevice, c.n, c.what, c.most, c.hint)
		}
	}
	for _, c := range []struct {
		what       string
		each, most int64 // for each row, and of all rows
	}{
		// Exponents, limits and the units that samples take, [vectors, rows]. Codes and
		// values have fewer columns, each of which an input reads.
		{"vectors", int64(len(p.Vectors)), indices},
		// The exponents that the values of an input have of their own are one span
		// behind them: a distance, for which 0 means that there are none.
		{"units of a continuous leaf", int64(spread), indices - align},
	} {
		if c.each*int64(t.Rows) > c.most {
			return fmt.Errorf("%w: cuda: %d %s × %d rows a launch, kernels index %d; take at most %d rows at a time",
				kernels.ErrDevice, c.each, c.what, t.Rows, c.most, c.most/c.each)
		}
	}
	return nil
}
