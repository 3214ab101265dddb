package compile

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/layers"
)

// indexBackward writes the tensors that the flows read: for each element block
// its parents and the weights to them.
func indexBackward(s *state) (string, error) {
	p := s.prog
	var entries int
	for l := range s.parts {
		lp := &s.parts[l]
		layer := &p.Layers[l]
		layer.Elements = make([]layers.ElementPartition, len(lp.parents))
		for i, c := range lp.parents {
			layer.Elements[i].MaxParents = c
		}
		for _, i := range lp.sums {
			sum := &p.Sums[i]
			first := p.Vectors[sum.Vector].First
			_, cols := s.degrees(sum, s.blks[i])
			elem := p.Elements[sum.ElemLo].First
			at := 0
			for c, n := range cols {
				g, _ := slices.BinarySearch(lp.parents, n)
				part := &layer.Elements[g]
				part.ElementIDs = append(part.ElementIDs, elem+int32(c))
				for k := at; k < at+n; k++ { // blocks stand column by column
					part.ParentIDs = append(part.ParentIDs, first+s.blks[i][k].row)
					part.ParentParamIDs = append(part.ParentParamIDs, sum.Param+int32(k))
				}
				part.ParentIDs = pad(part.ParentIDs, part.MaxParents-n)
				part.ParentParamIDs = pad(part.ParentParamIDs, part.MaxParents-n)
				at += n
			}
		}
		for _, part := range layer.Elements {
			entries += 2*len(part.ParentIDs) + len(part.ElementIDs)
		}
	}
	return fmt.Sprintf("%d entries", entries), nil
}
