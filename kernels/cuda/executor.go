package cuda

import (
	"errors"
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	contract "github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// executor is a loaded program: its tables and workspace on the card, and the
// graphs of its launches. Its methods run on the driver's thread.
type executor struct {
	dev      *Device
	prog     *layers.Program
	owners   []layers.Owner
	tables   *plan.Tables
	schedule *plan.Schedule
	mod      *module
	train    bool // it has room for flows
	grid     float64
	codeType kernels.DType

	fixed  map[string]Ptr // arguments that stay
	lists  Ptr
	owned  []zone // all memory on the card
	host   []byte // of the cells
	cells  [mostGraphs]cell
	graphs map[graphKey]*graph
	last   int64          // the number of the last launch
	draws  contract.Draws // of the next sample

	fans   fans
	values int // vectors that keep values
}

// newExecutor lowers a program and makes its workspace.
func newExecutor(d *Device, m layers.Module) (*executor, error) {
	t, err := plan.NewTables(m)
	if err != nil {
		return nil, err
	}
	t.Shared, t.Processors = min(t.Shared, d.card.SharedMemory), d.card.Multiprocessors
	s := plan.NewSchedule(t, m.Train)
	x := &executor{
		dev: d, prog: m.Program, owners: m.Program.Owners(), tables: s.Tables, schedule: s, train: m.Train,
		grid: m.Program.Grid(max(m.StepRows, int64(m.Rows))), fixed: map[string]Ptr{}, graphs: map[graphKey]*graph{},
	}
	x.codeType = kernels.Uint16
	if m.Program.WideCodes() {
		x.codeType = kernels.Uint32
	}
	for _, slot := range t.Slot {
		if slot != plan.NoSlot {
			x.values++
		}
	}
	if x.mod, err = d.module(plan.Variant(m, d.card.Major, d.card.Minor)); err != nil {
		return nil, err
	}
	for _, step := range []func() error{x.upload, x.workspace} {
		if err := step(); err != nil {
			return nil, errors.Join(err, x.free())
		}
	}
	return x, nil
}

// upload copies the tables to the card.
func (x *executor) upload() error {
	for _, table := range x.schedule.Encode() {
		p, err := x.alloc(int64(len(table.Data)))
		if err != nil {
			return err
		}
		if err := x.dev.copyIn(p, table.Data); err != nil {
			return err
		}
		x.fixed[table.Arg] = p
	}
	x.lists = x.fixed[tensor.ArgList]
	return nil
}

// workspace allocates what the kernels write besides the caller's buffers.
func (x *executor) workspace() error {
	for _, s := range x.schedule.Spaces() {
		p, err := x.alloc(s.Bytes)
		if err != nil {
			return err
		}
		x.fixed[s.Arg] = p
	}
	host, err := x.dev.drv.AllocHost(2 * tensor.ControlSize * len(x.cells))
	if err != nil {
		return err
	}
	x.host = host
	for i := range x.cells {
		at := host[2*tensor.ControlSize*i:]
		x.cells[i].control, x.cells[i].badRows = at[:tensor.ControlSize:tensor.ControlSize], at[tensor.ControlSize:][:4:4]
	}
	return nil
}

// alloc returns cleared memory that the program owns.
func (x *executor) alloc(bytes int64) (Ptr, error) {
	p, err := x.dev.zeroed(bytes)
	if err == nil {
		x.owned = append(x.owned, zone{p, max(bytes, least)})
	}
	return p, err
}

// free waits for what is under way and gives back all that the program has on the
// card. Compiled kernels stay with the device, for the next program that needs
// them.
func (x *executor) free() error {
	errs := []error{x.dropGraphs()}
	for i := range x.cells {
		if e := x.cells[i].done; e != 0 {
			x.dev.events = append(x.dev.events, e)
		}
	}
	for _, z := range x.owned {
		errs = append(errs, x.dev.release(z.at, z.bytes))
	}
	if x.host != nil {
		errs = append(errs, x.dev.drv.FreeHost(x.host))
	}
	x.owned, x.host = nil, nil
	return errors.Join(errs...)
}

// call is what a launch brings.
type call struct {
	args       map[string]Ptr
	buffers    []*buffer
	recomputed *int64 // where the number of recomputed values goes; nil: nowhere
}

// use adds a buffer of at least n elements of a type, unless none are needed.
func (x *executor) use(c *call, arg string, b kernels.Buffer, t kernels.DType, n int64) error {
	if n == 0 {
		return nil
	}
	own, err := x.dev.own(b)
	if err != nil {
		return err
	}
	if own.dtype != t || int64(own.n) < n {
		return fmt.Errorf("%w: %s: buffer of %s has %d elements of %v, want %d of %v", kernels.ErrDevice, x.dev.name, arg, own.n, own.dtype, n, t)
	}
	if c.args == nil {
		c.args = map[string]Ptr{}
	}
	c.args[arg], c.buffers = own.ptr, append(c.buffers, own)
	return nil
}

// inputs adds parameters and data to a call.
func (x *executor) inputs(c *call, params, codes, values kernels.Buffer) error {
	coded, valued := int64(0), int64(0)
	for _, col := range x.prog.Columns {
		if col.Codes > 0 {
			coded++
		} else {
			valued++
		}
	}
	rows := int64(x.tables.Rows)
	if err := x.use(c, tensor.ArgParams, params, kernels.Float32, x.prog.NumParams); err != nil {
		return err
	}
	if err := x.use(c, tensor.ArgCodes, codes, x.codeType, coded*rows); err != nil {
		return err
	}
	return x.use(c, tensor.ArgValues, values, kernels.Float32, valued*rows)
}

// flows adds the two parts of a buffer of flows.
func (x *executor) flows(c *call, flows kernels.Buffer) error {
	if err := x.use(c, tensor.ArgFlows, flows, kernels.Int64, x.prog.FlowLen()); err != nil {
		return err
	}
	c.args[tensor.ArgFlowNorms] = c.args[tensor.ArgFlows] + Ptr(8*x.prog.NumParams)
	return nil
}

// evaluation is the part of a launch that evaluates rows.
func (x *executor) evaluation() phase {
	return phase{phaseForward, zone{x.fixed[tensor.ArgBad], 4 * int64(x.tables.Rows)}, x.schedule.Forward}
}

// forward evaluates rows.
func (x *executor) forward(rows int, a *contract.ForwardArgs) error {
	c := &call{recomputed: &a.Recomputed}
	if err := x.inputs(c, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if err := x.use(c, tensor.ArgLL, a.LL, kernels.Float64, int64(rows)); err != nil {
		return err
	}
	return x.run("forward", rows, nil, c, x.evaluation())
}

// end adds what becomes of the flows to a call and returns its name and work.
func (x *executor) end(c *call, params, flows kernels.Buffer, rule *contract.Rule) (string, []plan.Work, error) {
	if rule == nil {
		return "count", x.schedule.Count, x.flows(c, flows)
	}
	if rule.Anemone != nil {
		return "", nil, fmt.Errorf("%w: %s: rule Anemone in a backward pass; add flows up and call Update", kernels.ErrDevice, x.dev.name)
	}
	return "move", x.schedule.Move, x.countWeights(params, 0, len(x.owners))
}

// step evaluates rows and sends their flows down.
func (x *executor) step(rows int, a *contract.StepArgs) error {
	c := &call{recomputed: &a.Recomputed}
	if err := x.inputs(c, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if err := x.use(c, tensor.ArgLL, a.LL, kernels.Float64, int64(rows)); err != nil {
		return err
	}
	end, work, err := x.end(c, a.Params, a.Flows, a.Rule)
	if err != nil {
		return err
	}
	return x.run("step "+end, rows, a.Rule, c, x.evaluation(), phase{phaseBackward, zone{}, x.schedule.Backward}, phase{phaseUpdate, zone{}, work})
}

// backward sends the flows of the rows that forward has evaluated down.
func (x *executor) backward(rows int, a *contract.BackwardArgs) error {
	c := &call{}
	if err := x.inputs(c, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if a.Visits != nil {
		if err := x.use(c, tensor.ArgVisits, a.Visits, kernels.Float32, x.prog.VisitLen()); err != nil {
			return err
		}
		visits := zone{c.args[tensor.ArgVisits], 4 * x.prog.VisitLen()}
		return x.run("visits", rows, nil, c, phase{phaseBackward, visits, x.schedule.Backward}, phase{phaseUpdate, zone{}, x.schedule.Visits})
	}
	end, work, err := x.end(c, a.Params, a.Flows, a.Rule)
	if err != nil {
		return err
	}
	return x.run(end, rows, a.Rule, c, phase{phaseBackward, zone{}, x.schedule.Backward}, phase{phaseUpdate, zone{}, work})
}

// update moves the parameters of a range of owners by the flows of all shards.
// Each range has graphs of its own.
func (x *executor) update(a *contract.UpdateArgs) error {
	lo, hi, err := a.Part(len(x.owners))
	if err != nil {
		return err
	}
	c := &call{}
	if err := x.use(c, tensor.ArgParams, a.Params, kernels.Float32, x.prog.NumParams); err != nil {
		return err
	}
	if err := x.flows(c, a.Flows); err != nil {
		return err
	}
	if err := x.countWeights(a.Params, lo, hi); err != nil {
		return err
	}
	if a.Rule.Anemone == nil {
		return x.run(fmt.Sprintf("update %d-%d", lo, hi), 1, &a.Rule, c, phase{phaseUpdate, zone{}, x.schedule.Part(x.schedule.Update, lo, hi)})
	}
	if m := a.Rule.Anemone; !(m.Momentum >= 0 && float32(m.Momentum) < 1 && m.Weight >= 0) || m.Rows < 1 {
		return fmt.Errorf("%w: %s: Anemone over %d rows with momentum %v, weight %v; want rows, a momentum of 0 to below 1 and a weight of 0 or more",
			kernels.ErrDevice, x.dev.name, m.Rows, m.Momentum, m.Weight)
	}
	if err := x.use(c, tensor.ArgVisits, a.Visits, kernels.Float32, x.prog.VisitLen()); err != nil {
		return err
	}
	if err := x.use(c, tensor.ArgAverages, a.Averages, kernels.Float32, x.prog.AverageLen()); err != nil {
		return err
	}
	c.args[tensor.ArgAverNorms] = c.args[tensor.ArgAverages] + Ptr(4*x.prog.NumParams)
	c.args[tensor.ArgResidues] = c.args[tensor.ArgAverages] + Ptr(4*x.prog.FlowLen())
	return x.run(fmt.Sprintf("anemone %d-%d", lo, hi), 1, &a.Rule, c, phase{phaseUpdate, zone{}, x.schedule.Part(x.schedule.Anemone, lo, hi)})
}
