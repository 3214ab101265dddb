package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Evidence is what is known of a cell whose value is not: which categories it may have, with
// a likelihood each, or between which numbers it lies. It is immutable.
type Evidence struct {
	// Runs, of a Discrete column, are ascending and do not overlap; other categories are
	// excluded.
	Runs []Run
	// Low and High, of a Continuous column, are the numbers at the ends, both included, Low
	// below High or, where the column has counts alone, the same number. They may be infinite.
	Low, High float64
}

// Run is a run of categories of the same likelihood, which is above 0.
type Run struct {
	First, Last int
	Likelihood  float64
}

// SoftCells is the evidence about the missing cells of a column of a batch. The zero value
// has none.
type SoftCells struct {
	Of   []uint32 // by row: 0 for a cell without evidence, else 1 + its place in List; nil: all are 0
	List []*Evidence
}

// At returns the evidence about the cell of a row, nil if there is none.
func (s *SoftCells) At(row int) *Evidence {
	if s.Of == nil || s.Of[row] == 0 {
		return nil
	}
	return s.List[s.Of[row]-1]
}

// bad returns the first of some rows of a column whose evidence is not in List, or is none of the column, -1 if there is none.
func (s *SoftCells) bad(rows int, c *Column) int {
	if s.Of == nil {
		return -1
	}
	fine := make([]bool, len(s.List))
	return slices.IndexFunc(s.Of[:rows], func(place uint32) bool {
		if place > 0 && int64(place) <= int64(len(s.List)) && !fine[place-1] {
			fine[place-1] = c.takes(s.List[place-1])
		}
		return place > 0 && (int64(place) > int64(len(s.List)) || !fine[place-1])
	})
}

// takes reports whether evidence is what the column's constructors of it make.
func (c *Column) takes(e *Evidence) bool {
	switch {
	case e == nil:
		return false
	case c.Kind == Continuous:
		return e.Runs == nil && (e.Low < e.High || c.Counts && e.Low == e.High)
	case len(e.Runs) == 0:
		return false
	}
	next, least, most := 0, math.Inf(1), 0.0
	for _, r := range e.Runs {
		if r.First < next || r.Last < r.First || r.Last >= c.Categories || !(r.Likelihood > 0 && r.Likelihood <= math.MaxFloat64) {
			return false
		}
		next, least, most = r.Last+1, min(least, r.Likelihood), max(most, r.Likelihood)
	}
	return most/least <= maxRatio
}

// maxRatio bounds the ratio of two likelihoods of a cell, so that float32 holds their
// products with probabilities.
const maxRatio = 1e25

// cellError is what is wrong with evidence about one cell. Who knows where the cell is says that before it. It matches ErrFormat.
type cellError string

func (e cellError) Error() string        { return string(e) }
func (e cellError) Is(target error) bool { return target == ErrFormat }

func badCell(format string, args ...any) error { return cellError(fmt.Sprintf(format, args...)) }

// RangeEvidence is the evidence that a cell lies from low to high, both included. An end may be
// infinite. The categories of a Discrete column count as their numbers. A range of one number has a probability where a
// column has counts alone.
func (c *Column) RangeEvidence(low, high float64) (*Evidence, error) {
	switch {
	case !(low <= high):
		return nil, badCell("the range %s..%s has no numbers; write the smaller end first", formatCode(low), formatCode(high))
	case c.Kind == Continuous && low == high && !c.Counts:
		return nil, badCell("the range %s..%s is one number, whose probability is 0 in a continuous column; write the number for its density", formatCode(low), formatCode(high))
	case c.Kind == Continuous:
		return &Evidence{Low: low, High: high}, nil
	}
	var in []int
	if numbers := c.LabelNumbers(); numbers != nil {
		for code, x := range numbers {
			if x >= low && x <= high {
				in = append(in, code)
			}
		}
	} else if c.Labels != nil {
		return nil, badCell("a range of categories that are not numbers; write a set, such as {%s|%s}", c.Labels[0], c.Labels[len(c.Labels)-1])
	} else {
		first, last := math.Ceil(max(low, 0)), math.Floor(min(high, float64(c.Categories-1)))
		if first <= last {
			return &Evidence{Runs: []Run{{int(first), int(last), 1}}}, nil
		}
	}
	if in == nil {
		return nil, badCell("no category lies in %s..%s", formatCode(low), formatCode(high))
	}
	return setOf(in), nil
}

