package codec

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// intervals draws intervals of all widths, and some that make carries run.
func intervals(rng *rand.Rand, n int) [][2]uint64 {
	out := make([][2]uint64, n)
	for i := range out {
		switch rng.IntN(5) {
		case 0: // the first or the last number
			out[i] = [2]uint64{0, 1}
			if rng.IntN(2) == 0 {
				out[i] = [2]uint64{whole - 1, whole}
			}
		case 1: // almost certain
			out[i] = [2]uint64{1, whole}
		case 2:
			out[i] = [2]uint64{0, whole}
		default:
			lo := rng.Uint64N(whole)
			out[i] = [2]uint64{lo, lo + 1 + rng.Uint64N(whole-lo)>>rng.UintN(33)}
			out[i][1] = min(max(out[i][1], lo+1), whole)
		}
	}
	return out
}

// TestCodecRangeCoder reads back streams of 0 to 300 symbols, and wants no more bytes
// than their widths call for.
func TestCodecRangeCoder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 301 {
		all := intervals(rng, n)
		var e encoder
		e.start(nil)
		bits := 0.0
		for _, i := range all {
			e.encode(i[0], i[1])
			bits += cost(i[1] - i[0])
		}
		out := bytes.Clone(e.finish())
		if most := int(bits/8) + 2; len(out) > most {
			t.Errorf("%d symbols of %v bits take %d bytes, want at most %d", n, bits, len(out), most)
		}
		if len(out) > 0 && out[len(out)-1] == 0 {
			t.Errorf("%d symbols end in a byte of zeros", n)
		}
		var d decoder
		d.start(out)
		for k, i := range all {
			if at := d.target(); at < i[0] || at >= i[1] {
				t.Fatalf("symbol %d of %d: target %d is not in %v", k, n, at, i)
			}
			d.skip(i[0], i[1])
		}
	}
}

// TestCodecCarry makes a carry run through every byte that is written.
func TestCodecCarry(t *testing.T) {
	for n := 1; n < 40; n++ {
		var e encoder
		e.start(nil)
		e.encode(whole/2-1, whole/2+1)
		for range n { // stay around the middle, so that the bytes are 7f ff ff ...
			e.encode(whole/2-1, whole/2+1)
		}
		e.encode(whole-1, whole)
		var d decoder
		d.start(e.finish())
		for k := range n + 1 {
			if at := d.target(); at < whole/2-1 || at >= whole/2+1 {
				t.Fatalf("symbol %d of %d: target %d", k, n, at)
			}
			d.skip(whole/2-1, whole/2+1)
		}
		if at := d.target(); at != whole-1 {
			t.Errorf("the last of %d symbols has the target %d, want %d", n, at, whole-1)
		}
	}
}

// cost is the bits of an interval: less than 2^-23 more than its share.
func cost(width uint64) float64 {
	bits := 32.0
	for ; width > 1; width /= 2 {
		bits--
	}
	return bits
}

// TestCodecAdaptive reads back bits, numbers and texts.
func TestCodecAdaptive(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 60 {
		var e encoder
		e.start(nil)
		play := func(c bitCoder, rng *rand.Rand) (got []uint32, text []byte) {
			_, decodes := c.(*decoder)
			given := func(x uint32) uint32 { // a decoder is given nothing
				if decodes {
					return 0
				}
				return x
			}
			var p counts
			var numbers numbers
			var texts texts
			for range n * n {
				got = append(got, uint32(c.bit(&p, int(given(uint32(rng.IntN(10)/9))))))
			}
			for range n {
				got = append(got, numbers.code(c, given(uint32(rng.Uint64()>>32>>rng.UintN(33)))))
			}
			for k := range n {
				line := make([]byte, k)
				for i := range line {
					line[i] = byte('a' + rng.IntN(3))
				}
				hidden := line
				if decodes {
					hidden = nil
				}
				out, ok := texts.code(c, nil, hidden, n)
				if !ok {
					t.Fatalf("a text of %d bytes is longer than %d", k, n)
				}
				if !decodes {
					out = line
				}
				text = append(text, out...)
			}
			return got, text
		}
		seed := rng.Uint64()
		want, wantText := play(&e, rand.New(rand.NewPCG(seed, 7)))
		var d decoder
		d.start(bytes.Clone(e.finish()))
		got, text := play(&d, rand.New(rand.NewPCG(seed, 7)))
		if len(got) != len(want) {
			t.Fatalf("%d values, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("value %d of round %d is %d, want %d", i, n, got[i], want[i])
			}
		}
		if !bytes.Equal(text, wantText) {
			t.Errorf("round %d: text %q, want %q", n, text, wantText)
		}
	}
}
