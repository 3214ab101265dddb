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
	full      asm.Width // of registers
	bytes     int32     // of registers
	registers int
	evex      bool
	gathers   bool // see Options
}

// A module has as many lanes as a register has of its largest values.
var (
	avx2  = shape{name: "avx2", lanes: 8, short: asm.Y, full: asm.Y, bytes: 32, registers: 16}
	avx2q = shape{name: "avx2", lanes: 4, short: asm.X, full: asm.Y, bytes: 32, registers: 16} // with values of 64 bits
	// avx512 has no values of 64 bits: fits16 says which modules it takes.
	avx512 = shape{name: "avx512", lanes: 16, short: asm.Z, full: asm.Z, bytes: 64, registers: 32, evex: true}
)

// shapeOf returns the shape of a module's code, of a set of instructions that the machine has.
func shapeOf(m *simt.Module, set string) shape {
	switch {
	case set == avx512.name && supported512() && fits16(m):
		return avx512
	case slices.ContainsFunc(m.Types, wide):
		return avx2q
	}
	return avx2
}

// fits16 reports whether a module has code of sixteen lanes: values of at most 32 bits, outputs of 32 bits whose
// rows lie together, or by rows whose columns the lanes choose, and no rows of less than 32 bits, as these are loaded in one piece.
func fits16(m *simt.Module) bool {
	if slices.ContainsFunc(m.Types, wide) {
		return false
	}
	for _, p := range m.Inputs {
		if p.Layout == simt.Rows && p.Width > 1 && p.Width*p.Type.Bits() < 32 {
			return false
		}
	}
	for i, p := range m.Outputs {
		if p.Type != simt.F32 && p.Type != simt.I32 || p.Layout == simt.Rows && p.Width > 1 && stores(m.Body, i) {
			return false
		}
	}
	return true
}

// stores reports whether a block has a Store to an output.
func stores(b simt.Block, output int) bool {
	for i := range b {
		switch in := &b[i]; in.Op {
		case simt.Store:
			if in.Ref == output {
				return true
			}
		case simt.If:
			if stores(in.If.Then, output) || stores(in.If.Else, output) {
				return true
			}
		case simt.Loop:
			if stores(in.Loop.Body, output) {
				return true
			}
		}
	}
	return false
}
