package nest

import (
	"errors"
	"fmt"

	"github.com/pce-engine/pce/kernels/simt"
)

// ErrModule means that a module, or what it is run with, is not valid.
var ErrModule = errors.New("nest: bad module")

// Item is a loop over rows or trees, or a kernel: the one of Loop and Kernel that is not nil. Of the rows or trees that
// the loops around it leave, it leaves out the first Skip and takes at most Most.
type Item struct {
	Skip, Most int // Most 0: all
	Loop       *Loop
	Kernel     *Kernel
}

// Loop gives its body Step rows or trees at a time.
type Loop struct {
	Rows     bool
	Step     int
	Parallel bool // iterations are spread over the threads
	// Private gives each iteration sums of its own, which are added in the order of the iterations. Parallel loops over
	// trees want it, unless their kernels keep words and add nothing.
	Private bool
	Fetch   bool // the rows of an iteration are read once before its body
	Body    []Item
}

// Kernel is a module of code that is run for rows.
type Kernel struct {
	Code     *simt.Module
	Trees    bool // it is told which trees
	Keeps    bool // its output is kept, not sums
	Adds     bool // it has kept as an input
	Parallel bool // its rows are spread over the threads
	Block    int  // threads of a block on a card; 0: any
	Staged   bool // on a card, rows are copied to shared memory first
	Shared   bool // on a card, the trees are copied to shared memory first
	// Pages is, on a card, into how many parts of one length each table of the code is divided. A launch has the part of its first
	// tree, of Page trees to a part. 0: tables are whole.
	Pages, Page int
	Share       int // on a card, each row has so many threads of a block, and these add in shared memory; 0: one
	Spread      int // on a card, each row has a thread for every so many trees, and these add to its sums in any order; 0: one
}

// Module is a nest of loops and kernels.
type Module struct {
	Features, Outputs, Trees int
	Cell, Sum                simt.Type // F32 or F64
	Kept                     bool      // kernels keep words of trees
	Body                     []Item
}

// Kernels calls visit with every kernel.
func (m *Module) Kernels(visit func(*Kernel)) { eachKernel(m.Body, visit) }

func eachKernel(list []Item, visit func(*Kernel)) {
	for i := range list {
		if list[i].Kernel != nil {
			visit(list[i].Kernel)
		} else if list[i].Loop != nil {
			eachKernel(list[i].Loop.Body, visit)
		}
	}
}

// Validate reports what is wrong with the module.
func (m *Module) Validate() error {
	if m.Features < 1 || m.Outputs < 1 || m.Trees < 0 || m.Cell > simt.F64 || m.Sum > simt.F64 {
		return fmt.Errorf("%w: %d features, %d outputs, %d trees of %v and %v", ErrModule, m.Features, m.Outputs, m.Trees, m.Cell, m.Sum)
	}
	return m.validate(m.Body, false)
}

func (m *Module) validate(list []Item, parallel bool) error {
	for i := range list {
		it := &list[i]
		if (it.Loop == nil) == (it.Kernel == nil) || it.Skip < 0 || it.Most < 0 {
			return fmt.Errorf("%w: item %d is neither a loop nor a kernel, or both, from %d at most %d", ErrModule, i, it.Skip, it.Most)
		}
		if k := it.Kernel; k != nil {
			if want := 2 + 2*count(k.Trees) + count(k.Adds) + count(k.Share > 0); k.Code == nil || len(k.Code.Inputs) != want || len(k.Code.Outputs) != 1 || (k.Keeps || k.Adds) && !m.Kept {
				return fmt.Errorf("%w: item %d: the kernel has not the inputs that it is told", ErrModule, i)
			}
			if k.Parallel && parallel {
				return fmt.Errorf("%w: item %d: threads within threads", ErrModule, i)
			}
			continue
		}
		l := it.Loop
		if l.Step < 1 || l.Parallel && (parallel || !l.Rows && !l.Private && !m.Kept) || l.Private && (l.Rows || !l.Parallel) {
			return fmt.Errorf("%w: item %d: a loop by %d, or threads within threads, or threads over trees that add to the same sums", ErrModule, i, l.Step)
		}
		if err := m.validate(l.Body, parallel || l.Parallel); err != nil {
			return err
		}
	}
	return nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
