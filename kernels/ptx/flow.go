package ptx

import (
	"fmt"
	"slices"
	"sort"
)

// Bounds on how much is known on a way back from a read. Knowing less makes the
// check stricter, never looser.
const (
	maxKnown  = 4  // predicates
	maxStates = 16 // of a block
)

// guard is what is known of a predicate: its number plus one where it holds, the
// negative of that where it does not, 0 for nothing.
type guard int32

func (in *Inst) guard() guard {
	switch {
	case in.Guard.Class != P:
		return 0
	case in.Negated:
		return guard(-in.Guard.ID - 1)
	}
	return guard(in.Guard.ID + 1)
}

// access is a read or a write of a register.
type access struct {
	stmt  int32
	guard guard
	write bool
	last  int32 // the register's last write up to here, an index, or -1
}

// flow reports registers that are read on some way before they are written.
//
// It follows the ways back from each read that no write in the same block comes
// before. First it takes guarded writes for none and knows nothing of branches:
// few reads remain. For these it carries along under which predicates the read
// happens: a write under g leaves the ways where g does not hold, a branch says
// which way holds what, and a write of a predicate ends what is known of it.
type flow struct {
	kernel   *Kernel
	cfg      *CFG
	first    [D + 1]int32 // number of the first register of a class
	accesses []access     // of all registers, in the order of the text
	starts   []int32      // of each register in accesses
	stamp    []int32      // of each block: the register whose reads have come there
	defines  []int32      // of each block: the register that it writes without a guard
	open     bool         // a way from reads of the register at hand has reached the start
}

func (v *verifier) flow() error {
	f := flow{kernel: v.kernel, cfg: NewCFG(v.kernel)}
	total := f.number()
	f.collect(v.outs, total)
	f.stamp = make([]int32, len(f.cfg.Blocks))
	f.defines = make([]int32, len(f.cfg.Blocks))
	stmt, reg := -1, Reg{}
	for c := P; c <= D; c++ {
		last := total
		if c < D {
			last = f.first[c+1]
		}
		for r := f.first[c]; r < last; r++ {
			// Of all faults, that which comes first in the text.
			if s := f.check(r); s >= 0 && (stmt < 0 || s < stmt) {
				stmt, reg = s, Reg{c, r - f.first[c]}
			}
		}
	}
	if stmt < 0 {
		return nil
	}
	return fmt.Errorf("%s: %v is read on a way on which nothing has been written to it; want a write on every way before", place(v.kernel, stmt), reg)
}

// number gives the registers that occur numbers without gaps between classes.
func (f *flow) number() int32 {
	var most [D + 1]int32
	see := func(r Reg) {
		if r.Class != NoClass {
			most[r.Class] = max(most[r.Class], r.ID+1)
		}
	}
	for i := range f.kernel.Body {
		if in := f.kernel.Body[i].Inst; in != nil {
			see(in.Guard)
			for j := range in.Args {
				see(in.Args[j].Reg)
				for _, r := range in.Args[j].Vec {
					see(r)
				}
			}
		}
	}
	total := int32(0)
	for c := P; c <= D; c++ {
		f.first[c] = total
		total += most[c]
	}
	return total
}

// collect lists the accesses of each register.
func (f *flow) collect(outs []uint8, total int32) {
	f.starts = make([]int32, total+1)
	visit := func(do func(r Reg, a access)) {
		for i := range f.kernel.Body {
			in := f.kernel.Body[i].Inst
			if in == nil {
				continue
			}
			g := in.guard()
			if g != 0 {
				do(in.Guard, access{stmt: int32(i)})
			}
			// Reads come before the writes of their own instruction.
			for _, write := range [2]bool{false, true} {
				for j := range in.Args {
					o := &in.Args[j]
					if write != (j < int(outs[i])) {
						continue
					}
					if o.Reg.Class != NoClass {
						do(o.Reg, access{stmt: int32(i), guard: g, write: write})
					}
					for _, r := range o.Vec {
						do(r, access{stmt: int32(i), guard: g, write: write})
					}
				}
			}
		}
	}
	at := func(r Reg) int32 { return f.first[r.Class] + r.ID }
	visit(func(r Reg, _ access) { f.starts[at(r)+1]++ })
	for i := range total {
		f.starts[i+1] += f.starts[i]
	}
	f.accesses = make([]access, f.starts[total])
	next := slices.Clone(f.starts)
	visit(func(r Reg, a access) {
		i := next[at(r)]
		next[at(r)]++
		switch start := f.starts[at(r)]; {
		case a.write:
			a.last = i - start
		case i == start:
			a.last = -1
		default:
			a.last = f.accesses[i-1].last
		}
		f.accesses[i] = a
	})
}

func (f *flow) of(r int32) []access { return f.accesses[f.starts[r]:f.starts[r+1]] }

// check returns the first statement that reads register r where nothing may have
// been written to it, or -1.
func (f *flow) check(r int32) int {
	all := f.of(r)
	mark := r + 1
	for _, a := range all {
		if a.write && a.guard == 0 {
			f.defines[f.cfg.BlockOf[a.stmt]] = mark
		}
	}
	f.open = false
	written := int32(-1) // the block that has written r so far
	for i, a := range all {
		b := f.cfg.BlockOf[a.stmt]
		switch {
		case a.write && a.guard == 0:
			written = b
		case a.write || written == b || f.alwaysWritten(b, mark):
		case f.writtenUnder(all, i, f.guardsOf(all)), f.writtenUnder(all, i, nil):
		default:
			return int(a.stmt)
		}
	}
	return -1
}

