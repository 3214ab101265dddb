package engine

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/simt"
)

// CodeModel is a model as code: a module with one input of f32, [variable][row], with NaN for
// missing cells, and one output of f32 or f64, log-likelihoods.
type CodeModel struct {
	Module *simt.Module
	// Exact computes again the rows whose log-likelihood by Module is below Least; nil: none.
	Exact *simt.Module
	Least float64
}

// RowBytes plans what the rows of a launch take on the device and on the host.
func (m CodeModel) RowBytes(rows int) int64 {
	const cell, row = 4 + 4, 8 + 8 + 8 + 8 + 4 // x twice; log-likelihoods of both programs and on the host, f32 there, and their excess
	return int64(rows) * (cell*int64(m.Module.Inputs[0].Width) + row)
}

// CodeOptions choose how code runs.
type CodeOptions struct {
	Rows       int             // the most rows of a launch; 0: 2048
	Schema     *dataset.Schema // what a row is: its discrete columns hold codes
	OwnsDevice bool            // Close closes the device too
}

// Code is a model as code on a device, the Runner of such models. It gives one number for a
// row: the log-likelihood.
type Code struct {
	dev       kernels.Device
	owns      bool
	rows      int
	schema    *dataset.Schema
	logScales []float64
	least     float64

	program, exact *codeProgram // exact is nil if no row is computed twice
	in             kernels.Buffer
	x              []float32 // [variable][row]
	narrow         []float32 // results of f32
	excess, ll     []float64
	again          []int // rows that exact computes
	recomputed     int64
}

var _ Runner = (*Code)(nil)

// codeProgram is a loaded module with room for its results, of f32 or f64.
type codeProgram struct {
	kernels.CodeProgram
	out kernels.Buffer
}

// loadCode loads a module for launches of a number of rows. After an error nothing is left on the device.
func loadCode(ctx context.Context, dev kernels.Device, m *simt.Module, rows int) (*codeProgram, error) {
	p, err := kernels.LoadAs[kernels.CodeProgram](ctx, dev, m)
	if err != nil {
		return nil, err
	}
	typ := kernels.Float64
	if m.Outputs[0].Type == simt.F32 {
		typ = kernels.Float32
	}
	out, err := dev.Alloc(ctx, typ, rows)
	if err != nil {
		p.Free()
		return nil, err
	}
	return &codeProgram{p, out}, nil
}

// NewCode loads code on a device and allocates what a launch of o.Rows rows needs. The module's
// only input must be the columns of the schema, as float32. m.Exact, if there is one, is loaded
// too, for the rows below m.Least. After an error nothing is left on the device; the device
// itself stays open.
func NewCode(ctx context.Context, dev kernels.Device, m CodeModel, o CodeOptions) (_ *Code, err error) {
	if o.Rows == 0 {
		o.Rows = MaxShardRows
	}
	if in := m.Module.Inputs; o.Rows < 1 || o.Rows > 1<<20 || o.Schema == nil || len(in) != 1 || in[0].Type != simt.F32 || in[0].Layout != simt.Columns || in[0].Width != len(o.Schema.Columns) || len(m.Module.Outputs) != 1 || !m.Module.Outputs[0].Type.Float() {
		return nil, fmt.Errorf("%w: code for %d rows of a launch, and its input is not the columns of the schema, or its output is not float32 or float64", kernels.ErrDevice, o.Rows)
	}
	c := &Code{dev: dev, owns: o.OwnsDevice, rows: o.Rows, schema: o.Schema, logScales: logScales(o.Schema), least: math.Inf(-1)}
	defer func() {
		if err != nil {
			c.free()
		}
	}()
	if c.program, err = loadCode(ctx, dev, m.Module, c.rows); err != nil {
		return nil, err
	}
	if m.Exact != nil {
		c.least = m.Least
		if c.exact, err = loadCode(ctx, dev, m.Exact, c.rows); err != nil {
			return nil, err
		}
	}
	n := c.rows * len(c.schema.Columns)
	if c.in, err = dev.Alloc(ctx, kernels.Float32, n); err != nil {
		return nil, err
	}
	c.x, c.narrow = make([]float32, n), make([]float32, c.rows)
	c.excess, c.ll = make([]float64, c.rows), make([]float64, c.rows)
	return c, nil
}

// Schema says what a row is.
func (c *Code) Schema() *dataset.Schema { return c.schema }

// Info describes the runner. The kernel path is that of the code where its program names one.
func (c *Code) Info() Info {
	i := Info{Device: c.dev.Info(), Rows: c.rows, Outputs: 1}
	if p, ok := c.program.CodeProgram.(interface{ Path() string }); ok {
		i.Device.KernelPath = p.Path()
	}
	return i
}

// Recomputed is how many rows were computed again so far.
func (c *Code) Recomputed() int64 { return c.recomputed }

