package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Routines about memory: where lanes access it, what they load, and who has been
// there.
const (
	locateSignature = "(address *Wide, from, last, size uint64, m uint32, at *Narrow) uint32"
	locateDoc       = `sets at to the distances of addresses from an address. It returns a Shape:
// what the lanes of m have in common, or Astray if one is beyond last or not a multiple
// of size, a power of two.`
	locateSharedSignature = "(address *Narrow, off, last, size, m uint32, at *Narrow) uint32"
	locateSharedDoc       = "is locate for addresses of 32 bits, to which off is added."
	spreadSignature       = "(d *Narrow, v, m uint32)"
	spreadDoc             = "sets the lanes of m to v."
	gatherSignature       = "(d *Narrow, data *byte, at *Narrow, m uint32)"
	gatherDoc             = "loads the words of data at the places of the lanes of m, below 2^31."
	knownSignature        = "(known *byte, at *Narrow, words int, m uint32) bool"
	knownDoc              = "reports whether all bytes are 1 in a number of words at the places of the lanes of m."
	noteSignature         = "(shadow *uint64, at *Narrow, words int, m uint32, warp, bits, forbidden uint64, reads bool) uint32"
	noteDoc               = `notes accesses to shared memory, see Set.Note.`
)

// Shapes, as in package lanes.
const (
	astray = iota
	same
	row
	apart
)

func emitMemory(a *asm) {
	emitLocate(a, 64)
	emitLocate(a, 32)
	emitSpread(a)
	emitGather(a)
	emitKnown(a)
	emitNote(a)
}

// function begins a function that Go calls.
func (a *asm) function(name, signature string) {
	a.Function(name + suffix(a.wide))
	a.Attributes(attr.NOSPLIT)
	a.SignatureExpr("func" + signature)
}

// parameter loads a parameter.
func (a *asm) parameter(name string) reg.GPVirtual {
	r := a.GP64()
	a.Load(a.Param(name), r)
	return r
}

// parameter32 loads a parameter of 32 bits.
func (a *asm) parameter32(name string) reg.GPVirtual {
	r := a.GP32()
	a.Load(a.Param(name), r)
	return r
}

// spread fills a vector with a register, as words of 32 or 64 bits.
func (a *asm) spread(r reg.GPVirtual, bits int) vec {
	v := a.vec()
	switch {
	case a.wide && bits == 64:
		a.VPBROADCASTQ(r.As64(), v)
	case a.wide:
		a.VPBROADCASTD(r.As32(), v)
	case bits == 64:
		x := a.XMM()
		a.VMOVQ(r.As64(), x)
		a.VPBROADCASTQ(x, v)
	default:
		x := a.XMM()
		a.VMOVD(r.As32(), x)
		a.VPBROADCASTD(x, v)
	}
	return v
}

// iota returns a vector of 0, 1, 2 and so on.
func (a *asm) iota(bits int) vec {
	v := a.vec()
	m := a.StaticGlobal(fmt.Sprint("iota", bits, suffix(a.wide)))
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for j := range a.bytes() * 8 / bits {
		if bits == 64 {
			a.AppendDatum(U64(j))
		} else {
			a.AppendDatum(U32(j))
		}
	}
	a.VMOVUPS(m, v)
	return v
}

