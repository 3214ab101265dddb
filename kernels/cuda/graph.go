package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda/plan"
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

// graph is recorded work, which nobody launches again before it is done.
type graph struct {
	*cell
	handle Graph
	last   int64 // the number of its last launch
}

// cell is what a graph has for itself, so that several may be under way: memory of
// the host that its copies know, and the event after its last launch.
type cell struct {
	control []byte // as the launch will see it
	badRows []byte // the number of marked rows
	done    Event  // 0: not made yet
}

// phase is a part of a launch.
type phase struct {
	name  string
	clear zone // before the work
	work  []plan.Work
}

// zone is memory of the card.
type zone struct {
	at    Ptr
	bytes int64
}

// run launches phases on rows rows as one graph, which is made when it is first
// asked for; a measured launch has a graph for each phase.
func (x *executor) run(name string, rows int, rule *contract.Rule, c *call, phases ...phase) error {
	d := x.dev
	if err := d.afterCopies(); err != nil {
		return err
	}
	if !d.meter.on {
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
		seconds, err := d.timed(func() error { return x.start(g, rows, rule, c) })
		if err != nil {
			return err
		}
		d.meter.add(p.name, seconds)
	}
	return nil
}

// start launches a graph that is not under way.
func (x *executor) start(g *graph, rows int, rule *contract.Rule, c *call) (err error) {
	x.setControl(g.control, rows, rule)
	g.last, err = x.dev.launch(g.handle, flight{done: g.done, badRows: g.badRows, values: x.values, recomputed: c.recomputed})
	if err != nil {
		return err
	}
	x.last = g.last
	for _, b := range c.buffers {
		b.used = g.last
	}
	return nil
}

// graph returns a graph that is not under way.
func (x *executor) graph(name string, rows int, c *call, phases []phase) (*graph, error) {
	d := x.dev
	key := graphKey{name, (rows + tensor.RowTile - 1) / tensor.RowTile, c.String()}
	if g, ok := x.graphs[key]; ok {
		if len(d.flights) == 0 || g.last < d.flights[0].number {
			return g, nil
		}
		if err := d.afterLaunch(g.last); err != nil {
			return nil, err
		}
		return g, d.arrive()
	}
	if len(x.graphs) >= mostGraphs {
		if err := x.dropGraphs(); err != nil {
			return nil, err
		}
	}
	g := &graph{cell: &x.cells[len(x.graphs)]}
	var err error
	if g.done == 0 {
		if g.done, err = d.event(); err != nil {
			return nil, err
		}
	}
	if err := d.drv.Capture(d.launches); err != nil {
		return nil, err
	}
	recordErr := x.record(g.cell, key.tiles*tensor.RowTile, c, phases)
	g.handle, err = d.drv.Captured(d.launches) // ends the capture in any case
	if recordErr != nil {
		return nil, recordErr
	}
	if err != nil {
		return nil, err
	}
	x.graphs[key] = g
	return g, nil
}

func (x *executor) dropGraphs() error {
	if err := x.dev.settle(); err != nil {
		return err
	}
	for _, g := range x.graphs {
		if err := x.dev.drv.FreeGraph(g.handle); err != nil {
			return err
		}
	}
	clear(x.graphs)
	return nil
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
			scale = rule.Step / (float64(m.Rows) * m.Next())
		}
	}
	le.PutUint64(b[tensor.ControlScale:], math.Float64bits(scale))
	le.PutUint32(b[tensor.ControlAverage:], math.Float32bits(float32(keep)))
	le.PutUint32(b[tensor.ControlTake:], math.Float32bits(float32(take)))
	le.PutUint32(b[tensor.ControlGrid:], math.Float32bits(float32(x.grid)))
	le.PutUint32(b[tensor.ControlFine:], math.Float32bits(float32(x.grid)*(1<<23)))
}

// record puts the work on the stream, between the copies of the control words and
// of the number of marked rows.
func (x *executor) record(own *cell, rows int, c *call, phases []phase) error {
	d := x.dev
	if err := d.drv.CopyIn(x.fixed[tensor.ArgControl], own.control, d.launches); err != nil {
		return err
	}
	for _, p := range phases {
		if p.clear.bytes > 0 {
			if err := d.drv.Clear(p.clear.at, p.clear.bytes, d.launches); err != nil {
				return err
			}
		}
		for _, w := range p.work {
			if err := x.launch(w, rows, c); err != nil {
				return err
			}
		}
	}
	return d.drv.CopyOut(own.badRows, x.fixed[tensor.ArgBadRows], d.launches)
}

func (x *executor) launch(w plan.Work, rows int, c *call) error {
	f, ok := x.mod.functions[w.Kernel]
	if !ok {
		return fmt.Errorf("%w: %s: no kernel %s", kernels.ErrDevice, x.dev.name, w.Kernel)
	}
	l := Launch{Function: f.function, Grid: [3]int{w.Blocks, 1, 1}, Block: f.threads, Shared: w.Shared}
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
			p = x.lists + Ptr(4*w.List)
		}
		l.Args[i] = uint64(p)
	}
	return x.dev.drv.Launch(l, x.dev.launches)
}
