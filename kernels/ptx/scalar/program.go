package scalar

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/simt"
)

// ErrOptions means options that kernels cannot be made for.
var ErrOptions = errors.New("scalar: bad options")

// Choice says whether something is done: as the model of costs says, never, or wherever it can be.
type Choice uint8

// The choices.
const (
	Auto Choice = iota
	Never
	Always
)

// Options choose how a module becomes kernels. All but Spread and Share, which add in other orders, leave every bit of the
// results as it is.
// The zero value is what the model of costs chooses, for any card.
type Options struct {
	// Threads of a block: 32, 64, 128, 256 or 512; 0: 128, or fewer where inputs are staged that fit
	// in shared memory only then.
	Threads int
	// Cascade is the most elements of a table that becomes a cascade of selections, at most 256;
	// others are read from memory. 0: as many as cost no more than a read. -1: none.
	Cascade int
	// Staging says whether the rows of a block are copied to shared memory before they are read, of
	// inputs that lie by rows.
	Staging Choice
	// Shared says that all tables are copied to shared memory before they are read, by each block. They
	// and the sums of Share must fit into 48 KiB; rows are staged in what is left.
	Shared bool
	// Pages divides the tables; nil: they are whole.
	Pages *Pages
	// Spread spreads ranges over the second dimension of the grid; nil: there is none.
	Spread *Spread
	// Share gives each row several threads of a block, of which Threads is then a multiple; nil: one.
	Share *Share
	// Part is the most instructions of the module in one kernel, at least 16; 0: DefaultPart. Those with
	// a result of 64 bits count three times. A branch or a loop is not cut, so a part may have more.
	Part int
	// Roll says whether many sums of the same values, each with its own constants, become a loop over a table. Auto: in modules
	// of 100,000 instructions or more, constants not counted, for which the driver's assembler takes seconds. Always needs a place
	// in scratch memory for modules in one part too. Modules whose tables are shared or in pages, and rows with several threads, have no such loops.
	Roll Choice
	// MaxScratch is the most bytes of scratch memory that a program has on a card, unless a single block takes more; 0: 64 MiB.
	// It bounds the rows of a launch of modules in several parts.
	MaxScratch int
	// Major is that of the compute capability that the text is for: 8, or 9. 0: 8, which all cards
	// from there on take.
	Major int
}

// Pages says that each table is Count tables of one length, one after the other, of which a launch has one: number n where the input
// First, of i32 and the same for all rows, is n Step to (n+1) Step - 1. An index is clamped to this one's elements.
type Pages struct {
	Count       int
	First, Step int
}

// Spread says that a row has several threads, each for a range of Step numbers below Total: block y of the grid reads the
// start of its range in place of the input First and its end in place of End, numbers of i32, and -0 in place of the
// input Sums. What it stores, f32 or f64, is added atomically, in any order. Programs in several parts cannot be spread.
type Spread struct {
	First, End, Sums int // inputs
	Step, Total      int
}

// Share says that a row has several threads of one block, which read their number, from 0, in place of the input Thread of
// i32, and -0 in place of the input Sums. What they store, f32 or f64, is added in shared memory: the second half of
// the threads' to the first's, and so on until one sum is left, and that to the row's own in Sums, which has the columns of the one
// output. So the order of additions is fixed. Programs in several parts cannot be shared.
type Share struct {
	Thread, Sums int // inputs
	Threads      int // of a row: a power of two, 2 at least
}

// Ranges is how many there are.
func (s *Spread) Ranges() int { return (s.Total + s.Step - 1) / s.Step }

// Chosen is a module with options, for a device that lowers it.
type Chosen struct {
	*simt.Module
	Options Options
}

// DefaultPart is the most instructions of a kernel. Of a program of 274,000 operations CUDA 11.8's
// assembler makes parts of 2,000 in 7.5 seconds, of 4,000 in 8.2, of 10,000 in 10.5; of 25,000 it
// takes 19 seconds, and threads run out of registers.
const DefaultPart = 3000

const (
	mostThreads = 512
	mostCascade = 256
	mostShared  = 48 << 10 // bytes that a kernel may declare
)

// Program is a module as kernels.
type Program struct {
	Text    *ptx.Module
	Kernels []Kernel // in the order of their launches; each needs what those before it have written
	Threads int      // of a block of every kernel
	Rows    int      // of a block
	Tables  []byte   // the tables as they lie in memory, aligned to 8 bytes; nil: none
	Ranges  int      // of Options.Spread: blocks in the second dimension of the grid; 0: 1
	Scratch int      // bytes of scratch memory for each row of a launch, whose blocks are whole; 0: there is none
}

// Kernel is a kernel with what its parameters are.
type Kernel struct {
	Name string
	Args []Arg
}

// Arg is an argument of a kernel.
type Arg struct {
	Kind  ArgKind
	Index int // of the input or output
}

