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
	groups       int    // of a turn
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
	if r.groups = s.turn(m, cost); r.groups > 1 {
		r.several, _ = l.groups(r.groups)
	}
	return r
}

// groups makes nodes of the module for a turn that takes n groups of rows. An instruction is lowered for all groups, near
// each other, so that constants are loaded once.
func (l *lowering) groups(n int) (*block, int64) {
	b := l.enter()
	l.turn, l.whole = nil, map[column]byteOf{}
	for g := range n {
		l.turn = append(l.turn, &group{
			first: int32(g * l.lanes), val: make([]reg, len(l.m.Types)), fours: map[column]reg{}, ends: map[column][2]reg{}, low: map[simt.Value]reg{},
		})
	}
	b.nodes = make([]node, 0, l.room*n)
	l.block(l.m.Body)
	return l.leave()
}

// block lowers the instructions of a block. Lookups by one index in two tables are done together, where
// the first one is.
func (l *lowering) block(b simt.Block) {
	partners := l.partners(b)
	later := l.later(b, partners)
	var lower func(in *simt.Instr, partner int, paired bool)
	lower = func(in *simt.Instr, partner int, paired bool) {
		in.Reads(func(v simt.Value) {
			if first := later[v]; first != nil {
				lower(first, 0, false)
			}
		})
		switch {
		case in.Op == simt.Gather && l.val[in.Out] != none: // with its partner
		case paired:
			l.lookupBoth(in, &b[partner])
		default:
			l.instr(in)
		}
	}
	lag := 0
	if len(l.turn) > 2 {
		lag = len(b) / lagging
	}
	for at := range len(b) + lag*(len(l.turn)-1) {
		for g := range l.turn {
			i := at - lag*g
			if i < 0 || i >= len(b) || b[i].Out != simt.None && later[b[i].Out] == &b[i] {
				continue
			}
			l.group = l.turn[g]
			k, ok := partners[i]
			lower(&b[i], k, ok)
		}
	}
}

// lagging is by which part of a block each of four groups is behind the one before it: lookups, which one port of a processor of
// Intel's can do, are among the arithmetic of other groups then, and a logarithm's chain of instructions is not waited for four
// times at once. Two groups gain nothing.
const lagging = 8

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
// second-level cache. Of a module of at most shortTurn four groups together have enough registers for columns of numbers, too.
const maxTurn, shortTurn = 12_000, 400

// turn returns how many groups of rows a turn of the loop over rows takes, of a module whose instructions have a cost for
// one. Groups share the loads of constants, and four of them the bytes of a column, which are in one register.
func (s shape) turn(m *simt.Module, cost int64) int {
	branches := slices.ContainsFunc(m.Body, func(in simt.Instr) bool { return in.Op == simt.If || in.Op == simt.Loop })
	bytes := slices.ContainsFunc(m.Inputs, func(p simt.Param) bool { return p.Type == simt.U8 })
	most := maxTurn / max(cost, 1)
	switch {
	case !s.evex || branches || s.several == 1 || most < 2:
		return 1
	case s.several == 4, s.several == 0 && (cost <= shortTurn || bytes && most >= 4):
		return 4
	}
	return 2
}
