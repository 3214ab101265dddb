package pce

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/boxes"
)

// Expectation computes what the raw scores of a forest are on average where cells of a row are
// missing: E[score | known cells] under the distribution of a circuit over the same columns. It
// is exact, for each leaf of the forest is reached in a box, a set of values for each missing
// cell, and the circuit gives the probability of any box. Predictions are not: the average of
// a link is not the link of the average. One goroutine at a time may use it.
type Expectation struct {
	forest, density *Model
	columns         []int             // of the density, by feature
	codes           []map[float64]int // of a feature whose column has categories, by number
	finder          *boxes.Finder
	evidence        []*dataset.Evidence // by number of a set, from 1; nil where none was needed yet
	batch           dataset.Batch
}

// expectedCategories are the most categories of a column that a forest may test: each test asks all of them whether they pass.
const expectedCategories = 1 << 16

// NewExpectation pairs a forest with a density, a circuit that was opened with Options.Soft. A
// feature's column is the one of its name; where one of the two has no names, the columns are
// in the order of the features, and as many. Columns that are not features are averaged over.
// The caller closes the two models after the last use.
//
// Errors match ErrKind where a model is of the other kind, ErrOptions without Soft,
// dataset.ErrSetting where columns do not fit, and forest.ErrRequest for a forest whose raw
// scores are not sums over leaves.
func NewExpectation(f, density *Model) (*Expectation, error) {
	switch {
	case f == nil || density == nil:
		return nil, fmt.Errorf("%w: an expectation without a forest or without a density; give both", ErrOptions)
	case f.forest == nil:
		return nil, fmt.Errorf("%w: the first model is a circuit; give a forest, whose scores are expected", ErrKind)
	case density.forest != nil:
		return nil, fmt.Errorf("%w: the density is a forest; give a circuit", ErrKind)
	case !density.opts.Soft:
		return nil, fmt.Errorf("%w: the density was opened without Soft, and so knows no probabilities of ranges", ErrOptions)
	}
	e := &Expectation{forest: f, density: density}
	schema := density.Schema()
	var err error
	if e.columns, err = columnsOf(f, schema); err != nil {
		return nil, err
	}
	domains := make([]boxes.Domain, len(e.columns))
	e.codes = make([]map[float64]int, len(e.columns))
	read := circuit.RootDomains(density.Graph())
	for i, c := range e.columns {
		column := &schema.Columns[c]
		if read[c] < 0 { // every set of its values would have the probability 1
			return nil, fmt.Errorf("%w: no leaf of the density reads %s, so it says nothing of that feature; train it on the forest's columns", dataset.ErrSetting, schema.ColumnName(c))
		}
		if column.Kind == dataset.Continuous {
			continue
		}
		numbers := column.LabelNumbers()
		switch {
		case column.Labels != nil && numbers == nil:
			return nil, fmt.Errorf("%w: column %q of the density has categories that are not numbers, and the forest compares numbers", dataset.ErrSetting, column.Name)
		case column.Categories > expectedCategories:
			return nil, fmt.Errorf("%w: column %q of the density has %d categories; expectations take up to %d", dataset.ErrSetting, column.Name, column.Categories, expectedCategories)
		case numbers == nil:
			for code := range column.Categories {
				numbers = append(numbers, float64(code))
			}
		}
		domains[i].Numbers, e.codes[i] = slices.Clone(numbers), make(map[float64]int, len(numbers))
		for code, x := range numbers {
			if column.Labels != nil && f.Forest().Input == forest.Float32 { // cells of that text may have been read so
				near, _ := dataset.ParseNumber([]byte(column.Labels[code]), dataset.ToEither)
				domains[i].Numbers[code], e.codes[i][near] = near, code
			}
			e.codes[i][x] = code
		}
	}
	if e.finder, err = boxes.New(f.Forest(), domains); err != nil {
		return nil, err
	}
	return e, nil
}

// columnsOf returns the column of each feature of a forest.
func columnsOf(m *Model, s *dataset.Schema) ([]int, error) {
	f := m.Forest()
	columns := make([]int, f.Features)
	unnamed := func(c dataset.Column) bool { return c.Name == "" }
	if f.Names == nil || slices.ContainsFunc(s.Columns, unnamed) {
		if len(s.Columns) != f.Features {
			return nil, fmt.Errorf("%w: the forest has %d features and the density %d columns, and not all have names to match; use a density of the features alone", dataset.ErrSetting, f.Features, len(s.Columns))
		}
		for i := range columns {
			columns[i] = i
		}
		return columns, nil
	}
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	names = dataset.WithBlanks(names, m.Schema()) // those of a circuit may come from a table in text, and the forest's from elsewhere
	for i, name := range f.Names {
		if slices.Index(f.Names, name) < i {
			return nil, fmt.Errorf("%w: two features of the forest have the name %q, so their columns cannot be told apart", dataset.ErrSetting, name)
		}
		columns[i] = slices.Index(names, name)
		if columns[i] < 0 {
			return nil, fmt.Errorf("%w: the density has no column %q, which the forest has as a feature; train it on the forest's columns", dataset.ErrSetting, name)
		}
	}
	return columns, nil
}

