package hir

import (
	"fmt"
	"strconv"
	"strings"
)

// Text returns the ensemble as text: a line for each tree, with its tiles below it, parents before children.
// A node is written as its test, with ? where missing cells pass it too; exits follow an arrow. In front of the trees are the categories of
// each set, and for each node of a shape what follows it where a row passes and where not: another node, or ^ and an exit.
func (e *Ensemble) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%%sums = predictEnsemble %%ensemble, %%rows : %v cells, %v sums, %d features, %d outputs, predicate %s\n", e.Input, e.Sum, e.Features, e.Outputs, e.Predicate())
	fmt.Fprintf(&b, "%%ensemble = ensemble : %d trees, tiles of %d nodes\n", len(e.Trees), e.TileNodes)
	for i, set := range e.Sets {
		fmt.Fprintf(&b, "set %d:", i)
		for k, member := range set {
			if member != 0 {
				fmt.Fprintf(&b, " %d", int(e.SetFrom)+k)
			}
		}
		b.WriteByte('\n')
	}
	for i := range e.Shapes {
		if s := &e.Shapes[i]; len(s.Yes) > 1 {
			fmt.Fprintf(&b, "shape %d: %s\n", i, s.text())
		}
	}
	for i := range e.Trees {
		t := &e.Trees[i]
		fmt.Fprintf(&b, "tree %d of the model, class %d, depth %d to %d\n", t.Model, t.Class, t.Shallowest, t.Depth)
		for k := range t.Tiles {
			fmt.Fprintf(&b, "  %d: %s\n", k, e.tileText(t, &t.Tiles[k]))
		}
	}
	return b.String()
}

// text returns what follows each node.
func (s *Shape) text() string {
	next := func(at int32) string {
		if at < 0 {
			return fmt.Sprintf("^%d", ^at)
		}
		return strconv.Itoa(int(at))
	}
	nodes := make([]string, len(s.Yes))
	for i := range nodes {
		nodes[i] = fmt.Sprintf("%d -> %s %s", i, next(s.Yes[i]), next(s.No[i]))
	}
	return strings.Join(nodes, ", ")
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
