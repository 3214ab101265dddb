package scalar

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/simt"
)

// generator makes the kernels of a module, one after the other.
type generator struct {
	m          *simt.Module
	o          Options
	cuts       *cuts
	offsets    []int // of the tables
	tableBytes int
	again      []*simt.Instr // of values that each part makes for itself: constants, and loads that are lazy

	// Of the kernel at hand.
	*ptx.Builder
	part   int
	values []any     // ptx.Value, or a Go number of a constant
	at     []int     // of each value: one more than the part that it has been made in
	first  ptx.Value // of the range of Options.Spread
	row    ptx.Value
	// Of Options.Share the thread's number for its row, and where it stores its sums.
	member, partial ptx.Value
	local           ptx.Value // the row's place in scratch memory
	tables          ptx.Value
	columns         [2][]place        // of inputs, of outputs
	base            ptx.Value         // of scratch memory
	scratch         map[int]ptx.Value // by bytes of a value: where the row's are
	params          []Arg
}

// place is where a thread finds its row of an input or output.
type place struct {
	row    ptx.Value // its first element; in shared memory if the input is staged
	step   ptx.Value // bytes from a column to the next, of one that lies by columns
	staged bool
}

// typeOf is the type of registers that hold values of a type; u8 and u16 are widened to 32 bits.
func typeOf(t simt.Type) ptx.Type {
	return [...]ptx.Type{simt.F32: ptx.F32, simt.F64: ptx.F64, simt.I32: ptx.S32, simt.I64: ptx.S64, simt.U8: ptx.U32, simt.U16: ptx.U32, simt.Pred: ptx.Pred}[t]
}

// inMemory is the type with which values of a type are loaded and stored.
func inMemory(t simt.Type) ptx.Type {
	switch t {
	case simt.U8:
		return ptx.U8
	case simt.U16:
		return ptx.U16
	}
	return typeOf(t)
}

// literal is a constant as a Go number.
func literal(t simt.Type, bits uint64) any {
	switch t {
	case simt.F32:
		return math.Float32frombits(uint32(bits))
	case simt.F64:
		return math.Float64frombits(bits)
	case simt.I32:
		return int64(int32(bits))
	}
	return int64(bits)
}

// set notes what a value is.
func (g *generator) set(v simt.Value, x any) { g.values[v], g.at[v] = x, g.part+1 }

// use returns a value as an operand: a register or a number.
func (g *generator) use(v simt.Value) any { return g.values[v] }

// reg returns a value in a register.
func (g *generator) reg(v simt.Value) ptx.Value {
	if x, ok := g.values[v].(ptx.Value); ok {
		return x
	}
	return g.Mov(typeOf(g.m.Types[v]), g.values[v])
}

// used says which tables, inputs and outputs the instructions of a part refer to.
func (g *generator) used(p part) (tables bool, params [2][]int) {
	for i, list := range [2][]simt.Param{g.m.Inputs, g.m.Outputs} {
		params[i] = make([]int, len(list))
	}
	see := func(in *simt.Instr) {
		switch in.Op {
		case simt.Loop:
			tables = tables || in.Imm > 0
		case simt.Gather:
			tables = tables || !g.cascades(in.Ref)
		case simt.Load, simt.LoadAt:
			params[0][in.Ref]++
		case simt.Store, simt.StoreAt:
			params[1][in.Ref]++
		}
	}
	for i := p.first; i < p.end; i++ {
		in := &g.m.Body[i]
		if in.Op != simt.Load || !g.cuts.lazy[in.Out] {
			each(in, see)
		}
	}
	// Loads that the part does itself, each once.
	seen := map[simt.Value]bool{}
	for i := p.first; i < p.end; i++ {
		uses(&g.m.Body[i], func(v simt.Value) {
			if g.cuts.lazy[v] && !seen[v] {
				seen[v] = true
				params[0][g.again[v].Ref]++
			}
		})
	}
	return tables, params
}

// rolledThreads is how many threads of kernels with loops over weights fit on a multiprocessor, by their registers: 168 each.
const rolledThreads = 384

// argument declares a parameter of the kernel.
func (g *generator) argument(kind ArgKind, index int, name string) ptx.Value {
	g.params = append(g.params, Arg{kind, index})
	switch kind {
	case Base, InputStep, OutputStep:
		return g.Param(name, ptx.U32)
	}
	return g.Pointer(name)
}

