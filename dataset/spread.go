package dataset

import (
	"context"
	"math"
	"slices"
)

// picks is a sample of numbers, as often as they come: all numbers while these are
// few, then those whose turn has a hash below a limit.
type picks struct {
	list  []pick
	next  uint64
	shift int // hashes are below 2^(64-shift)
}

type pick struct {
	hash uint64
	x    float64
}

// fewestPicks is how many numbers a sample has room for, however many columns
// share the memory.
const fewestPicks = 16

// add adds a number. A sample of more than most forgets half of its numbers.
func (p *picks) add(x float64, most int) {
	h := (p.next + 1) * hashFactor
	h ^= h >> 32
	h *= hashFactor
	p.next++
	if p.shift > 0 && h>>(64-p.shift) != 0 {
		return
	}
	p.list = append(p.list, pick{h, x})
	p.trim(most)
}

// merge adds the numbers of another sample, each as often as it came.
func (p *picks) merge(q *picks, most int) {
	p.shift = max(p.shift, q.shift)
	p.list = append(p.list, q.list...)
	p.forget()
	p.trim(most)
}

// trim lowers the limit until at most most numbers are left.
func (p *picks) trim(most int) {
	for len(p.list) > max(most, fewestPicks) {
		p.shift++
		p.forget()
	}
}

// forget drops the numbers above the limit.
func (p *picks) forget() {
	if p.shift > 0 {
		p.list = slices.DeleteFunc(p.list, func(k pick) bool { return k.hash>>(64-p.shift) != 0 })
	}
}

// quartiles is how far those of the standard normal distribution are apart.
const quartiles = 1.3489795003921634

// spread returns median and interquartile range of the numbers, the latter in
// standard deviations of a normal distribution that has it; zeros of no numbers.
// A few numbers far from all others do not change them.
func (p *picks) spread() (center, spread float64) {
	if len(p.list) == 0 {
		return 0, 0
	}
	xs := make([]float64, len(p.list))
	for i, k := range p.list {
		xs[i] = k.x
	}
	slices.Sort(xs)
	return quantile(xs, 0.5), (quantile(xs, 0.75) - quantile(xs, 0.25)) / quartiles
}

// quantile interpolates between sorted numbers.
func quantile(xs []float64, q float64) float64 {
	at := q * float64(len(xs)-1)
	lo := int(at)
	if lo+1 == len(xs) {
		return xs[lo]
	}
	f := at - float64(lo)
	return float64((1-f)*xs[lo]) + float64(f*xs[lo+1])
}

// beyond counts the numbers that are farther than a distance from center.
func (p *picks) beyond(center, distance float64) int {
	n := 0
	for _, k := range p.list {
		if math.Abs(k.x-center) > distance {
			n++
		}
	}
	return n
}

// most says where most numbers are and how far they spread: median and spread of the
// sample. Where half of the numbers are equal, so that the quartiles meet, these are mean
// and standard deviation of all numbers, which lie between least and largest. Some that
// are far from the others would have these for themselves, and are left out.
func (p *picks) most(mean, deviation, least, largest float64) (center, spread float64) {
	common, spread := p.spread()
	if usable(spread) {
		return common, spread
	}
	others := picks{list: slices.DeleteFunc(slices.Clone(p.list), func(k pick) bool { return k.x == common })}
	center, spread = others.spread()
	if !usable(spread) || max(largest-center, center-least) <= FarValue*spread {
		return mean, deviation
	}
	var near tally
	for _, k := range p.list {
		if k.x == common || math.Abs(k.x-center) <= FarValue*spread {
			near.count(k.x)
		}
	}
	return near.mean, near.deviation()
}

// scaleOf returns an offset and a scale for numbers: where most of them are and how far
// these spread; 1 for numbers without spread.
func (t *tally) scaleOf() (offset, scale float64) {
	offset, scale = t.picks.most(t.mean, t.deviation(), t.min, t.max)
	if !usable(scale) {
		return t.mean, 1
	}
	return offset, scale
}

func usable(scale float64) bool { return scale > 0 && !math.IsInf(scale, 0) }

// Scale returns an offset and a scale that the numbers of several columns of src may share, as inference
// chooses them for one. Codes are numbers, too.
func Scale(ctx context.Context, src Source, columns []int) (offset, scale float64, err error) {
	s, b := src.Schema(), &Batch{}
	var t tally
	for lo := 0; lo < src.Rows(); lo += chunkRows {
		if err := src.Gather(ctx, b, span(lo, min(lo+chunkRows, src.Rows()))); err != nil {
			return 0, 0, err
		}
		for _, i := range columns {
			for _, v := range b.Columns[i].Values {
				if v == v {
					t.add(s.Columns[i].Number(v), sampledPerColumn(1))
				}
			}
			codes := b.Columns[i].Codes
			for r := range codes.Len() {
				if c := codes.At(r); c != Missing {
					t.add(float64(c), sampledPerColumn(1))
				}
			}
		}
	}
	offset, scale = t.scaleOf()
	return offset, scale, nil
}
