package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrSchedule means that a schedule is illegal, or that a text is not one.
var ErrSchedule = errors.New("schedule: illegal")

// The loops of every schedule before its first verb.
const (
	Batch = "batch" // over the rows
	Tree  = "tree"  // over the trees, within
)

// Verb is a step of a schedule: a word of the language and what it is applied to.
type Verb struct {
	Name string
	Args []string
}

// String returns the verb as a line of text.
func (v Verb) String() string { return strings.Join(append([]string{v.Name}, v.Args...), " ") }

// Schedule is a list of verbs, which are applied in order. The zero value is the default: each row goes through
// all trees. Methods append a verb and return the schedule; whether it is legal is said by Nest.
type Schedule struct{ Verbs []Verb }

// New returns the default schedule.
func New() *Schedule { return &Schedule{} }

func (s *Schedule) add(name string, args ...any) *Schedule {
	v := Verb{Name: name}
	for _, a := range args {
		v.Args = append(v.Args, fmt.Sprint(a))
	}
	s.Verbs = append(s.Verbs, v)
	return s
}

// Exact refuses verbs that add up the trees in another order than the model's.
func (s *Schedule) Exact() *Schedule { return s.add("exact") }

// Tile replaces a loop by one over tiles of n iterations and one within a tile.
func (s *Schedule) Tile(loop, outer, inner string, n int) *Schedule {
	return s.add("tile", loop, outer, inner, n)
}

// Split replaces a loop by two, one after the other: its first n iterations and the rest. Loops within it are
// copied; those of the second half get its name and a dot in front of theirs.
func (s *Schedule) Split(loop, first, second string, n int) *Schedule {
	return s.add("split", loop, first, second, n)
}

// Reorder puts neighbouring loops, each the only one within the one before, in the given order.
func (s *Schedule) Reorder(loops ...string) *Schedule {
	s.Verbs = append(s.Verbs, Verb{"reorder", append([]string(nil), loops...)})
	return s
}

// Unroll replaces a loop by its iterations.
func (s *Schedule) Unroll(loop string) *Schedule { return s.add("unroll", loop) }

// Specialize gives each run of trees of one depth code of its own.
func (s *Schedule) Specialize(loop string) *Schedule { return s.add("specialize", loop) }

// GPUDimension runs the iterations of a loop over a dimension of a card: "grid.x" or "block.y".
func (s *Schedule) GPUDimension(loop, dimension string) *Schedule {
	return s.add("gpuDimension", loop, dimension)
}

// Cache brings the rows or trees of a tile near before they are read.
func (s *Schedule) Cache(loop string) *Schedule { return s.add("cache", loop) }

// Parallel runs the iterations of a loop on the threads.
func (s *Schedule) Parallel(loop string) *Schedule { return s.add("parallel", loop) }

// Interleave walks n iterations of an innermost loop together, a step of each in turn.
func (s *Schedule) Interleave(loop string, n int) *Schedule { return s.add("interleave", loop, n) }

// UnrollWalk takes n steps of a walk at a time.
func (s *Schedule) UnrollWalk(loop string, n int) *Schedule { return s.add("unrollWalk", loop, n) }

// PeelWalk takes the first n steps of a walk without looking for leaves.
func (s *Schedule) PeelWalk(loop string, n int) *Schedule { return s.add("peelWalk", loop, n) }

// AtomicReduce adds the trees of a parallel loop to the sums in any order.
func (s *Schedule) AtomicReduce(loop string) *Schedule { return s.add("atomicReduce", loop) }

// SharedReduce adds the trees of a loop over a card's threads in shared memory.
func (s *Schedule) SharedReduce(loop string) *Schedule { return s.add("sharedReduce", loop) }

// VectorReduce keeps n sums of a loop over trees, each of every n-th tree, and adds them at its end.
func (s *Schedule) VectorReduce(loop string, n int) *Schedule { return s.add("vectorReduce", loop, n) }

// Represent chooses how trees lie in memory: "array", "sparse", "reorg" or "sliced".
func (s *Schedule) Represent(how string) *Schedule { return s.add("represent", how) }

// SortTrees orders the trees by their depth; the sums keep the model's order.
func (s *Schedule) SortTrees() *Schedule { return s.add("sortTrees") }

// Pad gives all leaves of a tree one depth.
func (s *Schedule) Pad() *Schedule { return s.add("pad") }

// TileNodes joins up to n nodes of a tree that are decided in one step: "uniform", "probability" or "hybrid".
func (s *Schedule) TileNodes(n int, how string) *Schedule { return s.add("tileNodes", n, how) }

