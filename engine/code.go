package engine

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine/lanes"
	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/simt"
)

// CodeModel is a model as code: a module with one input, [variable][row], and one output of f32 or f64, log-likelihoods,
// with a column for each root. The input is of f32, with NaN for missing cells, or of u8, with the bytes of engine/lanes. It is
// of the same type in all modules.
type CodeModel struct {
	Module *simt.Module
	// Exact computes again the rows whose largest log-likelihood by Module is below Least or not a number, and may have such rows
	// of its own; nil: none, or those that Again has.
	Exact *CodeModel
	Least float64
	// Again, where it is not nil, computes such rows on the host: x has their cells as f32, [variable][pitch], and ll is
	// [row][root].
	Again func(x []float32, pitch, rows int, ll []float64)
	// Classes makes the model with a root for each code of a variable, for Code.Classify; nil: there is none.
	Classes func(variable int) (CodeModel, error)
}

// RowBytes plans what the rows of launches take, of that many threads of the host that run one each. Of no threads it is what the
// rows of one launch take on the host and on a device with memory of its own.
func (m CodeModel) RowBytes(rows, threads int) int64 {
	const row, results = 4 + 8 + 8 + 8 + 8 + 8*perThread, 8 + 8
	in := m.Module.Inputs[0]
	cells := int64(in.Width) * int64(in.Type.Bits()/8)
	host := int64(rows) * (cells + row)
	if m.Again != nil && in.Type == simt.U8 {
		host += int64(rows) * int64(in.Width) * 4
	}
	if threads == 0 {
		for _, n := range launchSizes(rows) {
			host += int64(n) * (cells + results)
		}
		return host
	}
	return int64(threads) * host
}

// CodeOptions choose how code runs.
type CodeOptions struct {
	Rows       int             // the most rows of a launch, of each thread on the CPU; 0: 2048
	Schema     *dataset.Schema // what a row is: its discrete columns hold codes
	OwnsDevice bool            // Close closes the device too
}

// Code is a model as code on a device, the Runner of such models. It gives a number for a
// row and root: the log-likelihood.
type Code struct {
	dev       kernels.Device
	owns      bool
	rows      int
	schema    *dataset.Schema
	logScales []float64
	cell      simt.Type // of the input of modules

	*loadedCode
	classes    map[int]*loadedCode // by variable
	of         func(variable int) (CodeModel, error)
	rooms      []*room          // one for each thread
	sizes      []int            // rows of launches on a device with memory of its own, ascending; none on the CPU, whose programs read a room
	in         []kernels.Buffer // for each of these
	ll         []float64        // [row][root], of what Evaluate hands on
	recomputed atomic.Int64
}

var _ Runner = (*Code)(nil)

// loadedCode is a model on a device.
type loadedCode struct {
	program *codeProgram
	exact   *loadedCode // nil if no row is computed twice by the device
	onHost  func(x []float32, pitch, rows int, ll []float64)
	least   float64
	roots   int
	pace    parallel.Pace
}

// codeProgram is a loaded module with room for its results, of f32 or f64.
type codeProgram struct {
	kernels.CodeProgram
	host   kernels.HostProgram // itself, on the CPU: results are in a room then
	out    []kernels.Buffer    // on a device, for each of its sizes
	narrow bool                // results are of f32
}

// fits reports whether a module reads columns of a schema, each cell of a type, and writes columns of numbers.
func fits(m *simt.Module, cell simt.Type, s *dataset.Schema) bool {
	if s == nil || len(m.Inputs) != 1 || len(m.Outputs) != 1 {
		return false
	}
	in, out := m.Inputs[0], m.Outputs[0]
	return (cell == simt.F32 || cell == simt.U8) && in.Type == cell && in.Layout == simt.Columns && in.Width == len(s.Columns) &&
		out.Type.Float() && out.Layout == simt.Columns
}

