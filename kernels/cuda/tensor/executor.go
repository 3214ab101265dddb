package tensor

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	contract "github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// executor is a loaded program: its tables and workspace on the card, and the
// graphs of its launches. Its methods run within Device.Do.
type executor struct {
	name     string // of the device
	dev      *cuda.Device
	card     *cuda.Thread
	prog     *layers.Program
	owners   []layers.Owner
	tables   *plan.Tables
	schedule *plan.Schedule
	mod      *module
	train    bool // it was loaded for training
	grid     float64
	codeType kernels.DType

	fixed  map[string]cuda.Ptr // arguments that stay
	lists  cuda.Ptr
	owned  []cuda.Span // all memory on the card
	graphs map[graphKey]*cuda.Work
	last   int64          // the number of the last launch
	draws  contract.Draws // of the next sample

	fans   fans
	chosen []int32 // the columns of the last posteriors
	values int     // vectors that keep values
}

// newExecutor lowers a program and makes its workspace.
func newExecutor(d *cuda.Device, card *cuda.Thread, m layers.Module) (*executor, error) {
	t, err := plan.NewTables(m)
	if err != nil {
		return nil, err
	}
	about := card.Card()
	t.Shared, t.Processors = min(t.Shared, about.SharedMemory), about.Multiprocessors
	s := plan.NewSchedule(t, m.Train)
	x := &executor{
		name: d.Info().Name, dev: d, card: card, prog: m.Program, owners: m.Program.Owners(), tables: s.Tables, schedule: s, train: m.Train,
		grid: m.Program.Grid(max(m.StepRows, int64(m.Rows))), fixed: map[string]cuda.Ptr{}, graphs: map[graphKey]*cuda.Work{},
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
	tables, spaces := s.Encode(), s.Spaces()
	// Before the kernels are compiled, which takes seconds.
	if err := card.CheckFree(sizes(tables, spaces)); err != nil {
		return nil, err
	}
	if x.mod, err = load(card, plan.Variant(m, about.Major, about.Minor)); err != nil {
		return nil, err
	}
	if err = x.upload(tables); err == nil {
		err = x.workspace(spaces)
	}
	if err != nil {
		return nil, errors.Join(err, x.free())
	}
	return x, nil
}

// sizes lists what is allocated for tables and workspace.
func sizes(tables []plan.Table, spaces []plan.Space) (list []int64) {
	for _, t := range tables {
		list = append(list, int64(len(t.Data)))
	}
	for _, s := range spaces {
		list = append(list, s.Bytes)
	}
	return list
}

// upload copies the tables to the card.
func (x *executor) upload(tables []plan.Table) error {
	for _, table := range tables {
		p, err := x.alloc(int64(len(table.Data)))
		if err != nil {
			return err
		}
		if err := x.card.CopyIn(cuda.Span{At: p, Bytes: int64(len(table.Data))}, 0, table.Data, 0); err != nil {
			return err
		}
		x.fixed[table.Arg] = p
	}
	x.lists = x.fixed[tensor.ArgList]
	return nil
}

// workspace allocates what the kernels write other than the caller's buffers.
func (x *executor) workspace(spaces []plan.Space) error {
	for _, s := range spaces {
		p, err := x.alloc(s.Bytes)
		if err != nil {
			return err
		}
		x.fixed[s.Arg] = p
	}
	return nil
}

// alloc returns cleared memory that the program owns.
func (x *executor) alloc(bytes int64) (cuda.Ptr, error) {
	s, err := x.card.Alloc(bytes)
	if err == nil {
		x.owned = append(x.owned, s)
	}
	return s.At, err
}

// free waits for what is in flight and gives back all that the program has on the
// card. It returns the first error, after which the rest is tried all the same.
func (x *executor) free() error {
	errs := []error{x.dropGraphs()}
	for _, s := range x.owned {
		errs = append(errs, x.card.Free(s))
	}
	x.owned = nil
	return cmp.Or(append(errs, x.card.Unload(x.mod.code))...)
}

// call is what a launch brings.
type call struct {
	args       map[string]cuda.Ptr
	buffers    []*cuda.Buffer
	recomputed *int64 // where the number of recomputed values goes; nil: nowhere
}

// use adds a buffer of at least n elements of a type, unless none are needed.
func (x *executor) use(c *call, arg string, b kernels.Buffer, t kernels.DType, n int64) error {
	if n == 0 {
		return nil
	}
	own, err := x.dev.Own(b)
	if err != nil {
		return err
	}
	if own.DType() != t || int64(own.Len()) < n {
		return fmt.Errorf("%w: %s: buffer of %s has %d elements of %v, want %d of %v", kernels.ErrDevice, x.name, arg, own.Len(), own.DType(), n, t)
	}
	if c.args == nil {
		c.args = map[string]cuda.Ptr{}
	}
	c.args[arg], c.buffers = own.At(), append(c.buffers, own)
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
	c.args[tensor.ArgFlowNorms] = c.args[tensor.ArgFlows] + cuda.Ptr(8*x.prog.NumParams)
	return nil
}

// evaluation is the part of a launch that evaluates rows.
func (x *executor) evaluation() phase {
	return phase{phaseForward, cuda.Span{At: x.fixed[tensor.ArgBad], Bytes: 4 * int64(x.tables.Rows)}, x.schedule.Forward}
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
		return "", nil, fmt.Errorf("%w: %s: rule Anemone in a backward pass; add flows up and call Update", kernels.ErrDevice, x.name)
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
	return x.run("step "+end, rows, a.Rule, c, x.evaluation(), phase{phaseBackward, cuda.Span{}, x.schedule.Backward}, phase{phaseUpdate, cuda.Span{}, work})
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
		visits := cuda.Span{At: c.args[tensor.ArgVisits], Bytes: 4 * x.prog.VisitLen()}
		return x.run("visits", rows, nil, c, phase{phaseBackward, visits, x.schedule.Backward}, phase{phaseUpdate, cuda.Span{}, x.schedule.Visits})
	}
	end, work, err := x.end(c, a.Params, a.Flows, a.Rule)
	if err != nil {
		return err
	}
	return x.run(end, rows, a.Rule, c, phase{phaseBackward, cuda.Span{}, x.schedule.Backward}, phase{phaseUpdate, cuda.Span{}, work})
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
		return x.run(fmt.Sprintf("update %d-%d", lo, hi), 1, &a.Rule, c, phase{phaseUpdate, cuda.Span{}, x.schedule.Part(x.schedule.Update, lo, hi)})
	}
	if m := a.Rule.Anemone; !(m.Momentum >= 0 && float32(m.Momentum) < 1 && m.Weight >= 0) || m.Rows < 1 || m.Impossible < 0 || m.Impossible > m.Rows {
		return fmt.Errorf("%w: %s: Anemone over %d rows, %d of them impossible, with momentum %v, weight %v; want rows, a momentum of 0 to below 1 and a weight of 0 or more",
			kernels.ErrDevice, x.name, m.Rows, m.Impossible, m.Momentum, m.Weight)
	}
	if err := x.use(c, tensor.ArgVisits, a.Visits, kernels.Float32, x.prog.VisitLen()); err != nil {
		return err
	}
	if err := x.use(c, tensor.ArgAverages, a.Averages, kernels.Float32, x.prog.AverageLen()); err != nil {
		return err
	}
	c.args[tensor.ArgAverNorms] = c.args[tensor.ArgAverages] + cuda.Ptr(4*x.prog.NumParams)
	c.args[tensor.ArgResidues] = c.args[tensor.ArgAverages] + cuda.Ptr(4*x.prog.FlowLen())
	return x.run(fmt.Sprintf("anemone %d-%d", lo, hi), 1, &a.Rule, c, phase{phaseUpdate, cuda.Span{}, x.schedule.Part(x.schedule.Anemone, lo, hi)})
}
