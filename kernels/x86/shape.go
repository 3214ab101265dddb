package x86

import (
	"slices"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// shape is how values lie in registers, and how instructions are encoded.
type shape struct {
	name      string
	lanes     int       // rows of a register
	short     asm.Width // of values of 32 bits and less
	full      asm.Width // of registers, and of values of 64 bits
	bytes     int32     // of registers
	registers int
	evex      bool
	masks     *asm.MaskSet // of predicates; nil: they are vectors of 32 bits that are all set or all clear
	gathers   bool         // see Options
	several   int          // see Options.Groups
}

// A module has as many lanes as a register has of its largest values: the shapes with a q are those of 64 bits.
var (
	avx2    = shape{name: "avx2", lanes: 8, short: asm.Y, full: asm.Y, bytes: 32, registers: 16}
	avx2q   = shape{name: "avx2", lanes: 4, short: asm.X, full: asm.Y, bytes: 32, registers: 16}
	avx512  = shape{name: "avx512", lanes: 16, short: asm.Z, full: asm.Z, bytes: 64, registers: 32, evex: true, masks: &asm.Masks16}
	avx512q = shape{name: "avx512", lanes: 8, short: asm.Y, full: asm.Z, bytes: 64, registers: 32, evex: true, masks: &asm.Masks8}
)

// shapeOf returns the shape of a module's code, of a set of instructions that the machine has.
func shapeOf(m *simt.Module, set string) shape {
	small, large := avx2, avx2q
	if set == avx512.name && supported512() && fits512(m) {
		small, large = avx512, avx512q
	}
	if slices.ContainsFunc(m.Types, wide) {
		return large
	}
	return small
}

// fits512 reports whether a module has code of AVX-512, which gathers and scatters elements of rows: outputs have at least
// 32 bits, and rows too, as they are loaded in pieces of 32 bits.
func fits512(m *simt.Module) bool {
	for _, p := range m.Inputs {
		if p.Layout == simt.Rows && p.Width > 1 && p.Width*p.Type.Bits() < 32 {
			return false
		}
	}
	return !slices.ContainsFunc(m.Outputs, func(p simt.Param) bool { return p.Type.Bits() < 32 })
}
