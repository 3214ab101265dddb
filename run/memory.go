package run

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/layers"
)

// The Go runtime and the program itself take runtimeBytes, and what waits to be
// collected about a part in slack of the rest, at the GOGC of `pce train`.
const (
	runtimeBytes = 17 << 20
	slack        = 12
)

// MemoryPlan is what a run takes, in bytes, by what it is taken for; Total is their sum.
type MemoryPlan struct {
	Rows       int   `json:"rows"` // of a launch
	Parameters int64 `json:"parameters"`
	Values     int64 `json:"values"`
	Flows      int64 `json:"flows"` // integer ones only where a step has several shards, averaged ones only for Anemone
	Scratch    int64 `json:"scratch"`
	Program    int64 `json:"program"` // graph and index tensors
	Data       int64 `json:"data"`
	Runtime    int64 `json:"runtime"`
	Total      int64 `json:"total"`
}

// Memory plans what the circuit takes when it is run as l says, in bytes, before anything is
// allocated. The parts are those of the device's own plan, plus what the engine, the table and
// the Go runtime take. Rows whose values float32 does not hold side by side, of which the cells decide, take more on the CPU, which keeps
// them in log space. A circuit of code has those of the engine, too, that other queries may need.
// It fails where l names no device of this machine.
func (b *Blueprint) Memory(l Load) (MemoryPlan, error) {
	m, err := b.runnerMemory(l)
	if err != nil || b.tensor == nil || !l.Queries {
		return m, err
	}
	t, err := b.tensor()
	if err != nil {
		return MemoryPlan{}, err
	}
	by, err := t.Memory(l.besideCode())
	if err != nil {
		return MemoryPlan{}, err
	}
	m.Parameters, m.Values, m.Flows, m.Scratch, m.Program = by.Parameters, m.Values+by.Values, m.Flows+by.Flows, m.Scratch+by.Scratch, m.Program+by.Program
	m.add()
	return m, nil
}

// add adds the runtime's part, and all parts up.
func (m *MemoryPlan) add() {
	live := m.Parameters + m.Values + m.Flows + m.Scratch + m.Program + m.Data
	m.Runtime = runtimeBytes + live/slack
	m.Total = live + m.Runtime
}

// Beside is what that many engines of the plan take in a process that has a runtime already, as one that serves many models: it counts
// in none of them.
func (m MemoryPlan) Beside(engines int) int64 { return int64(engines) * (m.Total - runtimeBytes) }

// memoryPlans are those of runners that were planned already: a device lowers the whole program for one, and each is asked
// for two or three times while a model is opened.
type memoryPlans struct {
	sync.Mutex // guards known
	known      map[Load]MemoryPlan
}

// runnerMemory is Memory of the runner as it is opened.
func (b *Blueprint) runnerMemory(l Load) (MemoryPlan, error) {
	b.plans.Lock()
	defer b.plans.Unlock()
	if m, ok := b.plans.known[l]; ok {
		return m, nil
	}
	m, err := b.planRunner(l)
	if err != nil {
		return MemoryPlan{}, err
	}
	if b.plans.known == nil {
		b.plans.known = map[Load]MemoryPlan{}
	}
	b.plans.known[l] = m
	return m, nil
}

func (b *Blueprint) planRunner(l Load) (MemoryPlan, error) {
	if b.Code != nil {
		return b.codeMemory(l)
	}
	l.Options = l.Options.withDefaults()
	p := b.Program
	at, err := l.place()
	if err != nil {
		return MemoryPlan{}, err
	}
	work, err := at.Plan(layers.Module{Program: p, Rows: l.Rows, Train: l.Train, Queries: l.Queries, Mixed: l.Mixed}, l.device())
	if err != nil {
		return MemoryPlan{}, err
	}
	m := MemoryPlan{
		Rows: l.Rows, Parameters: 4 * p.NumParams, Values: work.Values, Flows: work.Flows, Scratch: work.Scratch,
		Program: programBytes(b) + work.Program, Data: l.Tables,
	}
	if l.Train && l.Shards {
		m.Flows += 8 * p.FlowLen()
	}
	if l.Train && l.Contrast {
		m.Flows += em.ContrastBytes(p)
	}
	if l.Train && l.Averages {
		m.Flows += 4 * (p.AverageLen() + p.VisitLen())
	}
	if l.Best {
		m.Parameters *= 2
	}
	if l.Queries {
		elements, err := posteriorElements(p)
		if err != nil {
			return MemoryPlan{}, err
		}
		m.Scratch += 2 * engine.PosteriorBytes(l.Rows, elements) // on the device and on the host
		// A query has points of covariances, partial completions or shares of evidence beside its posteriors.
		m.Scratch += max(engine.PointBytes(p, l.Rows), engine.SearchBytes(p, l.Rows, DefaultMPE.search()), engine.SharesBytes(p))
	}
	if l.Train && l.Draws > 0 {
		o := l.Options
		o.Rows = l.Draws
		by, err := b.planRunner(Load{Options: o, Mixed: l.Mixed})
		if err != nil {
			return MemoryPlan{}, err
		}
		m.Parameters, m.Values, m.Scratch, m.Program = m.Parameters+by.Parameters, m.Values+by.Values, m.Scratch+by.Scratch, m.Program+by.Program
	}
	m.Scratch += ownerBytes(b)
	m.Data += tableBytes(b.Train)
	m.add()
	return m, nil
}

