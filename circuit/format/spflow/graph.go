package spflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// The states of a node in the search from the root.
const (
	unseen uint8 = iota
	open         // some of its descendants are not done
	done
)

// model makes the graph: children before parents, in the order of the text.
func (p *parser) model(root *node) (*format.Model, error) {
	for _, n := range p.order {
		for _, r := range n.names {
			c, ok := p.byName[r.name]
			if !ok {
				return nil, p.fail(r.at, "there is no node %.40q; define it, or get the file again if it was cut short", r.name)
			}
			n.children = append(n.children, c)
		}
	}
	nodes, err := p.sorted(root)
	if err != nil {
		return nil, err
	}
	for _, n := range p.order {
		if n.state == unseen {
			return nil, p.fail(n.at, "the node is not reached from the first one, the root; take it out")
		}
	}
	if err := p.numberVariables(nodes); err != nil {
		return nil, err
	}
	g := &circuit.Graph{NumVars: len(p.names), Root: circuit.NodeID(len(nodes) - 1)}
	params := make([][]float64, len(nodes))
	for i, n := range nodes {
		c := circuit.Node{Kind: n.kind, Units: 1, Leaf: n.leaf}
		if n.kind == circuit.Input {
			c.Var, params[i] = p.variables[n.variable], n.params
		} else {
			params[i] = n.weights
		}
		for _, child := range n.children {
			c.Children = append(c.Children, child.id)
		}
		g.Nodes = append(g.Nodes, c)
	}
	if err := circuit.Validate(g); err != nil {
		return nil, err
	}
	for i, n := range nodes {
		if n.kind == circuit.Product {
			continue
		}
		if err := circuit.CheckParams(g, circuit.NodeID(i), params[i]); err != nil {
			return nil, p.fail(n.at, "%w", err)
		}
	}
	m := format.NewModel(g, nil, format.Params{Float64: func(id circuit.NodeID, dst []float64) error {
		copy(dst, params[id])
		return nil
	}})
	m.Names = p.names
	return m, nil
}

// sorted returns the nodes below the root, children first, and reports a cycle.
func (p *parser) sorted(root *node) ([]*node, error) {
	type visit struct {
		n    *node
		next int // child
	}
	var list []*node
	root.state = open
	for stack := []visit{{n: root}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.next == len(top.n.children) {
			top.n.state, top.n.id = done, circuit.NodeID(len(list))
			list = append(list, top.n)
			stack = stack[:len(stack)-1]
			continue
		}
		c := top.n.children[top.next]
		top.next++
		switch c.state {
		case unseen:
			c.state = open
			stack = append(stack, visit{n: c})
		case open:
			at := top.n.at
			if len(top.n.names) > 0 {
				at = top.n.names[top.next-1].at
			}
			return nil, p.fail(at, "the node is a descendant of itself; a network has no cycles")
		}
	}
	return list, nil
}

// numberVariables gives the variables their numbers.
func (p *parser) numberVariables(nodes []*node) error {
	if p.declared {
		for _, n := range nodes {
			if _, ok := p.variables[n.variable]; n.kind == circuit.Input && !ok {
				return p.fail(n.at, "the variable %.40q is not in the line of names", n.variable)
			}
		}
		return nil
	}
	numbered, most := true, 0
	var leaves []*node
	for _, n := range nodes {
		if n.kind != circuit.Input {
			continue
		}
		leaves = append(leaves, n)
		v, ok := ordinal(n.variable)
		numbered, most = numbered && ok, max(most, v)
	}
	if numbered {
		if most >= maxNumbered {
			return fmt.Errorf("variables up to V%d, at most V%d can do without a line of names; add one", most, maxNumbered-1)
		}
		for v := range most + 1 {
			name := "V" + strconv.Itoa(v)
			p.variables[name] = v
			p.names = append(p.names, name)
		}
		return nil
	}
	slices.SortStableFunc(leaves, func(a, b *node) int { return a.at - b.at })
	for _, n := range leaves {
		if _, ok := p.variables[n.variable]; !ok {
			p.variables[n.variable] = len(p.names)
			p.names = append(p.names, n.variable)
		}
	}
	return nil
}

// maxNumbered bounds the variables that a text can ask for by a number.
const maxNumbered = 1 << 20

// ordinal returns the number of a variable that is named V and a number without leading zeros.
func ordinal(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "V")
	v, err := strconv.Atoi(digits)
	return v, ok && err == nil && v >= 0 && v < circuit.MaxVars && fmt.Sprint(v) == digits
}
