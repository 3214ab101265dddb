package engine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
)

// slot is device memory for the rows of a pass.
type slot struct {
	codes  kernels.Buffer
	values kernels.Buffer
	ll     kernels.Buffer
	excess []float64 // of each row: what its log density has more than that of its numbers; +Inf where that of the numbers is 0
	rows   int       // on the device: those of the pass, or in training those that are possible
	pass   *Pass     // whose rows are in the slot; nil: free
}

// slots is how many slots an engine has on a device: two where rows can be copied
// while the device works.
func slots(info kernels.Info) int {
	if info.Async {
		return 2
	}
	return 1
}

// slot returns the slot that the next pass takes.
func (e *Engine) slot() *slot { return &e.slots[e.loaded%int64(len(e.slots))] }

// clear frees a slot. A pass that was launched is waited for; the rows of another are
// loaded again when it is launched.
func (s *slot) clear(ctx context.Context) {
	p := s.pass
	switch {
	case p == nil:
	case p.launched:
		p.finish(ctx)
	default:
		p.leave()
	}
}

// addExcess adds the excess of the observed values of a column.
func (s *slot) addExcess(values []float32, excess float64) {
	if excess == 0 {
		return
	}
	for i, v := range values {
		if v == v {
			s.excess[i] += excess
		}
	}
}

// load encodes the rows lo..hi-1 of a batch as the program reads them, in a
// training step or not, and copies them to a slot.
func (e *Engine) load(ctx context.Context, s *slot, b *dataset.Batch, lo, hi int, train bool) error {
	if len(b.Columns) < e.prog.NumVars {
		return fmt.Errorf("%w: rows have %d columns, the model has %d variables", dataset.ErrFormat, len(b.Columns), e.prog.NumVars)
	}
	if err := e.refuseSoft(b, train); err != nil {
		return err
	}
	err := e.loadRows(ctx, s, b, lo, hi, train)
	if errors.Is(err, errSoftFull) { // of this launch and of others before it
		e.soft.forgetAll()
		err = e.loadRows(ctx, s, b, lo, hi, train)
	}
	if err != nil {
		return err
	}
	if s.rows = hi - lo; train {
		s.rows = e.dropLost(s, hi-lo)
	}
	return e.send(ctx, s)
}

// loadRows encodes the rows lo to hi of b for the device, into the engine's staging arrays:
// codes, values, and what soft evidence selects. Cells that the program cannot read are errors
// that name row and variable. In training, values that are farther than the limits are left
// out, as if they were missing.
func (e *Engine) loadRows(ctx context.Context, s *slot, b *dataset.Batch, lo, hi int, train bool) error {
	n := hi - lo
	clear(s.excess[:n])
	for k, c := range e.prog.Columns {
		cells := &b.Columns[c.Var]
		if have := max(cells.Codes.Len(), len(cells.Values)); have < hi {
			return fmt.Errorf("%w: variable %d has %d cells in a batch of %d rows", dataset.ErrFormat, c.Var, have, b.Rows)
		}
		at := int(c.Slot) * e.rows
		if c.Beside {
			for i := range n {
				e.code.set(at+i, c.Codes)
			}
			if err := e.loadSoft(ctx, s, k, &cells.Soft, lo, hi); err != nil {
				return err
			}
			continue
		}
		if c.Codes == 0 {
			value := e.value[at : at+n]
			if bad := asValues(cells, lo, value); bad >= 0 {
				return fmt.Errorf("%w: row %d, variable %d, both counted from 0: infinite value; leave the cell empty if it is missing", dataset.ErrFormat, lo+bad, c.Var)
			}
			if train && e.limits != nil && e.limits[c.Var] != (Range{}) {
				dropFar(value, e.limits[c.Var])
			}
			for i, v := range value {
				if v != v {
					continue
				}
				if err := e.families[k].Check(float64(v)); err != nil {
					return fmt.Errorf("%w: row %d, variable %d, both counted from 0: %v", dataset.ErrFormat, lo+i, c.Var, err)
				}
			}
			if e.logScales != nil && !cells.Discrete() {
				s.addExcess(value, e.logScales[c.Var])
			}
			continue
		}
		if bins := e.binsOf(c.Var); bins != nil && !cells.Discrete() {
			bins.read(cells.Values[lo:hi], c.Codes, &e.code, at, s.excess)
		} else if allSoft(&cells.Soft, lo, hi) { // its codes are all written below
		} else if bad := e.code.encode(at, cells, lo, n, c.Codes); bad >= 0 {
			return fmt.Errorf("%w: row %d, variable %d, both counted from 0: %v is not a category (want 0..%d); leave the cell empty if it is missing",
				dataset.ErrFormat, lo+bad, c.Var, cellText(cells, lo+bad), c.Codes-1)
		}
		if err := e.loadSoft(ctx, s, k, &cells.Soft, lo, hi); err != nil {
			return err
		}
	}
	return nil
}

// dropFar makes values outside of a range missing.
func dropFar(values []float32, near Range) {
	least, most := float32(near.Min), float32(near.Max)
	for i, v := range values {
		if v < least || v > most {
			values[i] = float32(math.NaN())
		}
	}
}

// dropLost closes the gaps of those of n rows whose values lie outside of all bins, where no leaf
// has a density, and returns how many rows are left. The device has no code for such a value: it
// would take the cell as missing, and the row would teach what its other cells are.
func (e *Engine) dropLost(s *slot, n int) int {
	left := 0
	for i, x := range s.excess[:n] {
		if math.IsInf(x, 1) {
			continue
		}
		if left < i {
			for _, c := range e.prog.Columns {
				if at := int(c.Slot) * e.rows; c.Codes > 0 {
					e.code.set(at+left, e.code.at(at+i))
				} else {
					e.value[at+left] = e.value[at+i]
				}
			}
		}
		left++
	}
	return left
}

// send copies the cells of a call to a slot.
func (e *Engine) send(ctx context.Context, s *slot) error {
	if err := e.dev.Write(ctx, s.codes, 0, e.code.cells()); err != nil {
		return err
	}
	return e.dev.Write(ctx, s.values, 0, e.value)
}