// kernel makes the kernel of a part, for blocks of a number of threads.
func (g *generator) kernel(i, threads int) (*ptx.Kernel, []Arg) {
	p := g.cuts.parts[i]
	name := "rows"
	if len(g.cuts.parts) > 1 {
		name = fmt.Sprintf("rows_%d", i)
	}
	// The assembler would load the weights of a whole turn ahead, into all the registers that it may have.
	blocks := 1
	if len(g.cuts.rolls) > 0 {
		blocks = max(1, rolledThreads/threads)
	}
	g.Builder, g.part, g.params = ptx.NewKernel(name, threads, blocks), i, nil
	tables, params := g.used(p)
	thread := g.Special("%tid.x")
	if s := g.o.Spread; s != nil {
		g.first = g.Mul(g.Special("%ctaid.y"), s.Step).As(ptx.S32)
	}
	within := thread // the block: the thread's row
	if g.o.Share != nil {
		within = g.And(thread, g.rowsOf(threads)-1)
	}
	g.local = g.Mad(g.Special("%ctaid.x"), g.rowsOf(threads), within)
	rows := g.Load(ptx.U32, g.argument(Control, 0, "control"), 0)
	g.row = g.local
	if g.o.Share != nil {
		within = g.team(rows, threads, thread, within)
	}
	if g.cuts.scratch > 0 {
		g.row = g.Add(g.local, g.argument(Base, 0, "base"))
		g.base, g.scratch = g.argument(Scratch, 0, "scratch"), map[int]ptx.Value{}
	}
	if tables {
		g.tables = g.argument(Tables, 0, "tables")
		if g.o.Pages != nil {
			g.tables = g.MadWide(g.page(), g.tableBytes, g.tables)
		}
		if g.o.Shared {
			g.tables = g.shareTables(g.tables, threads, thread)
		}
	}
	staged := g.staged(params[0], threads)
	for side, list := range [2][]simt.Param{g.m.Inputs, g.m.Outputs} {
		g.columns[side] = make([]place, len(list))
		for k, n := range params[side] {
			if n > 0 {
				g.open(side, k, side == 0 && staged[k], threads, thread, within, rows)
			}
		}
	}
	if slices.Contains(staged, true) || tables && g.o.Shared {
		g.Sync()
	}
	if g.o.Share == nil {
		g.ReturnIf(g.Ge(g.row, rows))
	}
	for i := p.first; i < p.end; i++ {
		g.top(&g.m.Body[i])
	}
	if g.o.Share != nil {
		g.addTeam(rows, threads)
	}
	return g.Kernel(), g.params
}

// page is the number of the launch's page, or of the block's where ranges are spread over the grid.
func (g *generator) page() ptx.Value {
	o := g.o.Pages
	if g.o.Spread != nil {
		return g.Div(g.first.As(ptx.U32), o.Step)
	}
	address := g.argument(Input, o.First, "page")
	return g.Div(g.Builder.Load(ptx.U32, address, 0), o.Step)
}

// open finds the row of an input or output, or begins to stage it.
func (g *generator) open(side, k int, staged bool, threads int, thread, within, rows ptx.Value) {
	q, name, kind, step := &g.m.Inputs, "in", Input, InputStep
	if side == 1 {
		q, name, kind, step = &g.m.Outputs, "out", Output, OutputStep
	}
	param := &(*q)[k]
	size := param.Type.Bits() / 8
	address := g.argument(kind, k, fmt.Sprintf("%s%d", name, k))
	at := &g.columns[side][k]
	switch {
	case staged:
		at.row, at.staged = g.stage(k, address, threads, thread, within, rows), true
	case param.Layout == simt.Rows:
		at.row = g.At(address, g.row, size*param.Width)
	default:
		at.row = g.At(address, g.row, size)
		at.step = g.argument(step, k, fmt.Sprintf("%sstep%d", name, k))
	}
}

// top makes an instruction of the module's body: what it needs of earlier parts and of loads comes
// first, what later parts need of it is stored behind it.
func (g *generator) top(in *simt.Instr) {
	if in.Op == simt.Load && g.cuts.lazy[in.Out] {
		return
	}
	uses(in, func(v simt.Value) {
		switch {
		case g.at[v] == g.part+1: // it is there
		case g.again[v] != nil:
			g.instr(g.again[v])
		case g.cuts.slots[v] >= 0:
			g.set(v, g.fetch(v))
		}
	})
	each(in, func(inner *simt.Instr) { // a place that a branch uses is found in front of it
		if r := g.cuts.rolledOf(inner); r != nil {
			g.scratchAt(slotBytes(g.m.Types[r.sums[0]]))
		}
	})
	g.instr(in)
	if in.Op == simt.Const || g.cuts.rolledOf(in) != nil {
		return
	}
	for _, v := range results(in) {
		if g.cuts.slots[v] >= 0 {
			g.keep(v)
		}
	}
}

// scratchRows is the rows whose values lie together in scratch memory, those of a warp: a value of theirs
// fills a piece of memory, and those of a row are a known distance apart.
const scratchRows = 32

// slot returns where a value is in scratch memory: an address, which all values of its size share, and a
// distance from it. Kernels read and write scratch memory outside of branches and loops, so the first use is
// before the others.
func (g *generator) slot(v simt.Value) (ptx.Value, int) {
	return g.scratchAt(slotBytes(g.m.Types[v])), scratchRows * g.cuts.slots[v]
}

// scratchAt returns the address that values of some bytes share.
func (g *generator) scratchAt(size int) ptx.Value {
	at, ok := g.scratch[size]
	if !ok {
		tile := g.MadWide(g.Shr(g.local, bits.TrailingZeros(scratchRows)), scratchRows*g.cuts.scratch, g.base)
		at = g.At(tile, g.And(g.local, scratchRows-1), size)
		g.scratch[size] = at
	}
	return at
}

// keep stores a value for later parts; a pred as 1 or 0.
func (g *generator) keep(v simt.Value) {
	x, t := g.use(v), typeOf(g.m.Types[v])
	if t == ptx.Pred {
		x, t = g.Select(g.reg(v), g.Mov(ptx.U32, 1), 0), ptx.U32
	}
	at, offset := g.slot(v)
	g.Store(t, at, offset, x)
}

// fetch loads a value of an earlier part.
func (g *generator) fetch(v simt.Value) ptx.Value {
	at, offset := g.slot(v)
	if t := typeOf(g.m.Types[v]); t != ptx.Pred {
		return g.Load(t, at, offset)
	}
	return g.Ne(g.Load(ptx.U32, at, offset), 0)
}
