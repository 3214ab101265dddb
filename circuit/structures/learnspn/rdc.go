package learnspn

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Settings of the randomized dependence coefficient.
const (
	rdcThreshold = 0.3
	rdcSines     = 10
	rdcScale     = 1.0 / 6
	// rdcCut is the least singular value of a column's features, relative to the largest, that
	// counts. The features are nearly collinear: what they see of a function that is not
	// monotonic has singular values below 1e-8 of the largest. Without a cut, rounding errors
	// of two columns correlate. A Gram matrix would square the values and lose these.
	rdcCut = 1e-10
	// rdcRows and rdcCells bound what is kept of a slice: a sample of its rows tells as much.
	rdcRows  = 10000
	rdcCells = 1 << 24
)

// rdcFeatures returns the features of a column of a slice [rows, rdcSines], before they are
// centred: sines of random combinations of its ranks and of 1. The rank of a cell is the share
// of observed cells that are at most as large. A column of bins with their own codes is one
// of indicators of the codes, each with its own ranks, so that the order of labels does not
// count. weights [ranks + 1, rdcSines] are those of the combinations. Missing cells have NaN.
func rdcFeatures(x *variable, rows []int32, weights [][]float64) *mat.Dense {
	f := mat.NewDense(len(rows), rdcSines, nil)
	scale := rdcScale / float64(len(weights))
	if x.asLabels() {
		count, observed := make([]float64, x.count), 0.0
		for _, r := range rows {
			if c := x.bins[r]; c != missing {
				count[c]++
				observed++
			}
		}
		sines := make([][]float64, x.count)
		for c := range sines {
			for k := range rdcSines {
				sum := weights[x.count][k]
				for d := range x.count {
					rank := 1.0
					if d != c { // an indicator of 0 ranks above none but other zeros
						rank = (observed - count[d]) / observed
					}
					sum += rank * weights[d][k]
				}
				sines[c] = append(sines[c], math.Sin(scale*sum))
			}
		}
		for i, r := range rows {
			if c := x.bins[r]; c != missing {
				f.SetRow(i, sines[c])
			} else {
				f.Set(i, 0, math.NaN())
			}
		}
		return f
	}
	ranks := x.ranks(rows)
	first := map[float64]int{} // row of a rank of codes, which many rows share
	for i, rank := range ranks {
		if rank != rank {
			f.Set(i, 0, math.NaN())
			continue
		}
		if like, ok := first[rank]; ok {
			f.SetRow(i, f.RawRowView(like))
			continue
		}
		if x.domain > 0 {
			first[rank] = i
		}
		for k := range rdcSines {
			f.Set(i, k, math.Sin(scale*(rank*weights[0][k]+weights[1][k])))
		}
	}
	return f
}

// asLabels reports whether the features of a variable are those of its codes.
func (x *variable) asLabels() bool { return x.domain > 0 && (x.domain <= maxBins || !x.ordered) }

// rdcInputs returns how many numbers the features of a variable combine, beside 1.
func (x *variable) rdcInputs() int {
	if x.asLabels() {
		return x.count
	}
	return 1
}

// ranks returns for each row the share of observed cells that are at most as large, NaN where
// the cell is missing.
func (x *variable) ranks(rows []int32) []float64 {
	out := make([]float64, len(rows))
	value := make([]float64, len(rows))
	order := make([]int, 0, len(rows))
	for i, r := range rows {
		v, ok := x.at(r)
		if !ok {
			out[i] = math.NaN()
			continue
		}
		value[i] = v
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(value[a], value[b]) })
	n := float64(len(order))
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && value[order[hi]] == value[order[lo]] {
			hi++
		}
		for _, i := range order[lo:hi] {
			out[i] = float64(hi) / n
		}
		lo = hi
	}
	return out
}

// drawWeights draws the weights of a column's combinations from the normal distribution.
func drawWeights(inputs int, rng *rand.Rand) [][]float64 {
	w := make([][]float64, inputs+1)
	for i := range w {
		w[i] = make([]float64, rdcSines)
		for k := range w[i] {
			w[i][k] = rng.NormFloat64()
		}
	}
	return w
}

// centre subtracts the mean of each feature over observed cells, and gives missing cells 0,
// which says nothing. It does so twice: what rounding leaves of a mean would pass rdcCut.
func centre(f *mat.Dense) {
	n, d := f.Dims()
	present := make([]bool, n)
	observed := 0.0
	for i := range n {
		if present[i] = f.At(i, 0) == f.At(i, 0); present[i] {
			observed++
		}
	}
	for k := range d {
		for range 2 {
			sum := 0.0
			for i, here := range present {
				if here {
					sum += f.At(i, k)
				}
			}
			mean := sum / max(observed, 1)
			for i, here := range present {
				if here {
					f.Set(i, k, f.At(i, k)-mean)
				} else {
					f.Set(i, k, 0)
				}
			}
		}
	}
}

