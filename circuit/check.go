package circuit

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"
)

// Limits of a graph. They keep every size and offset of a valid graph far from
// overflow, so that readers may trust sizes after Validate.
const (
	MaxVars  = 1 << 24 // variables
	MaxUnits = 1 << 24 // units of one node

	maxColumns    int64 = 1 << 31 // units of all children of one sum
	maxNodeParams int64 = 1 << 40 // parameters of one node
)

// Validate returns an error that matches ErrGraph if the graph breaks a rule:
// children come before parents, shapes and settings agree, the root has one
// unit, all leaves of a variable have the same domain, children of a sum have
// equal scopes (smooth), children of a product have disjoint scopes
// (decomposable). Time is linear in edges for a valid graph; to name what is
// wrong takes that times the words of a scope.
func Validate(g *Graph) error {
	if err := checkWiring(g); err != nil {
		return err
	}
	sketch, unsmooth, child := sketchScopes(g)
	if sketch != nil {
		return nil
	}
	s, faults, err := computeScopes(g, true, maxScopeWords)
	switch {
	case err != nil && unsmooth != None:
		return fault(g, unsmooth, "is not smooth: child %d has other variables than child %d; give all children of a sum the same scope",
			child, g.Nodes[unsmooth].Children[0])
	case err != nil:
		return fmt.Errorf("%w, too much to say which product is not decomposable; drop what the root cannot reach, and give the children of each product disjoint scopes", err)
	}
	if id := faults.unsmooth; id != None {
		first := g.Nodes[id].Children[0]
		return fault(g, id, "is not smooth: child %d has variables %v and child %d has %v; give all children of a sum the same scope",
			first, s.partial(first), faults.child, s.partial(faults.child))
	}
	if id := faults.undecomposable; id != None {
		return fault(g, id, "is not decomposable: child %d has variables %v and shares one with an earlier child; give the children of a product disjoint scopes",
			faults.child, s.partial(faults.child))
	}
	return nil
}

// partial is Of for error messages.
func (s *Scopes) partial(id NodeID) string { return s.Of(id).String() }

// fault returns an ErrGraph about one node.
func fault(g *Graph, id NodeID, format string, args ...any) error {
	return fmt.Errorf("%w: %v node %d %s", ErrGraph, g.Nodes[id].Kind, id, fmt.Sprintf(format, args...))
}

// checkID reports an id that is of none of the nodes.
func (g *Graph) checkID(id NodeID) error {
	if id < 0 || int(id) >= len(g.Nodes) {
		return fmt.Errorf("%w: no node %d; there are %d", ErrGraph, id, len(g.Nodes))
	}
	return nil
}

