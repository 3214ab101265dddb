package layers

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Bounds of what the flows of an owner lack or have too much, by their
// normalisers. Products of lower precision are off by 2^-8 at most, and so are
// the values that they are divided by. Each sum or input that shares the
// parameters adds up to 32 partial sums of 64 rows in float32, which loses
// 2^-24 of the total each time.
const (
	productError = 0x1p-7
	sharerError  = 0x1p-19
)

// FlowCheck checks flows of an owner that come from elsewhere: that none is
// missing or comes twice, that no count and no normaliser is negative, and that
// counts are conserved. It is fed chunk by chunk, in any order. It is not safe
// for concurrent use.
type FlowCheck struct {
	owner         Owner
	seen          []Range // ascending, not touching each other
	counts, norms total
	err           error // the first
}

// NewFlowCheck checks flows of an owner.
func NewFlowCheck(owner Owner) *FlowCheck { return &FlowCheck{owner: owner} }

// Add takes a chunk of the flows from offset on. What does not belong to the
// owner is passed over.
func (c *FlowCheck) Add(offset int64, flows []int64) {
	norms := len(c.owner.Flows) - 1
	for i, r := range c.owner.Flows {
		lo, hi := max(offset, r.Lo), min(offset+int64(len(flows)), r.Hi)
		if lo >= hi || c.err != nil {
			continue
		}
		if c.err = c.see(Range{lo, hi}); c.err != nil {
			return
		}
		sum := &c.counts
		switch {
		case i == norms:
			sum = &c.norms
		case c.owner.Statistics:
			continue
		}
		for k, f := range flows[lo-offset : hi-offset] {
			if f < 0 {
				c.err = fmt.Errorf("%w: %v has the flow %d at %d; want 0 or more", ErrFlows, c.owner, f, lo+int64(k))
				return
			}
			sum.add(uint64(f))
		}
	}
}

// see notes that a range has come.
func (c *FlowCheck) see(r Range) error {
	i, _ := slices.BinarySearchFunc(c.seen, r, func(s, r Range) int {
		if s.Hi <= r.Lo {
			return -1
		}
		return 1
	})
	if i < len(c.seen) && c.seen[i].Lo < r.Hi {
		at := max(c.seen[i].Lo, r.Lo)
		return fmt.Errorf("%w: the flow of %v at %d comes twice", ErrFlows, c.owner, at)
	}
	before, after := i > 0 && c.seen[i-1].Hi == r.Lo, i < len(c.seen) && c.seen[i].Lo == r.Hi
	switch {
	case before && after:
		c.seen[i-1].Hi = c.seen[i].Hi
		c.seen = slices.Delete(c.seen, i, i+1)
	case before:
		c.seen[i-1].Hi = r.Hi
	case after:
		c.seen[i].Lo = r.Lo
	default:
		c.seen = slices.Insert(c.seen, i, r)
	}
	return nil
}

// Err returns what is wrong with flows that have all come, those of that many
// shards. The counts of an owner and its normalisers are the same flow, added
// up in two ways: with N the total of the normalisers, M the sums or inputs that
// share the parameters and n the flows of the owner, they may differ by
//
//	(2^-7 + M·2^-19)·N + n·shards/2
//
// for products of lower precision and sums in float32, and for rounding to the
// grid, by half a unit for each flow and shard.
func (c *FlowCheck) Err(shards int) error {
	if c.err != nil {
		return c.err
	}
	n := int64(0)
	for _, r := range c.owner.Flows {
		n += r.Len()
		if i := slices.IndexFunc(c.seen, func(s Range) bool { return s.Hi > r.Lo }); r.Len() > 0 && (i < 0 || c.seen[i].Lo > r.Lo || c.seen[i].Hi < r.Hi) {
			return fmt.Errorf("%w: of the flows of %v at %d to %d some have not come", ErrFlows, c.owner, r.Lo, r.Hi-1)
		}
	}
	if c.owner.Statistics {
		return nil
	}
	counts, norms := c.counts.float(), c.norms.float()
	most := (productError+sharerError*float64(c.owner.Sharers))*norms + float64(n)*float64(max(shards, 1))/2
	if !(math.Abs(counts-norms) <= most) {
		return fmt.Errorf("%w: %v has counts of %v and normalisers of %v; want a difference of %v at most", ErrFlows, c.owner, counts, norms, most)
	}
	return nil
}

// String names an owner: sum 3, input 7.
func (o Owner) String() string {
	if o.Sum >= 0 {
		return fmt.Sprintf("sum %d", o.Sum)
	}
	return fmt.Sprintf("input %d", o.Input)
}

// total is a sum of numbers that 64 bits may not hold.
type total struct{ high, low uint64 }

func (t *total) add(x uint64) {
	var carry uint64
	t.low, carry = bits.Add64(t.low, x, 0)
	t.high += carry
}

func (t *total) float() float64 { return float64(t.high)*0x1p64 + float64(t.low) }