// SetEvidence is the evidence that a cell of a Discrete column is one of some categories.
func (c *Column) SetEvidence(codes []int) (*Evidence, error) {
	if c.Kind == Continuous {
		return nil, badCell("a set in a continuous column; write a range, such as 30..40")
	}
	if len(codes) == 0 {
		return nil, badCell("an empty set; name a category, or leave the cell empty")
	}
	for _, code := range codes {
		if code < 0 || code >= c.Categories {
			return nil, badCell("%d is not a category (want 0..%d)", code, c.Categories-1)
		}
	}
	return setOf(slices.Clone(codes)), nil
}

// setOf makes evidence of categories, which it sorts.
func setOf(codes []int) *Evidence {
	slices.Sort(codes)
	e := &Evidence{}
	for _, code := range codes {
		if n := len(e.Runs); n > 0 && code <= e.Runs[n-1].Last+1 {
			e.Runs[n-1].Last = code
		} else {
			e.Runs = append(e.Runs, Run{code, code, 1})
		}
	}
	return e
}

// LikelihoodEvidence is the evidence of a likelihood for each category of a Discrete column, in
// the order of its codes. They need not sum to 1; only their ratios matter to what is inferred.
// Negative, infinite and NaN likelihoods, ones that are all 0, and positive ones that differ by
// more than float32 products allow are errors that say what to write.
func (c *Column) LikelihoodEvidence(likelihoods []float64) (*Evidence, error) {
	if c.Kind == Continuous {
		return nil, badCell("likelihoods in a continuous column; write a range, such as 30..40")
	}
	if len(likelihoods) != c.Categories {
		return nil, badCell("%d likelihoods for %d categories; write one for each, divided by |", len(likelihoods), c.Categories)
	}
	e := &Evidence{}
	least, most := math.Inf(1), 0.0
	for code, x := range likelihoods {
		if !(x >= 0 && x <= math.MaxFloat64) {
			return nil, badCell("the likelihood %v; want a number of 0 or more", x)
		}
		if x == 0 {
			continue
		}
		least, most = min(least, x), max(most, x)
		if n := len(e.Runs); n > 0 && e.Runs[n-1].Last == code-1 && e.Runs[n-1].Likelihood == x {
			e.Runs[n-1].Last = code
		} else {
			e.Runs = append(e.Runs, Run{code, code, x})
		}
	}
	switch {
	case e.Runs == nil:
		return nil, badCell("likelihoods that are all 0 exclude every category; leave the cell empty if nothing is known")
	case most/least > maxRatio:
		return nil, badCell("likelihoods from %v to %v; those above 0 may differ by a factor of %g", least, most, maxRatio)
	}
	return e, nil
}

// Likelihood returns that of a category, 0 for one that the evidence excludes.
func (e *Evidence) Likelihood(code int) float64 {
	i, _ := slices.BinarySearchFunc(e.Runs, code, func(r Run, code int) int { return r.Last - code })
	if i < len(e.Runs) && e.Runs[i].First <= code {
		return e.Runs[i].Likelihood
	}
	return 0
}

// Largest returns the largest likelihood, 1 for a range of numbers.
func (e *Evidence) Largest() float64 {
	if e.Runs == nil {
		return 1
	}
	most := 0.0
	for _, r := range e.Runs {
		most = max(most, r.Likelihood)
	}
	return most
}

// Key is the same for evidence that says the same, and no other.
func (e *Evidence) Key() string {
	b := make([]byte, 0, 16+24*len(e.Runs))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Low))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.High))
	for _, r := range e.Runs {
		b = binary.LittleEndian.AppendUint64(b, uint64(r.First))
		b = binary.LittleEndian.AppendUint64(b, uint64(r.Last))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.Likelihood))
	}
	return string(b)
}

// looksSoft reports whether a cell is written as evidence: a..b, {a|b} or [x|y].
func looksSoft(cell []byte) bool {
	n := len(cell)
	return n >= 2 && (cell[0] == '{' && cell[n-1] == '}' || cell[0] == '[' && cell[n-1] == ']' || bytes.Contains(cell, []byte("..")))
}

