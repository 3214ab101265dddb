package structures

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pce-engine/pce/dataset"
)

// binned is one variable of the sampled rows, cut into bins.
type binned struct {
	bin    []uint8 // of each row; Missing cells have bin len(count)-1
	count  []int   // rows of each bin, the last one for missing cells
	smooth bool    // neighbouring bins are neighbouring values
}

// missing returns the bin of missing cells.
func (v *binned) missing() int { return len(v.count) - 1 }

// gatherRows is the number of rows read at a time.
const gatherRows = 4096

// sampleBinned reads at most opts.MaxRows rows of src, drawn without replacement by opts.Seed,
// and cuts each column into at most opts.Bins bins. It is called once, for the mutual
// information of all pairs, and holds the sample in memory column by column. A code that is out
// of its column's range is an error that matches ErrData and names the column.
func sampleBinned(ctx context.Context, src dataset.Source, opts ChowLiuOptions) ([]binned, error) {
	rows := sampleRows(src.Rows(), opts.MaxRows, opts.Seed)
	schema := src.Schema()
	codes := make([]dataset.Codes, len(schema.Columns))
	values := make([][]float32, len(schema.Columns))
	var b dataset.Batch
	for lo := 0; lo < len(rows); lo += gatherRows {
		part := rows[lo:min(lo+gatherRows, len(rows))]
		if err := src.Gather(ctx, &b, part); err != nil {
			return nil, fmt.Errorf("structures: reading rows %d to %d of the sample: %w", lo, lo+len(part)-1, err)
		}
		for v := range schema.Columns {
			codes[v].Narrow = append(codes[v].Narrow, b.Columns[v].Codes.Narrow...)
			codes[v].Wide = append(codes[v].Wide, b.Columns[v].Codes.Wide...)
			values[v] = append(values[v], b.Columns[v].Values...)
		}
	}
	vars := make([]binned, len(schema.Columns))
	for v := range vars {
		c := &schema.Columns[v]
		var err error
		switch {
		case c.Kind == dataset.Continuous:
			vars[v] = binValues(values[v], opts.Bins)
		case c.Categories > opts.Bins && c.Labels != nil:
			vars[v], err = binLabels(&codes[v], c.Categories, opts.Bins)
		default:
			vars[v], err = binCodes(&codes[v], c.Categories, opts.Bins)
			if err == nil && schema.Image == [3]int{} && vars[v].crowded() { // levels of pictures have a range of their own
				vars[v] = binValues(asNumbers(&codes[v]), opts.Bins)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrData, schema.ColumnName(v), err)
		}
	}
	return vars, nil
}

// sampleRows draws at most most of n rows without repetition, ascending, by Floyd's algorithm:
// as many random numbers as rows drawn, whatever n is. Equal seeds give equal rows; if n is at
// most most, all rows are taken.
func sampleRows(n, most int, seed uint64) []int {
	rows := make([]int, 0, min(n, most))
	if n <= most {
		for r := range n {
			rows = append(rows, r)
		}
		return rows
	}
	rng := rand.New(rand.NewPCG(seed, 0x726f7773))
	taken := make(map[int]bool, most)
	for r := n - most; r < n; r++ {
		pick := rng.IntN(r + 1)
		if taken[pick] {
			pick = r
		}
		taken[pick] = true
		rows = append(rows, pick)
	}
	slices.Sort(rows)
	return rows
}

func newBinned(rows, bins int, smooth bool) binned {
	return binned{bin: make([]uint8, rows), count: make([]int, bins+1), smooth: smooth}
}

// set puts row r into a bin.
func (v *binned) set(r, bin int) {
	v.bin[r] = uint8(bin)
	v.count[bin]++
}

// binCodes cuts ordered codes into bins of equal width. Codes that fit are
// their own bins.
func binCodes(codes *dataset.Codes, categories, bins int) (binned, error) {
	v := newBinned(codes.Len(), min(categories, bins), categories > bins)
	for r := range codes.Len() {
		switch c := codes.At(r); {
		case c == dataset.Missing:
			v.set(r, v.missing())
		case c >= categories:
			return v, codeError(c, categories)
		case categories > bins:
			v.set(r, c*bins/categories)
		default:
			v.set(r, c)
		}
	}
	return v, nil
}

// crowded reports whether more than half of the rows that have a cell are in an eighth of bins of equal width, side by side, or in one of fewer
// than eight: of numbers far from 0, such as years, or near to each other beside one far away. Bins that nearly all rows share tell nothing.
func (v *binned) crowded() bool {
	if !v.smooth {
		return false
	}
	side := max(1, v.missing()/8)
	rows, beside, most := 0, 0, 0
	for i, n := range v.count[:v.missing()] {
		rows, beside = rows+n, beside+n
		if i >= side {
			beside -= v.count[i-side]
		}
		most = max(most, beside)
	}
	return 2*most > rows
}

// asNumbers returns codes as numbers, NaN for missing cells.
func asNumbers(codes *dataset.Codes) []float32 {
	values := make([]float32, codes.Len())
	for r := range values {
		if c := codes.At(r); c == dataset.Missing {
			values[r] = float32(math.NaN())
		} else {
			values[r] = float32(c)
		}
	}
	return values
}

// binLabels gives each of the most frequent codes a bin of its own and all others the last
// one; ties go to the smaller code. It is for categories that have no order, so neighbouring
// codes are not joined. A code beyond categories is an error.
func binLabels(codes *dataset.Codes, categories, bins int) (binned, error) {
	count, order := make([]int, categories), make([]int, categories)
	for r := range codes.Len() {
		c := codes.At(r)
		if c == dataset.Missing {
			continue
		}
		if c >= categories {
			return binned{}, codeError(c, categories)
		}
		count[c]++
	}
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(count[b], count[a]) })
	rank := make([]int, categories)
	for i, c := range order {
		rank[c] = min(i, bins-1)
	}
	v := newBinned(codes.Len(), bins, false)
	for r := range codes.Len() {
		if c := codes.At(r); c == dataset.Missing {
			v.set(r, v.missing())
		} else {
			v.set(r, rank[c])
		}
	}
	return v, nil
}

func codeError(code, categories int) error {
	return fmt.Errorf("code %d of %d categories; codes run from 0 to %d", code, categories, categories-1)
}

// binValues cuts values into bins of equally many rows, so that outliers do not
// matter. Equal values share a bin; few enough values are their own bins, as
// categories are. NaN is missing.
func binValues(values []float32, bins int) binned {
	order := make([]int, 0, len(values))
	for r, x := range values {
		if !math.IsNaN(float64(x)) {
			order = append(order, r)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	isNew := func(i int) bool { return i == 0 || values[order[i]] != values[order[i-1]] }
	distinct := 0
	for i := range order {
		if isNew(i) {
			distinct++
		}
	}
	v := newBinned(len(values), bins, distinct > bins)
	for r := range v.bin {
		v.bin[r] = uint8(v.missing())
	}
	v.count[v.missing()] = len(values) - len(order)
	bin := -1
	for i, r := range order {
		if isNew(i) && v.smooth {
			bin = i * bins / len(order)
		} else if isNew(i) {
			bin++
		}
		v.set(r, bin)
	}
	return v
}
