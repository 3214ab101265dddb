package learnspn

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
)

// missing is the code of a missing cell.
const missing = -1

// variable is one column of all rows.
type variable struct {
	leaf    circuit.Leaf
	domain  int       // codes; 0: numbers
	codes   []int32   // [rows] of a finite domain, missing or 0..domain-1
	values  []float64 // [rows] of other domains, NaN where missing
	ordered bool      // codes are numbers, not labels
	gaps    bool      // some cell is missing

	// What dependence is measured on: the codes, or few bins of many codes or of numbers.
	bins  []int32 // [rows], missing or 0..count-1
	count int

	deviation float64 // of numbers as clusters compare them, over all rows
}

// slice is some of the rows of some of the variables.
type slice struct {
	all  []variable
	rows []int32 // ascending
	vars []int   // ascending
}

// gatherRows is the number of rows read at a time.
const gatherRows = 4096

// readTable reads all rows of a source, column by column. Values outside the bins of a
// column are missing cells here. A column without any observed cell is an error.
func readTable(ctx context.Context, src dataset.Source, leaves []circuit.Leaf) ([]variable, error) {
	schema, n := src.Schema(), src.Rows()
	all := make([]variable, len(schema.Columns))
	edges := make([][]float32, len(all))
	for v := range all {
		c := &schema.Columns[v]
		all[v] = variable{leaf: leaves[v], domain: leaves[v].Codes(), ordered: c.Labels == nil}
		if all[v].domain > 0 {
			all[v].codes = make([]int32, n)
		} else {
			all[v].values = make([]float64, n)
		}
		for _, e := range c.Edges {
			edges[v] = append(edges[v], c.Standard(e))
		}
	}
	var b dataset.Batch
	for lo := 0; lo < n; lo += gatherRows {
		hi := min(lo+gatherRows, n)
		part := make([]int, hi-lo)
		for i := range part {
			part[i] = lo + i
		}
		if err := src.Gather(ctx, &b, part); err != nil {
			return nil, fmt.Errorf("learnspn: reading rows %d to %d: %w", lo, hi-1, err)
		}
		for v := range all {
			if err := all[v].fill(lo, hi-lo, &b.Columns[v], edges[v]); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", structures.ErrData, schema.ColumnName(v), err)
			}
		}
	}
	for v := range all {
		x := &all[v]
		for r := range int32(n) {
			_, ok := x.at(r)
			x.gaps = x.gaps || !ok
		}
		if x.bin(); x.domain == 0 {
			x.deviation = x.spread()
		}
	}
	return all, nil
}

// requireCells reports the first column without any observed cell, of which nothing can be
// learned.
func requireCells(all []variable, schema *dataset.Schema) error {
	for v := range all {
		if !all[v].anyObserved() {
			return fmt.Errorf("%w: %s has no observed cell, so its distribution cannot be learned; leave the column out (type: skip)",
				structures.ErrData, schema.ColumnName(v))
		}
	}
	return nil
}

// fill takes n cells of a column from row lo on.
func (x *variable) fill(lo, n int, cells *dataset.Cells, edges []float32) error {
	for i := range n {
		code, number := missing, math.NaN()
		switch {
		case cells.Codes.Len() > 0:
			if code = cells.Codes.At(i); code == dataset.Missing {
				code = missing
			} else {
				number = float64(code)
			}
		case edges != nil:
			code = binOf(edges, cells.Values[i])
		default:
			number = float64(cells.Values[i])
		}
		switch {
		case x.domain == 0:
			x.values[lo+i] = number
		case code >= x.domain:
			return fmt.Errorf("row %d has the code %d, and its leaf %d codes; give the leaf more", lo+i+1, code, x.domain)
		default:
			x.codes[lo+i] = int32(code)
		}
	}
	return nil
}

// binOf returns the bin of a value, missing if it lies outside all or is missing. The last
// bin has both of its edges.
func binOf(edges []float32, v float32) int {
	last := len(edges) - 1
	switch k := sort.Search(len(edges), func(k int) bool { return edges[k] > v }) - 1; {
	case v == edges[last]:
		return last - 1
	case k < last: // -1 where the value is below all edges
		return k
	}
	return missing
}

func (x *variable) anyObserved() bool {
	for _, c := range x.codes {
		if c != missing {
			return true
		}
	}
	for _, v := range x.values {
		if v == v {
			return true
		}
	}
	return false
}

// rows returns how many rows there are.
func (x *variable) rows() int { return max(len(x.codes), len(x.values)) }

// at returns the cell of a row as a number, and whether it is observed.
func (x *variable) at(r int32) (float64, bool) {
	if x.domain > 0 {
		c := x.codes[r]
		return float64(c), c != missing
	}
	v := x.values[r]
	return v, v == v
}

// whole returns the slice of all rows and variables.
func whole(all []variable) slice {
	s := slice{all: all, rows: make([]int32, all[0].rows()), vars: make([]int, len(all))}
	for r := range s.rows {
		s.rows[r] = int32(r)
	}
	for v := range s.vars {
		s.vars[v] = v
	}
	return s
}

// over returns the slice of the same rows of other variables.
func (s slice) over(vars []int) slice { return slice{s.all, s.rows, vars} }

// of returns the slice of other rows of the same variables.
func (s slice) of(rows []int32) slice { return slice{s.all, rows, s.vars} }