// parseSoft reads a cell of a column that is written as evidence: {a|b} a set, [0.2|0.8]
// likelihoods, 30..40 a range, either end of which may be missing. looksSoft has said that it
// is one of these. find returns the code of a category's text. The error says what to write
// instead, without the place.
func (c *Column) parseSoft(text string, find func(category string) (int, error)) (*Evidence, error) {
	inner := text[1 : len(text)-1]
	switch {
	case text[0] == '{' && text[len(text)-1] == '}':
		if c.Kind == Continuous || strings.TrimSpace(inner) == "" {
			return c.SetEvidence(nil)
		}
		var codes []int
		for category := range strings.SplitSeq(inner, "|") {
			code, err := find(strings.TrimSpace(category))
			if err != nil {
				return nil, err
			}
			codes = append(codes, code)
		}
		return c.SetEvidence(codes)
	case text[0] == '[' && text[len(text)-1] == ']':
		var likelihoods []float64
		for word := range strings.SplitSeq(inner, "|") {
			x, ok := parseNumber([]byte(strings.TrimSpace(word)))
			if !ok {
				return nil, fmt.Errorf("%s is not a likelihood; write a number for each category, divided by |", quote([]byte(word)))
			}
			likelihoods = append(likelihoods, x)
		}
		return c.LikelihoodEvidence(likelihoods)
	}
	low, high, _ := strings.Cut(text, "..")
	ends := [2]float64{math.Inf(-1), math.Inf(1)}
	for i, word := range []string{strings.TrimSpace(low), strings.TrimSpace(high)} {
		if word == "" {
			continue
		}
		x, ok := parseNumber([]byte(word))
		if !ok || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%s is not the end of a range; write numbers, such as 30..40, 30.. or ..40", quote([]byte(word)))
		}
		ends[i] = x
	}
	if math.IsInf(ends[0], -1) && math.IsInf(ends[1], 1) {
		return nil, fmt.Errorf("a range without ends; leave the cell empty if nothing is known")
	}
	return c.RangeEvidence(ends[0], ends[1])
}

// maxInterned bounds the texts of evidence that a reader remembers of a column.
const maxInterned = 1 << 12

// softReader reads cells that are written as evidence.
type softReader struct {
	enc   *encoder
	texts []map[string]*Evidence // by column
	list  []map[*Evidence]uint32 // by column, of the batch: 1 + place in its list
}

func newSoftReader(enc *encoder) *softReader {
	n := len(enc.schema.Columns)
	return &softReader{enc, make([]map[string]*Evidence, n), make([]map[*Evidence]uint32, n)}
}

// begin starts a batch.
func (s *softReader) begin() {
	for i := range s.list {
		clear(s.list[i])
	}
}

// read returns what a cell is evidence of, nil for one that is not written so or is a category.
func (s *softReader) read(col int, v *Value) (*Evidence, string) {
	if v.Kind != String || !looksSoft(v.Text) {
		return nil, ""
	}
	labels := s.enc.labels[col].texts
	if _, ok := labels[string(v.Text)]; ok {
		return nil, ""
	}
	if e, ok := s.texts[col][string(v.Text)]; ok {
		return e, ""
	}
	c := &s.enc.schema.Columns[col]
	e, err := c.parseSoft(string(v.Text), func(category string) (int, error) {
		v := Value{Kind: String, Text: []byte(category)}
		if x, ok := parseNumber(v.Text); ok {
			v.Kind, v.Number = Number, x
		}
		code, _, problem := s.enc.cell(col, &v)
		if problem != "" {
			return 0, fmt.Errorf("%s", problem)
		}
		return code, nil
	})
	if err != nil {
		return nil, fmt.Sprintf("%s of %s: %v", quote(v.Text), s.enc.schema.ColumnName(col), err)
	}
	if len(s.texts[col]) >= maxInterned || s.texts[col] == nil {
		s.texts[col] = make(map[string]*Evidence)
	}
	s.texts[col][string(v.Text)] = e
	return e, ""
}

// set writes evidence about a missing cell of a batch.
func (s *softReader) set(b *Batch, row, col int, e *Evidence) {
	if s.list[col] == nil {
		s.list[col] = make(map[*Evidence]uint32)
	}
	b.Columns[col].Soft.set(b.Rows, row, e, s.list[col])
}

