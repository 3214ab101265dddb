package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// stepwise is a family whose densities are constant between breaks, as of package circuit: its parameters are the
// densities of the bins.
type stepwise interface {
	layers.Family
	// Steps returns the breaks. Cells are float32, and are compared with the breaks as float32.
	Steps() []float64
	// Whole says that the numbers of a bin are its whole ones.
	Whole() bool
	// Bin returns the bin that holds a cell, -1 if none does.
	Bin(x float64) int
	// Masses returns the probabilities of the bins.
	Masses(p []float64) []float64
}

// kind names the family of a unit, and what numbers it has.
func (u *unit) kind() string {
	if f, ok := u.family.(stepwise); ok && f.Whole() {
		return u.family.Name() + " (of whole numbers)"
	}
	return u.family.Name()
}

// holds reports whether a cell is in a bin of a stepwise unit; others have none to be outside of.
func (u *unit) holds(x float64) bool {
	f, ok := u.family.(stepwise)
	return !ok || f.Bin(x) >= 0
}

// stepped are the stepwise families of a column's units, and whether all units are of whole numbers.
type stepped struct {
	families []stepwise
	whole    bool
}

// steppedUnits returns those of the units that have a weight.
func steppedUnits(weights []float32, units []unit) stepped {
	s := stepped{whole: true}
	for i := range units {
		if weights[i] > 0 {
			f, ok := units[i].family.(stepwise)
			if ok {
				s.families = append(s.families, f)
			}
			s.whole = s.whole && ok && f.Whole()
		}
	}
	return s
}

// take reports whether x is one of the numbers that units have within limit: a whole number where all their breaks are whole, else
// one of a bin that has more than an end of a range. As LogRange and RangeMode count, a range that ends at a break has
// nothing of the bin behind it, although the end is a number of that bin.
func (s *stepped) take(x float64, limit *softCell) bool {
	switch {
	case s.whole:
		return x == math.Trunc(x)
	case limit == nil || limit.runs != nil:
		return true
	}
	return !slices.ContainsFunc(s.families, func(f stepwise) bool {
		bin := f.Bin(x)
		return bin >= 0 && !(max(limit.low, f.Steps()[bin]) < min(limit.high, f.Steps()[bin+1]))
	})
}

// steps is what the points of a column of stepwise units are made of.
type steps struct {
	cuts           []float64   // the breaks of all units as float32: all units take the cells between two of them as one
	breaks, masses [][]float64 // of the units
	shift          float64     // what the mean of a bin's numbers has more than its middle
}

// stepsOf returns the steps of units that are all stepwise.
func stepsOf(units []unit) *steps {
	s := &steps{}
	for _, u := range units {
		f := u.family.(stepwise)
		if s.breaks, s.masses = append(s.breaks, f.Steps()), append(s.masses, f.Masses(u.params)); f.Whole() {
			s.shift = -0.5
		}
		for _, b := range f.Steps() {
			s.cuts = append(s.cuts, float64(float32(b)))
		}
	}
	slices.Sort(s.cuts)
	s.cuts = slices.Compact(s.cuts)
	return s
}

// parts returns the points of a column of stepwise units with probabilities p: one for each part between two cuts, at
// the first of its cells, with the mean of its numbers. What is known of other columns is the same given any of these, so a
// sum over parts is the integral for products of different variables. A bin that has no cells, because float32 rounds
// both of its breaks to one number, is an error with the name of the column.
func (s *summary) parts(p []float64, name string) ([]point, error) {
	if s.steps == nil {
		s.steps = stepsOf(s.units)
	}
	cuts := s.steps.cuts
	mass, number := make([]float64, len(cuts)), make([]float64, len(cuts)) // the number times the mass
	for i, masses := range s.steps.masses {
		breaks := s.steps.breaks[i]
		for bin, m := range masses {
			if m *= p[i]; m <= negligible {
				continue
			}
			lo, _ := slices.BinarySearch(cuts, float64(float32(breaks[bin])))
			hi, _ := slices.BinarySearch(cuts, float64(float32(breaks[bin+1])))
			if lo == hi {
				return nil, fmt.Errorf("%w: a sum over the values of %s, of which float32 has none between the breaks %v and %v of a leaf; leave it out",
					dataset.ErrSetting, name, breaks[bin], breaks[bin+1])
			}
			scale := 1 / (cuts[hi] - cuts[lo])
			for k := lo; k < hi; k++ {
				share := m * (cuts[k+1] - cuts[k]) * scale
				middle := (cuts[k]/2 + cuts[k+1]/2 - cuts[lo]) * scale // from 0 to 1, since breaks lie beside their cuts
				mass[k] += share
				number[k] += share * (breaks[bin] + middle*(breaks[bin+1]-breaks[bin]) + s.steps.shift)
			}
		}
	}
	var points []point
	for k, m := range mass {
		if m > 0 {
			points = append(points, point{cuts[k], s.number(number[k] / m), m})
		}
	}
	if len(points) > maxSupport {
		return nil, fmt.Errorf("%w: a sum over the values of %s has %d points, more than %d: its histograms have too many breaks; leave it out",
			dataset.ErrSetting, name, len(points), maxSupport)
	}
	return points, nil
}

