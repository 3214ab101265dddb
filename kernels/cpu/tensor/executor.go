package tensor

import (
	"runtime"
	"sync/atomic"

	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// executor is a loaded program: its tasks, its schedule and its workspace.
type executor struct {
	dev     *cpu.Device
	prog    *layers.Program
	owners  []layers.Owner
	set     *micro.Set
	size    int // units of a block
	rowsMax int
	train   bool
	queries bool
	mixed   flowKind
	// wideCodes says that the program has wide codes.
	wideCodes bool
	grid      float32 // the unit of counts, and the count from which float32 is coarser
	fine      float32

	tasks                 []task
	taskOf                []int32 // vector → task, -1 where there is nothing to do
	users                 []int32 // vector → number of elements that read it
	usersOf               [][]int32
	alone                 []bool    // vector → an input that one product reads, of a column that no other input has
	members, inputMembers [][]int32 // owner → vectors that share its parameters
	keptAt                []int     // element → its first float in kept
	wide, spread          []bool    // layers.Program.Wide
	groupParams           []int     // floats of the weights that several sums share
	keptLen               int

	forwardPlan, backwardPlan schedule

	slot     []int     // vector → its first float in values, -1 if it keeps none
	values   []float32 // [vector][rowsMax][width]
	ownSlot  []int     // vector → its first number in ownExps, -1 if its units have no exponents of their own
	ownExps  []float32 // [vector][rowsMax][width], whole numbers
	flowSlot []int     // vector → its first float in flows, -1 if flows replace values
	flows    []float32
	exps     []int32 // [vector][rowsMax]
	shifts   []int32 // [element][rowsMax]
	taken    []int32 // [vector][rowsMax]: units that rows take in sample, from 1; 0 for none
	kept     []float32
	came     []float32   // [vector][rowsMax]: flow into the vector, for products of halves
	norms    []float32   // [element block][size]: flow through each unit, over the rows
	groups   [][]float32 // gradients of shared weights
	logs     logStore
	peaks    peaks       // for queries
	scales   [][]float64 // by column: powers of two that statistics are divided by

	workers    []*worker
	threads    int
	gate       barrier
	waker      waker
	recomputed atomic.Int64
	overflown  atomic.Bool // a statistic of the call has no place in 64 bits

	fanIn []int32 // by unit of an owner: weights or categories that are not 0
	// The parameters whose fan-in was counted, their writes then, and the owners.
	counted              *cpu.Buffer
	countedAt            int
	countedLo, countedHi int

	singles   *singles // nil where vectors have more units than one
	lateBytes int64    // of the tasks' memory, where that came after the program was loaded

	call call
}

// call is what the running call of the program works on.
type call struct {
	rows   int
	params []float32
	codes  columnCodes
	vals   []float32
	flows  []int64     // nil: the parameters move at once
	frozen bool        // parameters stay: flows are products of float32 numbers, without gradients
	query  *posteriors // what Posteriors writes, else nil
	peaks  *peaks      // of inputs whose cells are missing; nil where these are 1
	most   bool        // sums are the largest of their terms
	rule   ruleArgs
}

// columnCodes are codes of columns: narrow or wide.
type columnCodes struct {
	narrow []uint16
	wide   []uint32
}

// from returns the codes from the i-th on.
func (c columnCodes) from(i int) columnCodes {
	if c.wide != nil {
		return columnCodes{wide: c.wide[i:]}
	}
	return columnCodes{narrow: c.narrow[i:]}
}

func (c columnCodes) at(i int) int32 {
	if c.wide != nil {
		return int32(c.wide[i])
	}
	return int32(c.narrow[i])
}

func (c columnCodes) set(i, code int) {
	if c.wide != nil {
		c.wide[i] = uint32(code)
	} else {
		c.narrow[i] = uint16(code)
	}
}

// worker holds the scratch memory of one thread.
type worker struct {
	part, parts int
	e, fp       []float32 // rows of all operands, and the flows to them
	tt          []float32 // transposed weights
	ttSum       int32     // the owner whose weights tt holds, -1 for none
	grad        []float32
	count       []float32 // leaf statistics
	min         []float32
	shift       []int32
	row         []float32 // per-unit coefficients
	exps        []float32 // exponents of the elements of a product
	factors     []micro.Factor
	panel       micro.PanelArgs // of the call at hand: arguments of a call that is not direct are allocated
	product     micro.ProductArgs
	update      micro.UpdateArgs
	logE, logS  []float64

	linearE, linearS []float64 // of rows in log space: operands over the largest, and what is added up
	sums             []float64 // of sample
	pairs            pairBuffers
	half             halfBuffers
	mix              mixBuffers
	function         functionBuffers
	unit             []float64 // parameters of a unit
	single           singleWorker
}

// flowKind is what the products of the flows are made of.
type flowKind int

const (
	inFloats flowKind = iota
	inPairs           // of bfloat16
	inHalves
)

// mixedBlock returns the units of the smallest blocks for which a set has products
// of lower precision, 0 where it has none.
func mixedBlock(set *micro.Set) int {
	switch {
	case set.Half != nil:
		return halfWidth
	case set.BF16 != nil:
		return 2
	}
	return 0
}

// tileRows is the number of rows whose operands are formed before they are
// multiplied. It enters the order of sums, so it depends on the task alone.
func tileRows(cols int) int {
	if cols <= 64 || cols > 1024 {
		return 64
	}
	return 128
}

func newExecutor(m layers.Module, d *cpu.Device) *executor {
	x := planned(m, d)
	x.workspace()
	return x
}

// planned returns an executor without its workspace.
func planned(m layers.Module, d *cpu.Device) *executor {
	set := d.Set()
	x := &executor{
		dev: d, prog: m.Program, owners: m.Program.Owners(), set: set, size: m.Program.BlockSize, rowsMax: m.Rows, train: m.Train, queries: m.Queries,
		scales: m.Scales, wideCodes: m.Program.WideCodes(),
	}
	switch least := mixedBlock(set); {
	case !m.Mixed || least == 0 || x.size < least || m.Program.TypicalUnits() < set.HalfUnits:
	case set.Half != nil:
		x.mixed = inHalves
	default:
		x.mixed = inPairs
	}
	x.grid = float32(m.Program.Grid(max(m.StepRows, int64(m.Rows))))
	x.fine = x.grid * (1 << 23)
	x.plan()
	if hasSingles(x.prog) {
		x.singles = newSingles(x)
	}
	x.schedules(min(d.Threads(), mostThreads()))
	return x
}

// mostThreads bounds the threads of a program: those past the processors only wait for each other, thousands for seconds at every task,
// and each has memory of its own.
func mostThreads() int { return max(64, 4*runtime.GOMAXPROCS(0)) }

// value returns row r of a vector that keeps values.
func (x *executor) value(v int32, r int) []float32 {
	w := x.prog.Width(v)
	at := x.slot[v] + r*w
	return x.values[at : at+w : at+w]
}

// ownExp returns the exponents of the units of a vector in row r, nil if they have
// none of their own.
func (x *executor) ownExp(v int32, r int) []float32 {
	if x.ownSlot[v] < 0 {
		return nil
	}
	w := x.prog.Width(v)
	at := x.ownSlot[v] + r*w
	return x.ownExps[at : at+w : at+w]
}

// exp returns the exponents of a vector's rows.
func (x *executor) exp(v int32) []int32 {
	return x.exps[int(v)*x.rowsMax : int(v)*x.rowsMax+x.rowsMax]
}

// shiftOf returns the shifts of an element's rows.
func (x *executor) shiftOf(e int32) []int32 {
	return x.shifts[int(e)*x.rowsMax : int(e)*x.rowsMax+x.rowsMax]
}

// columnCodes returns the codes of an input's column, by row.
func (x *executor) columnCodes(in *layers.Input) columnCodes {
	return x.call.codes.from(int(x.prog.Columns[in.Column].Slot) * x.rowsMax)
}

// columnValues returns the values of an input's column.
func (x *executor) columnValues(in *layers.Input) []float32 {
	at := int(x.prog.Columns[in.Column].Slot) * x.rowsMax
	return x.call.vals[at : at+x.call.rows]
}

// split returns the share of part among parts of n items, in units of step.
func split(n, step, part, parts int) (lo, hi int) {
	k := (n + step - 1) / step
	return min(n, k*part/parts*step), min(n, k*(part+1)/parts*step)
}

// splitColumns is split for columns: in whole vector registers, since a kernel
// rounds the columns that do not fill one in another way.
func splitColumns(width, part, parts int) (lo, hi int) {
	if width%16 != 0 {
		return split(width, width, part, parts)
	}
	return split(width, 16, part, parts)
}
