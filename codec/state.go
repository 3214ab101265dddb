package codec

import (
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/codec/lanes"
)

// state is what is known of a group of rows while they are coded. It is used by one
// goroutine.
type state struct {
	m *Model

	value, outside, partial []vector // [nodes], allocated where the plan has them
	columns                 []lane   // scratch: the values of all children of a sum
	sum                     []lane   // scratch: what a further parent adds to an outside

	common []common     // [steps]
	cell   distribution // scratch: of the cell at hand
	rows   []float64    // scratch: outsides of the inputs of a step, those of row r from r·stride on
	stride int
}

// newState allocates the vectors that the plan's operations write, for groupRows rows. The
// outside of the root is 1.
func newState(m *Model) *state {
	n := len(m.graph.Nodes)
	s := &state{m: m, common: make([]common, len(m.plan.vars)), value: make([]vector, n), outside: make([]vector, n), partial: make([]vector, n)}
	columns, units, row := 0, 1, 0
	for _, o := range m.plan.ops {
		of, kind := &m.graph.Nodes[o.node], s.value
		switch o.kind {
		case opOutside:
			kind = s.outside
		case opRestart, opInclude:
			kind = s.partial
		}
		if kind[o.node].m == nil {
			kind[o.node] = newVector(of.Units)
		}
		if of.Kind == circuit.Sum {
			columns = max(columns, m.graph.Columns(o.node))
		}
		units = max(units, of.Units)
	}
	for _, inputs := range m.plan.inputs {
		all := 0
		for _, in := range inputs {
			all += m.graph.Nodes[in].Units
			s.value[in] = newVector(m.graph.Nodes[in].Units)
		}
		row = max(row, all)
	}
	root := newVector(1)
	root.fill()
	s.outside[m.graph.Root] = root
	s.columns, s.sum = make([]lane, columns), make([]lane, units)
	s.rows, s.stride = make([]float64, groupRows*row), row
	return s
}

// outsideOf returns the outside of a node as the plan has it.
func (s *state) outsideOf(id circuit.NodeID) *vector {
	if p := s.m.plan.alias[id]; p != circuit.None {
		return &s.partial[p]
	}
	return &s.outside[id]
}

// prepare computes what step t needs before its cells are coded: the values of nodes that have
// changed, and how much each input of the step counts, from outside of it.
func (s *state) prepare(t int) {
	p := s.m.plan
	ops := p.ops[p.first[t]:p.first[t+1]]
	for i := 0; i < len(ops); i++ {
		o := ops[i]
		args := p.args[o.from:o.to]
		switch o.kind {
		case opOutside:
			s.computeOutside(o.node)
		case opRestart:
			v, above := &s.partial[o.node], s.outsideOf(o.node)
			if i+1 < len(ops) && ops[i+1].kind == opInclude && ops[i+1].node == o.node { // both at once
				i++
				v.product(above, &s.value[p.args[ops[i].from]])
			} else {
				v.set(above)
			}
		case opInclude:
			v := &s.partial[o.node]
			v.product(v, &s.value[args[0]])
		case opProduct:
			v := &s.value[o.node]
			if len(args) == 1 {
				v.set(&s.value[args[0]])
				continue
			}
			v.product(&s.value[args[0]], &s.value[args[1]])
			for _, c := range args[2:] {
				v.product(v, &s.value[c])
			}
		case opSum:
			s.computeSum(o.node)
		}
	}
}

// computeSum multiplies the values of a sum's children by its weights, with the largest
// exponent of the children for all, and normalises the result. The order of additions is fixed:
// files depend on it.
func (s *state) computeSum(id circuit.NodeID) {
	n, v := &s.m.graph.Nodes[id], &s.value[id]
	in := s.value[n.Children[0]].m
	v.exp = s.value[n.Children[0]].exp
	if len(n.Children) > 1 {
		for _, c := range n.Children[1:] {
			s.value[c].highest(&v.exp)
		}
		in = s.columns[:0]
		for _, c := range n.Children {
			from := len(in)
			in = append(in, s.value[c].m...)
			multiply(in[from:], s.value[c].factors(&v.exp))
		}
	}
	clear(v.m)
	for _, b := range s.m.sums[id].blocks {
		lanes.Up(v.m[b.row:][:b.rows], b.w, b.stride, in[b.col:][:b.cols])
	}
	v.normalise()
}

// computeOutside adds up what a node's parents have as its outside, weighed by a sum's weights,
// in the order of the parents, and normalises it. The order of additions is fixed: files depend
// on it.
func (s *state) computeOutside(id circuit.NodeID) {
	v, parents := &s.outside[id], s.m.plan.parents[id]
	from := func(p parent) *vector {
		if s.m.graph.Nodes[p.node].Kind == circuit.Product {
			return &s.partial[p.node]
		}
		return s.outsideOf(p.node)
	}
	v.exp = from(parents[0]).exp
	for _, p := range parents[1:] {
		from(p).highest(&v.exp)
	}
	for k, p := range parents {
		above, out := from(p), v.m
		if k > 0 {
			out = s.sum[:len(v.m)]
		}
		if s.m.graph.Nodes[p.node].Kind == circuit.Product {
			copy(out, above.m)
		} else {
			clear(out)
			s.m.sums[p.node].down(out, above.m, int(p.col))
		}
		if len(parents) > 1 {
			multiply(out, above.factors(&v.exp))
		}
		if k > 0 {
			add(v.m, out)
		}
	}
	v.normalise()
}