// binDensities are the densities of a column's stepwise units, by the offset of their parameters: [bins, width].
type binDensities struct {
	before map[int64][]float32
	after  map[int64][]float64 // normalised
	top    float64             // of these
	shared bool                // with another column
}

// binDensities reads those of a column. Where another column shares them they have to stay as they are, since its cells count so; if
// they do not integrate to 1, or a floor counts beside the bins of other units, that is an error with the name of the column.
func (e *Engine) binDensities(ctx context.Context, column int32) (*binDensities, error) {
	const rounding = 1e-5
	d := &binDensities{before: map[int64][]float32{}, after: map[int64][]float64{}}
	changed, uneven, floor, low, high := false, false, 0.0, math.Inf(1), math.Inf(-1)
	var steps []float64 // of the first units
	for _, f := range e.prog.Functions() {
		in := &e.prog.Inputs[f]
		family, ok := in.Family.(stepwise)
		if !ok || in.Column != column || d.before[in.Params] != nil {
			continue
		}
		units, err := e.unitsOfInput(ctx, in)
		if err != nil {
			return nil, err
		}
		width, breaks := e.prog.Width(in.Vector), family.Steps()
		if steps == nil {
			steps = breaks
		}
		low, high = min(low, breaks[0]), max(high, breaks[len(breaks)-1])
		densities := make([]float64, family.NumParams()*width)
		for u := range units {
			outside := math.Exp(family.LogProb(units[u].params, math.Inf(1)))
			floor, uneven = max(floor, outside), uneven || !slices.Equal(steps, breaks)
			for bin, m := range family.Masses(units[u].params) {
				x := m / (breaks[bin+1] - breaks[bin])
				uneven = uneven || units[u].params[bin] < outside
				densities[bin*width+u], d.top = x, max(d.top, x)
				changed = changed || !(math.Abs(units[u].params[bin]-x) <= rounding*x)
			}
		}
		area := make([]float32, len(densities))
		if err := e.ReadParams(ctx, in.Params, area); err != nil {
			return nil, err
		}
		d.before[in.Params], d.after[in.Params] = area, densities
		d.shared = d.shared || slices.ContainsFunc(e.prog.Inputs, func(other layers.Input) bool {
			return other.Owner == in.Owner && other.Column != column
		})
	}
	switch {
	case d.shared && changed:
		return nil, fmt.Errorf("%w: a sum over the values of %s, whose histograms do not integrate to 1 and are also those of another one; leave one of them out",
			dataset.ErrSetting, e.columnName(int(e.prog.Columns[column].Var)))
	case d.shared && uneven && floor*(high-low) > rounding: // what it adds to a mass of 1
		return nil, fmt.Errorf("%w: a sum over the values of %s, whose histograms have a density of %.3g outside of their bins, where others have theirs, and are also those of another one; leave one of them out",
			dataset.ErrSetting, e.columnName(int(e.prog.Columns[column].Var)), floor)
	}
	return d, nil
}

// normalise makes the densities of a column's stepwise units integrate to 1 until the function that it returns is
// called: parts have the probabilities of normalised bins, and posteriors given an observed cell take densities as they
// are. It multiplies all of them by one number, which no posterior depends on, so that the floor that a density has
// outside of the bins is nothing beside them. Those that another column shares stay.
func (e *Engine) normalise(ctx context.Context, column int32) (undo func() error, err error) {
	const largest = 0x1p60
	d, err := e.binDensities(ctx, column)
	if err != nil {
		return nil, err
	}
	if d.shared {
		return func() error { return nil }, nil
	}
	undo = func() error {
		for offset, area := range d.before {
			if err := e.dev.Write(context.WithoutCancel(ctx), e.params, int(offset), area); err != nil {
				return err
			}
		}
		return nil
	}
	for offset, densities := range d.after {
		area := make([]float32, len(densities))
		for i, x := range densities {
			area[i] = float32(x * (largest / d.top))
		}
		if err := e.dev.Write(ctx, e.params, int(offset), area); err != nil {
			return nil, errors.Join(err, undo())
		}
	}
	return undo, nil
}