// posteriorElements is how many elements a row's posteriors of all columns have, with those of the units
// of columns that evidence may be about.
func posteriorElements(p *layers.Program) (int, error) {
	n := len(p.Columns)
	all := make([]int32, n, 2*n)
	for i := range all {
		all[i] = int32(i)
	}
	for i, c := range p.Columns {
		if c.Soft > 0 && !c.Beside {
			all = append(all, int32(n+i))
		}
	}
	offsets, err := p.PosteriorOffsets(all)
	if err != nil {
		return 0, err
	}
	return offsets[len(all)], nil
}

// tableBytes returns what a source takes in memory; 0 for one that is elsewhere.
func tableBytes(src dataset.Source) int64 {
	if t, ok := src.(*dataset.Table); ok {
		return t.Bytes()
	}
	return 0
}

// ownerBytes returns what the largest owner of parameters takes on its way to or
// from a file, in both layouts.
func ownerBytes(b *Blueprint) int64 {
	canonical, region := 0, 0
	for i := range b.Map.Len() {
		_, n := b.Map.Region(i)
		canonical, region = max(canonical, b.Graph.NumParams(b.Map.Node(i))), max(region, n)
	}
	return 4 * int64(canonical+region)
}

// programBytes estimates graph, program and the lists that a device makes of it.
func programBytes(b *Blueprint) int64 {
	p := b.Program
	n := int64(0)
	for i := range p.Layers {
		for _, q := range p.Layers[i].Sums {
			n += int64(len(q.NodeIDs) + len(q.ChildIDs) + len(q.ParamIDs))
		}
		for _, q := range p.Layers[i].Elements {
			n += int64(len(q.ElementIDs) + len(q.ParentIDs) + len(q.ParentParamIDs))
		}
		for _, q := range p.Layers[i].Products {
			n += int64(len(q.ElementIDs) + len(q.FactorIDs))
		}
	}
	for i := range p.Sums {
		n += int64(len(p.Sums[i].Fan))
	}
	more := len(p.Elements) // operands beside those that have a product of their own: each sum that reads one has its own
	for i := range b.Graph.Nodes {
		if b.Graph.Nodes[i].Kind == circuit.Product {
			more--
		}
	}
	const perNode, perVector, perElement = 400, 600, 260
	return 4*n + 16*int64(p.ParamBlocks) + perNode*int64(len(b.Graph.Nodes)) + perVector*int64(len(p.Vectors)) + perElement*int64(max(more, 0))
}

// check refuses a plan above l.MaxMemory with an error that matches kernels.ErrMemory and says
// how many rows per launch would fit. It is called before a device is opened; without a limit
// it accepts everything.
func (b *Blueprint) check(l Load) error {
	if l.MaxMemory <= 0 {
		return nil
	}
	m, err := b.runnerMemory(l)
	if err != nil || m.Total <= l.MaxMemory {
		return err
	}
	need := (m.Total-1)>>20 + 1 // rounded up, as the limit is rounded down: more than that in MiB, too
	for l.Rows = m.Rows / 2; l.Rows > 0; l.Rows /= 2 {
		l.Shards = l.Shards || l.Train && l.StepRows > int64(l.Rows) // a step has several then, whose integer flows are kept
		if m, err = b.runnerMemory(l); err != nil {
			return err
		}
		if m.Total <= l.MaxMemory {
			return fmt.Errorf("%w: the run needs %d MiB, %d MiB are available; with %d rows per launch it needs %d MiB: lower shard_rows",
				kernels.ErrMemory, need, l.MaxMemory>>20, l.Rows, m.Total>>20)
		}
	}
	if m.Data > m.Total/2 {
		return fmt.Errorf("%w: the run needs %d MiB, of which the tables of rows take %d, and %d MiB are available; use fewer rows",
			kernels.ErrMemory, need, m.Data>>20, l.MaxMemory>>20)
	}
	return fmt.Errorf("%w: the run needs %d MiB, %d MiB are available, and fewer rows do not help; use fewer latents, or columns of fewer categories",
		kernels.ErrMemory, need, l.MaxMemory>>20)
}