// emitLocate finds where lanes access memory, with addresses of 32 or 64 bits.
func emitLocate(a *asm, bits int) {
	var from, last, size, m reg.GPVirtual
	if bits == 64 {
		a.function("locate", "(address *[32]uint64, from, last, size uint64, m uint32, at *[32]uint32) uint32")
		from, last, size = a.parameter("from"), a.parameter("last"), a.parameter("size")
	} else {
		a.function("locateShared", "(address *[32]uint32, off, last, size, m uint32, at *[32]uint32) uint32")
		from, last, size = a.parameter32("off"), a.parameter32("last"), a.parameter32("size")
		a.NEGL(from.As32()) // what is added is taken from
	}
	address, at := a.parameter("address"), a.parameter("at")
	m = a.parameter32("m")
	// The first lane that runs.
	first := a.GP64()
	a.XORQ(first, first)
	a.BSFL(m, first.As32())
	if bits == 64 {
		a.MOVQ(Mem{Base: address, Index: first, Scale: 8}, first)
		a.SUBQ(from, first)
	} else {
		a.MOVL(Mem{Base: address, Index: first, Scale: 4}, first.As32())
		a.SUBL(from.As32(), first.As32())
	}
	origin, limit, one := a.spread(from, bits), a.spread(last, bits), a.spread(first, bits)
	step := a.spread(size, bits)
	next := a.iota(bits)
	if bits == 64 {
		a.VPMULUDQ(step, next, next)
	} else {
		a.VPMULLD(step, next, next)
	}
	odd := a.GP64()
	a.LEAQ(Mem{Base: size.As64(), Disp: -1}, odd)
	low := a.spread(odd, bits)
	lanes := a.bytes() * 8 / bits
	grow := a.GP64()
	a.MOVQ(size.As64(), grow)
	shift := uint64(0)
	for 1<<shift < lanes {
		shift++
	}
	a.SHLQ(Imm(shift), grow)
	step = a.spread(grow, bits)
	var half vec
	if !a.wide { // comparisons have a sign
		if bits == 64 {
			half = a.splat64(1 << 63)
		} else {
			half = a.splat(1 << 31)
		}
		a.xor(half, limit)
	}
	// Distances of the first row start where the first lane is.
	a.addTo(bits, one, next)
	wrong, differ, unlike := a.GP32(), a.GP32(), a.GP32()
	for i := range 32 / lanes {
		x := a.vec()
		a.VMOVUPS(Mem{Base: address, Disp: i * a.bytes()}, x)
		if bits == 64 {
			a.VPSUBQ(origin, x, x)
		} else {
			a.VPSUBD(origin, x, x)
		}
		a.storeDistances(x, Mem{Base: at, Disp: i * lanes * 4}, bits)
		bad := a.beyond(x, limit, low, half, bits)
		for _, c := range []struct {
			to, part reg.GPVirtual
		}{{wrong, bad}, {differ, a.unequal(x, one, bits)}, {unlike, a.unequal(x, next, bits)}} {
			if i == 0 {
				a.MOVL(c.part, c.to)
				continue
			}
			a.SHLL(Imm(uint64(i*lanes)), c.part)
			a.ORL(c.part, c.to)
		}
		a.addTo(bits, step, next)
	}
	result := a.GP32()
	a.MOVL(U32(astray), result)
	a.TESTL(m, wrong)
	a.JNZ(LabelRef("found"))
	a.MOVL(U32(same), result)
	a.TESTL(m, differ)
	a.JZ(LabelRef("found"))
	a.MOVL(U32(apart), result)
	a.CMPL(m, U32(0xffffffff))
	a.JNE(LabelRef("found"))
	a.TESTL(unlike, unlike)
	a.JNZ(LabelRef("found"))
	a.MOVL(U32(row), result)
	a.Label("found")
	a.VZEROUPPER()
	a.Store(result, a.ReturnIndex(0))
	a.RET()
}

func (a *asm) addTo(bits int, x, to vec) {
	if bits == 64 {
		a.VPADDQ(x, to, to)
	} else {
		a.VPADDD(x, to, to)
	}
}

// storeDistances writes the low words of a vector.
func (a *asm) storeDistances(x vec, to Mem, bits int) {
	switch {
	case bits == 32:
		a.VMOVUPS(x, to)
	case a.wide:
		y := a.YMM()
		a.VPMOVQD(x, y)
		a.VMOVUPS(y, to)
	default:
		high, low := a.XMM(), a.XMM()
		a.VEXTRACTF128(Imm(1), x, high)
		a.VSHUFPS(Imm(0x88), high, x.AsX(), low)
		a.VMOVUPS(low, to)
	}
}

// beyond is the mask of words above a limit or with low bits.
func (a *asm) beyond(x, limit, low, half vec, bits int) reg.GPVirtual {
	if a.wide {
		k, odd := a.K(), a.K()
		if bits == 64 {
			a.VPCMPUQ(Imm(6), limit, x, k)
			a.VPTESTMQ(low, x, odd)
		} else {
			a.VPCMPUD(Imm(6), limit, x, k)
			a.VPTESTMD(low, x, odd)
		}
		a.KORW(k, odd, k)
		return a.lanesOf(k, bits)
	}
	over, odd := a.YMM(), a.YMM()
	a.VPXOR(half, x, over)
	a.VPAND(low, x, odd)
	zero := a.zero()
	if bits == 64 {
		a.VPCMPGTQ(limit, over, over)
		a.VPCMPGTQ(zero, odd, odd)
	} else {
		a.VPCMPGTD(limit, over, over)
		a.VPCMPGTD(zero, odd, odd)
	}
	a.VPOR(odd, over, over)
	return a.signsOf(over, bits)
}

