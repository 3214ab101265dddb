package scalar

import (
	"encoding/binary"

	"github.com/pce-engine/pce/kernels/simt"
)

// Sums of the same values with other weights become a loop over a table of weights where that pays for the assembler.
const (
	rollModule = 100_000 // instructions of a module, without constants, from which on Auto makes loops
	leastSums  = 8       // of a loop
	leastTerms = 4       // of a sum
	leastRoll  = 128     // terms of all sums
	mostTerms  = 96      // of a sum, in registers of 32 bits: longer ones are several
	leastTurn  = 4       // sums of a turn
	mostTurn   = 8
)

// rolled is a loop of sums over the same values, each with its own weights. In the body of a module it is a Loop whose Imm is
// one more than its number: Init has what it reads, Results what it computes.
type rolled struct {
	args    []simt.Value // what is multiplied by the weights, in the order of the additions
	sums    []simt.Value
	firsts  []simt.Value // of each sum what is added to; nil: the first product begins the sum
	weights [][]uint64   // [sum][term], as bits
	inner   bool         // within a branch
	turn    int          // sums of a turn; those that are left over are straight code
	table   int          // where the weights of the turns are, in bytes
}

// count is how many turns there are.
func (r *rolled) count() int { return (len(r.sums) + r.turn - 1) / r.turn }

// room is the bytes that the sums of all turns take in a row's scratch memory.
func (r *rolled) room(size int) int { return r.count() * r.turn * size }

// stride is the bytes of a turn's weights: whole pieces of 16.
func (r *rolled) stride(size int) int { return (r.turn*len(r.args)*size + 15) / 16 * 16 }

// each adds the weights of a turn as bits, in the order in which the turn reads them.
func (r *rolled) each(turn int, f func(bits uint64)) {
	for at := range r.args {
		for i := range r.turn {
			if k := turn*r.turn + i; k < len(r.sums) {
				f(r.weights[k][at])
			} else {
				f(0)
			}
		}
	}
}

// layRolls appends the weights of the loops to the tables.
func (p *Program) layRolls(m *simt.Module, rolls []*rolled) {
	for _, r := range rolls {
		size := m.Types[r.sums[0]].Bits() / 8
		for len(p.Tables)%16 != 0 {
			p.Tables = append(p.Tables, 0)
		}
		r.table = len(p.Tables)
		for turn := range r.count() {
			r.each(turn, func(bits uint64) {
				var element [8]byte
				binary.LittleEndian.PutUint64(element[:], bits)
				p.Tables = append(p.Tables, element[:size]...)
			})
			for (len(p.Tables)-r.table)%16 != 0 {
				p.Tables = append(p.Tables, 0)
			}
		}
	}
}

// roller finds loops in a module.
type roller struct {
	m      *simt.Module
	consts map[simt.Value]uint64
	used   []int32 // how often each value is read
	rolls  []*rolled
}

// rolls reports whether options let sums be loops: what a row has in scratch memory is one thread's.
func (o *Options) rolls(m *simt.Module) bool {
	if o.Roll == Never || o.Shared || o.Pages != nil || o.Spread != nil || o.Share != nil {
		return false
	}
	if o.Roll == Always {
		return true
	}
	n := 0
	for i := range m.Body {
		each(&m.Body[i], func(in *simt.Instr) {
			if in.Op != simt.Const {
				n++
			}
		})
	}
	return n >= rollModule
}

// roll returns a module with loops in place of sums, and of each of its instructions the first one of the module given that
// comes behind those of the instruction before. The module given stays as it is.
func roll(m *simt.Module, o *Options) (*simt.Module, []*rolled, []int) {
	r := &roller{m: m}
	if o.rolls(m) {
		r.consts, r.used = map[simt.Value]uint64{}, make([]int32, len(m.Types))
		for i := range m.Body {
			each(&m.Body[i], func(in *simt.Instr) {
				if in.Op == simt.Const {
					r.consts[in.Out] = in.Imm
				}
			})
		}
		r.count(m.Body, 1)
		body, from := r.block(m.Body, false)
		if len(r.rolls) > 0 {
			rolled := *m
			rolled.Body = body
			return &rolled, r.rolls, from
		}
	}
	from := make([]int, len(m.Body))
	for i := range from {
		from[i] = i
	}
	return m, nil, from
}

// count counts the values that instructions read.
func (r *roller) count(b simt.Block, by int32) {
	for i := range b {
		uses(&b[i], func(v simt.Value) { r.used[v] += by })
	}
}

// chain is a sum: its instructions, and what it starts from.
type chain struct {
	links []int // places in the block
	first simt.Value
}

// link says whether an instruction of a block multiplies a value by a constant, and adds to another if it is an FMA.
func (r *roller) link(in *simt.Instr) bool {
	if in.Op != simt.FMA && in.Op != simt.Mul {
		return false
	}
	_, weight := r.consts[in.Args[1]]
	_, constant := r.consts[in.Args[0]]
	return weight && !constant
}