// fit halves the rows of a launch until the plan is within l.MaxMemory, or one is left.
func (b *Blueprint) fit(l *Load) error {
	for l.MaxMemory > 0 && l.Rows > 1 {
		m, err := b.runnerMemory(*l)
		if err != nil {
			return err
		}
		if m.Total <= l.MaxMemory {
			return nil
		}
		l.Rows /= 2
	}
	return nil
}

// leastHeap is the least heap that is worth a collection: one takes a millisecond per
// megabyte in use, and short runs are done in tens of milliseconds.
const leastHeap = 64 << 20

// freeHeap collects garbage and gives its memory back to the system, if the heap is large.
func freeHeap() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc >= leastHeap {
		debug.FreeOSMemory()
	}
}

// firstBytes is what an engine of a pool may take for its launches before a call
// asks for many rows. Where the rows of a full launch take less, as those of most
// circuits do, the first engine has room for all of them.
const firstBytes = 64 << 20

// queryRows plans the launches of engines that answer queries: First is how many rows an
// engine has memory for when it is made, Most how far it may grow for calls with more rows. A
// circuit that takes little gets o.Rows at once; where o.MaxMemory does not allow o.Rows, Most
// is the largest number that the plan of memory allows, at least 1.
func (b *Blueprint) queryRows(o Options) (engine.LaunchRows, error) {
	full, err := b.runnerMemory(QueryLoad(o))
	if err != nil {
		return engine.LaunchRows{}, err
	}
	work := func(m MemoryPlan) int64 { return m.Values + m.Flows + m.Scratch }
	total := func(m MemoryPlan) int64 { return m.Total }
	fits := func(m MemoryPlan) bool { return o.MaxMemory <= 0 || m.Total <= o.MaxMemory }
	r := engine.LaunchRows{First: full.Rows, Most: full.Rows}
	if fits(full) && work(full) <= firstBytes {
		return r, nil
	}
	o.Rows = 1
	one, err := b.runnerMemory(QueryLoad(o))
	if err != nil {
		return engine.LaunchRows{}, err
	}
	r.First = rowsWithin(firstBytes, work(one), work(full), full.Rows)
	if !fits(full) {
		o.Rows = rowsWithin(o.MaxMemory, total(one), total(full), full.Rows)
		if 2*o.Rows < full.Rows { // memory need not grow evenly with rows
			o.Rows *= 2
		}
		for ; o.Rows > 1; o.Rows /= 2 {
			m, err := b.runnerMemory(QueryLoad(o))
			if err != nil {
				return engine.LaunchRows{}, err
			}
			if fits(m) {
				break
			}
		}
		r.Most = o.Rows
	}
	r.First = min(r.First, r.Most)
	return r, nil
}

// share leaves o as many engines as o.MaxMemory has room for, for launches of that many rows, and each its part
// of it. One is left in any case, which fails where the limit does not hold it. What the runtime takes counts once.
func (b *Blueprint) share(o *Options, rows int) error {
	if o.MaxMemory <= 0 || o.Engines <= 1 {
		return nil
	}
	l := QueryLoad(*o)
	l.Rows = rows
	m, err := b.Memory(l)
	if err != nil {
		return err
	}
	for ; o.Engines > 1; o.Engines-- {
		if part := runtimeBytes + (o.MaxMemory-runtimeBytes)/int64(o.Engines); m.Total <= part {
			o.MaxMemory = part
			return nil
		}
	}
	return nil
}

// rowsWithin returns the largest power of two below full rows that takes at most
// bytes bytes, at least 1; one row takes one bytes, full rows take all.
func rowsWithin(bytes, one, all int64, full int) int {
	rows := 1
	for n := 2; n < full && one+(all-one)/int64(full-1)*int64(n-1) <= bytes; n *= 2 {
		rows = n
	}
	return rows
}