// distinctRows returns the rows of a matrix that differ from all before them, how many rows equal
// each, and which one each row equals.
func distinctRows(f *mat.Dense) (rows []int, times []float64, at []int) {
	n, _ := f.Dims()
	at = make([]int, n)
	known := map[float64]int{} // by the first number: where rows differ elsewhere alone, both count
	for i := range n {
		row := f.RawRowView(i)
		k, ok := known[row[0]]
		if !ok || !slices.Equal(row, f.RawRowView(rows[k])) {
			k = len(rows)
			known[row[0]] = k
			rows, times = append(rows, i), append(times, 0)
		}
		at[i] = k
		times[k]++
	}
	return rows, times, at
}

// whiten returns an orthonormal basis of centred features, [rank][rows], where the rank counts
// the singular values above rdcCut. A constant column has rank 0. Equal rows are decomposed as
// one, whose length is theirs together.
func whiten(f *mat.Dense) [][]float64 {
	n, d := f.Dims()
	rows, times, at := distinctRows(f)
	m := max(len(rows), d) // a decomposition wants as many rows as columns; rows of zeros change nothing
	g := mat.NewDense(m, d, nil)
	for k, r := range rows {
		floats.ScaleTo(g.RawRowView(k), math.Sqrt(times[k]), f.RawRowView(r))
	}
	var svd mat.SVD
	if !svd.Factorize(g, mat.SVDThinU) {
		return nil
	}
	var u mat.Dense
	svd.UTo(&u)
	values := svd.Values(nil)
	var basis [][]float64
	for k, sv := range values {
		if !(sv > max(rdcCut*values[0], 1e-12)) {
			break
		}
		b := make([]float64, n)
		for i, j := range at {
			b[i] = u.At(j, k) / math.Sqrt(times[j])
		}
		basis = append(basis, b)
	}
	return basis
}

// correlation returns the largest canonical correlation of two columns, given their bases; 0
// if one is constant.
func correlation(a, b [][]float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	m := mat.NewDense(len(a), len(b), nil)
	for i, x := range a {
		for j, y := range b {
			m.Set(i, j, floats.Dot(x, y))
		}
	}
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		return 1 // not known to be independent
	}
	return min(1, svd.Values(nil)[0])
}

// sampleRows draws at most most of some rows, ascending.
func sampleRows(rows []int32, most int, rng *rand.Rand) []int32 {
	if len(rows) <= most {
		return rows
	}
	out := make([]int32, 0, most)
	for i, r := range rows { // each with the probability that what is wanted needs
		if rng.IntN(len(rows)-i) < most-len(out) {
			out = append(out, r)
		}
	}
	return out
}

// chance returns what the largest canonical correlation of independent columns of some ranks
// hardly ever exceeds over n rows: n times its square is about the largest eigenvalue of a
// Wishart matrix, whose distribution is that of Tracy and Widom around the square of
// √p + √q (Johnstone, "On the distribution of the largest eigenvalue in principal components
// analysis", 2001).
func chance(p, q, n int) float64 {
	const deviations = 4 // of its scale: less than one pair in ten thousand is beyond
	a, b := math.Sqrt(float64(p)), math.Sqrt(float64(q))
	edge := (a + b) * (a + b)
	scale := (a + b) * math.Cbrt(1/a+1/b)
	return math.Sqrt((edge + deviations*scale) / float64(n))
}

// rdcTest reports which pairs of a slice's variables are dependent: those whose coefficient
// exceeds the threshold, and what chance would make of independent columns in as many rows.
// The rows of a pair are those in which both are observed. A basis has length 1 over all rows in which
// its own column is, so what it has of the rows of a pair is made as long as if they were all. It is not orthonormal there, and
// of few rows may give far more than 1, which no coefficient is.
func rdcTest(s slice, threshold float64, rng *rand.Rand) func(i, j int) bool {
	s = s.of(sampleRows(s.rows, min(rdcRows, rdcCells/len(s.vars)), rng))
	bases, seen := make([][][]float64, len(s.vars)), make([]rowSet, len(s.vars))
	for i, v := range s.vars {
		x := &s.all[v]
		f := rdcFeatures(x, s.rows, drawWeights(x.rdcInputs(), rng))
		centre(f)
		bases[i], seen[i] = whiten(f), x.observed(s.rows)
	}
	return func(i, j int) bool {
		p, q, both := len(bases[i]), len(bases[j]), seen[i].common(seen[j])
		if p == 0 || q == 0 || both == 0 {
			return false
		}
		own, other := seen[i].common(seen[i]), seen[j].common(seen[j])
		longer := math.Sqrt(float64(own)*float64(other)) / float64(both) // 1 without missing cells
		return min(1, longer*correlation(bases[i], bases[j])) > max(threshold, chance(p, q, both))
	}
}

// rowSet is a set of rows by their places, 64 in a word.
type rowSet []uint64

// observed returns which of some rows have a cell.
func (x *variable) observed(rows []int32) rowSet {
	set := make(rowSet, (len(rows)+63)/64)
	for i, r := range rows {
		if _, ok := x.at(r); ok {
			set[i>>6] |= 1 << (i & 63)
		}
	}
	return set
}

// has reports whether the row at a place is in the set.
func (s rowSet) has(k int) bool { return s[k>>6]>>(k&63)&1 == 1 }

// common returns how many rows are in both sets.
func (s rowSet) common(t rowSet) int {
	n := 0
	for k, w := range s {
		n += bits.OnesCount64(w & t[k])
	}
	return n
}
