package x86

import (
	"slices"

	"github.com/pce-engine/pce/kernels/simt"
)

// group is what values are of a group of rows, as many as a register has lanes.
type group struct {
	first int32 // row, of a turn
	val   []reg
	fours map[column]reg     // four columns of bytes that lie by rows, by the first one
	ends  map[column][2]reg  // the registers that rows of few bytes start and end with
	low   map[simt.Value]reg // see lowbyte.go
}

// lowered is the nodes of a module: a turn for one group of rows, and one for several where that is quicker.
type lowered struct {
	*lowering
	one, several *block // several: nil where there is none
	groups       int    // of several
	cost         int64  // of one
}

// lower makes nodes of a verified module.
func lower(m *simt.Module, s shape) lowered {
	l := &lowering{
		code: newCode(), shape: s, m: m, pointers: map[column]int32{}, spans: make([]span, len(m.Types)), bounded: make([]bool, len(m.Types)),
		contents: map[int]span{}, picks: map[reg]byteOf{}, columnOf: map[simt.Value]column{},
	}
	constants := 0
	for i := range m.Body {
		if m.Body[i].Op == simt.Const {
			constants++
		}
	}
	l.room, l.each = (len(m.Body)-constants)*9/8, make(map[element]reg, constants) // most instructions are a node, a few are more
	l.regs = slices.Grow(l.regs, len(m.Types)*4/3)
	one, cost := l.groups(1)
	r := lowered{lowering: l, one: one, cost: cost}
	if sets := s.turns(m, cost); len(sets) > 0 {
		r.several, _ = l.groups(sets...)
		for _, n := range sets {
			r.groups += n
		}
	}
	return r
}

// groups makes nodes of the module for a turn that takes sets of groups of rows, one set after the other. Within a set each
// instruction is lowered for all groups before the next one is, so that constants are loaded once.
func (l *lowering) groups(sets ...int) (*block, int64) {
	b := l.enter()
	l.turn, l.whole = nil, map[column]byteOf{}
	first := 0
	for _, n := range sets {
		var set []*group
		for range n {
			set = append(set, &group{
				first: int32(first), val: make([]reg, len(l.m.Types)), fours: map[column]reg{}, ends: map[column][2]reg{}, low: map[simt.Value]reg{},
			})
			first += l.lanes
		}
		l.turn = append(l.turn, set)
	}
	b.nodes = make([]node, 0, l.room*first/l.lanes)
	l.block(l.m.Body)
	return l.leave()
}

// block lowers the instructions of a block. Lookups by one index in two tables are done together, where
// the first one is.
func (l *lowering) block(b simt.Block) {
	partners := l.partners(b)
	for _, set := range l.turn {
		later := l.later(b, partners)
		var lower func(in *simt.Instr, partner int, paired bool)
		lower = func(in *simt.Instr, partner int, paired bool) {
			if len(later) > 0 {
				in.Reads(func(v simt.Value) {
					if first := later[v]; first != nil {
						delete(later, v)
						lower(first, 0, false)
					}
				})
			}
			for _, l.group = range set {
				switch {
				case in.Op == simt.Gather && l.val[in.Out] != none: // with its partner
				case paired:
					l.lookupBoth(in, &b[partner])
				default:
					l.instr(in)
				}
			}
		}
		for i := range b {
			if in := &b[i]; in.Out == simt.None || later[in.Out] != in {
				k, ok := partners[i]
				lower(in, k, ok)
			}
		}
	}
}

// later returns the lookups of the outermost block that are lowered where they are read, as only one instruction reads them:
// the factors of a product are looked up before its multiplications, and would wait in many registers for those.
func (l *lowering) later(b simt.Block, partners map[int]int) map[simt.Value]*simt.Instr {
	if len(l.open) > 1 || !l.evex {
		return nil
	}
	reads := make([]int32, len(l.m.Types))
	for i := range b {
		b[i].Reads(func(v simt.Value) { reads[v]++ })
	}
	later := map[simt.Value]*simt.Instr{}
	for i := range b {
		if in := &b[i]; in.Op == simt.Gather && reads[in.Out] == 1 {
			later[in.Out] = in
		}
	}
	for i, k := range partners {
		delete(later, b[i].Out)
		delete(later, b[k].Out)
	}
	return later
}

// maxTurn bounds the instructions of a turn of several groups of rows: with the loop for single groups they stay in the
// second-level cache. Of a module of at most shortTurn four groups together have enough registers.
const maxTurn, shortTurn = 12_000, 150

// turns returns the sets of groups of rows that a turn of the loop over rows takes, of a module whose instructions have a
// cost for one; none: one at a time. Groups of a set share the loads of constants. The four groups of a turn have the
// bytes of a column in one register, which pays where they lie by columns.
func (s shape) turns(m *simt.Module, cost int64) []int {
	branches := slices.ContainsFunc(m.Body, func(in simt.Instr) bool { return in.Op == simt.If || in.Op == simt.Loop })
	columns := slices.ContainsFunc(m.Inputs, func(p simt.Param) bool { return p.Type == simt.U8 && (p.Layout == simt.Columns || p.Width == 1) })
	most := maxTurn / max(cost, 1)
	switch {
	case !s.evex || branches || s.several == 1 || most < 2:
		return nil
	case s.several == 0 && cost <= shortTurn:
		return []int{4}
	case s.several == 4, s.several == 0 && columns && most >= 4:
		return []int{2, 2}
	}
	return []int{2}
}
