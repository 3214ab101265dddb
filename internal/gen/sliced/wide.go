package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type wide = reg.VecVirtual

// wides returns n vectors of 512 bits.
func (a *asm) wides(n int) []wide {
	v := make([]wide, n)
	for i := range v {
		v[i] = a.ZMM()
	}
	return v
}

// all returns a vector of one word.
func (a *asm) all(w uint32) wide {
	v := a.ZMM()
	a.VPBROADCASTD(a.constant(fmt.Sprintf("c%08x", w), w), v)
	return v
}

// bytes returns a vector of 64 bytes.
func (a *asm) bytes(name string, at func(i int) int) wide {
	var words [16]uint32
	for i := range 64 {
		words[i/4] |= uint32(at(i)) << (i % 4 * 8)
	}
	v := a.ZMM()
	a.VMOVDQU64(a.constant(name, words[:]...), v)
	return v
}

// quad returns a vector of a word of 64 bits.
func (a *asm) quad(name string, low, high uint32) wide {
	v := a.ZMM()
	a.VPBROADCASTQ(a.constant(name, low, high), v)
	return v
}

// copied returns a copy of a vector.
func (a *asm) copied(x wide) wide {
	v := a.ZMM()
	a.VMOVDQA64(x, v)
	return v
}

// zip transposes eight vectors of eight words of 64 bits.
func (a *asm) zip(x []wide) []wide {
	unpacked, joined, out := a.wides(8), a.wides(8), a.wides(8)
	for i := range 4 {
		a.VPUNPCKLQDQ(x[2*i+1], x[2*i], unpacked[2*i])
		a.VPUNPCKHQDQ(x[2*i+1], x[2*i], unpacked[2*i+1])
	}
	for h := range 2 {
		for i := range 2 {
			a.VSHUFI64X2(Imm(0x88), unpacked[h+4*i+2], unpacked[h+4*i], joined[4*h+2*i])
			a.VSHUFI64X2(Imm(0xdd), unpacked[h+4*i+2], unpacked[h+4*i], joined[4*h+2*i+1])
		}
		for i := range 2 {
			a.VSHUFI64X2(Imm(0x88), joined[4*h+2+i], joined[4*h+i], out[h+2*i])
			a.VSHUFI64X2(Imm(0xdd), joined[4*h+2+i], joined[4*h+i], out[4+h+2*i])
		}
	}
	return out
}

// squares returns the order of bytes in which a square of eight by eight is transposed.
func (a *asm) squares() wide { return a.bytes("squares", func(i int) int { return i%8*8 + i/8 }) }

// transposer returns the vector whose affine product with a square of bits is the square
// transposed and with its columns in the opposite order.
func (a *asm) transposer() wide { return a.quad("transposer", 0x08040201, 0x80402010) }
