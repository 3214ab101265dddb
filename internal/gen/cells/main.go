// Command cells writes the assembly of engine/lanes: one file for each routine and one
// with the Go declarations.
//
// Run it as "go generate ./engine/lanes" in the root of the repository; it first deletes
// what it wrote before.
package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/pce-engine/pce/internal/gen/routines"
)

func main() {
	p := routines.Package{Name: "lanes", Generator: "cells", Routines: []routines.Routine{
		{
			Name: "codes256", Doc: "writes so many blocks of 32 values, 1 or more, as bytes: the loop of Codes.",
			Signature: "(dst *byte, values *float32, blocks int) (largest, fractions uint32)", Emit: func(c *build.Context) { whole(c, true) },
		},
		{
			Name: "whole256", Doc: "looks at so many blocks of 32 values, 1 or more: the loop of Whole.",
			Signature: "(values *float32, blocks int) (largest, fractions uint32)", Emit: func(c *build.Context) { whole(c, false) },
		},
		{
			Name: "numbers256", Doc: "writes so many blocks of 32 values, 1 or more, as bytes: the loop of Numbers.",
			Signature: "(dst *byte, values *float32, blocks int) (infinite uint32)", Emit: numbers,
		},
		{
			Name: "numbers512", Doc: "writes so many blocks of 64 values, 1 or more, as bytes: the loop of Numbers.",
			Signature: "(dst *byte, values *float32, blocks int) (infinite uint32)", Emit: numbers512,
		},
		{
			Name: "widen256", Doc: "writes so many blocks of 16 values, 1 or more, as float64: the loop of Widen.",
			Signature: "(dst *float64, values *float32, blocks int)", Emit: widen,
		},
		{
			Name: "less256", Doc: "looks at so many blocks of 16 values, 1 or more: the loop of AnyLess.",
			Signature: "(values *float64, least float64, blocks int) (less uint32)", Emit: less,
		},
		{
			Name: "narrow256", Doc: "writes so many blocks of 32 codes, 1 or more, as bytes: the loop of Narrow.",
			Signature: "(dst *byte, codes *uint16, blocks int) (above uint32)", Emit: narrow,
		},
	}}
	p.Main()
}

// What a comparison asks.
const (
	unordered  = 3    // one is NaN
	differs    = 0x0c // and none is NaN
	below      = 0x11
	notAtLeast = 0x19 // less, or one is NaN
	infinities = 0x18 // of VFPCLASSPS, of both signs
)

// block is how many cells a turn of a loop takes.
const block = 32

func param(c *build.Context, name string) reg.GPVirtual {
	r := c.GP64()
	c.Load(c.Param(name), r)
	return r
}

func zero(c *build.Context) reg.VecVirtual {
	x := c.YMM()
	c.VPXOR(x, x, x)
	return x
}

// every returns a word in every lane.
func every(c *build.Context, word uint32) reg.VecVirtual {
	r, x := c.GP32(), c.YMM()
	c.MOVL(U32(word), r)
	c.VMOVD(r, x.AsX())
	c.VPBROADCASTD(x.AsX(), x)
	return x
}

// pointer is a pointer that a loop moves.
type pointer struct {
	at   reg.GPVirtual
	step uint32 // bytes of a block
}

// loop takes a turn for each block.
func loop(c *build.Context, turn func(), pointers ...pointer) {
	blocks := param(c, "blocks")
	c.Label("block")
	turn()
	for _, p := range pointers {
		c.ADDQ(U32(p.step), p.at)
	}
	c.DECQ(blocks)
	c.JNZ(LabelRef("block"))
}

// pack writes four registers of eight numbers from 0 to 255 as bytes, whose words packing leaves in the order of lanes.
func pack(c *build.Context, v [4]reg.VecVirtual, order reg.VecVirtual, dst reg.GPVirtual) {
	c.VPACKUSDW(v[1], v[0], v[0])
	c.VPACKUSDW(v[3], v[2], v[2])
	c.VPACKUSWB(v[2], v[0], v[0])
	c.VPERMD(v[0], order, v[0])
	c.VMOVDQU(v[0], Mem{Base: dst})
}

