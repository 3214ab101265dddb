package structures

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// group is the number of variables that are counted against one at a time:
// their increments are independent, so that the processor overlaps them.
const group = 4

// pairCounter computes mutual information of pairs; a worker has one.
//
// Counts are tables [stride, stride] with stride = bins + 1, the last bin in use
// being that of missing cells. Soft tables are [bins, width], rows padded with
// as many zeros as the kernel reaches, and follow reach rows of zeros, so
// that shifting a whole table shifts each row or column.
type pairCounter struct {
	bins, stride, reach, width int

	taps   []float64 // weights of a bin and of its neighbours on either side
	weight []float64 // of each bin: 1 over the weights that fall within the table
	counts [group][1 << 16]int32
	source []float64
	half   []float64
	joint  []float64
	column []float64 // column sums of joint
}

func newPairCounter(bins int, taps []float64) *pairCounter {
	p := &pairCounter{bins: bins, stride: bins + 1, reach: len(taps) - 1, width: bins + len(taps) - 1, taps: taps}
	n := (bins + 2*p.reach) * p.width
	p.source, p.half, p.joint = make([]float64, n), make([]float64, n), make([]float64, n)
	p.column = make([]float64, bins)
	for i := range bins {
		var sum float64
		for k := max(0, i-p.reach); k <= min(bins-1, i+p.reach); k++ {
			sum += taps[max(i-k, k-i)]
		}
		p.weight = append(p.weight, 1/sum)
	}
	return p
}

// gaussian returns the weights of a bin and of its neighbours on either side.
func gaussian(sigma float64, bins int) []float64 {
	taps := []float64{1}
	for d := 1; sigma > 0 && float64(d) <= 4*sigma && d < bins; d++ {
		taps = append(taps, math.Exp(-0.5*float64(d)*float64(d)/(sigma*sigma)))
	}
	return taps
}

// count fills counts[k] with the joint counts of a and bs[k], for the first
// group of bs: rows are bins of a, columns bins of bs[k].
func (p *pairCounter) count(a *sparse, bs []*sparse) {
	at := func(k int) *sparse { return bs[min(k, len(bs)-1)] }
	b0, b1, b2, b3 := at(0).bin, at(1).bin, at(2).bin, at(3).bin
	c0, c1, c2, c3 := &p.counts[0], &p.counts[1], &p.counts[2], &p.counts[3]
	for k := range p.counts {
		clear(p.counts[k][:p.stride*p.stride])
	}
	first := a.first[:len(a.rows)]
	for i, r := range a.rows {
		f := first[i]
		c0[f+uint16(b0[r])]++
		c1[f+uint16(b1[r])]++
		c2[f+uint16(b2[r])]++
		c3[f+uint16(b3[r])]++
	}
	for k := range p.counts {
		counts := p.counts[k][:]
		common := counts[a.common*p.stride:][:len(at(k).count)]
		for j, c := range at(k).count {
			common[j] = int32(c)
		}
		for i := range a.count {
			if i != a.common {
				for j, c := range counts[i*p.stride:][:len(common)] {
					common[j] -= c
				}
			}
		}
	}
}

// information returns the mutual information of the softened observed part of
// counts[k], (Σ J ln J - Σ R ln R - Σ C ln C) / N + ln N, where R and C are the
// row and column sums of the joint table J and N is its total.
func (p *pairCounter) information(a, b *sparse, k int) float64 {
	rows, cols := a.missing(), b.missing()
	joint := p.soften(a, b, p.counts[k][:])
	column := p.column[:cols]
	clear(column)
	var total, sum float64
	for i := range rows {
		var row float64
		for j, x := range joint[i*p.width:][:cols] {
			if x > 0 {
				row += x
				column[j] += x
				sum += x * fastLog(x)
			}
		}
		if row > 0 {
			total += row
			sum -= row * fastLog(row)
		}
	}
	if total == 0 {
		return 0
	}
	for _, x := range column {
		if x > 0 {
			sum -= x * fastLog(x)
		}
	}
	return max(0, sum/total+fastLog(total)) // below 0 only by rounding
}

// share returns the share of rows in which both variables of counts[k] are observed: exactly 1 where no cell is missing.
func (p *pairCounter) share(a, b *sparse, k int) float64 {
	n := len(a.bin)
	both := int(p.counts[k][a.missing()*p.stride+b.missing()])
	return float64(n-a.count[a.missing()]-b.count[b.missing()]+both) / float64(n)
}

// soften spreads each count over the neighbouring bins of smooth variables. The
// weights of a bin add up to 1, at the borders too.
func (p *pairCounter) soften(a, b *sparse, counts []int32) []float64 {
	rows, cols := a.missing(), b.missing()
	body := p.reach * p.width
	table := p.source
	for i := range rows {
		row := table[body+i*p.width:][:cols]
		for j, c := range counts[i*p.stride:][:cols] {
			row[j] = float64(c)
		}
		if b.smooth {
			floats.Mul(row, p.weight)
		}
		if a.smooth {
			floats.Scale(p.weight[i], row)
		}
	}
	if b.smooth {
		p.spread(p.half, table, 1)
		table = p.half
	}
	if a.smooth {
		p.spread(p.joint, table, p.width)
		table = p.joint
	}
	return table[body:]
}

// spread sets dst to the sum of src shifted by up to reach steps either way,
// weighted with taps.
func (p *pairCounter) spread(dst, src []float64, step int) {
	lo, hi := p.reach*p.width, (p.reach+p.bins)*p.width
	body := dst[lo:hi]
	clear(body)
	floats.AddScaled(body, p.taps[0], src[lo:hi])
	for d := 1; d <= p.reach; d++ {
		floats.AddScaled(body, p.taps[d], src[lo-d*step:hi-d*step])
		floats.AddScaled(body, p.taps[d], src[lo+d*step:hi+d*step])
	}
}
