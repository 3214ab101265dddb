package tensor

// Draws are the random numbers of a request, from one of its rows on. A number is a
// function of the request's seed, the row and the vector that it is drawn for, the
// same on every device: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), started once
// by the seed, in its sequence again by each row, and in that by each vector.
type Draws uint64

// drawStep is the distance of two states of SplitMix64: 2^64 over the golden ratio.
const drawStep = 0x9e3779b97f4a7c15

// NewDraws returns the numbers of a seed from row first of the request on.
func NewDraws(seed uint64, first int) Draws {
	return Draws(mix(seed) + drawStep*(uint64(first)+1))
}

// Row returns the numbers of the r-th row from the first one on.
func (d Draws) Row(r int) RowDraws { return RowDraws(mix(uint64(d) + drawStep*uint64(r))) }

// RowDraws are the random numbers of a row.
type RowDraws uint64

// Uniform returns the number of a vector: a multiple of 2^-52 in [0, 1). So its
// product with a positive sum, rounded, is always below the sum.
func (d RowDraws) Uniform(vector int32) float64 { return float64(d.bits(vector)>>12) * 0x1p-52 }

// Source returns a sequence for draws that take several numbers: a rand.Source.
func (d RowDraws) Source(vector int32) *DrawSource { s := DrawSource(d.bits(vector)); return &s }

func (d RowDraws) bits(vector int32) uint64 { return mix(uint64(d) + drawStep*(uint64(vector)+1)) }

// DrawSource is SplitMix64 as a rand.Source.
type DrawSource uint64

// Uint64 returns the next number.
func (s *DrawSource) Uint64() uint64 {
	*s += drawStep
	return mix(uint64(*s))
}

// mix is the output function of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