// lanes returns for each place the number of the word that belongs there, of those that packing leaves.
func lanes(c *build.Context) reg.VecVirtual {
	g, order := c.StaticGlobal("lanes"), c.YMM()
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, lane := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		c.AddDatum(4*i, U32(lane))
	}
	c.VMOVDQU(g, order)
	return order
}

// largest returns the largest lane.
func largest(c *build.Context, x reg.VecVirtual) reg.GPVirtual {
	half, top := c.XMM(), c.GP32()
	c.VEXTRACTI128(Imm(1), x, half)
	c.VPMAXUD(x.AsX(), half, x.AsX())
	for _, swap := range []uint8{0x4e, 0xb1} {
		c.VPSHUFD(Imm(uint64(swap)), x.AsX(), half)
		c.VPMAXUD(x.AsX(), half, x.AsX())
	}
	c.VMOVD(x.AsX(), top)
	return top
}

// whole takes values that should be codes.
func whole(c *build.Context, write bool) {
	var dst reg.GPVirtual
	var order, low reg.VecVirtual
	values := param(c, "values")
	moved := []pointer{{values, 4 * block}}
	if write {
		dst, order, low = param(c, "dst"), lanes(c), every(c, math.MaxUint8)
		moved = append(moved, pointer{dst, block})
	}
	top, fractions := zero(c), zero(c)
	loop(c, func() {
		var codes [4]reg.VecVirtual
		for i := range codes {
			v, code, back, missing, have := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
			c.VMOVUPS(Mem{Base: values, Disp: 32 * i}, v)
			c.VCVTTPS2DQ(v, code)
			c.VCVTDQ2PS(code, back)
			c.VCMPPS(Imm(differs), v, back, back)
			c.VPOR(back, fractions, fractions)
			c.VCMPPS(Imm(unordered), v, v, missing)
			c.VPANDN(code, missing, have)
			c.VPMAXUD(have, top, top)
			if write {
				c.VPOR(missing, code, code)
				c.VPAND(low, code, code)
			}
			codes[i] = code
		}
		if write {
			pack(c, codes, order, dst)
		}
	}, moved...)
	some := c.GP32()
	c.VMOVMSKPS(fractions, some)
	c.Store(largest(c, top), c.Return("largest"))
	c.Store(some, c.Return("fractions"))
	c.VZEROUPPER()
	c.RET()
}

// numbers takes any values.
func numbers(c *build.Context) {
	dst, values := param(c, "dst"), param(c, "values")
	none, outside := zero(c), every(c, math.MaxUint8-1)
	magnitude, infinity := every(c, math.MaxInt32), every(c, math.Float32bits(float32(math.Inf(1))))
	found, order := zero(c), lanes(c)
	loop(c, func() {
		var bytes [4]reg.VecVirtual
		for i := range bytes {
			v, x, negative, missing, size := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
			c.VMOVUPS(Mem{Base: values, Disp: 32 * i}, v)
			c.VCVTTPS2DQ(v, x)
			c.VCMPPS(Imm(below), none, v, negative)
			c.VPOR(negative, x, x) // the largest number of 32 bits
			c.VPMINUD(outside, x, x)
			c.VCMPPS(Imm(unordered), v, v, missing)
			c.VPSUBD(missing, x, x) // one more
			c.VPAND(magnitude, v, size)
			c.VPCMPEQD(infinity, size, size)
			c.VPOR(size, found, found)
			bytes[i] = x
		}
		pack(c, bytes, order, dst)
	}, pointer{values, 4 * block}, pointer{dst, block})
	some := c.GP32()
	c.VMOVMSKPS(found, some)
	c.Store(some, c.Return("infinite"))
	c.VZEROUPPER()
	c.RET()
}

