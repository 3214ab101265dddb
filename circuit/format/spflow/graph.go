package spflow

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/units"
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
	all := p.order
	if len(all) == 0 {
		all = tree(root)
	}
	if err := p.numberVariables(all); err != nil {
		return nil, err
	}
	place := make(map[*node]int, len(all))
	for i, n := range all {
		place[n] = i
	}
	nodes := make([]units.Node, len(all))
	for i, n := range all {
		nodes[i] = units.Node{Kind: n.kind, Weights: n.weights, Leaf: n.leaf, Params: n.params}
		if n.kind == circuit.Input {
			nodes[i].Var = p.variables[n.variable]
		}
		for _, child := range n.children {
			nodes[i].Children = append(nodes[i].Children, place[child])
		}
	}
	m, err := units.Assemble(nodes, place[root], len(p.names))
	if fault := (*units.NodeError)(nil); errors.As(err, &fault) {
		return nil, p.fail(all[fault.Node].at, "%w", fault.Err)
	}
	if err != nil {
		return nil, err
	}
	m.Names = p.names
	return m, nil
}

// tree returns the nodes of an expression.
func tree(root *node) (all []*node) {
	for stack := []*node{root}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = append(stack[:len(stack)-1], n.children...)
		all = append(all, n)
	}
	return all
}

// numberVariables gives the variables their numbers.
func (p *parser) numberVariables(nodes []*node) error {
	if p.declared {
		for _, n := range nodes {
			if _, ok := p.variables[n.variable]; n.kind == circuit.Input && !ok {
				return p.fail(n.at, "the variable %.40q is not in %s", n.variable, p.listOfNames())
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
			return fmt.Errorf("variables up to V%d, at most V%d can do without names; give them in %s", most, maxNumbered-1, p.listOfNames())
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

// listOfNames is where a text lists its variables, for messages.
func (p *parser) listOfNames() string {
	if p.nested {
		return "the scope of the outermost object"
	}
	return "the line of names"
}

// maxNumbered bounds the variables that a text can ask for by a number.
const maxNumbered = 1 << 20

// ordinal returns the number of a variable that is named V and a number without leading zeros.
func ordinal(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "V")
	v, err := strconv.Atoi(digits)
	return v, ok && err == nil && v >= 0 && v < circuit.MaxVars && fmt.Sprint(v) == digits
}
