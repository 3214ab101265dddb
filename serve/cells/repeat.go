package cells

import "github.com/pce-engine/pce/dataset"

// Repeat returns a batch in which each row is repeated times times.
func Repeat(s *dataset.Schema, b *dataset.Batch, times int) *dataset.Batch {
	if times == 1 {
		return b
	}
	out := dataset.NewBatch(s, b.Rows*times)
	for v := range out.Columns {
		to, from := &out.Columns[v], &b.Columns[v]
		for row := range out.Rows {
			switch {
			case to.Codes.Narrow != nil:
				to.Codes.Narrow[row] = from.Codes.Narrow[row/times]
			case to.Codes.Wide != nil:
				to.Codes.Wide[row] = from.Codes.Wide[row/times]
			default:
				to.Values[row] = from.Values[row/times]
			}
		}
	}
	return out
}

// RepeatNumbers does the same to the numbers of rows of that width.
func RepeatNumbers(x []float64, width, times int) []float64 {
	if times == 1 {
		return x
	}
	out := make([]float64, 0, len(x)*times)
	for at := 0; at < len(x); at += width {
		for range times {
			out = append(out, x[at:at+width]...)
		}
	}
	return out
}