// checkWiring checks all but the scopes, in the order of nodes, and returns the first fault
// with the node's number. It runs before the checks of scopes, which may then index children,
// leaves and edge blocks without looking.
func checkWiring(g *Graph) error {
	switch {
	case g == nil || len(g.Nodes) == 0:
		return fmt.Errorf("%w: no nodes; a circuit has at least one input", ErrGraph)
	case g.NumVars < 1 || g.NumVars > MaxVars:
		return fmt.Errorf("%w: %d variables; want 1 to %d", ErrGraph, g.NumVars, MaxVars)
	case int64(len(g.Nodes)) >= 1<<31:
		return fmt.Errorf("%w: %d nodes; want fewer than 2^31, join units into blocks", ErrGraph, len(g.Nodes))
	case g.Root < 0 || int(g.Root) >= len(g.Nodes):
		return fmt.Errorf("%w: root is %d of %d nodes; name one of them", ErrGraph, g.Root, len(g.Nodes))
	case g.Nodes[g.Root].Units != 1:
		return fault(g, g.Root, "is the root with %d units; a root has one", g.Nodes[g.Root].Units)
	}
	domains := domainCheck{of: make([]leafDomain, min(g.NumVars, len(g.Nodes)))}
	for i := range g.Nodes {
		n, id := &g.Nodes[i], NodeID(i)
		if n.Units < 1 || n.Units > MaxUnits {
			return fault(g, id, "has %d units; want 1 to %d", n.Units, MaxUnits)
		}
		if n.Kind != Sum && n.Edges != nil {
			return fault(g, id, "has edge blocks; only sums have them")
		}
		if n.Kind != Input {
			if err := checkChildren(g, id); err != nil {
				return err
			}
		}
		var err error
		switch n.Kind {
		case Input:
			if err = checkInput(g, id); err == nil {
				err = domains.add(g, id)
			}
		case Product:
			err = checkProduct(g, id)
		case Sum:
			err = checkSum(g, id)
		default:
			err = fault(g, id, "has kind %d; want an input, a product or a sum", n.Kind)
		}
		if err == nil {
			err = checkTie(g, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTie checks that a node which is tied has the shape of the node whose parameters it
// uses: kind, units, leaf, edge blocks and the units of each child. The node itself passed the
// checks of its kind before; an untied one passes at once.
func checkTie(g *Graph, id NodeID) error {
	n := &g.Nodes[id]
	to := n.Tie.Node()
	if to == None {
		return nil
	}
	if to < 0 || to >= id {
		return fault(g, id, "is tied to node %d; tie it to an earlier node or leave Tie out", to)
	}
	t := &g.Nodes[to]
	switch {
	case n.Kind == Product:
		return fault(g, id, "is tied to node %d; products have no parameters, leave Tie out", to)
	case t.Kind != n.Kind:
		return fault(g, id, "is tied to %v node %d; tie it to its own kind", t.Kind, to)
	case t.Tie.Node() != None:
		return fault(g, id, "is tied to node %d, which is tied to %d; tie both to the same node", to, t.Tie.Node())
	case t.Units != n.Units:
		return fault(g, id, "has %d units and is tied to node %d with %d; tie equal shapes", n.Units, to, t.Units)
	case n.Kind == Input && !SameLeaf(n.Leaf, t.Leaf):
		return fault(g, id, "is tied to node %d, which has other leaves; tie equal leaves", to)
	case n.Kind == Sum && !n.Edges.equal(t.Edges):
		return fault(g, id, "is tied to node %d, which has other edge blocks; tie equal shapes", to)
	case n.Kind == Sum && len(n.Children) != len(t.Children):
		return fault(g, id, "has %d children and is tied to node %d with %d; tie equal shapes", len(n.Children), to, len(t.Children))
	}
	for k, c := range n.Children {
		if a, b := g.Nodes[c].Units, g.Nodes[t.Children[k]].Units; a != b {
			return fault(g, id, "has %d units in child %d and is tied to node %d with %d there; tie equal shapes", a, k, to, b)
		}
	}
	return nil
}

func (e *Edges) equal(f *Edges) bool {
	if e == f || e == nil || f == nil {
		return e == f
	}
	return e.Rows == f.Rows && e.Cols == f.Cols && slices.Equal(e.Pairs, f.Pairs) && slices.Equal(e.Mask, f.Mask)
}

func checkChildren(g *Graph, id NodeID) error {
	n := &g.Nodes[id]
	if n.Leaf != nil {
		return fault(g, id, "has a leaf; only inputs have one")
	}
	if len(n.Children) == 0 {
		return fault(g, id, "has no children; give it at least one")
	}
	for k, c := range n.Children {
		if c < 0 || c >= id {
			return fault(g, id, "has node %d as child %d; children come before their parents", c, k)
		}
	}
	return nil
}

func checkInput(g *Graph, id NodeID) error {
	n := &g.Nodes[id]
	switch {
	case len(n.Children) != 0:
		return fault(g, id, "has %d children; inputs have none", len(n.Children))
	case n.Leaf == nil || isNilPointer(n.Leaf):
		return fault(g, id, "has no leaf; say which family it is")
	case n.Var < 0 || n.Var >= g.NumVars:
		return fault(g, id, "reads variable %d of %d; want 0 to %d", n.Var, g.NumVars, g.NumVars-1)
	}
	if err := n.Leaf.CheckSettings(); err != nil {
		return fmt.Errorf("%w: input node %d: %w", ErrGraph, id, err)
	}
	if int64(n.Units)*int64(n.Leaf.NumParams()) > maxNodeParams {
		return fault(g, id, "has %d units of %d parameters; want at most %d parameters", n.Units, n.Leaf.NumParams(), maxNodeParams)
	}
	return nil
}

// isNilPointer reports whether a leaf is a pointer to none: its methods, those of the family itself, panic.
func isNilPointer(l Leaf) bool {
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func checkProduct(g *Graph, id NodeID) error {
	n := &g.Nodes[id]
	for _, c := range n.Children {
		if u := g.Nodes[c].Units; u != n.Units {
			return fault(g, id, "has %d units and child %d has %d; give a product and its children the same number", n.Units, c, u)
		}
	}
	return nil
}

func checkSum(g *Graph, id NodeID) error {
	n := &g.Nodes[id]
	columns := g.Columns(id)
	if int64(columns) > maxColumns {
		return fault(g, id, "is over %d units of children; want at most %d", columns, maxColumns)
	}
	if int64(columns)*int64(n.Units) > maxNodeParams {
		return fault(g, id, "has %d units over %d units of children; want at most %d weights", n.Units, columns, maxNodeParams)
	}
	if n.Edges == nil {
		return nil
	}
	return checkEdges(g, id, columns)
}

// checkEdges checks the edge blocks of a sum whose weights have that many columns: blocks
// divide both sides, lie inside, are sorted and listed once, and every row block has one. The
// mask is checked last, since its length depends on them.
func checkEdges(g *Graph, id NodeID, columns int) error {
	n := &g.Nodes[id]
	e := n.Edges
	if e.Rows < 1 || e.Cols < 1 || n.Units%e.Rows != 0 || columns%e.Cols != 0 {
		return fault(g, id, "has edge blocks of %d × %d in %d × %d weights; blocks divide both sides", e.Rows, e.Cols, n.Units, columns)
	}
	rows, cols := n.Units/e.Rows, columns/e.Cols
	last := [2]int32{0, -1}
	for k, p := range e.Pairs {
		if p[0] < 0 || int(p[0]) >= rows || p[1] < 0 || int(p[1]) >= cols {
			return fault(g, id, "has edge block %d at (%d, %d) of %d × %d blocks; keep it inside", k, p[0], p[1], rows, cols)
		}
		if p[0] < last[0] || p[0] == last[0] && p[1] <= last[1] {
			return fault(g, id, "has edge block %d at (%d, %d) after (%d, %d); sort them and list each once", k, p[0], p[1], last[0], last[1])
		}
		if p[0] > last[0] && (p[0] > last[0]+1 || k == 0) {
			return fault(g, id, "has no edge block in row block %d; every unit has a weight", last[0]+int32(min(k, 1)))
		}
		last = p
	}
	if len(e.Pairs) == 0 || int(last[0]) != rows-1 {
		return fault(g, id, "has no edge block in row block %d; every unit has a weight", rows-1)
	}
	return checkMask(g, id)
}

// checkMask checks the mask of a block-sparse sum, if it has one: as many words as the weights
// take, no bits after the last weight, and at least one weight for every unit, since a unit
// without weights has no distribution.
func checkMask(g *Graph, id NodeID) error {
	e := g.Nodes[id].Edges
	if e.Mask == nil {
		return nil
	}
	weights := len(e.Pairs) * e.Rows * e.Cols
	if want := (weights + 63) / 64; len(e.Mask) != want {
		return fault(g, id, "has a mask of %d words for %d weights; want %d", len(e.Mask), weights, want)
	}
	if tail := uint(weights) & 63; tail != 0 && e.Mask[len(e.Mask)-1]>>tail != 0 {
		return fault(g, id, "has mask bits after its %d weights; clear them", weights)
	}
	seen := make([]bool, g.Nodes[id].Units)
	for k, p := range e.Pairs {
		for r := range e.Rows {
			row := int(p[0])*e.Rows + r
			seen[row] = seen[row] || countBits(e.Mask, (k*e.Rows+r)*e.Cols, e.Cols) > 0
		}
	}
	if row := slices.Index(seen, false); row >= 0 {
		return fault(g, id, "has no weight in unit %d; every unit has one", row)
	}
	return nil
}

// countBits counts the bits of mask from bit `from`, n of them.
func countBits(mask []uint64, from, n int) int {
	count := 0
	for n > 0 {
		shift := uint(from) & 63
		take := min(n, 64-int(shift))
		w := mask[from>>6] >> shift
		if take < 64 {
			w &= 1<<uint(take) - 1
		}
		count += bits.OnesCount64(w)
		from, n = from+take, n-take
	}
	return count
}