// set writes the evidence about a row, of as many as rows says; known has what is in the list.
func (s *SoftCells) set(rows, row int, e *Evidence, known map[*Evidence]uint32) {
	at, ok := known[e]
	if !ok {
		s.List = append(s.List, e)
		at = uint32(len(s.List))
		known[e] = at
	}
	if s.Of == nil {
		s.Of = make([]uint32, rows)
	}
	s.Of[row] = at
}

// SetSoft makes the cell of a row of a batch missing but for what is known of it. It takes
// each evidence as new: a caller with many like cells writes SoftCells itself.
func (c *Cells) SetSoft(row int, e *Evidence) {
	rows := max(c.Codes.Len(), len(c.Values))
	if c.Discrete() {
		c.Codes.Set(row, Missing)
	} else {
		c.Values[row] = missingValue
	}
	c.Soft.set(rows, row, e, map[*Evidence]uint32{})
}

// slice returns the evidence about the rows lo to hi-1.
func (s *SoftCells) slice(lo, hi int) SoftCells {
	if s.Of == nil {
		return SoftCells{}
	}
	return SoftCells{Of: s.Of[lo:hi:hi], List: slices.Clip(s.List)}
}

// HasSoft reports whether the batch has evidence about a cell. Places for it say nothing: of some rows of a batch they may all
// be empty, as where other rows are those of another request.
func (b *Batch) HasSoft() bool {
	return slices.ContainsFunc(b.Columns, func(c Cells) bool {
		return slices.ContainsFunc(c.Soft.Of, func(of uint32) bool { return of > 0 })
	})
}

// RowHasSoft reports whether the batch has evidence about a cell of a row.
func (b *Batch) RowHasSoft(row int) bool {
	return slices.ContainsFunc(b.Columns, func(c Cells) bool { return c.Soft.At(row) != nil })
}

// keptSoft holds the evidence of a table, by column.
type keptSoft struct {
	cells []SoftCells
	known []map[*Evidence]uint32
	runs  int64 // of all evidence
	rows  int   // of the table that it was added to last
}

// append adds the evidence of a batch to that of rows rows before it.
func (k *keptSoft) append(b *Batch, rows int) {
	k.rows = rows + b.Rows
	for i := range b.Columns {
		from, to := &b.Columns[i].Soft, &k.cells[i]
		if from.Of == nil && to.Of == nil {
			continue
		}
		to.Of = append(to.Of, make([]uint32, rows+b.Rows-len(to.Of))...)
		if k.known[i] == nil {
			k.known[i] = make(map[*Evidence]uint32)
		}
		for r := range b.Rows {
			if e := from.At(r); e != nil {
				if _, ok := k.known[i][e]; !ok {
					k.runs += int64(1 + len(e.Runs))
				}
				to.set(0, rows+r, e, k.known[i])
			}
		}
	}
}

// slice returns the evidence about n rows from row lo on, in memory of its own.
func (k *keptSoft) slice(lo, n int) *keptSoft {
	out := &keptSoft{cells: make([]SoftCells, len(k.cells)), known: make([]map[*Evidence]uint32, len(k.cells)), runs: k.runs, rows: n}
	for i := range k.cells {
		from, to := &k.cells[i], &out.cells[i]
		if from.Of == nil {
			continue
		}
		to.Of, to.List = slices.Clone(from.Of[min(lo, len(from.Of)):min(lo+n, len(from.Of))]), slices.Clip(from.List)
		out.known[i] = maps.Clone(k.known[i])
	}
	return out
}

// gather fills the evidence of b with that of rows, from row base of the table on.
func (k *keptSoft) gather(b *Batch, rows []int, base int) {
	for i := range b.Columns {
		from, to := &k.cells[i], &b.Columns[i].Soft
		if from.Of == nil {
			continue
		}
		to.Of, to.List = room(to.Of, len(rows)), slices.Clip(from.List) // what a caller adds to it must not reach other batches
		for n, r := range rows {
			to.Of[n] = 0
			if base+r < len(from.Of) {
				to.Of[n] = from.Of[base+r]
			}
		}
	}
}

// bytes is about what the evidence takes.
func (k *keptSoft) bytes() int64 {
	n := 96 * k.runs
	for i := range k.cells {
		n += 4 * int64(len(k.cells[i].Of))
	}
	return n
}
