package simt

import (
	"slices"
	"sync"
)

// Parts is a module that was split. The modules of its parts run one after the other for the same rows. Each has the
// module's own inputs and outputs, and behind each of the two lists Kept: what earlier parts keep for later ones, an
// input and an output in the same memory.
type Parts struct {
	Count int
	Kept  []Param // by columns
	// Crossings counts a value once for each part that reads it and is not its own: with parts of equal size in the
	// order of the instructions, and as they are.
	First, Crossings int
	// Part is the part of each instruction of the whole body, and Slots the column of Kept in which each value lies that
	// a later part reads, -1 of others. What is repeated in several parts has the number of one of them. nil where the module is
	// the only part.
	Part, Slots []int32

	m      *Module
	s      *splitter // nil where the module is the only part
	bodies [][]int32 // of each part: its instructions
	idle   sync.Pool // of numbers, see partWriter, which are None
}

// Place returns which of Kept a value lies in, and its column there; false where no later part reads it.
func (p *Parts) Place(m *Module, v Value) (q Param, column int, ok bool) {
	if p.Slots == nil || p.Slots[v] < 0 {
		return Param{}, 0, false
	}
	at := slices.IndexFunc(p.Kept, func(q Param) bool { return q.Type == keptType(m.Types[v]) })
	return p.Kept[at], int(p.Slots[v]), true
}

// Split divides the body of a verified module into parts of equal size, of at most limit instructions, not counting those
// that are repeated in several parts. A branch or loop is not divided, so that a part may have more. Instructions then
// move between parts that follow each other as long as fewer values cross, and the sizes stay within one percent. Constants
// are repeated, and so are loads behind which nothing is stored before their last use. A module within the limit is the
// only part.
func Split(m *Module, limit int) *Parts {
	s := newSplitter(m)
	if s.total <= limit {
		return &Parts{Count: 1, m: m}
	}
	s.divide(limit)
	p := &Parts{Count: len(s.size), First: s.crossings(), m: m, s: s, bodies: make([][]int32, len(s.size))}
	for range splitPasses {
		if !s.improve() {
			break
		}
	}
	p.Crossings = s.crossings()
	p.Kept = s.place()
	p.Part, p.Slots = s.part, s.slots
	for part := range p.bodies {
		p.bodies[part] = make([]int32, 0, s.size[part])
	}
	for i, part := range s.part {
		p.bodies[part] = append(p.bodies[part], int32(i))
	}
	return p
}

const (
	splitPasses = 16  // over all instructions, at most
	splitSlack  = 100 // parts may be larger by a hundredth
)

// splitter is a module on the way to its parts.
type splitter struct {
	m      *Module
	weight []int32      // instructions of each one of the body, with those within
	total  int          // of all
	pinned []bool       // instructions of the body that read or write memory in an order
	early  []bool       // that read a copied load, which is before the first store
	stored int32        // the first instruction that stores; as many as there are if none does
	copied []int32      // of a value that each part makes for itself: one more than the instruction's number; 0: of others
	by     []int32      // instruction that defines the value
	args   lists[Value] // of each instruction, which are not copied, each once
	users  lists[int32] // instructions that read the value
	part   []int32      // of each instruction
	size   []int        // of each part
	most   int          // of a part
	slots  []int32      // columns of kept values; -1: of others
}

// lists are many short lists, one behind the other in memory.
type lists[T any] struct {
	starts []int32 // of each list, and the end of the last
	all    []T
}

func (l *lists[T]) of(i int) []T { return l.all[l.starts[i]:l.starts[i+1]] }

// reads returns the values that an instruction reads, those within its blocks too: its own list, or one in memory.
func (in *Instr) reads(memory *[]Value) []Value {
	if in.If == nil && in.Loop == nil {
		return in.Args[:in.Op.Args()]
	}
	list := (*memory)[:0]
	in.Reads(func(v Value) { list = append(list, v) })
	*memory = list
	return list
}

// Reads calls f with every value that an instruction reads, those within its blocks too.
func (in *Instr) Reads(f func(Value)) {
	list := func(vs []Value) {
		for _, v := range vs {
			f(v)
		}
	}
	list(in.Args[:in.Op.Args()])
	if b := in.If; b != nil {
		list(b.ThenYield)
		list(b.ElseYield)
	}
	if l := in.Loop; l != nil {
		list(l.Init)
		list(l.Next)
		f(l.Continue)
	}
	for _, b := range in.blocks() {
		for i := range b {
			b[i].Reads(f)
		}
	}
}

