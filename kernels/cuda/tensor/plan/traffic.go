package plan

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// products is how many TF32 products there are for one of a sum's.
func (t *Tables) products() float64 {
	if t.Mixed {
		return 1
	}
	return 3
}

// traffic is what one launch multiplies and moves.
func (t *Tables) traffic(w Work, lists []uint32, rows float64, read reads) Cost {
	c := Cost{Launches: 1}
	entry := func(i int) uint32 { return lists[w.List+i] }
	size, tiles := float64(t.Size), math.Ceil(rows/tensor.RowTile)
	for i := range w.Blocks {
		switch w.Kernel {
		case tensor.KernelForward:
			g := &t.Groups[entry(i)]
			outputs, columns := float64(g.Blocks)*size, float64(g.Steps)*size
			c.product(t, outputs*columns, rows)
			c.through(t, columns, outputs, tensor.RowTile, rows)
			weights, reads := 4*outputs*columns, t.operandBytes(&t.Sums[g.Sum], rows)
			c.Bytes += weights + 4*outputs*rows
			c.Cache += weights*tiles + 2*reads // once for the exponents, once for the product
			if entry(i) == t.Sums[g.Sum].Group {
				c.Bytes += reads
			}
		case tensor.KernelForwardResident:
			first, n := entry(2*i), entry(2*i+1)
			s := &t.Sums[t.Groups[first].Sum]
			outputs, columns := 0.0, float64(s.Cols)
			for _, g := range t.Groups[first : first+n] {
				outputs += float64(g.Blocks) * size
			}
			c.product(t, outputs*columns, rows)
			c.through(t, columns, outputs, tensor.RowTile, rows)
			c.Shared += 4 * 2 * columns * rows // to scale operands
			weights, reads := 4*outputs*columns, t.operandBytes(s, rows)
			c.Bytes += weights + 4*outputs*rows
			c.Cache += weights*tiles + reads
			if kept := t.keptBytes(s, rows); first == s.Group {
				c.Bytes, c.Cache, c.again = c.Bytes+reads+kept, c.Cache+kept, c.again+kept
			}
		case tensor.KernelFit:
			sum := &t.Sums[entry(2*i)]
			reads, operands := t.operandBytes(sum, rows), 4*float64(sum.Cols)*rows
			written := operands + t.keptBytes(sum, rows)
			c.Bytes, c.again = c.Bytes+reads+written, c.again+written
			c.Cache += 2*reads + written
		case tensor.KernelForwardWide:
			g := &t.Groups[entry(2*i)]
			outputs, columns := float64(g.Blocks)*size, float64(g.Steps)*size
			tiles := math.Ceil(rows / tensor.WideRows)
			c.product(t, outputs*columns, rows)
			c.fill(t, columns, outputs, rows)
			c.through(t, columns, outputs, tensor.WideRows, rows)
			weights := 4 * outputs * columns
			c.Bytes += weights + 4*outputs*rows
			c.Cache += weights*tiles + 4*columns*rows
		case tensor.KernelStored:
			s := &t.Sums[entry(i)]
			reads := t.operandBytes(s, rows)
			c.Bytes += reads + 4*float64(s.Width)*rows
			c.Cache += 2 * reads
		case tensor.KernelBackward:
			t.backwardCost(&c, entry(i), tensor.RowTile, rows, read)
		case tensor.KernelBackwardWide:
			t.backwardCost(&c, entry(i), tensor.WideRows, rows, read)
		case tensor.KernelGather:
			s := &t.Sums[entry(i)]
			b := 4 * float64(s.Width) * rows * (2 + float64(s.Users))
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		case tensor.KernelMove, tensor.KernelMoveWide:
			if len(t.Patches) == 0 {
				t.tileCost(&c, &t.Tiles[entry(i)], rows, read)
				continue
			}
			edge := tensor.NarrowPatch
			if w.Kernel == tensor.KernelMoveWide {
				edge = tensor.WidePatch
			}
			t.patchCost(&c, &t.Patches[entry(i)], edge, rows, read)
		case tensor.KernelNormalise:
			g := &t.Groups[entry(i)]
			b := 8 * float64(g.Blocks*g.Steps) * size * size
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		case tensor.KernelNorms:
			o := &t.Owners[entry(2*i)]
			for _, member := range t.OwnerSums[o.Member : o.Member+o.Members] {
				b := 4 * 32 * rows * float64(min(2, t.Sums[member].Users))
				c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
			}
		case tensor.KernelLeafGather, tensor.KernelLeafMove:
			t.leafCost(&c, w.Kernel, entry(2*i), entry(2*i+1), rows)
		}
	}
	return c
}

// product adds the multiplications of weights weights with rows rows.
func (c *Cost) product(t *Tables, weights, rows float64) {
	c.Flop += 2 * weights * rows
	c.Work += 2 * t.products() * weights * rows
}

// operandBytes is what the factors of a sum take.
func (t *Tables) operandBytes(s *tensor.Sum, rows float64) (b float64) {
	for e := s.Element; e < s.Element+s.Elements; e++ {
		b += t.elementBytes(e, rows)
	}
	return b
}

func (t *Tables) elementBytes(id uint32, rows float64) float64 {
	e := &t.Elements[id]
	return 4 * float64(e.Width) * rows * float64(e.Count)
}

// productBytes is what an element's products take to read: its factors, unless the
// forward pass has kept them.
func (t *Tables) productBytes(id uint32, rows float64) float64 {
	if e := &t.Elements[id]; e.Formed != tensor.NotKept {
		return 4 * float64(e.Width) * rows
	}
	return t.elementBytes(id, rows)
}

// keptBytes is what the forward pass keeps of a sum's products.
func (t *Tables) keptBytes(s *tensor.Sum, rows float64) (b float64) {
	for _, e := range t.Elements[s.Element : s.Element+s.Elements] {
		if e.Formed != tensor.NotKept {
			b += 4 * float64(e.Width) * rows
		}
	}
	return b
}

// downBytes is what the flows into an element's factors take.
func (t *Tables) downBytes(id uint32, rows float64) (b float64) {
	e := &t.Elements[id]
	if e.Kept != tensor.NotKept {
		b++
	}
	for _, f := range t.Factors[e.Factor : e.Factor+e.Count] {
		if f.Down == tensor.DownRatio {
			b++
		}
	}
	return b * 4 * float64(e.Width) * rows
}