// Boxes returns how many boxes the missing cells of rows, as those of Margins, divide them into:
// for how many rows the circuit is asked, but for one more per row with missing cells.
func (e *Expectation) Boxes(rows []float64) (int64, error) {
	if err := e.check(rows, nil); err != nil {
		return 0, err
	}
	total, b, width := int64(0), new(boxes.Boxes), len(e.columns)
	for ; len(rows) > 0; rows = rows[width:] {
		if err := e.finder.Find(rows[:width], b); err != nil {
			return 0, err
		}
		total += int64(b.Len())
	}
	return total, nil
}

func (e *Expectation) check(rows, out []float64) error {
	width, outputs := len(e.columns), e.forest.Forest().Outputs
	if len(rows)%width != 0 || out != nil && len(out) != len(rows)/width*outputs {
		return fmt.Errorf("%w: %d cells and %d results; want %d cells and %d results per row", forest.ErrRequest, len(rows), len(out), width, outputs)
	}
	return nil
}

// asked is a row that the circuit is asked for: the known cells of a row alone, or with a box.
type asked struct {
	row, box int // box -1: none
}

// pending is a row whose boxes are asked for.
type pending struct {
	boxes boxes.Boxes
	known float64   // log-likelihood of the known cells
	sum   []float64 // of values times probabilities given the known cells, by output
}

// Margins writes the expected raw scores of rows into out, [rows][Outputs]. rows are row-major
// with a cell per feature as Model.Evaluate takes them, NaN where it is missing. A row without
// missing cells that the forest looks at gets the bits of Evaluate. Where the density holds the
// known cells for impossible the scores are NaN. A known cell that is not a category of its
// column, or a number that its leaves do not take, is an error.
func (e *Expectation) Margins(ctx context.Context, rows, out []float64) error {
	if err := e.check(rows, out); err != nil {
		return err
	}
	f, width := e.forest.Forest(), len(e.columns)
	if err := e.forest.Evaluate(ctx, forest.Margin, rows, out); err != nil {
		return err
	}
	const most = 64 // rows of which the circuit is asked together
	for at := 0; at < len(rows)/width; at += most {
		n := min(most, len(rows)/width-at)
		if err := e.some(ctx, rows[at*width:(at+n)*width], out[at*f.Outputs:(at+n)*f.Outputs], at); err != nil {
			return err
		}
	}
	return nil
}

