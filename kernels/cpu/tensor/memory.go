package tensor

import (
	"unsafe"

	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/layers"
)

// Memory is what a loaded module takes in bytes, apart from its program and its
// buffers.
type Memory struct {
	Values  int64 // of the vectors that keep some, with exponents
	Flows   int64 // through vectors that several elements read, for training
	Scratch int64 // of the threads, and shared gradients
}

func (m Memory) total() int64 { return m.Values + m.Flows + m.Scratch }

// Plan returns the memory that Load would take for a module. It allocates
// nothing that grows with rows or parameters.
func Plan(m layers.Module, o cpu.Options) (Memory, error) {
	d, err := cpu.Open(o)
	if err != nil {
		return Memory{}, err
	}
	if err := checkRows(m.Rows); err != nil {
		return Memory{}, err
	}
	x := planned(m, d)
	return x.sizes().memory(x), nil
}

// sizes are the lengths of the workspace's parts, in elements.
type sizes struct {
	values, flows, norms int
	own                  int
	exps, shifts, taken  int
	e, fp, tt, grad      int
	count, width         int
	pairs                pairSizes
	half                 halfSizes
	mix                  mixSizes
	function             functionSizes
	peaks                int
	came                 int
	single               singleSizes
}

// sizes computes what workspace allocates, and the offset of each vector in it.
func (x *executor) sizes() sizes {
	p := x.prog
	var z sizes
	x.slot = make([]int, len(p.Vectors))
	x.flowSlot = make([]int, len(p.Vectors))
	x.ownSlot = make([]int, len(p.Vectors))
	for i := range p.Vectors {
		x.slot[i], x.flowSlot[i], x.ownSlot[i] = -1, -1, -1
		width := p.Width(int32(i))
		if !p.Tabulated(int32(i)) {
			x.slot[i] = z.values
			z.values += x.rowsMax * width
			if x.spread[i] {
				x.ownSlot[i] = z.own
				z.own += x.rowsMax * width
			}
		}
		v := &p.Vectors[i]
		if v.Kind == layers.StoredVector || v.Kind == layers.SumVector && x.users[i] > 1 {
			x.flowSlot[i] = z.flows
			z.flows += x.rowsMax * width
		}
	}
	z.exps, z.shifts = len(p.Vectors)*x.rowsMax, len(p.Elements)*x.rowsMax
	z.taken = z.exps
	z.norms = int(p.ElementBlocks) * x.size
	lock := x.forwardPlan.lockstep
	for i := range x.tasks {
		t := &x.tasks[i]
		rows := min(x.rowsMax, tileRows(t.cols))
		operands := rows
		if lock {
			operands = x.rowsMax
		}
		z.e = max(z.e, operands*t.cols)
		z.fp = max(z.fp, x.rowsMax*t.cols)
		z.width = max(z.width, t.width, t.cols)
		if t.sum == nil {
			z.half.grow(rows, t, 0)
			continue
		}
		n := int(p.Sums[t.sum.index].NumBlocks) * x.size * x.size
		z.tt, z.grad = max(z.tt, n), max(z.grad, n)
		z.pairs.grow(rows, t, n)
		z.half.grow(rows, t, n)
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		z.count = max(z.count, (int(in.Codes)+1)*p.Width(in.Vector))
		if in.Codes == 0 {
			z.function.grow(x.rowsMax, p.Width(in.Vector), in.Family)
		}
	}
	if x.queries {
		z.peaks = x.placePeaks()
		z.mix.rows = x.rowsMax
		for i := range p.Inputs {
			v := p.Inputs[i].Vector
			z.mix.units = max(z.mix.units, p.Width(v))
			if x.users[v] > 1 {
				z.mix.shared = max(z.mix.shared, p.Width(v))
			}
		}
	}
	if !x.train {
		z.norms, z.grad, z.count = 0, 0, 0
		if !x.queries {
			z.flows, z.fp = 0, 0
		}
	}
	if x.mixed != inPairs || !x.train {
		z.pairs = pairSizes{}
	}
	if x.mixed != inHalves || !x.train {
		z.half = halfSizes{}
	} else {
		z.came = len(p.Vectors) * x.rowsMax
	}
	if x.singles != nil {
		z.single = x.singles.sizes(x)
		if !x.queries {
			z.flows, z.fp = 0, 0
		}
	}
	return z
}

