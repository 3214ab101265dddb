package scalar

import (
	"cmp"
	"slices"

	"github.com/pce-engine/pce/kernels/simt"
)

// cuts says which instructions of a module's body are in which kernel, and where the values lie
// that one part hands to a later one.
type cuts struct {
	parts   []part
	lazy    []bool // loads that each part does for itself, where it needs them
	slots   []int  // of each value: where in scratch memory it is, in bytes for a row; -1: nowhere
	scratch int    // bytes for a row
	rolls   []*rolled
	inner   int // where the sums of a loop within a branch are, in bytes for a row
}

// part is a run of the body's instructions, from first to before end.
type part struct{ first, end int }

// Cut returns the kernel of each instruction of a verified module's body, as Lower cuts it, and where in a row's scratch
// memory each value lies that a later kernel reads, in bytes; -1 of others. Bad options are an error that matches
// ErrOptions.
func Cut(m *simt.Module, o Options) (kernels []int32, places []int, err error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	short, rolls, from := roll(m, &o)
	c := cut(short, rolls, cmp.Or(o.Part, DefaultPart))
	kernels = make([]int32, len(m.Body))
	for k, p := range c.parts {
		if p.first < p.end {
			for i := from[p.first]; i < len(m.Body); i++ {
				kernels[i] = int32(k)
			}
		}
	}
	return kernels, c.slots, nil
}

// uses calls f with every value that an instruction reads, those within its blocks too.
func uses(in *simt.Instr, f func(simt.Value)) {
	list := func(vs []simt.Value) {
		for _, v := range vs {
			f(v)
		}
	}
	list(in.Args[:in.Op.Args()])
	if b := in.If; b != nil {
		list(b.ThenYield)
		list(b.ElseYield)
		for i := range b.Then {
			uses(&b.Then[i], f)
		}
		for i := range b.Else {
			uses(&b.Else[i], f)
		}
	}
	if l := in.Loop; l != nil {
		list(l.Init)
		list(l.Next)
		f(l.Continue)
		for i := range l.Body {
			uses(&l.Body[i], f)
		}
	}
}

// each calls f with an instruction and those within its blocks.
func each(in *simt.Instr, f func(*simt.Instr)) {
	f(in)
	var blocks []simt.Block
	if in.If != nil {
		blocks = []simt.Block{in.If.Then, in.If.Else}
	}
	if in.Loop != nil {
		blocks = []simt.Block{in.Loop.Body}
	}
	for _, b := range blocks {
		for i := range b {
			each(&b[i], f)
		}
	}
}

// results returns the values that an instruction defines in its own block.
func results(in *simt.Instr) []simt.Value {
	switch in.Op {
	case simt.Store, simt.StoreAt:
		return nil
	case simt.If:
		return in.If.Results
	case simt.Loop:
		return in.Loop.Results
	}
	return []simt.Value{in.Out}
}

// weight is what an instruction counts towards the size of a part: three times where its result has 64 bits, which
// take two registers, and those of loads that the assembler moves ahead: with two some parts of a network spill. Of tables, from
// which a row loads an element for each leaf, that is twelve times: with eight they spill.
func (c *cuts) weight(m *simt.Module, in *simt.Instr) int {
	if r := c.rolledOf(in); r != nil {
		words := m.Types[r.sums[0]].Bits() / 32
		return (2*words - 1) * (len(r.args)*r.turn*5/4 + len(r.args) + len(r.firsts))
	}
	switch {
	case in.Out == simt.None || m.Types[in.Out].Bits() != 64:
		return 1
	case in.Op == simt.Gather:
		return 12
	}
	return 3
}