// some replaces the scores of those rows, the first of which is row number first, of which the
// forest looks at missing cells. Boxes are held until the circuit was asked for them: those of a row without cells are as many as the
// leaves of the forest, and may take tens of megabytes.
func (e *Expectation) some(ctx context.Context, rows, out []float64, first int) error {
	f, width := e.forest.Forest(), len(e.columns)
	waiting := make([]pending, len(rows)/width)
	var asks []asked
	most := rowsAtOnce(len(e.density.Schema().Columns)) // that the circuit is asked for
	var spare boxes.Boxes                               // the memory of those that are answered
	done := 0                                           // rows without a box that is asked for
	flush := func() error {
		if len(asks) == 0 {
			return nil
		}
		err := e.ask(ctx, rows, asks, waiting, first)
		for last := asks[len(asks)-1].row; done < last; done++ {
			if b := &waiting[done].boxes; b.Start != nil {
				spare, *b = *b, boxes.Boxes{}
			}
		}
		asks = asks[:0]
		return err
	}
	add := func(a asked) error {
		if asks = append(asks, a); len(asks) < most {
			return nil
		}
		return flush()
	}
	for r := range waiting {
		p := &waiting[r]
		p.boxes, spare = spare, boxes.Boxes{}
		if err := e.finder.Find(rows[r*width:(r+1)*width], &p.boxes); err != nil {
			return err
		}
		if !p.boxes.Looked {
			spare, p.boxes = p.boxes, boxes.Boxes{}
			continue
		}
		p.sum = make([]float64, f.Outputs)
		for box := -1; box < p.boxes.Len(); box++ {
			if err := add(asked{r, box}); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for r := range waiting {
		p := &waiting[r]
		if p.sum == nil {
			continue
		}
		scores := out[r*f.Outputs : (r+1)*f.Outputs]
		f.Start(scores)
		for o := range scores {
			scores[o] += p.sum[o]
		}
		f.Finish(forest.Margin, scores, scores)
	}
	return nil
}

// ask asks the circuit, and adds what it answers to the rows that wait for it. The known cells of
// a row come before its boxes.
func (e *Expectation) ask(ctx context.Context, rows []float64, asks []asked, waiting []pending, first int) error {
	schema, width, outputs := e.density.Schema(), len(e.columns), e.forest.Forest().Outputs
	b := &e.batch
	if b.Columns == nil {
		b = dataset.NewBatch(schema, len(asks))
		e.batch = *b
	}
	b = &e.batch
	b.Resize(schema, len(asks))
	for c := range b.Columns {
		b.Columns[c].Soft = dataset.SoftCells{}
	}
	place := map[*dataset.Evidence]uint32{}
	for k, a := range asks {
		row := rows[a.row*width : (a.row+1)*width]
		for i, x := range row {
			if err := e.known(&b.Columns[e.columns[i]], k, i, x); err != nil {
				return fmt.Errorf("row %d: %w", first+a.row+1, err)
			}
		}
		if a.box < 0 {
			continue
		}
		p := &waiting[a.row].boxes
		for _, number := range p.Sets[p.Start[a.box]:p.Start[a.box+1]] {
			if err := e.limit(b, k, number, place); err != nil {
				return err
			}
		}
	}
	ll, err := e.density.LogLikelihoodBatch(ctx, b)
	if err != nil {
		return err
	}
	for k, a := range asks {
		p := &waiting[a.row]
		values := p.boxes.Sure
		if a.box < 0 {
			p.known = ll[k]
		} else {
			values = p.boxes.Values[a.box*outputs:][:outputs]
		}
		share := math.Exp(ll[k] - p.known) // 1 of what is sure; NaN where the known cells are impossible
		for o, value := range values {
			p.sum[o] += share * value
		}
	}
	return nil
}

// known writes the cell of feature i into row k of its column.
func (e *Expectation) known(c *dataset.Cells, k, i int, x float64) error {
	column := &e.density.Schema().Columns[e.columns[i]]
	switch {
	case math.IsNaN(x):
	case column.Kind == dataset.Continuous: // the circuit would refuse a number by its place among the rows that it is asked for
		v, ok := column.Stored(x)
		if !ok || column.Positive && !(v > 0) || column.Counts && !(v >= 0 && float64(v) == math.Trunc(float64(v))) {
			return fmt.Errorf("%w: feature %d is %v, which the leaves of the density's column %q do not take; leave it empty if it is missing", dataset.ErrFormat, i+1, x, column.Name)
		}
		c.Values[k] = v
	default:
		code, ok := e.codes[i][x]
		if !ok {
			return fmt.Errorf("%w: feature %d is %v, which is not a category of the density's column %q", dataset.ErrFormat, i+1, x, column.Name)
		}
		c.Codes.Set(k, code)
	}
	return nil
}

// limit writes a set of values into row k of its column: one value as it is, others as evidence.
func (e *Expectation) limit(b *dataset.Batch, k int, number int32, place map[*dataset.Evidence]uint32) error {
	set := e.finder.Set(number)
	at := e.columns[set.Feature]
	column, cells := &e.density.Schema().Columns[at], &b.Columns[at]
	if len(set.In) == 1 && set.In[0].First == set.In[0].Last {
		cells.Codes.Set(k, int(set.In[0].First))
		return nil
	}
	for int(number) >= len(e.evidence) {
		e.evidence = append(e.evidence, nil)
	}
	known := e.evidence[number]
	if known == nil {
		var err error
		if set.In != nil {
			known = &dataset.Evidence{Runs: make([]dataset.Run, len(set.In))}
			for i, run := range set.In {
				known.Runs[i] = dataset.Run{First: int(run.First), Last: int(run.Last), Likelihood: 1}
			}
		} else {
			low, high := set.Low, math.Nextafter(set.High, math.Inf(-1)) // High itself is not in it
			if math.IsInf(set.High, 1) {
				high = set.High
			}
			if high <= low {
				high = math.Nextafter(low, math.Inf(1)) // one number, which a count may be
			}
			known, err = column.RangeEvidence(low, high)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", column.Name, err)
		}
		e.evidence[number] = known
	}
	soft := &cells.Soft
	if soft.Of == nil {
		soft.Of = make([]uint32, b.Rows)
	}
	where, ok := place[known]
	if !ok {
		soft.List = append(soft.List, known)
		where = uint32(len(soft.List))
		place[known] = where
	}
	soft.Of[k] = where
	return nil
}
