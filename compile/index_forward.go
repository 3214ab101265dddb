package compile

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/layers"
)

// indexForward writes the tensors that the forward pass reads: for each element
// block its factors, for each node block its children and weights.
func indexForward(s *state) (string, error) {
	p := s.prog
	var entries int
	for l := range s.parts {
		lp := &s.parts[l]
		layer := layers.Layer{Depth: lp.depth}
		layer.Products = make([]layers.ProductPartition, len(lp.factors))
		for i, c := range lp.factors {
			layer.Products[i].MaxFactors = c
		}
		add := func(e int32) {
			fs := p.ElementFactors(e)
			i, _ := slices.BinarySearch(lp.factors, len(fs))
			part := &layer.Products[i]
			for b := range p.Elements[e].Count {
				part.ElementIDs = append(part.ElementIDs, p.Elements[e].First+b)
				for _, f := range fs {
					part.FactorIDs = append(part.FactorIDs, p.Vectors[f].First+b)
				}
				part.FactorIDs = pad(part.FactorIDs, part.MaxFactors-len(fs))
			}
		}
		layer.Sums = make([]layers.SumPartition, len(lp.children))
		for i, c := range lp.children {
			layer.Sums[i].MaxChildren = c
		}
		for _, i := range lp.sums {
			sum := &p.Sums[i]
			for e := sum.ElemLo; e < sum.ElemHi; e++ {
				add(e)
			}
			v := &p.Vectors[sum.Vector]
			rows, _ := s.degrees(sum, s.blks[i])
			byRow := bucket(s.blks[i], rows, func(b edgeBlock) int32 { return b.row })
			elem := p.Elements[sum.ElemLo].First
			at := 0
			for r, n := range rows {
				g, _ := slices.BinarySearch(lp.children, n)
				part := &layer.Sums[g]
				part.NodeIDs = append(part.NodeIDs, v.First+int32(r))
				for _, k := range byRow[at : at+n] {
					part.ChildIDs = append(part.ChildIDs, elem+s.blks[i][k].col)
					part.ParamIDs = append(part.ParamIDs, sum.Param+k)
				}
				part.ChildIDs = pad(part.ChildIDs, part.MaxChildren-n)
				part.ParamIDs = pad(part.ParamIDs, part.MaxChildren-n)
				at += n
			}
		}
		for _, i := range lp.stored {
			add(p.Stored[i].Element)
		}
		for _, part := range layer.Sums {
			entries += 2*len(part.ChildIDs) + len(part.NodeIDs)
		}
		p.Layers = append(p.Layers, layer)
	}
	return fmt.Sprintf("%d entries", entries), nil
}

// pad appends n zeros: slot 0 is what short rows read.
func pad(ids []int32, n int) []int32 {
	for range n {
		ids = append(ids, 0)
	}
	return ids
}

// bucket returns the indices of blks sorted by key, stable, given the number of
// blocks of each key.
func bucket(blks []edgeBlock, counts []int, key func(edgeBlock) int32) []int32 {
	at := make([]int, len(counts))
	for i := 1; i < len(counts); i++ {
		at[i] = at[i-1] + counts[i-1]
	}
	out := make([]int32, len(blks))
	for k, b := range blks {
		i := key(b)
		out[at[i]] = int32(k)
		at[i]++
	}
	return out
}