// unequal is the mask of words that differ.
func (a *asm) unequal(x, y vec, bits int) reg.GPVirtual {
	if a.wide {
		k := a.K()
		if bits == 64 {
			a.VPCMPQ(Imm(4), y, x, k)
		} else {
			a.VPCMPD(Imm(4), y, x, k)
		}
		return a.lanesOf(k, bits)
	}
	e := a.YMM()
	if bits == 64 {
		a.VPCMPEQQ(y, x, e)
	} else {
		a.VPCMPEQD(y, x, e)
	}
	r := a.signsOf(e, bits)
	a.XORL(U32(1<<(256/bits)-1), r)
	return r
}

func (a *asm) lanesOf(k reg.Register, bits int) reg.GPVirtual {
	r := a.GP32()
	if bits == 64 {
		a.KMOVB(k, r)
	} else {
		a.KMOVW(k, r)
	}
	return r
}

func (a *asm) signsOf(x vec, bits int) reg.GPVirtual {
	r := a.GP32()
	if bits == 64 {
		a.VMOVMSKPD(x, r)
	} else {
		a.VMOVMSKPS(x, r)
	}
	return r
}

// masks32 calls body for the vectors of 32 lanes with their masks: a mask register,
// or words of ones (AVX2).
func (a *asm) masks32(m reg.GPVirtual, body func(i int, mask reg.Register)) {
	if a.wide {
		for i := range 2 {
			k := a.K()
			a.KMOVW(m, k)
			body(i, k)
			if i == 0 {
				a.SHRL(Imm(16), m)
			}
		}
		return
	}
	all := a.spread(m, 32)
	for i := range 4 {
		w := a.YMM()
		a.VPSLLVD(a.table(fmt.Sprint("lanes", i), func(j int) uint32 { return uint32(31 - 8*i - j) }), all, w)
		a.VPSRAD(Imm(31), w, w)
		body(i, w)
	}
}

// emitSpread sets lanes to a number.
func emitSpread(a *asm) {
	a.function("spread", "(d *[32]uint32, v, m uint32)")
	d, m := a.parameter("d"), a.GP32()
	all := a.spread(a.parameter32("v"), 32)
	a.Load(a.Param("m"), m)
	a.masks32(m, func(i int, mask reg.Register) {
		to, x := Mem{Base: d, Disp: i * a.bytes()}, a.vec()
		a.VMOVUPS(to, x)
		if a.wide {
			a.VMOVDQA32(all, mask, x)
		} else {
			a.VBLENDVPS(mask, all, x, x)
		}
		a.VMOVUPS(x, to)
	})
	a.VZEROUPPER()
	a.RET()
}

// emitGather loads words.
func emitGather(a *asm) {
	a.function("gather", "(d *[32]uint32, data *byte, at *[32]uint32, m uint32)")
	d, data, at, m := a.parameter("d"), a.parameter("data"), a.parameter("at"), a.parameter32("m")
	a.masks32(m, func(i int, mask reg.Register) {
		index, x := a.vec(), a.vec()
		a.VMOVUPS(Mem{Base: at, Disp: i * a.bytes()}, index)
		a.VMOVUPS(Mem{Base: d, Disp: i * a.bytes()}, x)
		if a.wide {
			a.VPGATHERDD(Mem{Base: data, Index: index, Scale: 1}, mask, x)
		} else {
			a.VPGATHERDD(mask, Mem{Base: data, Index: index, Scale: 1}, x)
		}
		a.VMOVUPS(x, Mem{Base: d, Disp: i * a.bytes()})
	})
	a.VZEROUPPER()
	a.RET()
}

