package spn

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// maxJoint bounds Options.Joint: the tables of a circuit are made element by element.
const maxJoint = 1 << 16

// scope is a set of variables whose cells are looked up together.
type scope struct {
	vars []int // in order
	bits int   // of the index; the classes of each variable take whole bits
}

// classBits returns how many bits the classes of a variable take.
func (e *emitter) classBits(variable int) int {
	return bits.Len(uint(len(e.cols[variable].points) - 1))
}

// join returns the variables of two scopes, or nil if a table over them has more elements than the options allow.
func (e *emitter) join(a, b *scope) *scope {
	if a == nil || b == nil {
		return nil
	}
	s := &scope{}
	s.vars = append(append(s.vars, a.vars...), b.vars...)
	slices.Sort(s.vars)
	s.vars = slices.Compact(s.vars)
	for _, v := range s.vars {
		s.bits += e.classBits(v)
	}
	if 1<<s.bits > e.joint {
		return nil
	}
	return s
}

// scopes finds the operations that a table can have for the cells of their variables.
func (e *emitter) scopes() {
	e.scope = make([]*scope, len(e.c.ops))
	if e.joint == 0 || e.space != Linear {
		return
	}
	for i := range e.c.ops {
		switch o := &e.c.ops[i]; {
		case !o.used || o.gaussian:
		case o.kind == circuit.Input:
			one := &scope{vars: []int{o.variable}}
			e.scope[i] = e.join(one, one)
		default:
			s := e.scope[o.args[0]]
			for _, a := range o.args[1:] {
				s = e.join(s, e.scope[a])
			}
			e.scope[i] = s
		}
	}
}

// lookup emits the product of operations as one table over their variables.
func (e *emitter) lookup(list []int32, s *scope) simt.Value {
	b := e.b
	index, shift := simt.None, 0
	for _, v := range s.vars {
		class := e.opened(v).class
		if shift > 0 {
			class = b.Shift(simt.Shl, class, shift)
		}
		if index == simt.None {
			index = class
		} else {
			index = b.Binary(simt.Or, index, class)
		}
		shift += e.classBits(v)
	}
	table, x := make([]float64, 1<<s.bits), map[int]float64{}
	for i := range table {
		rest := i
		for _, v := range s.vars {
			points := e.cols[v].points
			n := e.classBits(v)
			x[v] = points[min(rest&(1<<n-1), len(points)-1)]
			rest >>= n
		}
		table[i] = 1
		for _, a := range list {
			table[i] *= e.c.at(a, x)
		}
	}
	return b.Gather(b.FloatTable(e.t, table), index)
}

// at computes an operation for cells of its variables.
func (c *code) at(i int32, x map[int]float64) float64 {
	o := &c.ops[i]
	switch o.kind {
	case circuit.Input:
		return o.at(x[o.variable])
	case circuit.Product:
		p := 1.0
		for _, a := range o.args {
			p *= c.at(a, x)
		}
		return p
	}
	sum := 0.0
	for k, a := range o.args {
		sum += o.weights[k] * c.at(a, x)
	}
	return sum
}

// factors emits the factors of a product: those that tables can have together as one, and others by themselves.
func (e *emitter) factors(o *op) []simt.Value {
	type group struct {
		list []int32
		*scope
	}
	var terms []simt.Value
	var groups []group
	for _, a := range o.args {
		if s := e.scope[a]; s != nil {
			groups = append(groups, group{[]int32{a}, s})
		} else {
			terms = append(terms, e.value[a])
		}
	}
	// The first that fits, large ones first.
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(b.bits-a.bits, slices.Compare(a.vars, b.vars))
	})
	var joined []group
next:
	for _, g := range groups {
		for i := range joined {
			if s := e.join(joined[i].scope, g.scope); s != nil {
				joined[i].list, joined[i].scope = append(joined[i].list, g.list...), s
				continue next
			}
		}
		joined = append(joined, g)
	}
	for _, g := range joined {
		terms = append(terms, e.lookup(g.list, g.scope))
	}
	return terms
}