// numbers512 is numbers with registers of sixteen values.
func numbers512(c *build.Context) {
	dst, values := param(c, "dst"), param(c, "values")
	none := c.ZMM()
	c.VPXORD(none, none, none)
	word := c.GP32()
	every := func(code uint32) reg.VecVirtual {
		z := c.ZMM()
		c.MOVL(U32(code), word)
		c.VPBROADCASTD(word, z)
		return z
	}
	outside, missing := every(math.MaxUint8-1), every(math.MaxUint8)
	found := c.K()
	c.KXORW(found, found, found)
	loop(c, func() {
		for i := range 4 {
			v, x := c.ZMM(), c.ZMM()
			negative, nan, infinite := c.K(), c.K(), c.K()
			c.VMOVUPS(Mem{Base: values, Disp: 64 * i}, v)
			c.VCVTTPS2DQ(v, x)
			c.VCMPPS(Imm(below), none, v, negative)
			c.VCMPPS(Imm(unordered), v, v, nan)
			c.VFPCLASSPSZ(Imm(infinities), v, infinite)
			c.VPMINUD(outside, x, x)
			c.VMOVDQA32(outside, negative, x)
			c.VMOVDQA32(missing, nan, x)
			c.KORW(infinite, found, found)
			c.VPMOVDB(x, Mem{Base: dst, Disp: 16 * i})
		}
	}, pointer{values, 256}, pointer{dst, 64})
	some := c.GP32()
	c.KMOVW(found, some)
	c.Store(some, c.Return("infinite"))
	c.VZEROUPPER()
	c.RET()
}

// widen takes values of 32 bits.
func widen(c *build.Context) {
	dst, values := param(c, "dst"), param(c, "values")
	loop(c, func() {
		for i := range 4 {
			v := c.YMM()
			c.VCVTPS2PD(Mem{Base: values, Disp: 16 * i}, v)
			c.VMOVUPD(v, Mem{Base: dst, Disp: 32 * i})
		}
	}, pointer{values, 64}, pointer{dst, 128})
	c.VZEROUPPER()
	c.RET()
}

// less compares values of 64 bits.
func less(c *build.Context) {
	values, bound := param(c, "values"), c.XMM()
	c.Load(c.Param("least"), bound)
	least, found := c.YMM(), zero(c)
	c.VBROADCASTSD(bound, least)
	loop(c, func() {
		for i := range 4 {
			v := c.YMM()
			c.VMOVUPD(Mem{Base: values, Disp: 32 * i}, v)
			c.VCMPPD(Imm(notAtLeast), least, v, v)
			c.VORPD(v, found, found)
		}
	}, pointer{values, 128})
	some := c.GP32()
	c.VMOVMSKPD(found, some)
	c.Store(some, c.Return("less"))
	c.VZEROUPPER()
	c.RET()
}

// narrow takes codes of 16 bits.
func narrow(c *build.Context) {
	dst, codes := param(c, "dst"), param(c, "codes")
	top, all, outside := zero(c), every(c, math.MaxUint32), every(c, 254<<16|254)
	loop(c, func() {
		var bytes [2]reg.VecVirtual
		for i := range bytes {
			code, next, missing := c.YMM(), c.YMM(), c.YMM()
			c.VMOVDQU(Mem{Base: codes, Disp: 32 * i}, code)
			c.VPSUBW(all, code, next) // 0 of missing cells
			c.VPMAXUW(next, top, top)
			c.VPCMPEQW(all, code, missing)
			c.VPMINUW(outside, code, code)
			c.VPSUBW(missing, code, code)
			bytes[i] = code
		}
		c.VPACKUSWB(bytes[1], bytes[0], bytes[0])
		c.VPERMQ(Imm(0xd8), bytes[0], bytes[0])
		c.VMOVDQU(bytes[0], Mem{Base: dst})
	}, pointer{codes, 2 * block}, pointer{dst, block})
	odd := c.YMM() // words of even lanes beside those of odd ones
	c.VPSRLD(Imm(16), top, odd)
	c.VPMAXUW(odd, top, top)
	low := every(c, math.MaxUint16)
	c.VPAND(low, top, top)
	c.Store(largest(c, top), c.Return("above"))
	c.VZEROUPPER()
	c.RET()
}
