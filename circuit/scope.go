package circuit

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
)

// Scope is a set of variables: a bit set that stores the words from its first
// to its last variable only. A Scope is immutable.
type Scope struct {
	first int // index of words[0]
	words []uint64
}

// Has reports whether the scope holds variable v; of a negative v it does not.
func (s Scope) Has(v int) bool {
	w := v>>6 - s.first
	return w >= 0 && w < len(s.words) && s.words[w]>>(uint(v)&63)&1 == 1
}

// Len returns the number of variables.
func (s Scope) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Vars returns the variables in ascending order.
func (s Scope) Vars() []int {
	vars := make([]int, 0, s.Len())
	for i, w := range s.words {
		for ; w != 0; w &= w - 1 {
			vars = append(vars, (s.first+i)<<6+bits.TrailingZeros64(w))
		}
	}
	return vars
}

// Overlaps reports whether two scopes share a variable, in time linear in the words that both
// span.
func (s Scope) Overlaps(t Scope) bool {
	from := max(s.first, t.first)
	to := min(s.first+len(s.words), t.first+len(t.words))
	for w := from; w < to; w++ {
		if s.words[w-s.first]&t.words[w-t.first] != 0 {
			return true
		}
	}
	return false
}

// String lists the variables, at most eight of them.
func (s Scope) String() string {
	vars := s.Vars()
	if len(vars) > 8 {
		return fmt.Sprintf("%v and %d more", vars[:8], len(vars)-8)
	}
	return fmt.Sprint(vars)
}

// Scopes holds the scope of every node. Equal scopes are stored once and have
// the same number.
type Scopes struct {
	sets  []Scope
	nodes []int32 // number of each node's scope
}

// maxScopeWords bounds the memory of all distinct scopes (256 MiB), which is
// quadratic in the length of a chain. A valid graph is recognised without them
// (see sketchScopes); they say what is wrong with one that is not, and help to
// find out whether one is deterministic.
const maxScopeWords = 1 << 25

// ScopesOf computes the scopes of all nodes, children first, in time linear in
// edges times words of a scope. It checks the wiring but not the scopes: it
// works for graphs that are neither smooth nor decomposable.
func ScopesOf(g *Graph) (*Scopes, error) {
	if err := checkWiring(g); err != nil {
		return nil, err
	}
	s, _, err := computeScopes(g, false, maxScopeWords)
	return s, err
}

// Of returns the scope of a node, which equal scopes share.
func (s *Scopes) Of(id NodeID) Scope { return s.sets[s.nodes[id]] }

// Number returns the number of a node's scope: equal for equal scopes, dense
// from 0.
func (s *Scopes) Number(id NodeID) int { return int(s.nodes[id]) }

// Distinct returns how many different scopes there are; Number is below it.
func (s *Scopes) Distinct() int { return len(s.sets) }

// scopeFaults are the first nodes that break a rule about scopes.
type scopeFaults struct {
	unsmooth, undecomposable NodeID // None if there is no such node
	child                    NodeID // the offending child of the last fault found
}

// scopeTable numbers the distinct scopes.
type scopeTable struct {
	sets  []Scope
	seed  maphash.Seed
	index map[uint64][]int32
	words int
	// union is scratch: words from lo to hi may be set, all others are 0.
	union  []uint64
	lo, hi int
}

func (t *scopeTable) add(s Scope) (overlaps bool) {
	t.lo, t.hi = min(t.lo, s.first), max(t.hi, s.first+len(s.words))
	if t.hi > len(t.union) {
		t.union = append(t.union, make([]uint64, max(t.hi-len(t.union), len(t.union)))...)
	}
	into := t.union[s.first : s.first+len(s.words)]
	var both uint64
	for i, w := range s.words {
		both |= into[i] & w
		into[i] |= w
	}
	return both != 0
}

// take returns the number of the scope that was collected in the union, and empties the union
// for the next node. Equal scopes get equal numbers, so each is stored once however many nodes
// have it.
func (t *scopeTable) take() int32 {
	words := t.union[t.lo:t.hi]
	h := uint64(t.lo)
	for _, w := range words {
		h = maphash.Comparable(t.seed, [2]uint64{h, w})
	}
	first := t.lo
	number := int32(-1)
	for _, n := range t.index[h] {
		if t.sets[n].first == first && slices.Equal(t.sets[n].words, words) {
			number = n
			break
		}
	}
	if number < 0 {
		number = int32(len(t.sets))
		t.sets = append(t.sets, Scope{first: first, words: slices.Clone(words)})
		t.index[h] = append(t.index[h], number)
		t.words += len(words)
	}
	clear(words)
	t.lo, t.hi = int(^uint(0)>>1), 0
	return number
}

// computeScopes wants a graph whose wiring is in order. With strict set it
// stops at the first fault. It refuses graphs whose distinct scopes take more
// than maxWords words.
func computeScopes(g *Graph, strict bool, maxWords int) (*Scopes, scopeFaults, error) {
	t := &scopeTable{seed: maphash.MakeSeed(), index: map[uint64][]int32{}, lo: int(^uint(0) >> 1)}
	s := &Scopes{nodes: make([]int32, len(g.Nodes))}
	faults := scopeFaults{unsmooth: None, undecomposable: None, child: None}
	for i := range g.Nodes {
		n, id := &g.Nodes[i], NodeID(i)
		switch n.Kind {
		case Input:
			t.add(Scope{first: n.Var >> 6, words: []uint64{1 << (uint(n.Var) & 63)}})
			s.nodes[i] = t.take()
		case Sum:
			first := s.nodes[n.Children[0]]
			equal := true
			for _, c := range n.Children[1:] {
				if s.nodes[c] != first {
					equal = false
					if faults.unsmooth == None {
						faults.unsmooth, faults.child = id, c
					}
				}
			}
			s.nodes[i] = first
			if !equal && !strict {
				for _, c := range n.Children {
					t.add(t.sets[s.nodes[c]])
				}
				s.nodes[i] = t.take()
			}
		case Product:
			if len(n.Children) == 1 {
				s.nodes[i] = s.nodes[n.Children[0]]
				break
			}
			for _, c := range n.Children {
				if t.add(t.sets[s.nodes[c]]) && faults.undecomposable == None {
					faults.undecomposable, faults.child = id, c
				}
			}
			s.nodes[i] = t.take()
		}
		if t.words > maxWords {
			return nil, faults, fmt.Errorf("%w: %d distinct scopes over %d variables take more than %d MiB",
				ErrGraph, len(t.sets), g.NumVars, maxWords>>17)
		}
		if strict && faults.child != None {
			break
		}
	}
	s.sets = t.sets
	return s, faults, nil
}