// ArgKind says what an argument is.
type ArgKind uint8

// The kinds of arguments. Addresses have 64 bits, the others 32.
const (
	Control    ArgKind = iota // address of the number of rows, 32 bits
	Tables                    // address of Program.Tables
	Base                      // the first row of the launch
	Scratch                   // its address
	Input                     // address of an input
	InputStep                 // bytes from a column of an input to the next
	Output                    // address of an output
	OutputStep                // bytes from a column of an output to the next
)

func (o *Options) check() error {
	switch {
	case o.Threads != 0 && (o.Threads < 32 || o.Threads > mostThreads || o.Threads&(o.Threads-1) != 0):
		return fmt.Errorf("%w: blocks of %d threads; want 32, 64, 128, 256 or 512", ErrOptions, o.Threads)
	case o.Cascade < -1 || o.Cascade > mostCascade:
		return fmt.Errorf("%w: cascades for tables of up to %d elements; want at most %d, -1 for none", ErrOptions, o.Cascade, mostCascade)
	case o.Staging > Always:
		return fmt.Errorf("%w: staging %d; want Auto, Never or Always", ErrOptions, o.Staging)
	case o.Roll > Always:
		return fmt.Errorf("%w: loops %d; want Auto, Never or Always", ErrOptions, o.Roll)
	case o.Part != 0 && o.Part < 16:
		return fmt.Errorf("%w: parts of %d instructions; want at least 16", ErrOptions, o.Part)
	case o.MaxScratch < 0:
		return fmt.Errorf("%w: %d bytes of scratch memory at most; want 0 or more", ErrOptions, o.MaxScratch)
	case o.Major != 0 && o.Major != 8 && o.Major != 9:
		return fmt.Errorf("%w: compute capability %d; want 8 or 9", ErrOptions, o.Major)
	}
	return nil
}

// Lower makes kernels of a module.
func Lower(m *simt.Module, o Options) (*Program, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := m.Verify(); err != nil {
		return nil, err
	}
	p := &Program{Text: &ptx.Module{Major: 7, Minor: 0, Target: "sm_80"}}
	if o.Major == 9 {
		p.Text.Minor, p.Text.Target = 8, "sm_90"
	}
	count := 1
	if o.Pages != nil {
		if err := paged(m, o.Pages); err != nil {
			return nil, err
		}
		count = o.Pages.Count
	}
	offsets, size, err := p.layTables(m, count)
	if err != nil {
		return nil, err
	}
	if o.Shared && size > mostShared {
		return nil, fmt.Errorf("%w: %d bytes of tables in shared memory, which has %d; leave them in global memory", ErrOptions, size, mostShared)
	}
	short, rolls, _ := roll(m, &o)
	p.layRolls(m, rolls)
	if len(p.Tables) >= 1<<31 {
		return nil, fmt.Errorf("%w: %.60q: its tables and weights have more than 2 GiB, which a card's offsets do not reach; make them smaller", simt.ErrModule, m.Name)
	}
	c := cut(short, rolls, cmp.Or(o.Part, DefaultPart))
	p.Scratch = c.scratch
	g := &generator{m: short, o: o, cuts: c, tableBytes: size, offsets: offsets, values: make([]any, len(m.Types)), at: make([]int, len(m.Types)), again: make([]*simt.Instr, len(m.Types))}
	for i := range m.Body {
		if in := &m.Body[i]; in.Op == simt.Const || in.Op == simt.Load && c.lazy[in.Out] {
			g.again[in.Out] = in
		}
	}
	if o.Spread != nil {
		if err := spreads(m, o.Spread, len(c.parts)); err != nil {
			return nil, err
		}
		p.Ranges = o.Spread.Ranges()
	}
	if o.Share != nil {
		if err := shares(m, &o, len(c.parts)); err != nil {
			return nil, err
		}
		if sums := o.partials(m); o.Shared && size+sums > mostShared {
			return nil, fmt.Errorf("%w: %d bytes of tables and %d of sums in shared memory, which has %d; leave the tables in global memory", ErrOptions, size, sums, mostShared)
		}
	}
	p.Threads = g.block()
	p.Rows = g.rowsOf(p.Threads)
	for i := range c.parts {
		k, args := g.kernel(i, p.Threads)
		p.Text.Kernels = append(p.Text.Kernels, k)
		p.Kernels = append(p.Kernels, Kernel{k.Name, args})
	}
	return p, nil
}

// mostRanges is the most blocks in the second dimension of a grid.
const mostRanges = 1<<16 - 1

