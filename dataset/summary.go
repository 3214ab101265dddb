package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Summary describes the observed cells of one column as they are stored: codes
// count as numbers, and the numbers of a Continuous column are scaled, see Numbers.
// Mean, Variance, Min and Max are 0 when nothing was observed.
type Summary struct {
	Observed       int
	Mean, Variance float64 // of the cells themselves: the sum is divided by Observed
	Min, Max       float64
	// Median and Spread say where most cells are, whatever
	// the others: see Column.Scale. They are taken from a sample.
	Median, Spread float64
}

// Summarize reads src once, in order, and returns one Summary per column. Median and spread
// come from a sample where the column is longer than the sample. A column
// without an observed cell has a zero Summary.
func Summarize(ctx context.Context, src Source) ([]Summary, error) {
	src, err := Checked(src)
	if err != nil {
		return nil, err
	}
	s := src.Schema()
	out := make([]Summary, len(s.Columns))
	for i := range out {
		out[i].Min, out[i].Max = math.Inf(1), math.Inf(-1)
	}
	samples := make([]picks, len(out))
	b := &Batch{}
	for lo := 0; lo < src.Rows(); lo += chunkRows {
		if err := src.Gather(ctx, b, span(lo, min(lo+chunkRows, src.Rows()))); err != nil {
			return nil, err
		}
		for i := range out {
			if most := sampledPerColumn(len(out)); s.Columns[i].Kind == Discrete {
				out[i].addCodes(&b.Columns[i].Codes, &samples[i], most)
			} else {
				out[i].addValues(b.Columns[i].Values, &samples[i], most)
			}
		}
	}
	for i := range out {
		if n := float64(out[i].Observed); n > 0 {
			out[i].Variance /= n
			out[i].settle(&samples[i])
		} else {
			out[i] = Summary{}
		}
	}
	return out, nil
}

// Numbers returns the summary of the numbers that stored values mean.
func (s Summary) Numbers(c *Column) Summary {
	if c.Kind == Continuous && c.Scale != 0 && s.Observed > 0 {
		s.Mean, s.Variance = c.Offset+c.Scale*s.Mean, c.Scale*c.Scale*s.Variance
		s.Median, s.Spread = c.Offset+c.Scale*s.Median, c.Scale*s.Spread
		s.Min, s.Max = c.shortest(float32(s.Min)), c.shortest(float32(s.Max))
	}
	return s
}

// SummarizeNumbers is Summarize of the numbers that the cells mean: those of scaled columns, and those that labels spell, without median and
// spread, where each label of a column is a number. Other labels count by their codes. It may read src twice.
func SummarizeNumbers(ctx context.Context, src Source) ([]Summary, error) {
	out, err := Summarize(ctx, src)
	if err != nil {
		return nil, err
	}
	s := src.Schema()
	numbers := make([][]float64, len(out))
	last := 0                                                               // rows that are read for labels
	beyond := func(x float64) bool { return math.Abs(x) > math.MaxFloat32 } // as no column of numbers has them
	for i := range out {
		out[i] = out[i].Numbers(&s.Columns[i])
		if of := s.Columns[i].LabelNumbers(); of != nil && out[i].Observed > 0 && !slices.ContainsFunc(of, beyond) {
			numbers[i], out[i], last = of, Summary{Min: math.Inf(1), Max: math.Inf(-1)}, src.Rows()
		}
	}
	b := &Batch{}
	for lo := 0; lo < last; lo += chunkRows {
		if err := src.Gather(ctx, b, span(lo, min(lo+chunkRows, last))); err != nil {
			return nil, err
		}
		for i, of := range numbers {
			if of == nil {
				continue
			}
			for row := range b.Rows {
				code := b.Columns[i].Codes.At(row)
				if code >= len(of) { // of a source of a program
					return nil, fmt.Errorf("%w: %s has the code %d in row %d, counted from 0, and %d categories", ErrFormat, s.ColumnName(i), code, lo+row, len(of))
				}
				if code != Missing {
					out[i].add(of[code])
				}
			}
		}
	}
	for i, of := range numbers {
		if of != nil {
			out[i].Variance /= float64(out[i].Observed)
		}
	}
	return out, nil
}

// chunkRows is how many rows are read at a time where all are read in order.
const chunkRows = 1024

func span(lo, hi int) []int {
	rows := make([]int, hi-lo)
	for i := range rows {
		rows[i] = lo + i
	}
	return rows
}

// settle takes median and spread from a sample.
func (s *Summary) settle(sample *picks) {
	s.Median, s.Spread = sample.most(s.Mean, math.Sqrt(s.Variance), s.Min, s.Max)
}

func (s *Summary) addCodes(codes *Codes, sample *picks, most int) {
	for i := range codes.Len() {
		if c := codes.At(i); c != Missing {
			s.add(float64(c))
			sample.add(float64(c), most)
		}
	}
}

func (s *Summary) addValues(values []float32, sample *picks, most int) {
	for _, v := range values {
		if v == v {
			s.add(float64(v))
			sample.add(float64(v), most)
		}
	}
}

// add is Welford's update; Variance holds the sum of squared deviations.
func (s *Summary) add(x float64) {
	s.Observed++
	d := x - s.Mean
	s.Mean += d / float64(s.Observed)
	s.Variance += d * (x - s.Mean)
	s.Min, s.Max = min(s.Min, x), max(s.Max, x)
}
