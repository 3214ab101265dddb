package x86

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/kernels/simt"
)

// composed returns a module with the same results, in which tables whose elements are indices of other tables are joined with
// these where that saves instructions. Leaves of a variable share such a table, from a code to the number of its bin. With
// permutations of bytes it costs little; where each lane loads for itself it costs as much as the leaves, which can be looked up
// by the code in one load for two of them.
func composed(m *simt.Module, s shape) *simt.Module {
	if s.evex || s.gathers {
		return m
	}
	c := &composer{shape: s, from: m, defs: make([]*simt.Instr, len(m.Types))}
	ways, asked := map[simt.Value]*link{}, make([]bool, len(m.Types))
	for i := range m.Body {
		v := m.Body[i].Out
		if v == simt.None {
			continue
		}
		c.defs[v] = &m.Body[i]
		if l := c.link(v); l != nil {
			ways[v] = l
			asked[v], asked[l.inner.Out] = true, true
		}
	}
	if len(ways) == 0 {
		return m
	}
	reads := map[simt.Value][]*simt.Instr{} // of what is asked for, by instructions of the outermost block and of those within
	for i := range m.Body {
		in := &m.Body[i]
		in.Reads(func(v simt.Value) {
			if asked[v] {
				reads[v] = append(reads[v], in)
			}
		})
	}
	links, inner := map[simt.Value]*link{}, map[simt.Value]*link{} // by the index that gathers read, and by the lookup that it comes from
	for i := range m.Body {
		v := m.Body[i].Out
		l := ways[v]
		if l == nil || links[l.inner.Args[0]] != nil || l.cond && len(reads[l.inner.Out]) > 1 || !c.pays(reads[v]) {
			continue
		}
		links[v], inner[l.inner.Out] = l, l
	}
	if len(links) == 0 {
		return m
	}
	c.m = &simt.Module{
		Name: m.Name, Inputs: m.Inputs, Outputs: m.Outputs, Tables: slices.Clone(m.Tables), Types: slices.Clone(m.Types), Body: make(simt.Block, 0, len(m.Body)),
	}
	for _, in := range m.Body {
		if l := inner[in.Out]; l != nil { // its index within the table takes its place
			in = simt.Instr{Op: simt.Min, Out: in.Out, Args: [3]simt.Value{in.Args[0], c.number(l.size - 1), simt.None}}
		}
		switch l := links[in.Out]; {
		case l != nil && l.cond:
			in.Args[2] = c.number(l.size)
		case in.Op == simt.Gather && links[in.Args[0]] != nil:
			in.Ref = c.join(links[in.Args[0]], in.Ref)
		}
		c.m.Body = append(c.m.Body, in)
	}
	return c.m
}

// maxJoined bounds the elements of joined tables, of which each leaf has one: a network's should stay in the first-level cache.
const maxJoined = 256

// composer makes the module of composed.
type composer struct {
	shape
	from, m *simt.Module
	defs    []*simt.Instr // of values; nil within blocks
}

// link is a lookup whose result is an index of other tables.
type link struct {
	inner  *simt.Instr
	size   int         // elements of its table
	cond   bool        // its result counts where a condition holds,
	other  int32       // and elsewhere this index
	joined map[int]int // tables that it leads to, and what became of them
}

// link returns how a value is looked up, or nil if it is not by loads.
func (c *composer) link(v simt.Value) *link {
	l := &link{inner: c.defs[v]}
	if in := l.inner; in != nil && in.Op == simt.Select {
		other := c.defs[in.Args[2]]
		if other == nil || other.Op != simt.Const {
			return nil
		}
		l.inner, l.cond, l.other = c.defs[in.Args[1]], true, int32(other.Imm)
	}
	if l.inner == nil || l.inner.Op != simt.Gather || c.from.Types[v] != simt.I32 {
		return nil
	}
	t := &c.from.Tables[l.inner.Ref]
	if l.size = len(t.Bits); c.small(t) || l.size > maxJoined {
		return nil
	}
	l.joined = map[int]int{}
	return l
}

// pays reports whether all that read an index look up in tables, and joined ones take fewer instructions.
func (c *composer) pays(readers []*simt.Instr) bool {
	before, large := c.laneLoads(1), 0
	for _, in := range readers {
		if in.Op != simt.Gather {
			return false
		}
		if t := &c.from.Tables[in.Ref]; c.small(t) {
			before += c.permutations(t)
		} else {
			large++
		}
	}
	return c.laneLoads(len(readers)) < before+c.laneLoads(large)
}

// join returns the table that has for an index what the table of a link and then another one have. Its last element is that of
// lanes where the condition does not hold.
func (c *composer) join(l *link, to int) int {
	if t, ok := l.joined[to]; ok {
		return t
	}
	t := &c.from.Tables[to]
	element := func(i int32) uint64 { return t.Bits[min(max(int(i), 0), len(t.Bits)-1)] }
	joined := simt.Table{Name: fmt.Sprintf("%s_%d", t.Name, len(c.m.Tables)), Type: t.Type}
	for _, i := range c.from.Tables[l.inner.Ref].Bits {
		joined.Bits = append(joined.Bits, element(int32(i)))
	}
	if l.cond {
		joined.Bits = append(joined.Bits, element(l.other))
	}
	l.joined[to] = len(c.m.Tables)
	c.m.Tables = append(c.m.Tables, joined)
	return l.joined[to]
}

// number appends a constant.
func (c *composer) number(n int) simt.Value {
	out := simt.Value(len(c.m.Types))
	c.m.Types = append(c.m.Types, simt.I32)
	c.m.Body = append(c.m.Body, simt.Instr{Op: simt.Const, Out: out, Args: [3]simt.Value{simt.None, simt.None, simt.None}, Imm: uint64(n)})
	return out
}
