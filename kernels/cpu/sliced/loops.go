package sliced

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// ErrLoops means that a set of loops does not exist or cannot run on this machine.
var ErrLoops = errors.New("cpu/sliced: no such loops")

const (
	blockRows = 512
	quadRows  = 128 // rows that are ranked at a time
	quadCells = 4   // neighbouring cells that become columns at a time
	quadLeast = 16  // quads takes multiples of it
	words     = blockRows / 64
	maxHeight = 8                                    // levels of tests that a loop evaluates for a block
	tableSets = 33                                   // sets of a column's nibbles
	groupSets = 16                                   // masks that are made at a time
	lowSets   = tableSets - groupSets                // where those of low nibbles begin
	together  = 8                                    // trees that a row goes down at the same time
	lowHeight = 5                                    // of the subtrees that make a tall top
	planeSets = maxHeight << (maxHeight - lowHeight) // planes of all these subtrees
	maxLeaves = 1 << maxHeight                       // of the top of a tree
	missing16 = uint16(1<<16 - 1)                    // rank of a missing cell where rows walk on
)

// rowSet is a set of the rows of a block.
type rowSet [words]uint64

// Loops is one implementation of the loops. All give the same bits. They read and write
// whole blocks where they say so, and otherwise the halves or rows that a call names.
type Loops struct {
	// Name is "avx512vbmi", "avx512", "avx2" or "generic".
	Name string

	keysStep int // keys takes multiples of it
	keys     func(dst *uint32, src *float32, n int)
	quads    func(cells *float32, stride, n int, keys *uint32)
	steps    []int                                    // the bits of ranks that search takes
	table    func(cuts []float64, steps int) []uint32 // what search takes
	search   func(keys, table *uint32, steps int, codes *byte, n int)
	ranks    func(keys, table *uint32, steps int, ranks *uint16, n int)
	fetch    func(bytes *byte, n int) // asks for n bytes, 1 or more, that will be read
	nibbles  func(codes *byte, table *rowSet, halves int)
	ends     func(high, low *rowSet, groups *uint32, n int, not, masks *rowSet, halves int)
	mux      [maxHeight + 1]func(masks *rowSet, offsets *uint32, planes *rowSet, halves int)
	indices  func(planes *rowSet, index *byte, halves int)
	values   func(values []float32) []float32 // lays the values of a tree's leaves out for add
	add      [maxHeight + 1]func(index *byte, values, sums *float32, n int)
	double   func(index *byte, values, sums *float64, n int)
	walk     func(nodes *uint64, starts *uint32, index *byte, groups *uint16, stride, n int, ends *uint32, sums *float32)
	sigmoid  func(scores, out *float64, n int, minus float64) int // nil: math.Exp
	descend  [maxHeight + 1]func(keys *uint32, nodes *uint64, trees int, leaves *uint32)
}

// All returns the sets that this machine can run, fastest first, the portable one last.
func All() []*Loops { return append(native(), generic) }

// ByPath returns the fastest loops for a kernel path of the CPU device. All paths of
// AVX-512, such as "avx512bf16", have the same ones.
func ByPath(path string) (*Loops, error) {
	var names []string
	for _, l := range All() {
		if l.Name == path || strings.HasPrefix(path, "avx512") && strings.HasPrefix(l.Name, "avx512") {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return nil, fmt.Errorf("%w: %q on this machine; use %s", ErrLoops, path, strings.Join(names, ", "))
}

// Select returns the fastest loops of this machine, or those for the kernel path that
// the environment variable PCE_CPU names.
func Select() (*Loops, error) {
	set, err := micro.Select()
	if err != nil {
		return nil, err
	}
	return ByPath(set.Name)
}
