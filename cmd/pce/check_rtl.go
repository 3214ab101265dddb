package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
	"github.com/pce-engine/pce/dataset"
)

// rtlBound is the relative error of a likelihood of hardware from the reference.
const rtlBound = 1e-12

// checkRTL simulates the hardware of a model on rows, and compares every bit with the operators in
// Go and the likelihoods with the reference.
func (a *app) checkRTL(ctx context.Context, f *queryFlags, hw *rtlFlags, simulator, expected string) (*checkResult, error) {
	tool, err := simulate.Find(simulator)
	if err != nil {
		return nil, err
	}
	d, m, schema, err := a.openDatapath(f.model, hw.options)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	ev, err := referenceOf(f.model, m)
	if err != nil {
		return nil, err
	}
	var want, scales []float64
	var rows [][]int
	columns := logScales(m.Graph, schema)
	alone := slices.Collect(slices.Chunk(f.data, 1)) // messages have the row of a file
	err = a.eachRows(ctx, f, alone, schema, func(path string, first int64, b *dataset.Batch) error {
		ll, err := evaluateRows(ctx, ev, columns, b)
		if err != nil {
			return err
		}
		want = append(want, ll...)
		for i, row := range reference.Rows(b) {
			codes := make([]int, len(row))
			if err := d.Encode(row, codes); err != nil {
				return fmt.Errorf("%s: row %d: %w", path, first+int64(i), err)
			}
			rows, scales = append(rows, codes), append(scales, logScale(columns, row))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	dir, err := scratch("pce-rtl-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	design, err := simulate.Open(ctx, tool, dir, d)
	if err != nil {
		return nil, err
	}
	bits, cycles, err := design.Run(ctx, rows)
	if err != nil {
		return nil, err
	}
	r := newCheck(want)
	r.addRTL(d, tool, rows, bits, cycles, scales, want)
	if expected != "" {
		if r.Expected, err = a.compareExpected(ctx, expected, want); err != nil {
			return nil, err
		}
		r.OK = r.OK && r.Expected.OK
	}
	return r, nil
}

// addRTL compares what hardware gave with the Go model and the reference.
func (r *checkResult) addRTL(d *rtl.Datapath, tool string, rows [][]int, bits []uint64, cycles int, scales, want []float64) {
	p := pathCheck{Path: targetRTL, Device: tool, OK: true, Cycles: cycles, DifferentBits: new(int), least: rtlLeast}
	for i, x := range bits {
		if x != math.Float64bits(d.Evaluate(rows[i])) {
			*p.DifferentBits++
		}
		p.compare(i, math.Log(math.Float64frombits(x))-scales[i], want[i], rtlBound*math.Max(1, math.Abs(want[i])))
	}
	p.OK = p.OK && *p.DifferentBits == 0 && (len(rows) == 0 || cycles == len(rows)+d.Depth-1)
	r.Paths = append(r.Paths, p)
	r.OK = r.OK && p.OK
}