// Text returns the schedule as text, a verb on each line, which Parse reads back as the same schedule.
func (s *Schedule) Text() string {
	var b strings.Builder
	for _, v := range s.Verbs {
		b.WriteString(v.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Limits of a schedule.
const (
	maxText  = 1 << 20 // bytes
	maxVerbs = 1000
	maxLoops = 1000 // splits copy loops
	maxSize  = 1 << 30
)

// Parse reads a schedule: a verb on each line, words apart by spaces, # before remarks. The byte order mark that some editors put
// in front of a text is passed over. The words of each verb are checked here, whether it is legal where it stands by Nest.
func Parse(text string) (*Schedule, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%w: a text of %d bytes, want at most %d", ErrSchedule, len(text), maxText)
	}
	s := New()
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		v := Verb{Name: words[0]}
		if len(words) > 1 {
			v.Args = words[1:]
		}
		if wrong := v.check(); wrong != "" {
			return nil, fmt.Errorf("%w: line %d: %s", ErrSchedule, i+1, wrong)
		}
		if len(s.Verbs) == maxVerbs {
			return nil, fmt.Errorf("%w: line %d: more than %d verbs", ErrSchedule, i+1, maxVerbs)
		}
		s.Verbs = append(s.Verbs, v)
	}
	return s, nil
}

// The kinds of words that a verb takes.
const (
	aLoop    = "LOOP"
	aName    = "NAME"
	aSize    = "N"
	aWord    = "WORD"
	manyLoop = "LOOP..."
)

// forms says which words each verb takes.
var forms = map[string][]string{
	"exact": {}, "tile": {aLoop, aName, aName, aSize}, "split": {aLoop, aName, aName, aSize}, "reorder": {manyLoop},
	"unroll": {aLoop}, "specialize": {aLoop}, "gpuDimension": {aLoop, aWord}, "cache": {aLoop}, "parallel": {aLoop},
	"interleave": {aLoop, aSize}, "unrollWalk": {aLoop, aSize}, "peelWalk": {aLoop, aSize},
	"atomicReduce": {aLoop}, "sharedReduce": {aLoop}, "vectorReduce": {aLoop, aSize}, "represent": {aWord},
	"sortTrees": {}, "pad": {}, "tileNodes": {aSize, aWord},
}

// choices lists the last words of verbs that choose among some.
var choices = map[string][]string{
	"represent":    {Array, Sparse, Reorg, Sliced},
	"tileNodes":    {Uniform, Probability, Hybrid},
	"gpuDimension": {"grid.x", "grid.y", "grid.z", "block.x", "block.y", "block.z"},
}

// The representations of trees.
const (
	Array  = "array"
	Sparse = "sparse"
	Reorg  = "reorg"
	Sliced = "sliced"
)

// The ways to join nodes to tiles.
const (
	Uniform     = "uniform"
	Probability = "probability"
	Hybrid      = "hybrid"
)

// sizes bounds the sizes of verbs.
var sizes = map[string][2]int{
	"tile": {2, maxSize}, "split": {1, maxSize}, "interleave": {2, 16}, "unrollWalk": {1, 64}, "peelWalk": {1, 64}, "vectorReduce": {2, 16}, "tileNodes": {2, 8},
}

// check returns what is wrong with the words of a verb, "" if nothing is.
func (v Verb) check() string {
	form, ok := forms[v.Name]
	switch {
	case !ok:
		return fmt.Sprintf("%.40q is not a verb", v.Name)
	case len(form) == 1 && form[0] == manyLoop:
		if len(v.Args) < 2 {
			return v.Name + " wants two or more loops"
		}
		form = make([]string, len(v.Args))
		for i := range form {
			form[i] = aLoop
		}
	case len(form) != len(v.Args):
		return strings.TrimSpace(fmt.Sprintf("%s has %d words behind it, want %s", v.Name, len(v.Args), "\""+strings.Join(append([]string{v.Name}, form...), " ")+"\""))
	}
	for i, kind := range form {
		word := v.Args[i]
		switch kind {
		case aLoop, aName:
			if !isName(word, kind == aLoop) {
				return fmt.Sprintf("%s: %.40q is not a name; want letters, digits and _, a letter first", v.Name, word)
			}
		case aSize:
			n, err := strconv.Atoi(word)
			if b := sizes[v.Name]; err != nil || n < b[0] || n > b[1] || strconv.Itoa(n) != word {
				return fmt.Sprintf("%s: %.40q is not a size from %d to %d", v.Name, word, b[0], b[1])
			}
		case aWord:
			if list := choices[v.Name]; !contains(list, word) {
				return fmt.Sprintf("%s: %.40q is not one of %s", v.Name, word, strings.Join(list, ", "))
			}
		}
	}
	return ""
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// isName reports whether s can name a loop; with dots, also a copy that a split made.
func isName(s string, dots bool) bool {
	if len(s) > 200 {
		return false
	}
	parts := []string{s}
	if dots {
		parts = strings.Split(s, ".")
	}
	for _, p := range parts {
		if p == "" || p[0] >= '0' && p[0] <= '9' || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			return false
		}
	}
	return true
}

// size returns the last word as a number; the verb has been checked.
func (v Verb) size(at int) int {
	n, err := strconv.Atoi(v.Args[at])
	if err != nil {
		panic("BUG: schedule: a size that check lets pass")
	}
	return n
}
