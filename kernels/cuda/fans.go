package cuda

import (
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// fans remembers which parameters the numbers of weights on the card describe.
type fans struct {
	counted *buffer
	at      int // its writes then
}

// countWeights counts, for every unit of an owner, the weights or categories that
// are not 0: a pseudocount is spread over these. A 0 stays 0 and nothing else
// becomes 0, so it is done once for parameters that come from outside.
func (x *executor) countWeights(params kernels.Buffer) error {
	b, err := x.dev.own(params)
	if err != nil {
		return err
	}
	if x.fans.counted == b && x.fans.at == b.writes {
		return nil
	}
	t := x.tables
	count := make([]uint32, x.prog.VisitLen())
	block := t.Size * t.Size
	var weights []float32
	read := func(offset uint64, n int) error {
		weights = append(weights[:0], make([]float32, n)...)
		return x.dev.copyOut(raw(weights), b.ptr+Ptr(4*offset))
	}
	first, held := 0, 0 // the edge blocks in weights
	for i := range t.Tiles {
		tile := &t.Tiles[i]
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
	for i := range t.Inputs {
		in := &t.Inputs[i]
		if x.prog.Inputs[i].Owner != int32(i) || in.Family != tensor.FamilyMass {
			continue
		}
		if err := read(in.Table, int(in.Codes*in.Width)); err != nil {
			return err
		}
		for k, w := range weights {
			if w > 0 {
				count[int(in.Unit)+k%int(in.Width)]++
			}
		}
	}
	if err := x.dev.copyIn(x.fixed[tensor.ArgFans], raw(count)); err != nil {
		return err
	}
	x.fans.counted, x.fans.at = b, b.writes
	return nil
}
