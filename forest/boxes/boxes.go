package boxes

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// Finder finds the boxes of rows. One goroutine at a time may use it.
type Finder struct {
	forest  *forest.Forest
	domains []Domain
	sets    sets
	tests   [][][2]int32 // by tree and node: the sets of the two ways

	// What is being found.
	row  []float64 // as the forest compares it
	now  []int32   // by feature: the set of its missing cell, full where none is known
	path []int32   // features of the way so far whose set is not full
	ids  []int32
	key  []byte
	box  map[string]int32
	out  *Boxes
}

// Boxes are the boxes of a row.
type Boxes struct {
	// Looked says that a test asks about a missing cell. Without boxes all that the cell may be
	// goes one way then, which need not be that of a missing one.
	Looked bool
	// Sure is what leaves add that are reached for certain, [Outputs].
	Sure []float64
	// Sets are the sets of all boxes, one box after the other: those of box i are
	// Sets[Start[i]:Start[i+1]], ascending, at most one per feature. They are numbers of Finder.Set.
	Sets  []int32
	Start []int32
	// Values are what the leaves of a box add to each output, [boxes][Outputs].
	Values []float64
}

// Len returns the number of boxes.
func (b *Boxes) Len() int { return max(0, len(b.Start)-1) }

// New returns a finder for a forest that has passed Check, of whose features the domains say
// what a missing cell may be. Forests are refused, with an error that matches
// forest.ErrRequest, whose raw scores are not sums over leaves, that ask whether a cell is
// one single number where it may be any, or whose tests divide the numbers of domains into too many runs.
func New(f *forest.Forest, domains []Domain) (*Finder, error) {
	switch {
	case len(domains) != f.Features:
		return nil, fmt.Errorf("%w: domains of %d features; the forest has %d", forest.ErrRequest, len(domains), f.Features)
	case f.Linear != nil:
		return nil, fmt.Errorf("%w: a linear model has no leaves, and so no boxes", forest.ErrRequest)
	case f.Combine != forest.Sum:
		return nil, fmt.Errorf("%w: its scores are minima or maxima over trees; only of sums are expectations sums over boxes", forest.ErrRequest)
	}
	x := &Finder{
		forest: f, domains: domains, tests: make([][][2]int32, len(f.Trees)), now: make([]int32, f.Features), box: map[string]int32{},
		sets: sets{number: map[string]int32{}, both: map[uint64]int32{}},
	}
	for i := range f.Trees {
		t := &f.Trees[i]
		x.tests[i] = make([][2]int32, len(t.Nodes))
		for j := range t.Nodes {
			n := &t.Nodes[j]
			if n.Test == forest.Leaf {
				continue
			}
			yes, no, ok := x.sets.passing(t, n, domains[n.Feature], f.Input)
			if !ok {
				return nil, fmt.Errorf("%w: tree %d asks whether feature %d is one of some numbers, or counts zeros as missing; give it a density in which the feature has categories", forest.ErrRequest, i, n.Feature)
			}
			if err := x.tooMany(); err != nil {
				return nil, err
			}
			x.tests[i][j] = [2]int32{yes, no}
		}
	}
	return x, nil
}

// tooMany is an error where the sets have more runs than memory is taken for.
func (x *Finder) tooMany() error {
	if x.sets.runs > mostRuns {
		return fmt.Errorf("%w: its tests divide the categories of the density into more than %d runs of neighbours; take a density whose categories are in the order of their numbers, or fewer trees", forest.ErrRequest, mostRuns)
	}
	return nil
}

// Set returns the set of that number.
func (x *Finder) Set(number int32) *Set { return &x.sets.list[number-1] }

// Find writes the boxes of a row into out, over the memory that it has. Missing cells are NaN. It refuses forests of whose
// sets too many are needed, as New does.
func (x *Finder) Find(row []float64, out *Boxes) error {
	clear(x.box)
	out.Looked = false
	out.Sure = append(out.Sure[:0], make([]float64, x.forest.Outputs)...)
	out.Sets, out.Start, out.Values = out.Sets[:0], append(out.Start[:0], 0), out.Values[:0]
	x.row, x.out = append(x.row[:0], row...), out
	if x.forest.Input == forest.Float32 {
		for i, cell := range x.row {
			x.row[i] = float64(float32(cell))
		}
	}
	for i := range x.forest.Trees {
		x.walk(&x.forest.Trees[i], x.tests[i], 0)
	}
	x.out = nil
	return x.tooMany()
}

// walk goes down every way that the row may take from a node.
func (x *Finder) walk(t *forest.Tree, tests [][2]int32, at int32) {
	n := &t.Nodes[at]
	for n.Test != forest.Leaf && x.row[n.Feature] == x.row[n.Feature] { // not NaN: one way
		if at = n.No; t.Passes(n, x.row[n.Feature]) {
			at = n.Yes
		}
		n = &t.Nodes[at]
	}
	if n.Test == forest.Leaf {
		x.leaf(t, n)
		return
	}
	x.out.Looked = true
	if x.sets.runs > mostRuns { // which Find says
		return
	}
	was, size := x.now[n.Feature], -1
	if numbers := x.domains[n.Feature].Numbers; numbers != nil {
		size = len(numbers)
	}
	for k, way := range [...]int32{n.Yes, n.No} {
		set := x.sets.intersect(was, tests[at][k], size)
		if set == empty {
			continue
		}
		x.now[n.Feature] = set
		if first := was == full && set != full; first {
			x.path = append(x.path, n.Feature)
			x.walk(t, tests, way)
			x.path = x.path[:len(x.path)-1]
		} else {
			x.walk(t, tests, way)
		}
	}
	x.now[n.Feature] = was
}

// leaf adds the values of a leaf to the box that the way to it has come to.
func (x *Finder) leaf(t *forest.Tree, n *forest.Node) {
	to, out, outputs := x.out.Sure, x.out, x.forest.Outputs
	if len(x.path) > 0 {
		x.ids, x.key = x.ids[:0], x.key[:0]
		for _, feature := range x.path {
			x.ids = append(x.ids, x.now[feature])
		}
		slices.Sort(x.ids)
		for _, id := range x.ids {
			x.key = binary.LittleEndian.AppendUint32(x.key, uint32(id))
		}
		box, ok := x.box[string(x.key)]
		if !ok {
			box = int32(out.Len())
			x.box[string(x.key)] = box
			out.Sets = append(out.Sets, x.ids...)
			out.Start = append(out.Start, int32(len(out.Sets)))
			for range outputs {
				out.Values = append(out.Values, 0)
			}
		}
		to = out.Values[int(box)*outputs:][:outputs]
	}
	for _, v := range t.Values[n.First:n.Last] {
		value := t.Weight * v.Value
		if x.forest.Sum == forest.Float32 {
			value = float64(float32(value))
		}
		to[v.Output] += value
	}
}
