package simt

import "slices"

// step is an instruction of the interpreter. Operands and results are slots: places for the
// values of a block of rows, of which each type has its own.
type step struct {
	op      Op
	of      Type // of the operands; of a Select's last two, and of what is loaded or stored
	to      Type // of the result
	dst     int
	a, b, c int
	imm     uint64
	ref     int
	branch  *branchSteps
	repeat  *repeatSteps
}

// move copies the values of a slot to another of the same type.
type move struct {
	of       Type
	from, to int
}

type branchSteps struct {
	then, other          []step
	thenMoves, elseMoves []move
}

type repeatSteps struct {
	most          int
	init          []move
	body          []step
	next, carried []move // to scratch, and from there
	more          int
	active        int // slot of the lanes that take part
}

// constant is a slot that is filled once.
type constant struct {
	of   Type
	slot int
	bits uint64
}

// lowering gives the values of a module slots, which it uses again once a value is dead.
type lowering struct {
	m         *Module
	slot      []int
	blocks    int   // seen so far
	home      []int // the number of the block that defines a value
	last      []int // the last instruction there that reads it
	free      [numTypes][]int
	slots     [numTypes]int
	constants []constant
}

func (l *lowering) take(t Type) int {
	if n := len(l.free[t]); n > 0 {
		s := l.free[t][n-1]
		l.free[t] = l.free[t][:n-1]
		return s
	}
	l.slots[t]++
	return l.slots[t] - 1
}

func (l *lowering) give(t Type, slot int) { l.free[t] = append(l.free[t], slot) }

// results returns the values that an instruction defines in its own block.
func results(in *Instr) []Value {
	switch in.Op {
	case Store, StoreAt:
		return nil
	case If:
		return in.If.Results
	case Loop:
		return in.Loop.Results
	}
	return []Value{in.Out}
}

// deaths returns the values of a block that are dead after each of its instructions, and
// behind them those that live to its end because it yields them.
func (l *lowering) deaths(b Block, yields []Value) *lists[Value] {
	l.blocks++
	own := make([]Value, 0, len(b))
	for i := range b {
		if b[i].Op != Const {
			for _, v := range results(&b[i]) {
				own = append(own, v)
				l.home[v], l.last[v] = l.blocks, i
			}
		}
	}
	at := 0
	last := func(v Value) {
		if l.home[v] == l.blocks {
			l.last[v] = at
		}
	}
	for ; at < len(b); at++ {
		b[at].Reads(last)
	}
	for _, v := range yields {
		last(v)
	}
	// Those of an instruction come together, in the order in which they are defined.
	dead := &lists[Value]{starts: make([]int32, len(b)+2), all: make([]Value, len(own))}
	for _, v := range own {
		dead.starts[l.last[v]+1]++
	}
	for i := range len(b) + 1 {
		dead.starts[i+1] += dead.starts[i]
	}
	next := slices.Clone(dead.starts)
	for _, v := range own {
		place := &next[l.last[v]]
		dead.all[*place] = v
		*place++
	}
	return dead
}

// block lowers a block to steps, and calls yield while the values that it yields still have
// their slots. A slot is free again after the last use of its value, so a result may take the
// slot of an operand; the results of nested blocks may not, as their blocks read operands after
// writing.
func (l *lowering) block(b Block, yields []Value, yield func()) []step {
	dead, count := l.deaths(b, yields), 0
	for i := range b {
		if b[i].Op != Const {
			count++
		}
	}
	steps := make([]step, 0, count)
	for i := range b {
		in := &b[i]
		if in.Op == Const {
			l.constant(in)
			continue
		}
		nested := in.Op == If || in.Op == Loop
		if !nested { // the result may take the place of an operand
			l.end(dead.of(i), in.Out, false)
		}
		var s step
		switch in.Op {
		case If:
			s = l.branch(in)
		case Loop:
			s = l.repeat(in)
		default:
			s = l.plain(in)
		}
		steps = append(steps, s)
		if nested {
			l.end(dead.of(i), None, false)
		} else {
			l.end(dead.of(i), in.Out, true)
		}
	}
	yield()
	l.end(dead.of(len(b)), None, false)
	return steps
}

