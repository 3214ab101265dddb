package rtl

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
)

// maxEntries bounds the entries of the tables of leaves: far more than any device has.
const maxEntries = 1 << 26

// Compile makes the datapath of a circuit with its parameters, and checks that it fits the device.
// Errors match ErrOptions, ErrCircuit or ErrFit, or those of circuit for what is not a circuit.
func Compile(g *circuit.Graph, params circuit.ParamFunc64, o Options) (*Datapath, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	units, err := importGraph(g, params)
	if err != nil {
		return nil, err
	}
	columns, err := columnsOf(units, g.NumVars, &o)
	if err != nil {
		return nil, err
	}
	entries := 0
	for i := range units {
		if u := &units[i]; u.kind == circuit.Input {
			if entries += 1 << columns[u.variable].Bits; entries > maxEntries {
				return nil, fmt.Errorf("%w: leaves of more than %d table entries; no device holds them", ErrFit, maxEntries)
			}
		}
	}
	d := build(units, columns, &o)
	if err := d.ranges(); err != nil {
		return nil, err
	}
	return d, d.fit(&o)
}

// build chooses among the ways to compute a circuit the one with the fewest multipliers, then
// adders: products that several operations read are computed once, or by each of them from
// tables, and without passes as the paper has it.
func build(units []unit, columns []Column, o *Options) *Datapath {
	if o.Faithful {
		return faithful(units, columns, o)
	}
	var best *Datapath
	consider := func(d *Datapath) {
		if best == nil || d.operators() < best.operators() {
			best = d
		}
	}
	for _, loose := range []bool{true, false} {
		d := newDatapath(cloneColumns(columns), o)
		n, root := networkOf(units, d, o, loose)
		n.lower(root)
		consider(d)
	}
	consider(faithful(units, cloneColumns(columns), o))
	best.late()
	return best
}

// operators weighs a datapath: multipliers first.
func (d *Datapath) operators() int { return d.Count(Mul)<<32 + d.Count(Sum) }

// cloneColumns lets each candidate mark the columns that it reads.
func cloneColumns(columns []Column) []Column { return append([]Column(nil), columns...) }

// ranges finds the least and the largest value of operators over all rows, and fails if one may
// overflow.
func (d *Datapath) ranges() error {
	type span struct{ lo, hi float64 } // log2 of values other than 0
	spans := make([]span, len(d.Ops))
	of := func(values ...float64) span {
		s := span{math.Inf(1), math.Inf(-1)}
		for _, x := range values {
			if x > 0 {
				s.lo, s.hi = min(s.lo, math.Log2(x)), max(s.hi, math.Log2(x))
			}
		}
		return s
	}
	d.Least, d.Largest = math.Inf(1), math.Inf(-1)
	for i := range d.Ops {
		o := &d.Ops[i]
		var s span
		switch o.Kind {
		case Constant:
			s = of(o.Value)
		case Lookup:
			s = of(d.Tables[o.Table].Values...)
		case Mul:
			a, b := spans[o.A], spans[o.B]
			s = span{a.lo + b.lo, a.hi + b.hi}
		case Sum:
			a, b := spans[o.A], spans[o.B]
			s = span{min(a.lo, b.lo), max(a.hi, b.hi) + 1}
		default:
			a, b := spans[o.A], spans[o.B]
			s = span{min(a.lo, b.lo), max(a.hi, b.hi)}
		}
		if s.hi >= maxLog2 {
			return fmt.Errorf("%w: values of up to 2^%.0f overflow; the format ends at 2^%d", ErrCircuit, s.hi, maxLog2)
		}
		spans[i] = s
		d.Least, d.Largest = min(d.Least, s.lo), max(d.Largest, s.hi)
	}
	if d.lost {
		d.Least = math.Inf(-1)
	}
	return nil
}
