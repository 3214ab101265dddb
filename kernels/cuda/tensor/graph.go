package tensor

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	contract "github.com/pce-engine/pce/kernels/tensor"
)

// graphKey names a graph: what it launches, on how many tiles of rows, with which
// buffers.
type graphKey struct {
	name  string
	tiles int
	args  string
}

// mostGraphs bounds the graphs that a program keeps.
const mostGraphs = 32

// The phases of calls.
const (
	phaseForward  = "forward"
	phaseSample   = "sample"
	phaseQuery    = "query" // what becomes of the flows in a query
	phaseBackward = "backward"
	phaseUpdate   = "update" // sums over rows included
)

// phase is a part of a call.
type phase struct {
	name  string
	clear cuda.Span // before the work
	work  []plan.Work
}

// run launches phases on rows rows as one graph, which is made when it is first
// asked for; a measured launch has a graph for each phase, or none where each kernel
// is timed.
func (x *executor) run(name string, rows int, rule *contract.Rule, c *call, phases ...phase) error {
	switch x.card.Measured() {
	case kernels.MeasureKernels:
		return x.direct(rows, rule, c, phases)
	case kernels.MeasureNothing:
		g, err := x.graph(name, rows, c, phases)
		if err != nil {
			return err
		}
		return x.start(g, rows, rule, c)
	}
	for i, p := range phases {
		// Before the clock starts: recording takes time.
		g, err := x.graph(fmt.Sprintf("%s %d", name, i), rows, c, phases[i:i+1])
		if err != nil {
			return err
		}
		if err := x.card.Time(p.name, func() error { return x.start(g, rows, rule, c) }); err != nil {
			return err
		}
	}
	return nil
}

// control and marked are what a launch copies to the card first, and back from it: the
// control words, and how many rows were marked.
func (x *executor) control() cuda.Span {
	return cuda.Span{At: x.fixed[tensor.ArgControl], Bytes: tensor.ControlSize}
}

func (x *executor) marked() cuda.Span { return cuda.Span{At: x.fixed[tensor.ArgBadRows], Bytes: 4} }

// report tells a call how many values were recomputed, by the number of marked rows.
func (x *executor) report(c *call, marked []byte) {
	if c.recomputed != nil {
		*c.recomputed = int64(binary.LittleEndian.Uint32(marked)) * int64(x.values)
	}
}

// direct launches phases without a graph and times each kernel.
func (x *executor) direct(rows int, rule *contract.Rule, c *call, phases []phase) error {
	last, err := x.card.Direct(x.control(), x.marked(),
		func(control []byte) { x.setControl(control, rows, rule) },
		func() error {
			return x.record((rows+tensor.RowTile-1)/tensor.RowTile*tensor.RowTile, c, phases)
		},
		c.buffers, func(marked []byte) { x.report(c, marked) })
	if last > 0 {
		x.last = last
	}
	return err
}

// start launches a graph that is ready.
func (x *executor) start(g *cuda.Work, rows int, rule *contract.Rule, c *call) error {
	x.setControl(g.Control, rows, rule)
	finish := func() { x.report(c, g.Result) }
	last, err := x.card.Start(g, c.buffers, finish)
	if err == nil {
		x.last = last
	}
	return err
}

// graph returns a graph that is ready.
func (x *executor) graph(name string, rows int, c *call, phases []phase) (*cuda.Work, error) {
	key := graphKey{name, (rows + tensor.RowTile - 1) / tensor.RowTile, c.String()}
	g, ok := x.graphs[key]
	if !ok {
		if len(x.graphs) >= mostGraphs {
			if err := x.dropGraphs(); err != nil {
				return nil, err
			}
		}
		var err error
		g, err = x.card.Record(x.control(), x.marked(), func() error {
			return x.record(key.tiles*tensor.RowTile, c, phases)
		})
		if err != nil {
			return nil, err
		}
		x.graphs[key] = g
	}
	return g, x.card.Ready(g)
}

// dropGraphs gives all graphs back, once they are done. It returns the first error.
func (x *executor) dropGraphs() error {
	errs := []error{x.card.Settle()}
	for _, g := range x.graphs {
		errs = append(errs, x.card.Drop(g))
	}
	clear(x.graphs)
	return cmp.Or(errs...)
}

// String lists the buffers of a call.
func (c *call) String() string {
	names := make([]string, 0, len(c.args))
	for name := range c.args {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s=%x ", n, c.args[n])
	}
	return b.String()
}

// setControl writes the control words of a launch.
func (x *executor) setControl(b []byte, rows int, rule *contract.Rule) {
	le := binary.LittleEndian
	clear(b)
	le.PutUint32(b[tensor.ControlRows:], uint32(rows))
	le.PutUint32(b[tensor.ControlVectors:], uint32(x.schedule.Vectors))
	le.PutUint32(b[tensor.ControlPitch:], uint32(x.tables.Pitch))
	le.PutUint32(b[tensor.ControlUnits:], uint32(x.prog.VisitLen()))
	le.PutUint64(b[tensor.ControlDraws:], uint64(x.draws))
	scale := 1.0
	var keep, take float64
	if rule != nil {
		le.PutUint64(b[tensor.ControlStep:], math.Float64bits(rule.Step))
		le.PutUint64(b[tensor.ControlPseudocount:], math.Float64bits(rule.Pseudocount))
		if m := rule.Anemone; m != nil {
			keep = float64(float32(m.Momentum)) // shares that add up to 1 in float32 too
			take = 1 - keep
			if m.Weight == 0 {
				keep = 0
			}
			scale = m.Scale(rule.Step)
		}
	}
	le.PutUint64(b[tensor.ControlScale:], math.Float64bits(scale))
	le.PutUint32(b[tensor.ControlAverage:], math.Float32bits(float32(keep)))
	le.PutUint32(b[tensor.ControlTake:], math.Float32bits(float32(take)))
	le.PutUint32(b[tensor.ControlGrid:], math.Float32bits(float32(x.grid)))
	le.PutUint32(b[tensor.ControlFine:], math.Float32bits(float32(x.grid)*(1<<23)))
}

// record records the work of phases on rows rows.
func (x *executor) record(rows int, c *call, phases []phase) error {
	for _, p := range phases {
		if err := x.card.Clear(p.clear); err != nil {
			return err
		}
		for _, w := range p.work {
			if err := x.card.Mark(p.name, w.Kernel); err != nil {
				return err
			}
			if err := x.launch(w, rows, c); err != nil {
				return err
			}
		}
		if err := x.card.Mark("", ""); err != nil {
			return err
		}
	}
	return nil
}

func (x *executor) launch(w plan.Work, rows int, c *call) error {
	f, ok := x.mod.functions[w.Kernel]
	if !ok {
		return fmt.Errorf("%w: %s: no kernel %s", kernels.ErrDevice, x.name, w.Kernel)
	}
	l := cuda.Launch{Function: f.handle, Grid: [3]int{w.Blocks, 1, 1}, Block: f.threads, Shared: w.Shared}
	if w.Rows > 0 {
		tiles := (rows + w.Rows - 1) / w.Rows
		if w.Blocks == 0 {
			l.Grid[0] = tiles
		} else {
			l.Grid[1] = tiles
		}
	}
	l.Args = make([]uint64, len(f.params))
	for i, name := range f.params {
		p, ok := c.args[name]
		if !ok {
			p = x.fixed[name]
		}
		if name == tensor.ArgList {
			p = x.lists + cuda.Ptr(4*w.List)
		}
		l.Args[i] = uint64(p)
	}
	return x.card.Launch(l)
}