// spreads reports why a module cannot be spread.
func spreads(m *simt.Module, s *Spread, parts int) error {
	n := len(m.Inputs)
	switch {
	case s.First < 0 || s.First >= n || s.End < 0 || s.End >= n || s.Sums < 0 || s.Sums >= n || m.Inputs[s.First].Type != simt.I32 || m.Inputs[s.End].Type != simt.I32:
		return fmt.Errorf("%w: ranges in the inputs %d and %d, sums in %d; want two of i32 and one, of %d", ErrOptions, s.First, s.End, s.Sums, n)
	case s.Step < 1 || s.Total < 1 || s.Ranges() > mostRanges:
		return fmt.Errorf("%w: ranges of %d numbers below %d; want 1 to %d ranges", ErrOptions, s.Step, s.Total, mostRanges)
	case parts > 1:
		return fmt.Errorf("%w: %.60q has %d parts, which hand values over from row to row; it cannot be spread", ErrOptions, m.Name, parts)
	}
	for _, q := range m.Outputs {
		if !q.Type.Float() {
			return fmt.Errorf("%w: %s of %v cannot be added to atomically; want f32 or f64", ErrOptions, q.Name, q.Type)
		}
	}
	return nil
}

// shares reports why the rows of a module cannot have several threads.
func shares(m *simt.Module, o *Options, parts int) error {
	s, n := o.Share, len(m.Inputs)
	switch {
	case s.Thread < 0 || s.Thread >= n || s.Sums < 0 || s.Sums >= n || m.Inputs[s.Thread].Type != simt.I32 || len(m.Outputs) != 1 || m.Inputs[s.Sums] != (simt.Param{Name: m.Inputs[s.Sums].Name, Type: m.Outputs[0].Type, Layout: m.Outputs[0].Layout, Width: m.Outputs[0].Width}):
		return fmt.Errorf("%w: threads in the input %d and sums in %d; want one of i32 and one like the one output, of %d", ErrOptions, s.Thread, s.Sums, n)
	case s.Threads < 2 || s.Threads&(s.Threads-1) != 0 || o.Threads < s.Threads:
		return fmt.Errorf("%w: %d threads for each row, in blocks of %d; want a power of two from 2 on that divides them", ErrOptions, s.Threads, o.Threads)
	case o.Spread != nil || parts > 1:
		return fmt.Errorf("%w: %.60q has %d parts, or ranges too; its rows cannot have several threads", ErrOptions, m.Name, parts)
	case !m.Outputs[0].Type.Float():
		return fmt.Errorf("%w: %s of %v cannot be added; want f32 or f64", ErrOptions, m.Outputs[0].Name, m.Outputs[0].Type)
	case o.partials(m) > mostShared:
		return fmt.Errorf("%w: the sums of %d threads take %d bytes of shared memory, which has %d; use smaller blocks", ErrOptions, o.Threads, o.partials(m), mostShared)
	}
	return nil
}

// partials is the bytes of the sums of a block's threads.
func (o *Options) partials(m *simt.Module) int {
	if o.Share == nil {
		return 0
	}
	q := &m.Outputs[0]
	return o.Threads * q.Width * q.Type.Bits() / 8
}

// paged reports why the tables of a module cannot be divided.
func paged(m *simt.Module, o *Pages) error {
	if o.Count < 1 || o.Step < 1 || o.First < 0 || o.First >= len(m.Inputs) || m.Inputs[o.First].Type != simt.I32 {
		return fmt.Errorf("%w: %d pages, chosen by the input %d by %d; want one of i32, of %d", ErrOptions, o.Count, o.First, o.Step, len(m.Inputs))
	}
	for _, t := range m.Tables {
		if len(t.Bits)%o.Count != 0 {
			return fmt.Errorf("%w: %s has %d elements; want a multiple of the %d pages", ErrOptions, t.Name, len(t.Bits), o.Count)
		}
	}
	return nil
}

// layTables lays the module's tables out, those of one page after those of another, and returns where each is and how long a page is.
func (p *Program) layTables(m *simt.Module, count int) (offsets []int, size int, err error) {
	for page := range count {
		for _, t := range m.Tables {
			p.align()
			if page == 0 {
				offsets = append(offsets, len(p.Tables))
			}
			n := len(t.Bits) / count
			var element [8]byte
			for _, bits := range t.Bits[page*n : (page+1)*n] {
				binary.LittleEndian.PutUint64(element[:], bits)
				p.Tables = append(p.Tables, element[:t.Type.Bits()/8]...)
			}
			if len(p.Tables) >= 1<<31 {
				return nil, 0, fmt.Errorf("%w: %.60q: its tables have more than 2 GiB, which a card's offsets do not reach; make them smaller", simt.ErrModule, m.Name)
			}
		}
		if count > 1 {
			p.align()
		}
		if page == 0 {
			size = len(p.Tables)
		}
	}
	return offsets, size, nil
}

// align begins a table at a multiple of eight bytes.
func (p *Program) align() {
	for len(p.Tables)%8 != 0 {
		p.Tables = append(p.Tables, 0)
	}
}