// chains returns the sums of a block in the order of their last instructions, those with many terms in pieces.
func (r *roller) chains(b simt.Block) []chain {
	at := map[simt.Value]int{} // of links
	last := make([]bool, len(b))
	for i := range b {
		if in := &b[i]; r.link(in) {
			at[in.Out] = i
			last[i] = in.Op == simt.FMA
			if in.Op != simt.FMA || r.used[in.Args[2]] != 1 {
				continue
			}
			if k, ok := at[in.Args[2]]; ok {
				last[k] = false
			}
		}
	}
	var list []chain
	for i := range b {
		if !last[i] {
			continue
		}
		c := chain{first: simt.None}
		for k := i; ; {
			c.links = append(c.links, k)
			in := &b[k]
			if in.Op == simt.Mul {
				break
			}
			next, ok := at[in.Args[2]]
			if !ok || r.used[in.Args[2]] != 1 {
				c.first = in.Args[2]
				break
			}
			k = next
		}
		for lo, hi := 0, len(c.links)-1; lo < hi; lo, hi = lo+1, hi-1 {
			c.links[lo], c.links[hi] = c.links[hi], c.links[lo]
		}
		most := mostTerms * 32 / r.m.Types[b[i].Out].Bits()
		for len(c.links) > most {
			list = append(list, chain{c.links[:most], c.first})
			c = chain{c.links[most:], b[c.links[most-1]].Out}
		}
		list = append(list, c)
	}
	return list
}

// turnOf is how many of some sums a turn computes: what leaves the fewest of weight 0, and of these the fewest instructions.
func turnOf(sums int) int {
	best := leastTurn
	for t := leastTurn; t <= mostTurn; t++ {
		if (sums+t-1)/t*t < (sums+best-1)/best*best {
			best = t
		}
	}
	return best
}

// block returns a block with loops in place of sums. A loop is where the first of its sums was ready, so all that it reads is.
func (r *roller) block(b simt.Block, inner bool) (simt.Block, []int) {
	type group struct {
		chains []chain
		at     int
	}
	var groups []*group
	known := map[string]*group{}
	var key []byte
	for _, c := range r.chains(b) {
		in := &b[c.links[len(c.links)-1]]
		key = append(key[:0], byte(r.m.Types[in.Out]), 0)
		if c.first != simt.None {
			key[1] = 1
		}
		for _, k := range c.links {
			key = binary.LittleEndian.AppendUint32(key, uint32(b[k].Args[0]))
		}
		end := c.links[len(c.links)-1]
		g := known[string(key)]
		if g == nil {
			g = &group{at: end}
			known[string(key)] = g
			groups = append(groups, g)
		}
		g.chains = append(g.chains, c)
		g.at = min(g.at, end)
	}
	defined := map[simt.Value]int{} // where
	for i := range b {
		for _, v := range results(&b[i]) {
			defined[v] = i
		}
	}
	loops, gone := map[int]simt.Instr{}, make([]bool, len(b))
	for _, g := range groups {
		if in, ok := r.loop(b, g.chains, g.at, defined, inner); ok {
			loops[g.at] = in
			for i, c := range g.chains {
				defined[in.Loop.Results[i]] = g.at
				for _, k := range c.links {
					gone[k] = true
				}
			}
		}
	}
	for i := range b {
		if gone[i] {
			r.count(b[i:i+1], -1)
		}
	}
	for _, in := range loops {
		uses(&in, func(v simt.Value) { r.used[v]++ })
	}
	var body simt.Block
	var from []int
	next := 0
	for i := range b {
		in := b[i]
		if l, ok := loops[i]; ok {
			in = l
		} else if gone[i] {
			continue
		} else if in.If != nil {
			branch := *in.If
			branch.Then, _ = r.block(branch.Then, true)
			branch.Else, _ = r.block(branch.Else, true)
			in.If = &branch
		}
		body, from = append(body, in), append(from, next)
		next = i + 1
	}
	kept := 0 // without constants that nothing reads any more
	for i := range body {
		if in := &body[i]; in.Op == simt.Const && r.used[in.Out] == 0 {
			continue
		}
		body[kept], from[kept] = body[i], from[i]
		kept++
	}
	return body[:kept], from[:kept]
}

// loop makes a loop of sums, unless it is too small or one of them starts from what is not there yet.
func (r *roller) loop(b simt.Block, chains []chain, at int, defined map[simt.Value]int, inner bool) (simt.Instr, bool) {
	terms := len(chains[0].links)
	if len(chains) < leastSums || terms < leastTerms || len(chains)*terms < leastRoll {
		return simt.Instr{}, false
	}
	l := &rolled{inner: inner, turn: turnOf(len(chains))}
	for _, c := range chains {
		if c.first != simt.None {
			if where, ok := defined[c.first]; ok && where >= at {
				return simt.Instr{}, false
			}
			l.firsts = append(l.firsts, c.first)
		}
		weights := make([]uint64, terms)
		for i, k := range c.links {
			weights[i] = r.consts[b[k].Args[1]]
		}
		l.weights = append(l.weights, weights)
		l.sums = append(l.sums, b[c.links[terms-1]].Out)
	}
	for _, k := range chains[0].links {
		l.args = append(l.args, b[k].Args[0])
	}
	r.rolls = append(r.rolls, l)
	init := append(append([]simt.Value{}, l.args...), l.firsts...)
	return simt.Instr{Op: simt.Loop, Out: simt.None, Imm: uint64(len(r.rolls)), Loop: &simt.Repeat{Init: init, Results: l.sums, Continue: l.args[0]}}, true
}