// alwaysWritten follows the ways back from the start of a block to writes without
// a guard. It is false where one of them reaches the start of the body, or may do
// so: it does not go where an earlier read of the register has been.
func (f *flow) alwaysWritten(b, mark int32) bool {
	if f.stamp[b] == mark {
		return !f.open
	}
	f.stamp[b] = mark
	stack := []int32{b}
	for len(stack) > 0 {
		b := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		f.open = f.open || b == 0
		for _, p := range f.cfg.Blocks[b].Prev {
			if f.defines[p] != mark && f.stamp[p] != mark {
				f.stamp[p] = mark
				stack = append(stack, p)
			}
		}
	}
	return !f.open
}

// guardsOf lists the predicates that guard writes.
func (f *flow) guardsOf(all []access) []guard {
	gs := []guard{}
	for _, a := range all {
		if g := max(a.guard, -a.guard); a.write && g != 0 && !slices.Contains(gs, g) {
			gs = append(gs, g)
		}
	}
	return gs
}

// state is a place on a way back from a read and the guards under which the read
// happens, in order.
type state struct {
	block int32
	stmt  int32 // the statements before it are still to be looked at
	known []guard
}

// writtenUnder is alwaysWritten with guards: those of the predicates listed, or of
// all of them if the list is nil.
func (f *flow) writtenUnder(all []access, read int, only []guard) bool {
	counts := func(g guard) bool { return g != 0 && (only == nil || slices.Contains(only, max(g, -g))) }
	at := all[read]
	start := state{block: f.cfg.BlockOf[at.stmt], stmt: at.stmt}
	if counts(at.guard) {
		start.known = []guard{at.guard}
	}
	seen := map[int32][][]guard{}
	stack := []state{start}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		known, written := f.back(all, s)
		if written {
			continue
		}
		if s.block == 0 {
			return false
		}
		prev := f.cfg.Blocks[s.block].Prev
		for i, p := range prev {
			if slices.Contains(prev[:i], p) {
				continue
			}
			from := &f.cfg.Blocks[p]
			for _, way := range f.ways(from, int(s.block)) {
				next := known
				if counts(way) {
					if slices.Contains(known, -way) {
						continue // nobody comes this way
					}
					next = with(known, way)
				}
				if covered(seen[p], next) {
					continue
				}
				if len(seen[p]) >= maxStates {
					next = nil
				}
				seen[p] = append(seen[p], next)
				stack = append(stack, state{p, int32(from.End), next})
			}
		}
	}
	return true
}

// ways lists what holds on the edges between two blocks.
func (f *flow) ways(from *Block, to int) []guard {
	g := guard(0)
	if last := f.kernel.Body[from.End-1].Inst; last != nil && last.Op == "bra" {
		g = last.guard()
	}
	var ways []guard
	if from.Taken == to {
		ways = append(ways, g)
	}
	if from.Fall == to {
		ways = append(ways, -g)
	}
	return ways
}

// covered reports whether some state seen asks for at least as much: knows no
// more.
func covered(seen [][]guard, known []guard) bool {
	for _, s := range seen {
		all := true
		for _, g := range s {
			all = all && slices.Contains(known, g)
		}
		if all {
			return true
		}
	}
	return false
}

// with adds a guard to those known, unless there are too many.
func with(known []guard, g guard) []guard {
	i, found := slices.BinarySearch(known, g)
	if found || len(known) == maxKnown {
		return known
	}
	return slices.Insert(slices.Clone(known), i, g)
}

// back goes from a state to the start of its block. It returns what is known
// there, or that a write has been found on the way.
func (f *flow) back(all []access, s state) (known []guard, written bool) {
	first := int32(f.cfg.Blocks[s.block].First)
	known = s.known
	for at := s.stmt; ; {
		// The last write of the register or of a predicate that is known.
		w := lastWrite(all, at)
		stmt := int32(-1)
		if w >= 0 {
			stmt = all[w].stmt
		}
		for _, g := range known {
			p := f.of(f.first[P] + int32(max(g, -g)) - 1)
			if i := lastWrite(p, at); i >= 0 {
				stmt = max(stmt, p[i].stmt)
			}
		}
		if stmt < first {
			return known, false
		}
		at = stmt
		known = f.forget(known, stmt)
		if w < 0 || all[w].stmt != stmt {
			continue
		}
		switch g := all[w].guard; {
		case g == 0 || slices.Contains(known, g):
			return nil, true
		case !slices.Contains(known, -g):
			known = with(known, -g)
		}
	}
}

// forget removes what is known of the predicate that a statement writes.
func (f *flow) forget(known []guard, stmt int32) []guard {
	for _, g := range known {
		p := f.of(f.first[P] + int32(max(g, -g)) - 1)
		if i := lastWrite(p, stmt+1); i >= 0 && p[i].stmt == stmt {
			return slices.DeleteFunc(slices.Clone(known), func(h guard) bool { return h == g || h == -g })
		}
	}
	return known
}

// lastWrite returns the last write in front of a statement, or -1.
func lastWrite(all []access, stmt int32) int {
	i := sort.Search(len(all), func(i int) bool { return all[i].stmt >= stmt }) - 1
	if i < 0 {
		return -1
	}
	return int(all[i].last)
}
