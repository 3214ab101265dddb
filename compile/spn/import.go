package spn

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
)

// nowhere is the place of a unit that is 0.
const nowhere = -1

// importer makes the operations of a circuit, or of one for each code of a variable.
type importer struct {
	*code
	g       *circuit.Graph
	class   int       // the variable; -1: none
	codes   int       // that it has; 1 where there is none
	depends []bool    // of nodes: the variable is in their scope
	units   [][]int32 // of nodes: the operation of each unit, for each code where the node depends on it
	one     int32     // the operation without operands
	total   int
}

// importGraph makes the operations of the units that the root needs: one root or, where a variable is named as the
// class, one for each of its codes. What does not depend on the class is there once.
func importGraph(g *circuit.Graph, params circuit.ParamFunc64, class int) (*code, error) {
	units := 0
	for i := range g.Nodes {
		units += g.Nodes[i].Units
	}
	im := &importer{code: &code{ops: make([]op, 0, units), known: make(map[string]int32, units)}, g: g, class: class, codes: 1, depends: make([]bool, len(g.Nodes)), units: make([][]int32, len(g.Nodes))}
	needed := make([]bool, len(g.Nodes))
	needed[g.Root] = true
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		if needed[i] {
			for _, child := range g.Nodes[i].Children {
				needed[child] = true
			}
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind == circuit.Input {
			im.depends[i] = n.Var == class
		}
		for _, child := range n.Children {
			im.depends[i] = im.depends[i] || im.depends[child]
		}
		if needed[i] && n.Kind == circuit.Input && n.Var == class {
			im.codes = max(im.codes, n.Leaf.Codes())
		}
	}
	if class >= 0 {
		im.one = im.add(op{kind: circuit.Product})
		im.groups++
	}
	load := circuit.Parameters(g, params)
	for i := range g.Nodes {
		if !needed[i] {
			continue
		}
		p, err := load(circuit.NodeID(i))
		if err != nil {
			return nil, err
		}
		if err := im.node(i, p); err != nil {
			return nil, err
		}
	}
	for k := range im.codes {
		im.roots = append(im.roots, im.unit(g.Root, 0, k))
	}
	im.known, im.key = nil, nil
	return im.code, nil
}

// unit returns the operation of a node's unit for a code of the class.
func (im *importer) unit(id circuit.NodeID, u, code int) int32 {
	if im.depends[id] {
		return im.units[id][u*im.codes+code]
	}
	return im.units[id][u]
}

// node makes the operations of a node's units.
func (im *importer) node(i int, p []float64) error {
	id, n := circuit.NodeID(i), &im.g.Nodes[i]
	codes := 1
	if im.depends[i] {
		codes = im.codes
	}
	im.units[i] = make([]int32, n.Units*codes)
	for code := range codes {
		var columns []int32
		if n.Kind == circuit.Sum {
			for _, child := range n.Children {
				for u := range im.g.Nodes[child].Units {
					columns = append(columns, im.unit(child, u, code))
				}
			}
		}
		for u := range n.Units {
			o, place := im.operation(id, columns, p, u, code)
			if im.total += 1 + len(o.args); im.total > maxOps || len(o.table) > maxOps {
				return fmt.Errorf("%w: more than %d scalar operations; use the tensor path", ErrCode, maxOps)
			}
			if o.used {
				o.used, o.group = false, im.groups
				place = im.add(o)
			}
			im.units[i][u*codes+code] = place
		}
		im.groups++
	}
	return nil
}

// operation returns what a unit is for a code of the class: an operation, which is marked as used, or the place of one
// that is there.
func (im *importer) operation(id circuit.NodeID, columns []int32, p []float64, u, code int) (o op, place int32) {
	n := &im.g.Nodes[id]
	switch n.Kind {
	case circuit.Input:
		size := n.Leaf.NumParams()
		o = leafOf(n, p[u*size:(u+1)*size])
		if n.Var == im.class {
			share := 0.0
			if code < len(o.table) {
				share = o.table[code]
			}
			if share == 0 {
				return op{}, nowhere
			}
			o = op{kind: circuit.Sum, args: []int32{im.one}, weights: []float64{share}}
		}
	case circuit.Product:
		o = op{kind: circuit.Product}
		for _, child := range n.Children {
			a := im.unit(child, u, code)
			if a == nowhere {
				return op{}, nowhere
			}
			if im.class < 0 || a != im.one {
				o.args = append(o.args, a)
			}
		}
		if len(o.args) == 0 {
			return op{}, im.one
		}
	case circuit.Sum:
		if o = sumOf(im.g, n, columns, p, u); len(o.args) == 0 {
			return op{}, nowhere
		}
	}
	o.used = true
	return o, nowhere
}