// loadModel loads a model, whose modules read cells of a type, for launches of a number of rows of the schema. After an error nothing
// is left on the device.
func loadModel(ctx context.Context, dev kernels.Device, m CodeModel, cell simt.Type, rows int, s *dataset.Schema) (l *loadedCode, err error) {
	if !fits(m.Module, cell, s) {
		return nil, fmt.Errorf("%w: the input of code is not the columns of the schema in the type of the model, or its output is not columns of float32 or float64", kernels.ErrDevice)
	}
	l = &loadedCode{least: math.Inf(-1), onHost: m.Again, roots: m.Module.Outputs[0].Width}
	if l.program, err = loadCode(ctx, dev, m.Module, rows); err != nil {
		return nil, err
	}
	if m.Exact != nil || m.Again != nil {
		l.least = m.Least
	}
	if m.Exact != nil {
		if l.exact, err = loadModel(ctx, dev, *m.Exact, cell, rows, s); err != nil {
			l.program.free()
			return nil, err
		}
		if l.exact.roots != l.roots {
			l.free()
			return nil, fmt.Errorf("%w: code of %d roots, and %d where rows are computed again", kernels.ErrDevice, l.roots, l.exact.roots)
		}
	}
	return l, nil
}

func (l *loadedCode) free() {
	l.program.free()
	if l.exact != nil {
		l.exact.free()
	}
}

func (p *codeProgram) free() {
	p.Free()
	for _, b := range p.out {
		b.Free()
	}
}

// launchSizes are the rows for which a device with memory of its own has buffers: a launch takes the smallest that holds
// it, as columns are copied to the device whole.
func launchSizes(rows int) []int {
	sizes := []int{rows}
	for n := rows / 8; n >= fewRows; n /= 8 {
		sizes = append(sizes, n)
	}
	slices.Reverse(sizes)
	return sizes
}

// loadCode loads a module for launches of up to a number of rows. After an error nothing is left on the device.
func loadCode(ctx context.Context, dev kernels.Device, m *simt.Module, rows int) (*codeProgram, error) {
	p, err := kernels.LoadAs[kernels.CodeProgram](ctx, dev, m)
	if err != nil {
		return nil, err
	}
	c := &codeProgram{CodeProgram: p, narrow: m.Outputs[0].Type == simt.F32}
	if host, ok := p.(kernels.HostProgram); ok {
		c.host = host
		return c, nil
	}
	typ := kernels.Float64
	if c.narrow {
		typ = kernels.Float32
	}
	for _, n := range launchSizes(rows) {
		b, err := dev.Alloc(ctx, typ, n*m.Outputs[0].Width)
		if err != nil {
			c.free()
			return nil, err
		}
		c.out = append(c.out, b)
	}
	return c, nil
}

// NewCode loads code on a device and allocates what a launch of o.Rows rows needs; on the CPU what a thread needs comes with the
// first rows that it gets. The module's only input must be the columns of the schema. m.Exact, if there is one, is loaded
// too, for the rows below m.Least. After an error nothing is left on the device; the device
// itself stays open.
func NewCode(ctx context.Context, dev kernels.Device, m CodeModel, o CodeOptions) (_ *Code, err error) {
	if o.Rows == 0 {
		o.Rows = MaxShardRows
	}
	if o.Rows < 1 || o.Rows > 1<<20 {
		return nil, fmt.Errorf("%w: code for %d rows of a launch, want 1 to %d", kernels.ErrDevice, o.Rows, 1<<20)
	}
	cell := simt.F32
	if in := m.Module.Inputs; len(in) > 0 {
		cell = in[0].Type
	}
	l, err := loadModel(ctx, dev, m, cell, o.Rows, o.Schema)
	if err != nil {
		return nil, err
	}
	c := &Code{
		dev: dev, owns: o.OwnsDevice, rows: o.Rows, schema: o.Schema, logScales: logScales(o.Schema), cell: cell,
		loadedCode: l, classes: map[int]*loadedCode{}, of: m.Classes,
	}
	defer func() {
		if err != nil {
			c.free()
		}
	}()
	if l.program.host != nil {
		c.rooms = make([]*room, max(1, dev.Info().Threads))
		return c, nil
	}
	c.rooms, c.sizes = []*room{c.newRoom(c.rows)}, launchSizes(c.rows)
	typ := kernels.Float32
	if cell == simt.U8 {
		typ = kernels.Uint8
	}
	for _, n := range c.sizes {
		b, err := dev.Alloc(ctx, typ, n*len(c.schema.Columns))
		if err != nil {
			return nil, err
		}
		c.in = append(c.in, b)
	}
	return c, nil
}

