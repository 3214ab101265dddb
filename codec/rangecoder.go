package codec

// The probability of a symbol is an interval of the whole numbers below whole: lo
// inclusive, hi exclusive. A symbol of an interval of length n costs
// 32 - log2(n) bits, and less than 2^-24 of a bit more.
const (
	wholeBits = 32
	whole     = 1 << wholeBits

	minWidth = 1 << 56 // a coder keeps its width at or above this
)

// encoder is a range coder that writes whole bytes to memory. The bytes are the digits of a
// number in [low, low+width), which every symbol narrows.
type encoder struct {
	out   []byte
	low   uint64
	width uint64
}

// start begins a stream in the memory of out.
func (e *encoder) start(out []byte) { *e = encoder{out: out[:0], width: 1<<64 - 1} }

// encode writes the symbol with the interval [lo, hi), lo < hi <= whole.
func (e *encoder) encode(lo, hi uint64) {
	unit := e.width >> wholeBits
	from := unit * lo
	if hi == whole {
		e.width -= from // the remainder of the division, too
	} else {
		e.width = unit * (hi - lo)
	}
	e.low += from
	if e.low < from {
		e.carry()
	}
	for e.width < minWidth {
		e.out = append(e.out, byte(e.low>>56))
		e.low <<= 8
		e.width <<= 8
	}
}

// carry adds one to the bytes that are written.
func (e *encoder) carry() {
	for i := len(e.out) - 1; ; i-- { // the whole number stays below 1, so a byte is below 255
		e.out[i]++
		if e.out[i] != 0 {
			return
		}
	}
}

// finish returns the stream: the fewest bytes that, followed by zeros, are the digits of a
// number in the interval.
func (e *encoder) finish() []byte {
	for kept := uint(0); kept <= 64; kept += 8 {
		rest := ^uint64(0) >> kept // the bits that are left out
		n := (e.low + rest) &^ rest
		if n-e.low >= e.width { // modulo 2^64, so also where n has overflowed
			continue
		}
		if n < e.low {
			e.carry()
		}
		for at := uint(0); at < kept; at += 8 {
			e.out = append(e.out, byte(n>>(56-at)))
		}
		break
	}
	for len(e.out) > 0 && e.out[len(e.out)-1] == 0 {
		e.out = e.out[:len(e.out)-1]
	}
	return e.out
}

// decoder reads what an encoder wrote. Behind the end it reads zeros.
type decoder struct {
	in     []byte
	at     int
	offset uint64 // of the number in the interval
	width  uint64
}

func (d *decoder) start(in []byte) {
	*d = decoder{in: in, width: 1<<64 - 1}
	for range 8 {
		d.next()
	}
}

func (d *decoder) next() {
	d.offset <<= 8
	if d.at < len(d.in) {
		d.offset |= uint64(d.in[d.at])
	}
	d.at++
}

// target returns a number in the interval of the next symbol.
func (d *decoder) target() uint64 { return min(d.offset/(d.width>>wholeBits), whole-1) }

// skip leaves the symbol with the interval [lo, hi), which holds the target, behind.
func (d *decoder) skip(lo, hi uint64) {
	unit := d.width >> wholeBits
	from := unit * lo
	d.offset -= from
	if hi == whole {
		d.width -= from
	} else {
		d.width = unit * (hi - lo)
	}
	for d.width < minWidth {
		d.next()
		d.width <<= 8
	}
}
