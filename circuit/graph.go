package circuit

// NodeID names a node of one graph: its index in Graph.Nodes, so children have smaller ones
// than their parents.
type NodeID int32

// None is the absence of a node.
const None NodeID = -1

// Kind is what a node computes from its children: Input, Product or Sum.
type Kind uint8

// The three kinds of nodes.
const (
	Input   Kind = iota // a leaf distribution over one variable, Units times
	Product             // element-wise product of equally sized children
	Sum                 // weighted sums over the units of the children
)

// String returns "input", "product" or "sum", and "invalid" for another number.
func (k Kind) String() string {
	switch k {
	case Input:
		return "input"
	case Product:
		return "product"
	case Sum:
		return "sum"
	}
	return "invalid"
}

// Graph is a probabilistic circuit without its parameters: a DAG whose nodes
// are in topological order, children before parents. A Graph is built by
// package structures or format, validated once, and read-only from then on.
type Graph struct {
	NumVars int
	Nodes   []Node
	Root    NodeID // a node of one unit whose scope is the graph's distribution
}

// Node is a block of Units like units that share scope and wiring.
type Node struct {
	Kind  Kind
	Units int

	// Children are the operands of a product or a sum, in order. A product's
	// children have as many units as the product, and disjoint scopes, so that none is
	// listed twice. A sum may list a child twice: each place has weights of its own.
	Children []NodeID

	// Var and Leaf describe an input node; every unit has its own parameters.
	Var  int
	Leaf Leaf

	// Edges lists the edge blocks of a block-sparse sum; nil means dense: every
	// unit is connected to every unit of every child.
	Edges *Edges

	// Tie names the earlier node whose parameters this sum or input shares. That
	// node has the same shape and is not tied itself. The zero Tie is none: the node
	// has parameters of its own.
	Tie Tie
}

// Tie is the sharing of an earlier node's parameters, or none, which is its zero
// value.
type Tie struct {
	after NodeID // the one after the node, so that zero is free to mean no tie
}

// TieTo returns the tie to a node, and no tie for None.
func TieTo(id NodeID) Tie { return Tie{after: id + 1} }

// Node returns the node whose parameters are shared, None without a tie.
func (t Tie) Node() NodeID { return t.after - 1 }

// Edges are the edge blocks of a block-sparse sum. Columns count the units of
// all children, one child after another.
type Edges struct {
	Rows, Cols int        // units of one block; they divide the node's units and the column count
	Pairs      [][2]int32 // row block, column block; ascending, no duplicates
	// Mask has one bit for each weight in canonical order; a 0 bit is a
	// structural zero. nil means that all weights of the listed blocks exist.
	Mask []uint64
}

// Has reports whether weight i of the node's canonical order exists.
func (e *Edges) Has(i int) bool {
	return e.Mask == nil || e.Mask[i>>6]>>(uint(i)&63)&1 == 1
}

// ParamFunc fills dst with the parameters of a node in canonical order. It is
// called for nodes that own parameters, never for tied ones. It is how big
// models move: no caller needs all parameters at once.
type ParamFunc func(id NodeID, dst []float32) error

// ParamFunc64 is ParamFunc in float64: imported weights have more digits than
// float32 holds, and circuit/reference computes with all of them.
type ParamFunc64 func(id NodeID, dst []float64) error

// Columns returns the number of units of all children of a sum.
func (g *Graph) Columns(id NodeID) int {
	n := 0
	for _, c := range g.Nodes[id].Children {
		n += g.Nodes[c].Units
	}
	return n
}

// NumParams returns the length of a node's parameters in canonical order: 0
// for products, the shared length for tied nodes.
func (g *Graph) NumParams(id NodeID) int {
	n := &g.Nodes[id]
	switch n.Kind {
	case Input:
		return n.Units * n.Leaf.NumParams()
	case Sum:
		if n.Edges != nil {
			return len(n.Edges.Pairs) * n.Edges.Rows * n.Edges.Cols
		}
		return n.Units * g.Columns(id)
	}
	return 0
}

// OwnsParams reports whether a node has parameters of its own.
func (g *Graph) OwnsParams(id NodeID) bool {
	n := &g.Nodes[id]
	return n.Kind != Product && g.Owner(id) == id && g.NumParams(id) > 0
}

// Owner returns the node whose parameters a node uses: the one that it is tied
// to, or itself.
func (g *Graph) Owner(id NodeID) NodeID {
	if to := g.Nodes[id].Tie.Node(); to != None {
		return to
	}
	return id
}