// memory counts the bytes of a workspace.
func (z sizes) memory(x *executor) Memory {
	m := Memory{Flows: 4 * int64(z.flows+z.norms+z.came), Scratch: 8 * int64(z.peaks)}
	if !x.late() {
		tasks := z.tasks(x)
		m.Values, m.Scratch = tasks.Values, m.Scratch+tasks.Scratch
	}
	m.Flows += 4 * int64(x.keptLen)
	if x.train {
		for _, n := range x.groupParams {
			m.Scratch += 4 * int64(n)
		}
	}
	threads := int64(x.threads)
	own := 4*int64(10*z.width+x.rowsMax+z.pairs.total()+z.mix.total()) + int64(z.half.bytes()+z.function.bytes())
	big := 4 * int64(z.e+z.fp+z.tt+z.grad+z.count)
	m.Scratch += threads*own + 4*(min(threads, singleParts)*int64(z.single.own)+int64(z.single.shared))
	if x.forwardPlan.lockstep {
		m.Scratch += big
	} else {
		m.Scratch += threads * big
	}
	return m
}

// tasks counts the bytes of what makeTasks allocates, in which the tasks have the values of all rows side by side.
func (z sizes) tasks(x *executor) Memory {
	return Memory{
		Values:  4 * int64(z.values+z.own+z.exps+z.shifts),
		Scratch: 4 * int64(z.taken+z.exps+len(x.prog.Vectors)), // the second and third for rows in log space
	}
}

// late reports whether the tasks have no memory before they are asked for: where singles train, which takes a few rows at a time, that
// would be several times all else, for samples alone.
func (x *executor) late() bool { return x.singles != nil && x.train && !x.queries }

func (x *executor) makeTasks(z sizes) {
	x.values = cpu.Aligned[float32](z.values)
	x.ownExps = cpu.Aligned[float32](z.own)
	x.exps = make([]int32, z.exps)
	x.shifts = make([]int32, z.shifts)
	x.taken = make([]int32, z.taken)
	x.logs.init(len(x.prog.Vectors), x.rowsMax)
}

// workspace allocates values, flows and scratch.
func (x *executor) workspace() {
	z := x.sizes()
	if !x.late() {
		x.makeTasks(z)
	}
	x.peaks.table, x.peaks.exps = cpu.Aligned[float32](z.peaks), cpu.Aligned[float32](z.peaks)
	x.flows = cpu.Aligned[float32](z.flows)
	x.norms = cpu.Aligned[float32](z.norms)
	x.came = make([]float32, z.came)
	x.kept = cpu.Aligned[float32](x.keptLen)
	if x.train {
		for _, n := range x.groupParams {
			x.groups = append(x.groups, cpu.Aligned[float32](n))
		}
	}
	threads := x.threads
	lock := x.forwardPlan.lockstep
	for i := range threads {
		w := &worker{part: 0, parts: 1, ttSum: -1}
		w.min = cpu.Aligned[float32](z.width)
		w.shift = make([]int32, x.rowsMax)
		w.row = cpu.Aligned[float32](8 * z.width)
		w.exps = cpu.Aligned[float32](z.width)
		w.pairs.init(z.pairs)
		w.half.init(z.half)
		w.mix.init(z.mix)
		w.function.init(z.function)
		if x.singles != nil {
			x.singles.initWorker(x, i, &w.single)
		}
		if lock {
			w.part, w.parts = i, threads
		}
		if lock && i > 0 {
			s := x.workers[0]
			w.e, w.fp, w.tt, w.grad, w.count = s.e, s.fp, s.tt, s.grad, s.count
		} else {
			w.e, w.fp, w.tt = cpu.Aligned[float32](z.e), cpu.Aligned[float32](z.fp), cpu.Aligned[float32](z.tt)
			w.grad, w.count = cpu.Aligned[float32](z.grad), cpu.Aligned[float32](z.count)
		}
		x.workers = append(x.workers, w)
	}
	if x.singles != nil {
		x.singles.init(x)
	}
	x.gate.n = int32(threads)
	x.waker.changed.L = &x.waker.mu
}

// words is a slice of pairs as the kernels take it.
func words(s []uint32) *float32 { return (*float32)(unsafe.Pointer(&s[0])) }
