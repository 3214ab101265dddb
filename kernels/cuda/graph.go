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

// phase is a part of a launch.
type phase struct {
	name string
	work []plan.Work
}

// run launches phases on rows rows as one graph, which is made when it is first
// asked for; a measured launch has a graph for each phase.
func (x *executor) run(name string, rows int, rule *kernels.Rule, c call, phases ...phase) error {
	d := x.dev
	// The last launch may still have to read the control words.
	if err := d.drv.Wait(d.stream); err != nil {
		return err
	}
	x.setControl(rows, rule)
	if !d.meter.on {
		return x.runGraph(name, rows, c, phases)
	}
	for i, p := range phases {
		seconds, err := d.timed(func() error { return x.runGraph(fmt.Sprintf("%s %d", name, i), rows, c, phases[i:i+1]) })
		if err != nil {
			return err
		}
		d.meter.add(p.name, seconds)
	}
	return nil
}

func (x *executor) runGraph(name string, rows int, c call, phases []phase) error {
	d := x.dev
	key := graphKey{name, (rows + tensor.RowTile - 1) / tensor.RowTile, c.String()}
	if g, ok := x.graphs[key]; ok {
		return d.drv.LaunchGraph(g, d.stream)
	}
	if len(x.graphs) >= mostGraphs {
		if err := x.dropGraphs(); err != nil {
			return err
		}
	}
	if err := d.drv.Capture(d.stream); err != nil {
		return err
	}
	recordErr := x.record(key.tiles*tensor.RowTile, c, phases)
	g, err := d.drv.Captured(d.stream) // ends the capture in any case
	if recordErr != nil {
		return recordErr
	}
	if err != nil {
		return err
	}
	x.graphs[key] = g
	return d.drv.LaunchGraph(g, d.stream)
}

func (x *executor) dropGraphs() error {
	for k, g := range x.graphs {
		if err := x.dev.drv.FreeGraph(g); err != nil {
			return err
		}
		delete(x.graphs, k)
	}
	return nil
}

// String lists the buffers of a call.
func (c call) String() string {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s=%x ", n, c[n])
	}
	return b.String()
}

// setControl writes the control words of the next launch.
func (x *executor) setControl(rows int, rule *kernels.Rule) {
	b, le := x.control, binary.LittleEndian
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
func (x *executor) record(rows int, c call, phases []phase) error {
	d := x.dev
	if err := d.drv.CopyIn(x.fixed[tensor.ArgControl], x.control, d.stream); err != nil {
		return err
	}
	for _, p := range phases {
		if p.name == phaseSample {
			if err := d.drv.Clear(x.fixed[tensor.ArgTaken], 4*int64(x.tables.Rows)*int64(len(x.prog.Vectors)), d.stream); err != nil {
				return err
			}
		}
		if p.name == phaseForward {
			if err := d.drv.Clear(x.fixed[tensor.ArgBad], 4*int64(x.tables.Rows), d.stream); err != nil {
				return err
			}
		}
		for _, w := range p.work {
			if err := x.launch(w, rows, c); err != nil {
				return err
			}
		}
	}
	return d.drv.CopyOut(x.badRows[:4], x.fixed[tensor.ArgBadRows], d.stream)
}

func (x *executor) launch(w plan.Work, rows int, c call) error {
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
		p, ok := c[name]
		if !ok {
			p = x.fixed[name]
		}
		if name == tensor.ArgList {
			p = x.lists + Ptr(4*w.List)
		}
		l.Args[i] = uint64(p)
	}
	return x.dev.drv.Launch(l, x.dev.stream)
}