// cut divides the body of a module into parts of at most limit instructions. A cut is where the
// fewest values cross it, among the places at which the part before has four fifths of the limit.
func cut(m *simt.Module, rolls []*rolled, limit int) *cuts {
	n := len(m.Body)
	c := &cuts{rolls: rolls, lazy: make([]bool, len(m.Types)), slots: make([]int, len(m.Types))}
	size, last := make([]int, n), make([]int, len(m.Types))
	stored := n // the first instruction that stores
	for i := range m.Body {
		in := &m.Body[i]
		each(in, func(inner *simt.Instr) {
			size[i] += c.weight(m, inner)
			if inner.Op == simt.Store || inner.Op == simt.StoreAt {
				stored = min(stored, i)
			}
		})
		uses(in, func(v simt.Value) { last[v] = i })
	}
	// live counts the values that cross the place before each instruction. Constants are written
	// again, and so are loads behind which nothing is stored before their last use: outputs may be
	// inputs too.
	live := make([]int, n+1)
	for i := range m.Body {
		in := &m.Body[i]
		switch in.Op {
		case simt.Const:
			continue
		case simt.Load:
			if c.lazy[in.Out] = last[in.Out] <= stored; c.lazy[in.Out] {
				continue
			}
		}
		for _, v := range results(in) {
			if last[v] > i {
				live[i+1]++
				live[last[v]+1]--
			}
		}
	}
	for i := range n {
		live[i+1] += live[i]
	}
	for first := 0; first < n || first == 0; {
		end, total := first, 0
		for end < n && (end == first || total+size[end] <= limit) {
			total += size[end]
			end++
		}
		if end < n {
			best := end
			for at := end; at > first+1 && 5*total >= 4*limit; at-- {
				if live[at] < live[best] {
					best = at
				}
				total -= size[at-1]
			}
			end = best
		}
		c.parts = append(c.parts, part{first, end})
		if end == n {
			break
		}
		first = end
	}
	c.place(m, last)
	return c
}

// place gives the values that cross a cut slots of scratch memory, which are used again once their
// last part is over.
func (c *cuts) place(m *simt.Module, last []int) {
	for i := range c.slots {
		c.slots[i] = -1
	}
	free := map[int][]int{} // by size
	regions, readers := map[simt.Value]*rolled{}, map[*rolled]int{}
	slot := func(size, unit int) (at int) {
		if f := free[size]; len(f) > 0 {
			free[size] = f[:len(f)-1]
			return f[len(f)-1]
		}
		at = (c.scratch + unit - 1) / unit * unit
		c.scratch = at + size
		return at
	}
	for k, p := range c.parts {
		var ends []simt.Value // values whose last part this is
		for i := p.first; i < p.end; i++ {
			in := &m.Body[i]
			uses(in, func(v simt.Value) {
				if c.slots[v] >= 0 && last[v] == i {
					ends = append(ends, v)
				}
			})
			if r := c.rolledOf(in); r != nil {
				size := slotBytes(m.Types[r.sums[0]])
				at := slot(r.room(size), 8) // where sums of any type may lie later
				for n, v := range r.sums {
					c.slots[v] = at + n*size
					if last[v] > i {
						regions[v] = r
						readers[r]++
					}
				}
				continue
			}
			if in.Op == simt.Const || in.Op == simt.Load && c.lazy[in.Out] || k == len(c.parts)-1 {
				continue
			}
			for _, v := range results(in) {
				if last[v] < p.end {
					continue
				}
				size := slotBytes(m.Types[v])
				c.slots[v] = slot(size, size)
			}
		}
		slices.Sort(ends)
		for _, v := range slices.Compact(ends) {
			size := slotBytes(m.Types[v])
			r := regions[v]
			if r == nil {
				free[size] = append(free[size], c.slots[v])
				continue
			}
			if readers[r]--; readers[r] == 0 { // the whole of it
				free[r.room(size)] = append(free[r.room(size)], c.slots[r.sums[0]])
			}
		}
	}
	most := 0
	for _, r := range c.rolls {
		if r.inner {
			most = max(most, r.room(slotBytes(m.Types[r.sums[0]])))
		}
	}
	if most > 0 {
		c.inner = (c.scratch + 7) / 8 * 8
		c.scratch = c.inner + most
	}
}

// slotBytes is what a value takes in scratch memory.
func slotBytes(t simt.Type) int { return max(4, t.Bits()/8) }
