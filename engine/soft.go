package engine

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/layers"
)

// softRows are the rows of evidence in a program's tables. A cell of which a range, a set
// or likelihoods are known selects such a row: for each unit the probability of the evidence, a
// sum of the table's rows or what a density has over the range. So a launch differs from
// others by its codes alone. Columns that share a table share its rows; a group of them whose
// rows are all taken starts again, as no launch needs more rows than there are.
type softRows struct {
	groups []int32                         // by column of the program
	rows   []map[string]softRow            // by group: what is written
	known  []map[*dataset.Evidence]softRow // by column: the same of evidence that was seen
	last   [][]lastRow                     // by column: the same by place in the last list
	beside []int32                         // inputs of evidence beside values, by their tables
	most   bool                            // rows hold the best of a cell's values, not their sum
}

// softRow is a row of evidence: its code in the column, and the natural log of what was
// taken out of the likelihoods.
type softRow struct {
	code int32
	log  float64
}

// lastRow is the row of what was at a place in a list of evidence.
type lastRow struct {
	what *dataset.Evidence
	row  softRow
}

// errSoftFull means that all rows of a group are taken.
var errSoftFull = fmt.Errorf("%w: more ranges, sets and likelihoods in a launch than tables have rows for", kernels.ErrMemory)

// needSoft makes a program's rows of evidence ready, if it has any.
func (e *Engine) needSoft(ctx context.Context) error {
	p := e.prog
	n := len(p.Columns)
	s := &softRows{groups: p.SoftGroups(), rows: make([]map[string]softRow, n), known: make([]map[*dataset.Evidence]softRow, n), last: make([][]lastRow, n)}
	for i := range p.Inputs {
		c := &p.Columns[p.Inputs[i].Column]
		if c.Soft > 0 {
			e.soft = s
		}
		if c.Beside {
			s.beside = append(s.beside, int32(i))
		}
	}
	if e.soft == nil {
		return nil
	}
	return e.writeOnes(ctx, 0, p.NumParams)
}

