package main

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Neither avo nor the Go assembler knows AVX512_BF16 and AVX512_FP16. Their
// instructions are emitted as stand-ins that read and write registers in the same
// way, and are encoded once registers are assigned.
var standIns = map[string]encoding{
	"VPMADD52LUQ":      {isa: "AVX512_BF16", space: map0F38, prefix: prefixF3, opcode: 0x52}, // VDPBF16PS
	"VPMULLD":          {isa: "AVX512_BF16", space: map0F38, prefix: prefixF2, opcode: 0x72}, // VCVTNE2PS2BF16
	"VPMULLQ":          {isa: "AVX512_FP16", space: map5, prefix: prefixNone, opcode: 0x58},  // VADDPH
	"VFMSUB231PS.BCST": {isa: "AVX512_FP16", space: map6, prefix: prefix66, opcode: 0xb8},    // VFMADD231PH, one half for all lanes
}

// dot emits c += x · w on bfloat16 pairs.
func (a *asm) dot(x, w, c vec) { a.VPMADD52LUQ(x, w, c) }

// narrow emits d = lo and hi rounded to bfloat16, lo in the low half.
func (a *asm) narrow(hi, lo, d vec) { a.VPMULLD(lo, hi, d) }

// addHalves emits d = x + y on halves.
func (a *asm) addHalves(x, y, d vec) { a.VPMULLQ(x, y, d) }

// fmaHalf emits c += x · w on halves, x being one half in memory.
func (a *asm) fmaHalf(x Mem, w, c vec) { a.VFMSUB231PS_BCST(x, w, c) }

// Fields of an EVEX prefix.
const (
	map0F38, map5, map6                      = 2, 5, 6
	prefixNone, prefix66, prefixF3, prefixF2 = 0, 1, 2, 3
)

// encoding is an EVEX.512.W0 instruction on three registers, or on two and an
// element in memory for all lanes.
type encoding struct {
	isa                   string
	space, prefix, opcode byte
}

// bytes encodes the instruction dst, src1, src2 where src2 is a register number
// or a Mem whose registers are assigned.
func (e encoding) bytes(dst, src1 byte, src2 Op) ([]byte, error) {
	not := func(v, bit byte) byte { return ^(v >> bit) & 1 }
	var high [2]byte // bits 3 and 4 of src2 as a register, of index and base as memory
	broadcast := byte(0)
	var tail []byte // ModRM and what follows
	switch m := src2.(type) {
	case reg.Physical:
		r := byte(m.PhysicalIndex())
		high = [2]byte{not(r, 3), not(r, 4)}
		tail = []byte{3<<6 | dst&7<<3 | r&7}
	case Mem:
		base, ok := m.Base.(reg.Physical)
		if !ok || m.Disp != 0 {
			return nil, fmt.Errorf("address %s", m.Asm())
		}
		b, x, scale := byte(base.PhysicalIndex()), byte(4), byte(0) // no index is 4
		if m.Index != nil {
			index, ok := m.Index.(reg.Physical)
			if !ok {
				return nil, fmt.Errorf("address %s", m.Asm())
			}
			x = byte(index.PhysicalIndex())
			scale = map[uint8]byte{1: 0, 2: 1, 4: 2, 8: 3}[m.Scale]
		}
		high = [2]byte{not(b, 3), not(x, 3)}
		broadcast = 1
		// Some bases need a displacement; with one, all instructions have eight bytes.
		tail = []byte{1<<6 | dst&7<<3 | 4, scale<<6 | x&7<<3 | b&7, 0}
	default:
		return nil, fmt.Errorf("operand %v", src2)
	}
	return append([]byte{
		0x62,
		not(dst, 3)<<7 | high[1]<<6 | high[0]<<5 | not(dst, 4)<<4 | e.space,
		(^src1&15)<<3 | 4 | e.prefix,
		2<<5 | broadcast<<4 | not(src1, 4)<<3, // 512 bits
		e.opcode,
	}, tail...), nil
}

// encode replaces stand-ins of a compiled file by their bytes.
func encode(f *ir.File) error {
	for _, fn := range f.Functions() {
		var nodes []ir.Node
		for _, n := range fn.Nodes {
			i, ok := n.(*ir.Instruction)
			if !ok {
				nodes = append(nodes, n)
				continue
			}
			e, known := standIns[i.OpcodeWithSuffixes()]
			if !known {
				nodes = append(nodes, n)
				continue
			}
			src1, ok1 := i.Operands[1].(reg.Physical)
			dst, ok2 := i.Operands[2].(reg.Physical)
			if len(i.Operands) != 3 || !ok1 || !ok2 {
				return fmt.Errorf("stand-in %s with operands %v", i.Opcode, i.Operands)
			}
			b, err := e.bytes(byte(dst.PhysicalIndex()), byte(src1.PhysicalIndex()), i.Operands[0])
			if err != nil {
				return fmt.Errorf("stand-in %s: %w", i.Opcode, err)
			}
			nodes = append(nodes, directives(b)...)
			fn.ISA = append(fn.ISA, e.isa)
		}
		fn.Nodes = nodes
		fn.ISA = slices.DeleteFunc(fn.ISA, func(isa string) bool { return isa == "AVX512IFMA" })
		slices.Sort(fn.ISA)
		fn.ISA = slices.Compact(fn.ISA)
	}
	return nil
}

// directives writes the six bytes of an instruction on registers, or the eight of
// one on memory, as words of the assembler.
func directives(b []byte) []ir.Node {
	var nodes []ir.Node
	add := func(opcode string, o Op) {
		nodes = append(nodes, &ir.Instruction{Opcode: opcode, Operands: []Op{o}})
	}
	if len(b) == 8 {
		add("QUAD", U64(binary.LittleEndian.Uint64(b)))
		return nodes
	}
	add("LONG", U32(binary.LittleEndian.Uint32(b)))
	add("WORD", U16(binary.LittleEndian.Uint16(b[4:])))
	return nodes
}