// Schema says what a row is.
func (c *Code) Schema() *dataset.Schema { return c.schema }

// Info describes the runner. The kernel path is that of the code where its program names one.
func (c *Code) Info() Info {
	i := Info{Device: c.dev.Info(), Rows: c.rows, Outputs: c.roots}
	if p, ok := c.program.CodeProgram.(interface{ Path() string }); ok {
		i.Device.KernelPath = p.Path()
	}
	return i
}

// Meter returns what the device measures of itself, nil if it does not.
func (c *Code) Meter() kernels.Meter {
	m, _ := c.dev.(kernels.Meter)
	return m
}

// Recomputed is how many rows were computed again so far.
func (c *Code) Recomputed() int64 { return c.recomputed.Load() }

// Evaluate hands the log-likelihoods of batch after batch to take.
func (c *Code) Evaluate(ctx context.Context, next func() (*dataset.Batch, error), take func(out []float64)) error {
	most := c.rows * len(c.rooms) * perThread
	for {
		b, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for lo := 0; lo < b.Rows; lo += most {
			n := min(most, b.Rows-lo)
			c.ll = resized(c.ll, n*c.roots)
			if err := c.evaluate(ctx, b, lo, n, c.ll); err != nil {
				return err
			}
			take(c.ll)
		}
	}
}

// evaluateBatch writes what Evaluate hands on for a batch to out.
func (c *Code) evaluateBatch(ctx context.Context, b *dataset.Batch, out []float64) error {
	return c.evaluate(ctx, b, 0, b.Rows, out)
}

// evaluate computes n rows of a batch from lo on, all on the device's threads.
func (c *Code) evaluate(ctx context.Context, b *dataset.Batch, lo, n int, out []float64) error {
	return c.launches(c.loadedCode, n, func(r *room, at, n int) error {
		ll := out[at*c.roots:][:n*c.roots]
		if err := c.answer(ctx, c.loadedCode, r, b, lo+at, n, ll); err != nil {
			return err
		}
		if c.logScales == nil {
			return nil
		}
		for i, e := range r.excess[:n] {
			for k := range c.roots {
				ll[i*c.roots+k] -= e
			}
		}
		return nil
	})
}

// answer computes n rows of a batch from lo on by a model: ll has what each root gives for them.
func (c *Code) answer(ctx context.Context, l *loadedCode, r *room, b *dataset.Batch, lo, n int, ll []float64) error {
	if err := c.load(r, b, lo, n); err != nil {
		return err
	}
	if err := c.run(ctx, l, r, n, ll); err != nil {
		return err
	}
	again, err := c.recompute(ctx, l, r, n, ll)
	c.recomputed.Add(int64(again))
	return err
}

// resized returns a list of n elements, whose values do not matter.
func resized[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	return list[:n]
}

// run computes the rows of a room by a program of a model, to ll, [row][root].
func (c *Code) run(ctx context.Context, l *loadedCode, r *room, n int, ll []float64) error {
	switch p := l.program; {
	case p.host != nil && !p.narrow && l.roots == 1:
		return r.run(ctx, p.host, n, ll)
	case p.narrow:
		return runTo(ctx, c, l, r, n, &r.narrow, ll)
	}
	return runTo(ctx, c, l, r, n, &r.wide, ll)
}

