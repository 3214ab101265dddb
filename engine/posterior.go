package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// posteriorLen bounds the elements that the posteriors of a launch have, unless one row
// has more: 32 MiB.
const posteriorLen = 1 << 23

// PosteriorBytes is what the posteriors of a launch of up to that many rows take at most, on the
// device and on the host each, where those of all columns have that many elements in a row. Those of
// fewer columns take more rows at a time.
func PosteriorBytes(rows, elements int) int64 {
	return 4 * min(int64(rows)*int64(elements), int64(max(elements, posteriorLen)))
}

// posteriorRows is how many rows of that many elements a launch has at most.
func posteriorRows(rows, elements int) int {
	return min(rows, max(1, posteriorLen/max(1, elements)))
}

// posteriors is what one launch knows of some columns.
type posteriors struct {
	lo, rows int       // rows lo to lo+rows-1 of the batch
	ll       []float64 // of the observed cells
	offsets  []int     // of the columns in a row, as of layers.Program.PosteriorOffsets
	units    []int     // by column: the place among the offsets of its units; -1 if they are not there
	out      []float32 // [rows, elements of a row]
}

// of returns the elements of the i-th column in row r of the launch, and false if the row
// is impossible.
func (p *posteriors) of(i, r int) ([]float32, bool) {
	width := p.offsets[len(p.offsets)-1]
	return p.out[r*width+p.offsets[i] : r*width+p.offsets[i+1]], !math.IsInf(p.ll[r], -1)
}

// unitsOf returns the posterior of the units of the i-th column, and false if the row is
// impossible. They are there where a cell of the column is evidence.
func (p *posteriors) unitsOf(i, r int) ([]float32, bool) { return p.of(p.units[i], r) }

// posteriors hands the posteriors of columns of the program to take, launch by launch. They
// are take's for the time of the call, which may change the rows of the launch.
func (e *Engine) posteriors(ctx context.Context, b *dataset.Batch, columns []int32, take func(p *posteriors) error) error {
	columns, units := e.withUnits(b, columns)
	offsets, err := e.prog.PosteriorOffsets(columns)
	if err != nil {
		return err
	}
	width := offsets[len(offsets)-1]
	most := posteriorRows(e.rows, width)
	if err := e.needPosterior(ctx, most*width); err != nil {
		return err
	}
	p := &posteriors{offsets: offsets, units: units, out: e.taken}
	e.taken = nil // a call from take has room of its own
	if n := min(most, b.Rows) * width; cap(p.out) < n {
		p.out = make([]float32, n)
	}
	defer func() { e.taken = p.out[:0] }()
	ll := make([]float64, e.rows)
	for p.lo = 0; p.lo < b.Rows; p.lo += p.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.rows = min(most, e.launchEnd(b, p.lo)-p.lo)
		s, err := e.evaluate(ctx, b, p.lo, p.lo+p.rows, ll)
		if err != nil {
			return err
		}
		p.ll, p.out = ll[:p.rows], p.out[:p.rows*width]
		a := tensor.PosteriorsArgs{Params: e.params, Codes: s.codes, Values: s.values, Of: columns, Out: e.posterior}
		if err := e.exec.Posteriors(ctx, p.rows, &a); err != nil {
			return err
		}
		if err := e.dev.Read(ctx, p.out, e.posterior, 0); err != nil {
			return err
		}
		if err := take(p); err != nil {
			return err
		}
	}
	return nil
}

// needPosterior makes room for n elements.
func (e *Engine) needPosterior(ctx context.Context, n int) (err error) {
	switch {
	case e.posterior != nil && e.posterior.Len() >= n:
		return nil
	case e.posterior != nil:
		e.posterior.Free()
		e.posterior = nil
	}
	e.posterior, err = e.dev.Alloc(ctx, kernels.Float32, n)
	return err
}

// columnOf returns the column of the program that a variable is read from.
func (e *Engine) columnOf(variable int) (int32, error) {
	for i, c := range e.prog.Columns {
		if int(c.Var) == variable {
			return int32(i), nil
		}
	}
	if variable < 0 || variable >= e.prog.NumVars {
		return 0, fmt.Errorf("%w: column %d of %d, counted from 0; name one that the model has", dataset.ErrSetting, variable, e.prog.NumVars)
	}
	return 0, fmt.Errorf("%w: %s is in no leaf, so nothing can be said of it; leave it out", dataset.ErrSetting, e.columnName(variable))
}

// unit is a unit of an input without codes.
type unit struct {
	family layers.Family
	params []float64
}

// counts reports whether the values of a unit are whole numbers.
func (u *unit) counts() bool { return u.family.Check(0.5) != nil }

// unitsOf returns the units of a column without codes, in the order of posteriors: those
// of its inputs, one input after another.
func (e *Engine) unitsOf(ctx context.Context, column int32) ([]unit, error) {
	var units []unit
	for _, f := range e.prog.Functions() {
		if in := &e.prog.Inputs[f]; in.Column == column {
			of, err := e.unitsOfInput(ctx, in)
			if err != nil {
				return nil, err
			}
			units = append(units, of...)
		}
	}
	return units, nil
}

// unitsOfInput returns the units of an input without codes.
func (e *Engine) unitsOfInput(ctx context.Context, in *layers.Input) ([]unit, error) {
	width, np := e.prog.Width(in.Vector), in.Family.NumParams()
	area := make([]float32, np*width) // [np, width]
	if np > 0 {
		if err := e.ReadParams(ctx, in.Params, area); err != nil {
			return nil, err
		}
	}
	units := make([]unit, e.prog.Vectors[in.Vector].Units)
	for u := range units {
		units[u] = unit{in.Family, make([]float64, np)}
		for k := range np {
			units[u].params[k] = float64(area[k*width+u])
		}
	}
	return units, nil
}