// Evaluate hands the log-likelihoods of batch after batch to take.
func (c *Code) Evaluate(ctx context.Context, next func() (*dataset.Batch, error), take func(out []float64)) error {
	for {
		b, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for lo := 0; lo < b.Rows; lo += c.rows {
			n := min(c.rows, b.Rows-lo)
			if err := c.launch(ctx, b, lo, n); err != nil {
				return err
			}
			take(c.ll[:n])
		}
	}
}

// launch computes n rows from lo on.
func (c *Code) launch(ctx context.Context, b *dataset.Batch, lo, n int) error {
	if err := c.load(b, lo, n); err != nil {
		return err
	}
	if err := c.run(ctx, c.program, n, c.ll[:n]); err != nil {
		return err
	}
	if c.exact != nil {
		if err := c.recompute(ctx, n); err != nil {
			return err
		}
	}
	for i, e := range c.excess[:n] {
		c.ll[i] -= e
	}
	return nil
}

// run computes the rows of x.
func (c *Code) run(ctx context.Context, p *codeProgram, n int, ll []float64) error {
	if err := c.dev.Write(ctx, c.in, 0, c.x); err != nil {
		return err
	}
	if err := p.Run(ctx, n, []kernels.Buffer{c.in}, []kernels.Buffer{p.out}); err != nil {
		return err
	}
	if p.out.DType() == kernels.Float64 {
		return c.dev.Read(ctx, ll, p.out, 0)
	}
	if err := c.dev.Read(ctx, c.narrow[:n], p.out, 0); err != nil {
		return err
	}
	for i, x := range c.narrow[:n] {
		ll[i] = float64(x)
	}
	return nil
}

// recompute computes again, in log space, the rows of the last launch whose log-likelihood is
// below least or not a number. They are moved together in the host's copy of the cells, which
// the launch no longer needs, and counted.
func (c *Code) recompute(ctx context.Context, n int) error {
	c.again = c.again[:0]
	for i, ll := range c.ll[:n] {
		if !(ll >= c.least) {
			c.again = append(c.again, i)
		}
	}
	if len(c.again) == 0 {
		return nil
	}
	c.recomputed += int64(len(c.again))
	for v := range c.schema.Columns {
		column := c.x[v*c.rows:][:c.rows]
		for k, i := range c.again { // k is at most i
			column[k] = column[i]
		}
	}
	exact := make([]float64, len(c.again))
	if err := c.run(ctx, c.exact, len(exact), exact); err != nil {
		return err
	}
	for k, i := range c.again {
		c.ll[i] = exact[k]
	}
	return nil
}

// load writes the cells of n rows from lo on as the module reads them: float32, column by
// column, NaN where a cell is missing. A code that is not a category and an infinite value are
// errors that name row and variable. It notes what the scale of continuous cells takes from
// each row's log-likelihood.
func (c *Code) load(b *dataset.Batch, lo, n int) error {
	if err := refuseSoftQuery("log-likelihoods by code", b); err != nil {
		return err
	}
	if len(b.Columns) < len(c.schema.Columns) {
		return fmt.Errorf("%w: rows have %d columns, the model has %d variables", dataset.ErrFormat, len(b.Columns), len(c.schema.Columns))
	}
	clear(c.excess[:n])
	for v := range c.schema.Columns {
		cells, col := &b.Columns[v], &c.schema.Columns[v]
		if have := max(cells.Codes.Len(), len(cells.Values)); have < lo+n {
			return fmt.Errorf("%w: variable %d has %d cells in a batch of %d rows", dataset.ErrFormat, v, have, b.Rows)
		}
		x := c.x[v*c.rows:][:n]
		if bad := asValues(cells, lo, x); bad >= 0 {
			return fmt.Errorf("%w: row %d, variable %d: infinite value; leave the cell empty if it is missing", dataset.ErrFormat, lo+bad, v)
		}
		if col.Kind == dataset.Discrete {
			for i, code := range x {
				if !(code != code || code >= 0 && code < float32(col.Categories) && code == float32(int32(code))) {
					return fmt.Errorf("%w: row %d, variable %d: %v is not a category (want 0..%d); leave the cell empty if it is missing",
						dataset.ErrFormat, lo+i, v, cellText(cells, lo+i), col.Categories-1)
				}
			}
			continue
		}
		if c.logScales != nil && !cells.Discrete() && c.logScales[v] != 0 {
			for i, value := range x {
				if value == value {
					c.excess[i] += c.logScales[v]
				}
			}
		}
	}
	return nil
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
	for _, p := range []*codeProgram{c.program, c.exact} {
		if p != nil {
			p.Free()
			p.out.Free()
		}
	}
	if c.in != nil {
		c.in.Free()
	}
}
