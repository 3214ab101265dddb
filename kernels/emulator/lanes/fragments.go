package lanes

import "math"

// Product are the operands of an mma in the registers of a warp, and room to
// multiply them in. Lane 4·g + t holds of 16-bit operands in Left[2·j + i] the
// elements 8·j + 2·t and the next of row g + 8·i, in Right[j] those of column g; of
// tf32 the one element t + 4·j. From and To hold at 2·i + j the sums of row g + 8·i,
// column 2·t + j.
type Product struct {
	Left     [4]*Narrow
	Right    [2]*Narrow
	From, To [4]*Narrow

	a [16][16]float64 // [16][k]
	b [16][8]float64  // [k][8]
	c [16][8]float32

	// The exponents of a and b, which only the assembly keeps.
	//lint:ignore U1000 the assembly finds them by their places
	ea [16][16]int32
	//lint:ignore U1000 as ea
	eb [16][8]int32
}

// fastHalf is the value of an f16.
func fastHalf(x uint32) float64 {
	if e := x & 0x7c00; e-0x400 < 0x7c00-0x400 {
		return math.Float64frombits(uint64(x&0x8000)<<48 | (uint64(x&0x7fff)<<42 + 1008<<52))
	}
	return Half(uint16(x))
}

// gatherHalves collects operands of f16 with 8 elements a row, or twice that.
func (p *Product) gatherHalves(eights int) {
	for n := range 2 * eights {
		r, k := p.Left[n&3], 4*(n&2)
		for g := range 8 {
			row := p.a[(g+8*(n&1))&15][k&8:][:8]
			for t, x := range r[4*g:][:4] {
				row[2*t&7], row[(2*t+1)&7] = fastHalf(x&0xffff), fastHalf(x>>16)
			}
		}
	}
	for n := range eights {
		b := p.b[8*n:][:8]
		for lane, x := range p.Right[n&1] {
			k := 2 * (lane & 3)
			b[k&7][lane>>2&7], b[(k+1)&7][lane>>2&7] = fastHalf(x&0xffff), fastHalf(x>>16)
		}
	}
}

// gatherBrains collects operands of bf16.
func (p *Product) gatherBrains() {
	for n, r := range &p.Left {
		k := 4 * (n & 2)
		for g := range 8 {
			row := p.a[(g+8*(n&1))&15][k&8:][:8]
			for t, x := range r[4*g:][:4] {
				row[2*t&7], row[(2*t+1)&7] = single(x<<16), single(x&^0xffff)
			}
		}
	}
	for n, r := range &p.Right {
		b := p.b[8*n:][:8]
		for lane, x := range r {
			k := 2 * (lane & 3)
			b[k&7][lane>>2&7], b[(k+1)&7][lane>>2&7] = single(x<<16), single(x&^0xffff)
		}
	}
}

// gatherTensors collects operands of tf32, of which a card takes the high 19 bits.
func (p *Product) gatherTensors() {
	for n, r := range &p.Left {
		k := 2 * (n & 2)
		for g := range 8 {
			row := p.a[(g+8*(n&1))&15][k&4:][:4]
			for t, x := range r[4*g:][:4] {
				row[t&3] = single(x &^ 0x1fff)
			}
		}
	}
	for n, r := range &p.Right {
		b := p.b[4*n:][:4]
		for lane, x := range r {
			b[lane&3][lane>>2&7] = single(x &^ 0x1fff)
		}
	}
}

// single is the value of an f32.
func single(x uint32) float64 { return float64(math.Float32frombits(x)) }

// gatherSums collects what is added to.
func (p *Product) gatherSums() {
	for n, r := range &p.From {
		for g := range 8 {
			row := &p.c[(g+4*(n&2))&15]
			for t, x := range r[4*g:][:4] {
				row[(2*t+n&1)&7] = math.Float32frombits(x)
			}
		}
	}
}

// scatterSums puts the sums into their registers.
func (p *Product) scatterSums() {
	for n, r := range &p.To {
		for g := range 8 {
			row, to := &p.c[(g+4*(n&2))&15], r[4*g:][:4]
			for t := range to {
				to[t] = Canonical(row[(2*t+n&1)&7])
			}
		}
	}
}
