package engine

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// Sample fills the missing cells of b with draws from the distribution given the
// row's observed cells. first is the number of b's first row in the whole
// request: a row's draws depend on seed, its number and its evidence alone. A row
// whose evidence is impossible keeps its missing cells.
func (e *Engine) Sample(ctx context.Context, b *dataset.Batch, seed uint64, first int) error {
	functions, watched := e.prog.Functions(), e.prog.Watched()
	ll, units := make([]float64, e.rows), make([]int32, len(watched)*e.rows)
	for lo, hi := 0, 0; lo < b.Rows; lo = hi {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi = e.launchEnd(b, lo)
		s, err := e.evaluate(ctx, b, lo, hi, ll)
		if err != nil {
			return err
		}
		a := tensor.SampleArgs{Params: e.params, Codes: s.codes, Values: s.values, Seed: seed, First: first + lo, Units: units}
		if err := e.exec.Sample(ctx, hi-lo, &a); err != nil {
			return err
		}
		if err := e.dev.Read(ctx, e.code.cells(), s.codes, 0); err != nil {
			return err
		}
		e.dropImpossible(s.excess[:hi-lo], units)
		for _, c := range e.prog.Columns {
			if c.Codes > 0 && !c.Beside {
				if bins := e.binsOf(c.Var); bins != nil && !b.Columns[c.Var].Discrete() {
					bins.draw(b.Columns[c.Var].Values[lo:hi], &e.code, int(c.Slot)*e.rows, tensor.NewDraws(seed, first+lo), int32(len(e.prog.Vectors))+c.Var)
					continue
				}
				if err := e.fill(&b.Columns[c.Var], lo, hi, c); err != nil {
					return err
				}
			}
		}
		draws := tensor.NewDraws(seed, first+lo)
		if err := e.fillSoft(ctx, b, lo, hi, units, func(row int, in *layers.Input) float64 { return draws.Row(row).Uniform(in.Vector) }); err != nil {
			return err
		}
		for i, f := range functions {
			if err := e.drawFunction(ctx, b, lo, &e.prog.Inputs[f], units[i*(hi-lo):][:hi-lo], draws); err != nil {
				return err
			}
		}
	}
	return nil
}

// evaluate computes the log-likelihoods of the rows lo to hi-1 and returns the slot that
// still has the rows.
func (e *Engine) evaluate(ctx context.Context, b *dataset.Batch, lo, hi int, ll []float64) (*slot, error) {
	p, err := e.Load(ctx, b, lo, hi, ll)
	if err != nil {
		return nil, err
	}
	if err := p.Evaluate(ctx); err != nil {
		return nil, err
	}
	s := p.at
	return s, p.Wait(ctx)
}

// dropImpossible takes back what the device has chosen for the missing cells of rows that only
// the host knows to be impossible: the device reads a value outside the bins of a histogram as
// missing, and if nothing lies there, the excess of the row is infinite. units, [watched
// inputs, rows], are chosen for each row.
func (e *Engine) dropImpossible(excess []float64, units []int32) {
	for r, x := range excess {
		if !math.IsInf(x, 1) {
			continue
		}
		for _, c := range e.prog.Columns {
			if c.Codes > 0 {
				e.code.set(int(c.Slot)*e.rows+r, c.Codes)
			}
		}
		for i := range e.prog.Watched() {
			units[i*len(excess)+r] = -1
		}
	}
}

// fill writes the codes that the device has drawn to the missing cells of the rows
// lo to hi-1; impossible rows have none.
func (e *Engine) fill(cells *dataset.Cells, lo, hi int, c layers.Column) error {
	at := int(c.Slot) * e.rows
	for r := range hi - lo {
		if code := e.code.at(at + r); code < c.Codes && cells.IsMissing(lo+r) {
			if err := put(cells, lo+r, c.Var, float64(code)); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawFunction draws the missing cells of a leaf without a table, of which the device has
// chosen a unit for each row; -1 is none. Cells that are evidence are left to fillSoft. Draws depend on seed, row and vector, as those of
// tables do. Parameters are read from the device only if a row needs them.
func (e *Engine) drawFunction(ctx context.Context, b *dataset.Batch, lo int, in *layers.Input, units []int32, draws tensor.Draws) error {
	width, np := e.prog.Width(in.Vector), in.Family.NumParams()
	variable := e.prog.Columns[in.Column].Var
	cells := &b.Columns[variable]
	var area []float32 // [np, width], once a row needs it
	params := make([]float64, np)
	for r, u := range units {
		if u < 0 || !cells.IsMissing(lo+r) || cells.Soft.At(lo+r) != nil {
			continue
		}
		if area == nil {
			area = make([]float32, np*width)
			if err := e.ReadParams(ctx, in.Params, area); err != nil {
				return err
			}
		}
		for k := range params {
			params[k] = float64(area[k*width+int(u)])
		}
		x := in.Family.Sample(params, rand.New(draws.Row(r).Source(in.Vector)))
		if err := put(cells, lo+r, variable, x); err != nil {
			return err
		}
	}
	return nil
}

// put writes a draw to a cell.
func put(cells *dataset.Cells, row int, variable int32, x float64) error {
	switch {
	case !cells.Discrete():
		cells.Values[row] = float32(x)
	case x >= 0 && x < float64(cells.Codes.Limit()) && x == math.Trunc(x):
		cells.Codes.Set(row, int(x))
	default:
		return fmt.Errorf("%w: row %d, variable %d, both counted from 0: the draw %v does not fit a column of codes; pass the column as values",
			dataset.ErrFormat, row, variable, x)
	}
	return nil
}
