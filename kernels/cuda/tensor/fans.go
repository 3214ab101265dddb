package tensor

import (
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// fans remembers which parameters the numbers of weights on the card describe.
type fans struct {
	counted *cuda.Buffer
	at      int // its writes then
	lo, hi  int // the owners
}

// countWeights counts, for every unit of the owners lo to hi-1, the weights or
// categories that are not 0: a pseudocount is spread over these. A 0 stays 0 and
// nothing else becomes 0, so it is done once for parameters that come from outside.
func (x *executor) countWeights(params kernels.Buffer, lo, hi int) error {
	b, err := x.dev.Own(params)
	if err != nil {
		return err
	}
	if x.fans.counted == b && x.fans.at == b.Writes() && x.fans.lo <= lo && hi <= x.fans.hi {
		return nil
	}
	last := max(b.Used(), x.last) // which may still move the parameters, or read the numbers
	t := x.tables
	count := make([]uint32, x.prog.VisitLen())
	block := t.Size * t.Size
	var weights []float32
	read := func(offset uint64, n int) error {
		weights = append(weights[:0], make([]float32, n)...)
		return x.card.CopyOut(kernels.Memory(weights), b.At()+cuda.Ptr(4*offset), last)
	}
	first, held := 0, 0 // the edge blocks in weights
	firstTile, endTile := x.schedule.Tiles(lo, hi)
	for i := range t.Tiles[firstTile:endTile] {
		tile := &t.Tiles[firstTile+i]
		if at := int(tile.Param); at < first || at >= first+held {
			owner := &x.prog.Sums[t.Members[tile.Member].Sum]
			first, held = int(owner.Param), int(owner.NumBlocks)
			if err := read(uint64(first*block), held*block); err != nil {
				return err
			}
		}
		for k, w := range weights[(int(tile.Param)-first)*block:][:int(tile.Blocks)*block] {
			if w > 0 {
				count[int(tile.Unit)+k/t.Size]++
			}
		}
	}
	for _, o := range x.owners[lo:hi] {
		if o.Input < 0 || t.Inputs[o.Input].Family != tensor.FamilyMass {
			continue
		}
		in := &t.Inputs[o.Input]
		if err := read(in.Table, tableLen(in)); err != nil {
			return err
		}
		for k, w := range weights {
			if w > 0 {
				count[int(in.Unit)+k%int(in.Width)]++
			}
		}
	}
	to := cuda.Span{At: x.fixed[tensor.ArgFans], Bytes: 4 * x.prog.VisitLen()}
	if err := x.card.CopyIn(to, 0, kernels.Memory(count), last); err != nil {
		return err
	}
	x.fans = fans{b, b.Writes(), lo, hi}
	return nil
}

// tableLen is how many numbers a table has without its row for missing cells, which may be
// more than 32 bits count.
func tableLen(in *tensor.Input) int { return int(in.Codes) * int(in.Width) }