// writeOnes writes what missing cells read in the tables of evidence beside values, where
// these begin in a part of the parameters. No model has them.
func (e *Engine) writeOnes(ctx context.Context, lo, hi int64) error {
	p, list := e.prog, e.soft.beside
	first := sort.Search(len(list), func(k int) bool {
		in := &p.Inputs[list[k]]
		return in.Table+p.TableRows(in)*int64(p.Width(in.Vector)) > lo
	})
	for _, i := range list[first:] {
		in := &p.Inputs[i]
		if in.Table >= hi {
			break
		}
		ones := make([]float32, p.Width(in.Vector))
		for u := range p.Vectors[in.Vector].Units {
			ones[u] = 1
		}
		for row := range int(in.Codes) + 1 { // the code that is not used, too: it is the best of a missing cell
			if err := e.writeTable(ctx, in, row, ones, make([]float32, len(ones))); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTable writes a row of the table of an input, and of its exponents where it has some.
func (e *Engine) writeTable(ctx context.Context, in *layers.Input, row int, m, exps []float32) error {
	at := int64(row) * int64(e.prog.Width(in.Vector))
	if err := e.dev.Write(ctx, e.params, int(in.Table+at), m); err != nil || in.Exps < 0 {
		return err
	}
	return e.dev.Write(ctx, e.params, int(in.Exps+at), exps)
}

// forget drops the rows of a group.
func (s *softRows) forget(group int32) {
	s.rows[group] = nil
	for c, g := range s.groups {
		if g == group {
			s.known[c], s.last[c] = nil, nil
		}
	}
}

// forgetAll drops all rows, since the parameters have changed.
func (s *softRows) forgetAll() {
	for c := range s.groups {
		s.forget(int32(c))
	}
}

// refuseSoft returns an error if a batch has evidence that the engine cannot take.
func (e *Engine) refuseSoft(b *dataset.Batch, train bool) error {
	switch {
	case !b.HasSoft():
		return nil
	case train:
		return fmt.Errorf("%w: ranges, sets or likelihoods in rows of training; give values, or leave the cells empty", dataset.ErrSetting)
	case e.soft == nil:
		return fmt.Errorf("%w: ranges, sets or likelihoods for a model that was opened without Options.Soft", dataset.ErrSetting)
	}
	return nil
}

// refuseSoftQuery returns an error if a query that knows nothing of evidence is asked about a batch
// that has some.
func refuseSoftQuery(what string, b *dataset.Batch) error {
	if !b.HasSoft() {
		return nil
	}
	return fmt.Errorf("%w: %s of rows with ranges, sets or likelihoods; give values, or leave the cells empty", dataset.ErrSetting, what)
}

// launchEnd returns the row behind those that a launch takes from row lo of b on: at most
// Rows, of which the cells of no group need more rows of evidence than there are.
func (e *Engine) launchEnd(b *dataset.Batch, lo int) int {
	hi := min(lo+e.rows, b.Rows)
	if e.soft == nil || !b.HasSoft() {
		return hi
	}
	p := e.prog
	could, room := make([]int, len(p.Columns)), make([]int, len(p.Columns))
	for c, col := range p.Columns {
		could[e.soft.groups[c]] += len(b.Columns[col.Var].Soft.List)
		room[e.soft.groups[c]] = int(col.Soft)
	}
	for g, n := range could {
		if n <= room[g] || room[g] == 0 {
			continue
		}
		var columns []*dataset.SoftCells
		for c, of := range e.soft.groups {
			if of == int32(g) {
				columns = append(columns, &b.Columns[p.Columns[c].Var].Soft)
			}
		}
		hi = distinctRows(columns, lo, hi, room[g])
	}
	return hi
}

// distinctRows returns the row behind the first ones from lo on, at least one, whose cells in
// some columns have at most that many different evidences.
func distinctRows(columns []*dataset.SoftCells, lo, hi, most int) int {
	type about struct {
		column int
		what   *dataset.Evidence
	}
	seen := make(map[about]struct{}, most)
	for r := lo; r < hi; r++ {
		for i, s := range columns {
			if e := s.At(r); e != nil {
				seen[about{i, e}] = struct{}{}
			}
		}
		if len(seen) > most && r > lo {
			return r
		}
	}
	return hi
}

// loadSoft writes the codes of the cells of a column, in the rows lo to hi-1, of which
// evidence is known, and what the rows' log densities have more for it.
func (e *Engine) loadSoft(ctx context.Context, s *slot, column int, cells *dataset.SoftCells, lo, hi int) error {
	if cells.Of == nil {
		return nil
	}
	at := int(e.prog.Columns[column].Slot) * e.rows
	of := cells.Of[lo:hi]
	logs := make([]float64, len(cells.List)+1)
	find := func(place uint32) (int32, error) {
		row, err := e.softRowAt(ctx, column, int(place)-1, cells.List)
		logs[place] = row.log
		return row.code, err
	}
	var err error
	if e.code.wide != nil {
		err = softCodes(e.code.wide[at:at+len(of)], of, len(logs), find)
	} else {
		err = softCodes(e.code.narrow[at:at+len(of)], of, len(logs), find)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(logs, func(x float64) bool { return x != 0 }) {
		for i, place := range of {
			s.excess[i] -= logs[place]
		}
	}
	return nil
}

// softCodes writes the codes of the cells that have a place in a list of evidence, as find has them
// by place, which it is asked for once. Places are below n.
func softCodes[T uint16 | uint32](codes []T, places []uint32, n int, find func(place uint32) (int32, error)) error {
	known := make([]T, n) // no code is 0
	codes = codes[:len(places)]
	for i, place := range places {
		if place == 0 {
			continue
		}
		if known[place] == 0 {
			code, err := find(place)
			if err != nil {
				return err
			}
			known[place] = T(code)
		}
		codes[i] = known[place]
	}
	return nil
}

// allSoft reports whether every cell in the rows lo to hi-1 is evidence.
func allSoft(s *dataset.SoftCells, lo, hi int) bool {
	return s.Of != nil && !slices.Contains(s.Of[lo:hi], 0)
}

// maxKnown bounds the evidence that is known by its address.
const maxKnown = 1 << 12

// softRowAt is softRow of what is at a place in a list, which often is the same as in the
// launch before.
func (e *Engine) softRowAt(ctx context.Context, column, place int, list []*dataset.Evidence) (softRow, error) {
	s, what := e.soft, list[place]
	if last := s.last[column]; !s.most && place < len(last) && last[place].what == what {
		return last[place].row, nil
	}
	row, err := e.softRow(ctx, column, what)
	if err == nil && !s.most && len(list) <= maxKnown {
		for len(s.last[column]) < len(list) {
			s.last[column] = append(s.last[column], lastRow{})
		}
		s.last[column][place] = lastRow{what, row}
	}
	return row, err
}

// softRow returns the row of evidence about a column, which it computes and writes to the
// tables of the column's inputs if it is not there. Equal evidence of columns that share tables
// shares a row. errSoftFull means that the launch needs more rows than there are; the caller
// then empties them and begins again.
func (e *Engine) softRow(ctx context.Context, column int, ev *dataset.Evidence) (softRow, error) {
	s, p := e.soft, e.prog
	if !s.most { // rows of maximise are few
		if row, ok := s.known[column][ev]; ok {
			return row, nil
		}
	}
	cell, err := e.softCell(column, ev)
	if err != nil {
		return softRow{}, err
	}
	group := s.groups[column]
	key := cell.key()
	row, ok := s.rows[group][key]
	if !ok {
		k := len(s.rows[group])
		if k == int(p.Columns[column].Soft) {
			return softRow{}, errSoftFull
		}
		codes := p.Columns[column].Codes
		for i := range p.Inputs {
			if in := &p.Inputs[i]; in.Owner == int32(i) && in.Codes > 0 && s.groups[in.Column] == group {
				m, exps, err := e.softNumbers(ctx, i, cell)
				if err != nil {
					return softRow{}, err
				}
				if err := e.writeTable(ctx, in, int(codes)+1+k, m, exps); err != nil {
					return softRow{}, err
				}
			}
		}
		if s.rows[group] == nil {
			s.rows[group] = make(map[string]softRow)
		}
		row.code = codes + 1 + int32(k)
		s.rows[group][key] = row
	}
	row.log = cell.log
	if !s.most {
		if s.known[column] == nil || len(s.known[column]) >= maxKnown {
			s.known[column] = make(map[*dataset.Evidence]softRow)
		}
		s.known[column][ev] = row
	}
	return row, nil
}