// blocks returns those of a branch or loop.
func (in *Instr) blocks() []Block {
	switch {
	case in.If != nil:
		return []Block{in.If.Then, in.If.Else}
	case in.Loop != nil:
		return []Block{in.Loop.Body}
	}
	return nil
}

// all calls f with an instruction and those within its blocks.
func (in *Instr) all(f func(*Instr)) {
	f(in)
	for _, b := range in.blocks() {
		for i := range b {
			b[i].all(f)
		}
	}
}

// Results returns the values that an instruction defines in its own block.
func (in *Instr) Results() []Value {
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

func newSplitter(m *Module) *splitter {
	n, values := len(m.Body), len(m.Types)
	s := &splitter{m: m, weight: make([]int32, n), pinned: make([]bool, n), early: make([]bool, n), copied: make([]int32, values), by: make([]int32, values), part: make([]int32, n)}
	for v := range s.by {
		s.by[v] = -1
	}
	s.stored = int32(n)
	reads := 0
	last := make([]int32, values)
	var memory []Value
	note := func(i int, in *Instr) { // of an instruction of the body, or within it
		s.weight[i]++
		switch in.Op {
		case Store, StoreAt:
			s.stored = min(s.stored, int32(i))
			s.pinned[i] = true
		case Load, LoadAt:
			s.pinned[i] = true
		}
	}
	for i := range m.Body {
		in := &m.Body[i]
		note(i, in)
		for _, b := range in.blocks() {
			for k := range b {
				b[k].all(func(in *Instr) { note(i, in) })
			}
		}
		s.total += int(s.weight[i])
		list := in.reads(&memory)
		for _, v := range list {
			last[v] = int32(i)
		}
		reads += len(list)
		for _, v := range in.Results() {
			s.by[v] = int32(i)
		}
	}
	for i := range m.Body {
		if in := &m.Body[i]; in.Op == Const || in.Op == Load && last[in.Out] <= s.stored {
			s.copied[in.Out] = int32(i) + 1
		}
	}
	s.args = lists[Value]{make([]int32, n+1), make([]Value, 0, reads)}
	s.users.starts = make([]int32, values+2) // the list of value v starts at v+1 until it is filled
	for i := range m.Body {
		for _, v := range m.Body[i].reads(&memory) {
			if at := s.copied[v]; at > 0 && m.Body[at-1].Op == Load {
				s.early[i] = true
			}
			if s.by[v] < 0 || s.copied[v] > 0 || slices.Contains(s.args.all[s.args.starts[i]:], v) { // of a block within, or there anyway
				continue
			}
			s.args.all = append(s.args.all, v)
			s.users.starts[v+2]++
		}
		s.args.starts[i+1] = int32(len(s.args.all))
	}
	for v := range values {
		s.users.starts[v+2] += s.users.starts[v+1]
	}
	s.users.all = make([]int32, len(s.args.all))
	for i := range m.Body {
		for _, v := range s.args.of(i) {
			s.users.all[s.users.starts[v+1]] = int32(i)
			s.users.starts[v+1]++
		}
	}
	return s
}

// divide makes parts of equal size.
func (s *splitter) divide(limit int) {
	parts := (s.total + limit - 1) / limit
	share := (s.total + parts - 1) / parts
	s.size, s.most = make([]int, parts), min(limit, share+share/splitSlack)
	seen := 0
	for i, w := range s.weight {
		s.part[i] = int32(min(seen/share, parts-1))
		s.size[s.part[i]] += int(w)
		seen += int(w)
	}
}

// foreign returns how many parts read a value that is made in another one, if instruction moved were in a part.
func (s *splitter) foreign(v Value, moved, to int32) int {
	where := func(i int32) int32 {
		if i == moved {
			return to
		}
		return s.part[i]
	}
	own, n := where(s.by[v]), 0
	var seen [8]int32
	for k, u := range s.users.of(int(v)) {
		p := where(u)
		if p == own || slices.Contains(seen[:min(n, len(seen))], p) {
			continue
		}
		if n >= len(seen) && slices.ContainsFunc(s.users.of(int(v))[:k], func(u int32) bool { return where(u) == p }) {
			continue
		}
		if n < len(seen) {
			seen[n] = p
		}
		n++
	}
	return n
}

// crossings counts the values that parts read which are made in another one, each once for a part. It takes a step for each
// reader, as a variable's class may have one in every leaf of a large circuit.
func (s *splitter) crossings() int {
	n := 0
	seen := make([]int32, len(s.size)) // the last value that a part counts for, and one more
	for v := range s.by {
		if s.by[v] < 0 || s.copied[v] > 0 {
			continue
		}
		mark := int32(v) + 1
		seen[s.part[s.by[v]]] = mark
		for _, u := range s.users.of(v) {
			if p := s.part[u]; seen[p] != mark {
				seen[p] = mark
				n++
			}
		}
	}
	return n
}

// mostUsers is the most readers of a value that takes part in moves: for others the count would take longer than all else.
const mostUsers = 64

// improve moves single instructions to the next or the previous part where fewer values cross then, and reports whether
// there were any. What reads a value stays in the same part or in a later one.
func (s *splitter) improve() (moved bool) {
	for i := range s.m.Body {
		in, from := &s.m.Body[i], s.part[i]
		if s.pinned[i] || in.Op == Const {
			continue
		}
		for _, to := range [2]int32{from + 1, from - 1} {
			if int(to) >= len(s.size) || to < 0 || s.size[to]+int(s.weight[i]) > s.most || !s.allowed(i, from, to) {
				continue
			}
			if gain := s.gain(i, from, to); gain > 0 {
				s.part[i] = to
				s.size[from] -= int(s.weight[i])
				s.size[to] += int(s.weight[i])
				moved = true
				break
			}
		}
	}
	return moved
}

// allowed reports whether an instruction may move to a neighbouring part. One that reads a copied load stays before the first store,
// as the load comes where it is read.
func (s *splitter) allowed(i int, from, to int32) bool {
	if to < from {
		return !slices.ContainsFunc(s.args.of(i), func(v Value) bool { return s.part[s.by[v]] > to })
	}
	if s.early[i] && int(s.stored) < len(s.part) && to > s.part[s.stored] {
		return false
	}
	for _, v := range s.m.Body[i].Results() {
		if slices.ContainsFunc(s.users.of(int(v)), func(u int32) bool { return s.part[u] < to }) {
			return false
		}
	}
	return true
}

// gain is how many fewer values cross if an instruction moves; negative if more do.
func (s *splitter) gain(i int, from, to int32) int {
	n := 0
	for _, list := range [2][]Value{s.args.of(i), s.m.Body[i].Results()} {
		for _, v := range list {
			if len(s.users.of(int(v))) <= mostUsers {
				n += s.foreign(v, int32(i), from) - s.foreign(v, int32(i), to)
			}
		}
	}
	return n
}

// keptType is the type in memory of kept values of a type.
func keptType(t Type) Type {
	switch t {
	case Pred, U8, U16:
		return I32
	}
	return t
}

// place gives values that cross columns of what is kept. A column is used again once the last part that reads its value
// is over.
func (s *splitter) place() []Param {
	s.slots = make([]int32, len(s.by))
	ends := make([][]Value, len(s.size)) // of each part: the values that it is the last one to read
	starts := make([][]Value, len(s.size))
	for v := range s.by {
		s.slots[v] = -1
		if s.by[v] < 0 || s.copied[v] > 0 {
			continue
		}
		own := s.part[s.by[v]]
		last := own
		for _, u := range s.users.of(int(v)) {
			last = max(last, s.part[u])
		}
		if last > own {
			starts[own] = append(starts[own], Value(v))
			ends[last] = append(ends[last], Value(v))
		}
	}
	var width [numTypes]int32
	var free [numTypes][]int32
	for p := range s.size {
		for _, v := range starts[p] {
			t := keptType(s.m.Types[v])
			if n := len(free[t]); n > 0 {
				s.slots[v] = free[t][n-1]
				free[t] = free[t][:n-1]
				continue
			}
			s.slots[v] = width[t]
			width[t]++
		}
		for _, v := range ends[p] {
			t := keptType(s.m.Types[v])
			free[t] = append(free[t], s.slots[v])
		}
	}
	var kept []Param
	for t, n := range width {
		if n > 0 {
			kept = append(kept, Param{Type: Type(t), Layout: Columns, Width: int(n)})
		}
	}
	return kept
}