// end gives back the slots of dead values: only that of one, or all but its.
func (l *lowering) end(dead []Value, one Value, only bool) {
	for _, v := range dead {
		if (v == one) == only {
			l.give(l.m.Types[v], l.slot[v])
		}
	}
}

func (l *lowering) constant(in *Instr) {
	t := l.m.Types[in.Out]
	l.slot[in.Out] = l.slots[t] // one of its own, as constants are filled once
	l.slots[t]++
	l.constants = append(l.constants, constant{t, l.slot[in.Out], in.Imm})
}

func (l *lowering) plain(in *Instr) step {
	s := step{op: in.Op, imm: in.Imm, ref: in.Ref}
	for i, at := range []*int{&s.a, &s.b, &s.c} {
		if i < in.Op.Args() {
			*at = l.slot[in.Args[i]]
			s.of = l.m.Types[in.Args[i]]
		}
	}
	if in.Out == None {
		return s
	}
	s.to = l.m.Types[in.Out]
	if in.Op.Args() == 0 {
		s.of = s.to
	}
	l.slot[in.Out] = l.take(s.to)
	s.dst = l.slot[in.Out]
	return s
}

func (l *lowering) moves(from, to []Value) []move {
	var list []move
	for i, v := range from {
		list = append(list, move{l.m.Types[v], l.slot[v], l.slot[to[i]]})
	}
	return list
}

func (l *lowering) branch(in *Instr) step {
	br := in.If
	for _, v := range br.Results {
		l.slot[v] = l.take(l.m.Types[v])
	}
	s := &branchSteps{}
	s.then = l.block(br.Then, br.ThenYield, func() { s.thenMoves = l.moves(br.ThenYield, br.Results) })
	s.other = l.block(br.Else, br.ElseYield, func() { s.elseMoves = l.moves(br.ElseYield, br.Results) })
	return step{op: If, a: l.slot[in.Args[0]], branch: s}
}

// repeat lowers a loop. Carried values and results share a slot; each has a scratch slot too,
// so that all next values are computed before the first is replaced.
func (l *lowering) repeat(in *Instr) step {
	lp := in.Loop
	s := &repeatSteps{most: lp.Most, active: l.take(Pred)}
	var scratch []int
	for i, v := range lp.Carried {
		t := l.m.Types[v]
		l.slot[v] = l.take(t)
		l.slot[lp.Results[i]] = l.slot[v]
		scratch = append(scratch, l.take(t))
	}
	s.more = l.take(Pred) // a copy, as the lane may continue by a carried value, which changes first
	s.init = l.moves(lp.Init, lp.Carried)
	s.body = l.block(lp.Body, append(lp.Next[:len(lp.Next):len(lp.Next)], lp.Continue), func() {
		for i, v := range lp.Next {
			t := l.m.Types[v]
			s.next = append(s.next, move{t, l.slot[v], scratch[i]})
			s.carried = append(s.carried, move{t, scratch[i], l.slot[lp.Carried[i]]})
		}
		s.next = append(s.next, move{Pred, l.slot[lp.Continue], s.more})
	})
	for i, v := range lp.Carried {
		l.give(l.m.Types[v], scratch[i])
	}
	l.give(Pred, s.active)
	l.give(Pred, s.more)
	return step{op: Loop, repeat: s}
}

// lower returns the steps of a verified module, its constants and how many slots of each
// type they take.
func lower(m *Module) (steps []step, constants []constant, slots [numTypes]int) {
	n := len(m.Types)
	l := &lowering{m: m, slot: make([]int, n), home: make([]int, n), last: make([]int, n)}
	steps = l.block(m.Body, nil, func() {})
	return steps, l.constants, l.slots
}
