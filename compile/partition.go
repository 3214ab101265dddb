package compile

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/layers"
)

// maxDistinct bounds the dynamic program: above it, counts are rounded up first,
// each to the largest one near it.
const maxDistinct = 512

// group returns the capacities, ascending, that rows with the given counts are
// padded to: the smallest number of groups, at most maxGroups, whose padded
// total is at most (1+tolerance) times the total, or the best of maxGroups
// groups if none is. A row goes to the smallest capacity that holds it.
//
// Algorithm 2 of Liu et al. as printed differs: its backtrace reads the column
// of the target instead of the group, its loop neither tries one group nor
// stops at the first number that fits, and it returns indices.
func group(counts []int, maxGroups int, tolerance float64) []int {
	if len(counts) == 0 {
		return nil
	}
	sorted := slices.Clone(counts)
	slices.Sort(sorted)
	var total int64
	for _, c := range sorted {
		total += int64(c)
	}
	value, rows := distinct(sorted)
	if len(value) > maxDistinct {
		roundUp(sorted)
		value, rows = distinct(sorted)
	}
	d := len(value)
	below := make([]int64, d+1) // rows in value[:i]
	for i, r := range rows {
		below[i+1] = below[i] + r
	}
	limit := float64(total) * (1 + tolerance)
	cost := make([]int64, d+1) // of value[:i] in n groups
	for i := 1; i <= d; i++ {
		cost[i] = below[i] * int64(value[i-1])
	}
	from := [][]int{nil, make([]int, d+1)} // from[n][i]: where the last of n groups starts
	n := 1
	for ; n < min(maxGroups, d) && float64(cost[d]) > limit; n++ {
		next, start := make([]int64, d+1), make([]int, d+1)
		for i := 1; i <= d; i++ {
			next[i], start[i] = cost[i], from[n][i] // no worse with an empty group
			for j := 1; j < i; j++ {
				if c := cost[j] + (below[i]-below[j])*int64(value[i-1]); c < next[i] {
					next[i], start[i] = c, j
				}
			}
		}
		cost = next
		from = append(from, start)
	}
	var caps []int
	for i := d; i > 0; n-- {
		caps = append(caps, value[i-1])
		i = from[n][i]
	}
	slices.Reverse(caps)
	return caps
}

// roundUp replaces ascending counts so that at most maxDistinct distinct ones
// remain: the range is cut in equal parts, and each count becomes the largest of
// its part.
func roundUp(sorted []int) {
	least := sorted[0]
	part := (sorted[len(sorted)-1] - least + maxDistinct) / maxDistinct
	for i := len(sorted) - 2; i >= 0; i-- {
		if (sorted[i]-least)/part == (sorted[i+1]-least)/part {
			sorted[i] = sorted[i+1]
		}
	}
}

func distinct(sorted []int) (value []int, rows []int64) {
	for _, c := range sorted {
		if n := len(value); n == 0 || value[n-1] != c {
			value, rows = append(value, c), append(rows, 0)
		}
		rows[len(rows)-1]++
	}
	return value, rows
}

// layerParts are the capacities that a layer's rows are padded to.
type layerParts struct {
	depth                      int32
	sums, stored               []int32 // indices of the layer's sums and stored vectors
	children, parents, factors []int
}

// partition groups, for each layer, node blocks by children, element blocks by
// parents and element blocks by factors.
func partition(s *state) (string, error) {
	p := s.prog
	deepest := int32(0)
	for i := range p.Vectors {
		deepest = max(deepest, p.Vectors[i].Depth)
	}
	s.parts = make([]layerParts, deepest)
	for i := range s.parts {
		s.parts[i].depth = int32(i) + 1
	}
	for i := range p.Vectors {
		v := &p.Vectors[i]
		switch v.Kind {
		case layers.SumVector:
			s.parts[v.Depth-1].sums = append(s.parts[v.Depth-1].sums, v.Def)
		case layers.StoredVector:
			s.parts[v.Depth-1].stored = append(s.parts[v.Depth-1].stored, v.Def)
		}
	}
	groups := 0
	sq := int64(p.BlockSize) * int64(p.BlockSize)
	var children, parents, factors []int
	for l := range s.parts {
		lp := &s.parts[l]
		children, parents, factors = children[:0], parents[:0], factors[:0]
		for _, i := range lp.sums {
			sum := &p.Sums[i]
			rows, cols := s.degrees(sum, s.blks[i])
			children = append(children, rows...)
			parents = append(parents, cols...)
			for e := sum.ElemLo; e < sum.ElemHi; e++ {
				for range p.Elements[e].Count {
					factors = append(factors, len(p.ElementFactors(e)))
				}
			}
		}
		for _, i := range lp.stored {
			e := p.Stored[i].Element
			for range p.Elements[e].Count {
				factors = append(factors, len(p.ElementFactors(e)))
			}
		}
		lp.children = group(children, s.opts.MaxGroups, s.opts.PaddingTolerance)
		lp.parents = group(parents, s.opts.MaxGroups, s.opts.PaddingTolerance)
		lp.factors = group(factors, s.opts.MaxGroups, s.opts.PaddingTolerance)
		groups += len(lp.children)
		if len(children) == 0 {
			continue
		}
		r := LayerReport{Depth: int(lp.depth), NodeBlocks: len(children), Groups: lp.children}
		slices.Sort(children)
		for _, c := range children {
			r.Edges += int64(c)
			r.Padded += int64(capacity(lp.children, c))
		}
		if r.ChildCounts, _ = distinct(children); len(r.ChildCounts) > maxDistinct {
			roundUp(children)
			for _, c := range children {
				r.Rounded += int64(c)
			}
			r.Rounded -= r.Edges
		}
		s.rep.Layers = append(s.rep.Layers, r)
		s.rep.PaddedEdges += r.Padded * sq
	}
	return fmt.Sprintf("%d groups in %d layers, %.1f %% of the padded edges are padding", groups, len(s.rep.Layers),
		100*float64(s.rep.PaddedEdges-s.rep.Edges)/float64(max(1, s.rep.PaddedEdges))), nil
}

// degrees counts the edge blocks of each row block and of each column block.
func (s *state) degrees(sum *layers.Sum, blks []edgeBlock) (rows, cols []int) {
	p := s.prog
	rows = make([]int, p.Vectors[sum.Vector].Count)
	last := p.Elements[sum.ElemHi-1]
	cols = make([]int, last.First+last.Count-p.Elements[sum.ElemLo].First)
	for _, b := range blks {
		rows[b.row]++
		cols[b.col]++
	}
	return rows, cols
}

// capacity returns the smallest capacity that holds n.
func capacity(caps []int, n int) int {
	i, _ := slices.BinarySearch(caps, n)
	return caps[i]
}
