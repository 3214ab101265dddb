package codec

import "math/bits"

// bitCoder codes what is not a cell: which cells are missing, and lines that are not
// rows. Both directions share one method for each kind of thing, which returns what it
// was given when it encodes and what it reads when it decodes.
type bitCoder interface {
	bit(p *counts, bit int) int
}

// counts are how often a bit was 0 and 1, and predict the next one as Krichevsky and
// Trofimov do: n bits cost about ½·log2 n + 1 bits more than with their frequencies known.
type counts [2]uint32

// maxCount is where counts are halved, so that they follow what changes.
const maxCount = 1 << 20

// split returns where the interval of 0 ends.
func (c *counts) split() uint64 {
	zeros, all := 2*uint64(c[0])+1, 2*uint64(c[0]+c[1])+2
	return (zeros<<wholeBits + all/2) / all
}

func (c *counts) add(bit int) {
	c[bit]++
	if c[bit] == maxCount {
		c[0], c[1] = c[0]/2, c[1]/2
	}
}

func (e *encoder) bit(p *counts, bit int) int {
	if at := p.split(); bit == 0 {
		e.encode(0, at)
	} else {
		e.encode(at, whole)
	}
	p.add(bit)
	return bit
}

func (d *decoder) bit(p *counts, _ int) int {
	at, bit := p.split(), 0
	if d.target() < at {
		d.skip(0, at)
	} else {
		bit = 1
		d.skip(at, whole)
	}
	p.add(bit)
	return bit
}

// flag codes a bit that nothing is known of.
func flag(c bitCoder, on bool) bool {
	bit := 0
	if on {
		bit = 1
	}
	return c.bit(&counts{}, bit) == 1
}

// numbers codes numbers of up to 32 bits: how many bits they have, then those below the
// first.
type numbers [64]counts

func (n *numbers) code(c bitCoder, x uint32) uint32 {
	length := min(tree(c, n[:], 6, uint32(bits.Len32(x))), 32) // a damaged stream may say more
	if length == 0 {
		return 0
	}
	out := uint32(1)
	for i := int(length) - 2; i >= 0; i-- {
		out = out<<1 | uint32(c.bit(&counts{}, int(x>>i&1)))
	}
	return out
}

// tree codes a number of depth bits, the highest first; nodes has 2^depth counts.
func tree(c bitCoder, nodes []counts, depth int, x uint32) uint32 {
	node := uint32(1)
	for i := depth - 1; i >= 0; i-- {
		node = node<<1 | uint32(c.bit(&nodes[node], int(x>>i&1)))
	}
	return node - 1<<depth
}

// texts codes bytes, each given the one before.
type texts struct {
	bytes   [256][]counts // by the byte before; nil until it was seen
	lengths numbers
}

// code codes a text of at most most bytes. The decoder appends it to dst, which the
// encoder returns unchanged; ok is false where a damaged stream has a longer one.
func (t *texts) code(c bitCoder, dst, text []byte, most int) (_ []byte, ok bool) {
	_, decodes := c.(*decoder)
	n := t.lengths.code(c, uint32(len(text)))
	if int64(n) > int64(most) {
		return dst, false
	}
	before := byte('\n')
	for i := range n {
		nodes := t.bytes[before]
		if nodes == nil {
			nodes = make([]counts, 256)
			t.bytes[before] = nodes
		}
		x := uint32(0)
		if !decodes {
			x = uint32(text[i])
		}
		before = byte(tree(c, nodes, 8, x))
		if decodes {
			dst = append(dst, before)
		}
	}
	return dst, true
}
