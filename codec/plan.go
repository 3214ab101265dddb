package codec

import (
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// What is computed of a node, for each of its units, while the variables are coded one
// by one:
//
//	value    its probability of the cells that are coded, among those below it; cells to
//	         come count as missing, so a node without a coded cell has the value 1, which
//	         is never stored
//	outside  the derivative of the root's value by its own: the probability of the coded
//	         cells that are not below it, together with this unit
//	partial  of a product, its outside times the values of some of its children: what
//	         other children have as their outside
//
// An input's outside, times the probability of a code, summed over the inputs of a
// variable, is the probability of that code together with all cells coded before.
//
// The value changes when a cell below the node is coded, the outside when another one
// is. A plan computes each of them when it is needed and has changed. It is made once:
// which cells are coded at a step is the same for all rows. In a circuit that splits its
// variables in one way, such as an HCLT, each step then needs the outside of the nodes
// that it enters and the value of those that it leaves, so a row costs one pass up and
// one down.

// opKind is what an op computes.
type opKind uint8

const (
	opOutside opKind = iota // outside of a node from its parents
	opRestart               // partial of a product from its outside
	opInclude               // partial of a product, times the value of a child
	opProduct               // value of a product from those of args
	opSum                   // value of a sum from those of its children
)

// op is one computation, for all units of a node.
type op struct {
	kind     opKind
	node     circuit.NodeID
	from, to int32 // args: opProduct's children, and the child of opInclude
}

// plan says what to compute before each step.
type plan struct {
	vars  []int32          // [steps]: the variable that is coded
	first []int32          // [steps+1]: op that comes first
	ops   []op             //
	args  []circuit.NodeID // of all ops

	inputs  [][]circuit.NodeID // [steps]: inputs of the variable
	parents [][]parent         // [nodes]
	alias   []circuit.NodeID   // [nodes]: the product whose partial is the node's outside, or None
}

// parent is one use of a node.
type parent struct {
	node circuit.NodeID
	col  int32 // of a sum: the first column of the child
}

// planner simulates the coding of a row.
type planner struct {
	*plan
	g     *circuit.Graph
	steps [][]span
	step  int32

	touched []bool  // a cell below the node is coded
	stale   []bool  // and the value lacks one
	outside []int32 // step of the outside, -1 for none

	runs []partialRun // [nodes]: of products
}

// partialRun says what a product's partial is made of.
type partialRun struct {
	outside  int32 // step of the outside that it began with, -1 for none
	included []circuit.NodeID
	pending  []circuit.NodeID // children whose value has changed since
}

// newPlan makes the plan of a valid graph: the variables in an order that keeps computation
// local, and for each step which nodes it computes, of those that the step before has changed.
// A circuit whose steps would take more than maxOps operations in all is refused with an error
// that matches ErrModel.
func newPlan(g *circuit.Graph) (*plan, error) {
	used := circuit.Reachable(g)
	vars := order(g)
	steps, err := stepsOf(g, vars, used)
	if err != nil {
		return nil, err
	}
	n := len(g.Nodes)
	p := &planner{
		plan: &plan{vars: vars, inputs: make([][]circuit.NodeID, len(vars)), parents: make([][]parent, n), alias: make([]circuit.NodeID, n)},
		g:    g, steps: steps,
		touched: make([]bool, n), stale: make([]bool, n),
		outside: make([]int32, n), runs: make([]partialRun, n),
	}
	for i := range g.Nodes {
		p.outside[i], p.runs[i].outside = -1, -1
		if used[i] {
			p.connect(circuit.NodeID(i))
		}
	}
	p.outside[g.Root] = 0
	for i := range g.Nodes {
		p.alias[i] = circuit.None
		if up := p.parents[i]; len(up) == 1 && g.Nodes[up[0].node].Kind == circuit.Product {
			p.alias[i] = up[0].node
		}
	}
	for t := range vars {
		p.step = int32(t)
		p.first = append(p.first, int32(len(p.ops)))
		for _, in := range p.inputs[t] {
			p.needOutside(in)
		}
		if len(p.ops) > maxOps {
			return nil, badModel("the circuit splits its variables in too many ways to code them one by one")
		}
		for _, in := range p.inputs[t] {
			p.touched[in] = true
			p.changed(in)
		}
	}
	p.first = append(p.first, int32(len(p.ops)))
	return p.plan, nil
}

// connect notes the uses of a node's children, and an input's step.
func (p *planner) connect(id circuit.NodeID) {
	n := &p.g.Nodes[id]
	if n.Kind == circuit.Input {
		t := p.steps[id][0].from
		p.inputs[t] = append(p.inputs[t], id)
	}
	col := 0
	for _, c := range n.Children {
		p.parents[c] = append(p.parents[c], parent{id, int32(col)})
		col += p.g.Nodes[c].Units
	}
}

func (p *planner) emit(kind opKind, id circuit.NodeID, args ...circuit.NodeID) {
	from := int32(len(p.args))
	p.args = append(p.args, args...)
	p.ops = append(p.ops, op{kind, id, from, int32(len(p.args))})
}

// needOutside computes the outside of a node that has the variable of this step, unless
// only variables below it were coded since it was computed. The root's is always 1.
func (p *planner) needOutside(id circuit.NodeID) {
	if id == p.g.Root || p.outside[id] >= runStart(p.steps[id], p.step) {
		return
	}
	for _, up := range p.parents[id] {
		if p.g.Nodes[up.node].Kind == circuit.Product {
			p.needPartial(up.node, id)
		} else {
			p.needOutside(up.node)
		}
	}
	if p.alias[id] == circuit.None {
		p.emit(opOutside, id)
	}
	p.outside[id] = p.step
}

// needPartial makes the partial of a product the outside of its child: all other
// children with coded cells are in it, as they are now, and the child is not.
func (p *planner) needPartial(id, child circuit.NodeID) {
	p.needOutside(id)
	r := &p.runs[id]
	restart := r.outside != p.outside[id] || p.touched[child] && slices.Contains(r.included, child)
	for _, c := range r.pending {
		restart = restart || c != child && slices.Contains(r.included, c)
	}
	include := r.pending
	r.pending = nil
	if restart {
		p.emit(opRestart, id)
		r.outside, r.included = p.outside[id], r.included[:0]
		include = p.touchedChildren(id)
	}
	for _, c := range include {
		if c == child {
			continue // its value is pending until a sibling wants it
		}
		p.needValue(c)
		p.emit(opInclude, id, c)
		r.included = append(r.included, c)
	}
	if p.touched[child] {
		r.pending = append(r.pending, child)
	}
}

func (p *planner) touchedChildren(id circuit.NodeID) []circuit.NodeID {
	var out []circuit.NodeID
	for _, c := range p.g.Nodes[id].Children {
		if p.touched[c] {
			out = append(out, c)
		}
	}
	return out
}

// needValue computes the value of a node with coded cells, if it has changed.
func (p *planner) needValue(id circuit.NodeID) {
	if !p.stale[id] {
		return
	}
	p.stale[id] = false
	children := p.touchedChildren(id)
	for _, c := range children {
		p.needValue(c)
	}
	if p.g.Nodes[id].Kind == circuit.Sum {
		p.emit(opSum, id)
	} else {
		p.emit(opProduct, id, children...)
	}
}

// changed tells the parents of a node that its value is not what it was.
func (p *planner) changed(id circuit.NodeID) {
	for _, up := range p.parents[id] {
		if r := &p.runs[up.node]; p.g.Nodes[up.node].Kind == circuit.Product && !slices.Contains(r.pending, id) {
			r.pending = append(r.pending, id)
		}
		if !p.stale[up.node] {
			p.stale[up.node], p.touched[up.node] = true, true
			p.changed(up.node)
		}
	}
}