// emitKnown looks for bytes that are not 1.
func emitKnown(a *asm) {
	a.function("known", "(known *byte, at *[32]uint32, words int, m uint32) bool")
	known, at, words, m := a.parameter("known"), a.parameter("at"), a.parameter("words"), a.parameter32("m")
	ones := a.splat(0x01010101)
	missing := a.GP32()
	a.XORL(missing, missing)
	a.masks32(m, func(i int, mask reg.Register) {
		index := a.vec()
		a.VMOVUPS(Mem{Base: at, Disp: i * a.bytes()}, index)
		from, left := a.GP64(), a.GP64()
		a.MOVQ(known, from)
		a.MOVQ(words, left)
		loop := a.label("word")
		a.Label(loop)
		x, part := a.vec(), a.GP32()
		a.VMOVUPS(ones, x)
		if a.wide {
			k := a.K()
			a.KMOVW(mask, k)
			a.VPGATHERDD(Mem{Base: from, Index: index, Scale: 1}, k, x)
			a.VPCMPD(Imm(4), ones, x, k)
			a.KMOVW(k, part)
		} else {
			w := a.YMM()
			a.VMOVUPS(mask, w)
			a.VPGATHERDD(w, Mem{Base: from, Index: index, Scale: 1}, x)
			a.VPXOR(ones, x, x)
			a.VPCMPEQD(a.zero(), x, x)
			a.VMOVMSKPS(x, part)
			a.XORL(U32(255), part)
		}
		a.ORL(part, missing)
		a.ADDQ(Imm(4), from)
		a.DECQ(left)
		a.JNZ(LabelRef(loop))
	})
	result := a.GP8()
	a.TESTL(missing, missing)
	a.SETEQ(result)
	a.Store(result, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// Fields of the shadow of a word of shared memory, see the emulator's shared.go.
const (
	initialised = 15
	lasting     = 0xf00f
	promised    = 15 << 12
	writers     = 255 << 16
	readers     = 255 << 24
	atomic      = 1 << 32
	epochs      = ^uint64(1<<33 - 1)
)

// emitNote notes accesses to words that lie together, of a lane after the other.
func emitNote(a *asm) {
	a.function("note", "(shadow *uint64, at *[32]uint32, words int, m uint32, warp, bits, forbidden uint64, reads bool) uint32")
	shadow, at, words, m := a.parameter("shadow"), a.parameter("at"), a.parameter("words"), a.parameter32("m")
	warp := a.parameter("warp")
	bits := a.spread(a.parameter("bits"), 64)
	reads := a.GP8()
	a.Load(a.Param("reads"), reads)
	me := a.GP64()
	a.MOVQ(warp, me)
	a.SHLQ(Imm(16), me)
	writer := a.spread(me, 64)
	a.SHLQ(Imm(8), me)
	reader := a.spread(me, 64)
	allWriters, allReaders, epoch := a.splat64(writers), a.splat64(readers), a.splat64(epochs)
	lasts := a.splat64(lasting)
	needs, needed := a.splat64(initialised|promised), a.splat64(initialised)
	promises, kept := a.spread(a.parameter("forbidden"), 64), a.splat64(^uint64(atomic|promised))
	a.Label("lane")
	a.TESTL(m, m)
	a.JZ(LabelRef("end"))
	place, left := a.GP64(), a.GP64()
	a.XORQ(place, place)
	a.BSFL(m, place.As32())
	a.MOVL(Mem{Base: at, Index: place, Scale: 4}, place.As32())
	a.SHRQ(Imm(2), place)
	a.LEAQ(Mem{Base: shadow, Index: place, Scale: 8}, place)
	a.MOVQ(words, left)
	a.Label("words")
	few, mem := a.GP64(), Mem{Base: place}
	s, x, t := a.vec(), a.vec(), a.vec()
	if a.wide {
		// Vectors of eight words, of four or, to the end, of one: no load reaches over
		// what has just been stored, for which it would have to wait.
		lanes, bad, old, k, ones := a.K(), a.K(), a.K(), a.K(), a.GP32()
		before := a.vec()
		a.CMPQ(left, Imm(8))
		a.JLT(LabelRef("under8"))
		a.MOVQ(U32(8), few)
		a.MOVL(U32(255), ones)
		a.VMOVDQU64(mem, s)
		a.JMP(LabelRef("loaded"))
		a.Label("under8")
		a.CMPQ(left, Imm(4))
		a.JLT(LabelRef("under4"))
		a.MOVQ(U32(4), few)
		a.MOVL(U32(15), ones)
		a.VMOVDQU(mem, s.AsY())
		a.JMP(LabelRef("loaded"))
		a.Label("under4")
		a.MOVQ(U32(1), few)
		a.MOVL(U32(1), ones)
		a.VMOVQ(mem, s.AsX())
		a.Label("loaded")
		a.KMOVW(ones, lanes)
		a.VMOVDQA64(s, before)
		a.VPXORQ(bits, s, x)
		a.VPTESTMQ(epoch, x, old)
		a.VPANDQ(lasts, s, old, s) // what the barrier has left
		foreign := func(field, mine vec, k reg.Register) {
			a.VPANDQ(field, s, t)
			a.VPTESTMQ(t, t, k)
			a.VPCMPQ(Imm(4), mine, t, k, k)
		}
		foreign(allWriters, writer, bad)
		foreign(allReaders, reader, k)
		a.TESTB(reads, reads)
		a.JZ(LabelRef("writes"))
		a.VPANDQ(needs, s, t)
		a.VPORQ(reader, s, s)
		a.VPORQ(allReaders, s, k, s)
		a.VPCMPQ(Imm(4), needed, t, k)
		a.JMP(LabelRef("checked"))
		a.Label("writes")
		a.KORW(k, bad, bad)
		a.VPTESTMQ(promises, s, k)
		a.VPANDQ(kept, s, s)
		a.VPORQ(writer, s, s)
		a.Label("checked")
		a.KORW(k, bad, bad)
		a.KTESTW(lanes, bad)
		a.JNZ(LabelRef("end"))
		a.VPANDNQ(s, epoch, s)
		a.VPORQ(bits, s, s)
		a.VPCMPQ(Imm(4), before, s, k)
		a.KTESTW(lanes, k)
		a.JZ(LabelRef("stored"))
		a.CMPQ(few, Imm(4))
		a.JEQ(LabelRef("four"))
		a.JLT(LabelRef("one"))
		a.VMOVDQU64(s, mem)
		a.JMP(LabelRef("stored"))
		a.Label("four")
		a.VMOVDQU(s.AsY(), mem)
		a.JMP(LabelRef("stored"))
		a.Label("one")
		a.VMOVQ(s.AsX(), mem)
		a.Label("stored")
	} else {
		// Vectors of four words or, to the end, of one.
		bad, k, zero := a.YMM(), a.YMM(), a.zero()
		a.CMPQ(left, Imm(4))
		a.JGE(LabelRef("whole"))
		a.VMOVQ(mem, s.AsX())
		a.VPBROADCASTQ(s.AsX(), s)
		a.MOVQ(U32(1), few)
		a.JMP(LabelRef("loaded"))
		a.Label("whole")
		a.VMOVDQU(mem, s)
		a.MOVQ(U32(4), few)
		a.Label("loaded")
		a.VPXOR(bits, s, x)
		a.VPAND(epoch, x, x)
		a.VPCMPEQQ(zero, x, x) // of this epoch
		a.VPOR(lasts, x, x)
		a.VPAND(x, s, s) // what the barrier has left
		foreign := func(field, mine, to vec) {
			y := a.YMM()
			a.VPAND(field, s, t)
			a.VPCMPEQQ(zero, t, y)
			a.VPCMPEQQ(mine, t, to)
			a.VPOR(y, to, to)
			a.VPCMPEQD(y, y, y)
			a.VPXOR(y, to, to)
		}
		foreign(allWriters, writer, bad)
		foreign(allReaders, reader, k)
		a.TESTB(reads, reads)
		a.JZ(LabelRef("writes"))
		a.VPAND(needs, s, t)
		a.VPOR(reader, s, s)
		a.VPAND(allReaders, k, k)
		a.VPOR(k, s, s)
		a.VPXOR(needed, t, t)
		a.JMP(LabelRef("checked"))
		a.Label("writes")
		a.VPOR(k, bad, bad)
		a.VPAND(promises, s, t)
		a.VPAND(kept, s, s)
		a.VPOR(writer, s, s)
		a.Label("checked")
		a.VPOR(t, bad, bad)
		a.VPTEST(bad, bad)
		a.JNZ(LabelRef("end"))
		a.VPANDN(s, epoch, s)
		a.VPOR(bits, s, s)
		a.CMPQ(few, Imm(4))
		a.JEQ(LabelRef("stores"))
		a.VMOVQ(s.AsX(), mem)
		a.JMP(LabelRef("stored"))
		a.Label("stores")
		a.VMOVDQU(s, mem)
		a.Label("stored")
	}
	a.LEAQ(Mem{Base: place, Index: few, Scale: 8}, place)
	a.SUBQ(few, left)
	a.JG(LabelRef("words"))
	rest := a.GP32()
	a.LEAL(Mem{Base: m.As64(), Disp: -1}, rest)
	a.ANDL(rest, m)
	a.JMP(LabelRef("lane"))
	a.Label("end")
	a.VZEROUPPER()
	a.Store(m, a.ReturnIndex(0))
	a.RET()
}
