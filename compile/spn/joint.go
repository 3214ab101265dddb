package spn

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// maxJoint bounds Options.Joint: every operation that a table can have keeps its values.
const maxJoint = 1 << 10

// scope is a set of variables whose cells are looked up together.
type scope struct {
	vars []int // in order
	bits int   // of the index; the classes of each variable take whole bits, those of the first one the lowest
	// values has those of an operation, by index.
	values []float64
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
		case !o.used || o.gaussian || o.kind == circuit.Product && len(o.args) == 0:
		case o.kind == circuit.Input:
			one := &scope{vars: []int{o.variable}}
			if e.scope[i] = e.join(one, one); e.scope[i] != nil {
				points := e.cols[o.variable].points
				e.fill(e.scope[i], func(k int) float64 { return o.at(points[min(k, len(points)-1)]) })
			}
		default:
			s := e.scope[o.args[0]]
			for _, a := range o.args {
				s = e.join(s, e.scope[a])
			}
			if e.scope[i] = s; s != nil {
				e.fill(s, func(k int) float64 { return e.at(o, s, k) })
			}
		}
	}
}

// fill computes the values of an operation.
func (e *emitter) fill(s *scope, at func(index int) float64) {
	s.values = make([]float64, 1<<s.bits)
	for i := range s.values {
		s.values[i] = at(i)
	}
}

// at computes an operation from its operands, at an index of its scope.
func (e *emitter) at(o *op, s *scope, index int) float64 {
	if o.kind == circuit.Product {
		return e.product(o.args, s, index)
	}
	sum := 0.0
	for k, w := range o.weights {
		sum += w * e.product(o.args[k:k+1], s, index)
	}
	return sum
}

// product multiplies the values of operations at an index of a scope that has their variables.
func (e *emitter) product(list []int32, s *scope, index int) float64 {
	p := 1.0
	for _, a := range list {
		own, rest, place, shift, next := e.scope[a], index, 0, 0, 0
		for _, v := range s.vars {
			n := e.classBits(v)
			if next < len(own.vars) && own.vars[next] == v {
				place |= rest & (1<<n - 1) << shift
				shift += n
				next++
			}
			rest >>= n
		}
		p *= own.values[place]
	}
	return p
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
	table := make([]float64, 1<<s.bits)
	for i := range table {
		table[i] = e.product(list, s, i)
	}
	return e.span(spanTable, &op{table: table}, func() simt.Value { return b.Gather(b.FloatTable(e.t, table), index) })
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