// runTo is run with the room's results, of the type of the program's.
func runTo[T float32 | float64](ctx context.Context, c *Code, l *loadedCode, r *room, n int, results *[]T, ll []float64) error {
	p := l.program
	*results = resized(*results, r.pitch*l.roots)
	if p.host != nil {
		if err := r.run(ctx, p.host, n, *results); err != nil {
			return err
		}
	} else {
		if l.roots == 1 {
			*results = (*results)[:n] // behind them the column has room that was not computed
		}
		if err := c.onDevice(ctx, p, r, n, *results); err != nil {
			return err
		}
	}
	if narrow, ok := any(*results).([]float32); ok && l.roots == 1 {
		lanes.Widen(ll, narrow[:n])
		return nil
	}
	byRows(ll, *results, n, l.roots)
	return nil
}

// byRows writes columns by rows.
func byRows[T float32 | float64](rows []float64, columns []T, n, width int) {
	pitch := len(columns) / width
	for k := range width {
		for i, x := range columns[k*pitch:][:n] {
			rows[i*width+k] = float64(x)
		}
	}
}

// onDevice computes the rows of a room by a program of a device that has memory of its own.
func (c *Code) onDevice(ctx context.Context, p *codeProgram, r *room, n int, results any) error {
	if err := c.dev.Write(ctx, c.in[r.size], 0, r.in[0]); err != nil {
		return err
	}
	if err := p.Run(ctx, n, c.in[r.size:r.size+1], p.out[r.size:r.size+1]); err != nil {
		return err
	}
	return c.dev.Read(ctx, results, p.out[r.size], 0)
}

// below appends the rows whose largest log-likelihood is below least or not a number.
func (l *loadedCode) below(ll []float64, rows []int) []int {
	if l.roots == 1 {
		if !lanes.AnyLess(ll, l.least) {
			return rows
		}
		for i, x := range ll {
			if !(x >= l.least) {
				rows = append(rows, i)
			}
		}
		return rows
	}
	for i := range len(ll) / l.roots {
		if !(slices.Max(ll[i*l.roots:][:l.roots]) >= l.least) { // NaN if one is
			rows = append(rows, i)
		}
	}
	return rows
}

// recompute computes again the rows of the last launch whose largest log-likelihood is
// below least or not a number, and returns how many. They are moved together in the room, whose cells the launch no longer needs.
func (c *Code) recompute(ctx context.Context, l *loadedCode, r *room, n int, ll []float64) (int, error) {
	if l.exact == nil && l.onHost == nil {
		return 0, nil
	}
	again := l.below(ll[:n*l.roots], r.again[:0])
	if len(again) == 0 {
		return 0, nil
	}
	together(r.values, r.pitch, again)
	together(r.bytes, r.pitch, again)
	exact := make([]float64, len(again)*l.roots)
	switch {
	case l.exact != nil:
		if err := c.run(ctx, l.exact, r, len(again), exact); err != nil {
			return 0, err
		}
		r.again = again[len(again):] // for its own
		if _, err := c.recompute(ctx, l.exact, r, len(again), exact); err != nil {
			return 0, err
		}
	case r.bytes != nil:
		l.onHost(r.asFloats(len(again)), len(again), len(again), exact)
	default:
		l.onHost(r.values, r.pitch, len(again), exact)
	}
	r.again = again
	for k, i := range again {
		copy(ll[i*l.roots:][:l.roots], exact[k*l.roots:])
	}
	return len(again), nil
}

// Close frees what the code has on its device.
func (c *Code) Close() error {
	c.free()
	if c.owns {
		c.owns = false
		return c.dev.Close()
	}
	return nil
}

func (c *Code) free() {
	c.loadedCode.free()
	for _, l := range c.classes {
		l.free()
	}
	for _, b := range c.in {
		b.Free()
	}
}
