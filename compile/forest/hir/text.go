package hir

import (
	"fmt"
	"strconv"
	"strings"
)

// Text returns the ensemble as text: a line for each tree, with its tiles below it, parents before children.
// A node is written as its test, with ? where missing cells pass it too; exits follow an arrow.
func (e *Ensemble) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%%sums = predictEnsemble %%ensemble, %%rows : %v cells, %v sums, %d features, %d outputs, predicate %s\n", e.Input, e.Sum, e.Features, e.Outputs, e.Predicate())
	fmt.Fprintf(&b, "%%ensemble = ensemble : %d trees, tiles of %d nodes\n", len(e.Trees), e.TileNodes)
	for i := range e.Trees {
		t := &e.Trees[i]
		fmt.Fprintf(&b, "tree %d of the model, class %d, depth %d to %d\n", t.Model, t.Class, t.Shallowest, t.Depth)
		for k := range t.Tiles {
			fmt.Fprintf(&b, "  %d: %s\n", k, e.tileText(t, &t.Tiles[k]))
		}
	}
	return b.String()
}

// Predicate returns "<" or "<=".
func (e *Ensemble) Predicate() string {
	if e.OrEqual {
		return "<="
	}
	return "<"
}

func (e *Ensemble) tileText(t *Tree, tile *Tile) string {
	if tile.Leaf != None {
		var words []string
		for _, x := range t.Leaves[tile.Leaf] {
			words = append(words, strconv.FormatFloat(x, 'g', -1, 64))
		}
		return fmt.Sprintf("leaf %d adds %s", t.IDs[tile.Leaf], strings.Join(words, " "))
	}
	var b strings.Builder
	for i := range tile.Nodes {
		n := &tile.Nodes[i]
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "x%d", n.Feature)
		if n.Set != None {
			fmt.Fprintf(&b, " in set %d", n.Set)
			if n.Truncated {
				b.WriteString(" truncated")
			}
		} else {
			fmt.Fprintf(&b, " %s %s", e.Predicate(), strconv.FormatFloat(n.Threshold, 'g', -1, 64))
		}
		if n.MissingYes {
			b.WriteByte('?')
		}
		if n.ZeroMissing {
			b.WriteString(" zero is missing")
		}
	}
	if len(tile.Nodes) > 1 {
		fmt.Fprintf(&b, ", shape %d", tile.Shape)
	}
	b.WriteString(" ->")
	for _, x := range tile.Exits {
		if x == None {
			b.WriteString(" none")
		} else {
			fmt.Fprintf(&b, " %d", x)
		}
	}
	return b.String()
}
