package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Neither avo nor the Go assembler knows AVX512_BF16. Its two instructions are
// emitted as stand-ins that read and write registers in the same way, and are
// encoded once registers are assigned.
var standIns = map[string]encoding{
	"VPMADD52LUQ": {prefix: 2, opcode: 0x52}, // VDPBF16PS
	"VPMULLD":     {prefix: 3, opcode: 0x72}, // VCVTNE2PS2BF16
}

// encoding is an EVEX.512.0F38.W0 instruction on three registers.
type encoding struct{ prefix, opcode byte }

// dot emits c += x · w on bfloat16 pairs.
func (a *asm) dot(x, w, c vec) { a.VPMADD52LUQ(x, w, c) }

// narrow emits d = lo and hi rounded to bfloat16, lo in the low half.
func (a *asm) narrow(hi, lo, d vec) { a.VPMULLD(lo, hi, d) }

// bytes encodes the instruction dst, src1, src2 with src2 in ModRM.rm. (The
// high half of VCVTNE2PS2BF16's result is src1.)
func (e encoding) bytes(dst, src1, src2 byte) []byte {
	not := func(v, bit byte) byte { return ^(v >> bit) & 1 }
	return []byte{
		0x62,
		not(dst, 3)<<7 | not(src2, 4)<<6 | not(src2, 3)<<5 | not(dst, 4)<<4 | 2, // 0F38
		(^src1&15)<<3 | 4 | e.prefix,
		2<<5 | not(src1, 4)<<3, // 512 bits
		e.opcode,
		3<<6 | dst&7<<3 | src2&7,
	}
}

// encode replaces stand-ins of a compiled file by their bytes.
func encode(f *ir.File) error {
	for _, fn := range f.Functions() {
		var nodes []ir.Node
		for _, n := range fn.Nodes {
			i, ok := n.(*ir.Instruction)
			e, known := encoding{}, false
			if ok {
				e, known = standIns[i.Opcode]
			}
			if !known {
				nodes = append(nodes, n)
				continue
			}
			var id [3]byte // src2, src1, dst
			for k, o := range i.Operands {
				r, ok := o.(reg.Physical)
				if !ok || k > 2 {
					return fmt.Errorf("stand-in %s with operand %v", i.Opcode, o)
				}
				id[k] = byte(r.PhysicalIndex())
			}
			b := e.bytes(id[2], id[1], id[0])
			nodes = append(nodes,
				&ir.Instruction{Opcode: "LONG", Operands: []Op{U32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)}},
				&ir.Instruction{Opcode: "WORD", Operands: []Op{U16(uint16(b[4]) | uint16(b[5])<<8)}})
		}
		fn.Nodes = nodes
		for k, isa := range fn.ISA {
			if isa == "AVX512IFMA" {
				fn.ISA[k] = "AVX512_BF16"
			}
		}
		slices.Sort(fn.ISA)
	}
	return nil
}

func bf16Routines(wide bool) []routine {
	if !wide {
		return nil
	}
	return []routine{
		{"packRows512", "(dst *uint32, dstRow int, x *float32, xRow, rows, width int)", "is BF16Set.PackRows.", packRows},
		{"packPairs512", "(dst *uint32, dstRow int, x *float32, xRow, rows, width int)", "is BF16Set.PackPairs.", packPairs},
	}
}

func packRows(a *asm) {
	dst, dstRow, x, xRow := a.param("dst"), a.strideParam("dstRow"), a.param("x"), a.strideParam("xRow")
	rows, width := a.param("rows"), a.param("width")
	// Masks of the last vectors: floats of its two halves, and words.
	full, lo, hi, words := a.GP64(), a.K(), a.K(), a.K()
	bits, n := a.GP64(), a.GP64()
	a.MOVQ(I32(-1), full)
	a.MOVQ(width, n)
	a.ANDQ(Imm(31), n)
	a.BZHIQ(n, full, bits)
	a.KMOVW(bits.As32(), lo)
	a.SHRL(Imm(16), bits.As32())
	a.KMOVW(bits.As32(), hi)
	a.INCQ(n)
	a.SHRQ(Imm(1), n)
	a.BZHIQ(n, full, bits)
	a.KMOVW(bits.As32(), words)
	one := func(to, from gp, lo, hi, words reg.Register) {
		p, q := a.ZMM(), a.ZMM()
		a.load(Mem{Base: from}, p, lo)
		a.load(Mem{Base: from, Disp: 64}, q, hi)
		a.narrow(q, p, p)
		a.store(p, Mem{Base: to}, words)
	}
	a.times(rows, func() {
		to, from, left := a.GP64(), a.GP64(), a.GP64()
		a.MOVQ(dst, to)
		a.MOVQ(x, from)
		a.MOVQ(width, left)
		a.SHRQ(Imm(5), left)
		a.times(left, func() {
			one(to, from, nil, nil, nil)
			a.ADDQ(Imm(64), to)
			a.SUBQ(I32(-128), from)
		})
		whole := a.label("whole")
		a.MOVQ(width, left)
		a.ANDQ(Imm(31), left)
		a.JZ(LabelRef(whole))
		one(to, from, lo, hi, words)
		a.Label(whole)
		a.ADDQ(dstRow, dst)
		a.ADDQ(xRow, x)
	})
	a.end()
}

func packPairs(a *asm) {
	dst, dstRow, x, xRow := a.param("dst"), a.strideParam("dstRow"), a.param("x"), a.strideParam("xRow")
	rows, width := a.param("rows"), a.param("width")
	a.maskOf(width)
	// Word k of the permutation takes halves k and k+16.
	order := a.StaticGlobal("order")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for k := range 16 {
		a.AppendDatum(U32(uint32(k | (k+16)<<16)))
	}
	by := a.ZMM()
	a.VMOVDQU64(order, by)
	pairs := func(both bool) {
		a.columns(width, 2, func(off gp, n int, mask reg.Register) {
			for i := range n {
				p, q := a.ZMM(), a.ZMM()
				a.load(a.offset(Mem{Base: x, Index: off, Scale: 1}, i), p, mask)
				if both {
					second := a.GP64()
					a.LEAQ(Mem{Base: x, Index: xRow, Scale: 1}, second)
					a.load(a.offset(Mem{Base: second, Index: off, Scale: 1}, i), q, mask)
				} else {
					a.zero(q)
				}
				a.narrow(q, p, p)
				a.VPERMW(p, by, p)
				a.store(p, a.offset(Mem{Base: dst, Index: off, Scale: 1}, i), mask)
			}
		})
	}
	two := a.GP64()
	a.MOVQ(rows, two)
	a.SHRQ(Imm(1), two)
	a.times(two, func() {
		pairs(true)
		a.ADDQ(dstRow, dst)
		a.LEAQ(Mem{Base: x, Index: xRow, Scale: 2}, x)
	})
	a.ANDQ(Imm(1), rows)
	a.JZ(LabelRef("even"))
	pairs(false)
	a.Label("even")
	a.end()
}
