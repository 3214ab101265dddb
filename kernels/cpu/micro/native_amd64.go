//go:build !noasm

package micro

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/cpu"
)

// The features of this machine, read once.
var (
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasBMI2
	hasBF16   = hasAVX512 && cpu.X86.HasAVX512BF16
	hasFP16   = hasAVX512 && extensions()>>23&1 != 0
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA
)

// native returns the assembly sets that this machine can run, fastest first.
//
// VDPBF16PS does twice the work of an FMA in the same time on AMD's cores; on
// Intel's it takes four times as long, so there float32 goes first, and before it
// halves, whose FMA does twice the work in the same time.
func native() []*Set {
	var sets []*Set
	if hasFP16 {
		sets = append(sets, avx512fp16)
	}
	if hasAVX512 {
		sets = append(sets, avx512)
	}
	if hasBF16 {
		sets = append(sets, avx512bf16)
	}
	if isAMD() {
		slices.Reverse(sets)
	}
	if hasAVX2 {
		sets = append(sets, avx2)
	}
	return sets
}

// isAMD reports whether the CPU says that it is AMD's.
func isAMD() bool {
	b, d, c := vendor()
	var name []byte
	for _, word := range []uint32{b, d, c} {
		name = binary.LittleEndian.AppendUint32(name, word)
	}
	return string(name) == "AuthenticAMD"
}

// turn transposes the square blocks of n floats of a matrix by block, and the rows and columns
// beyond them in Go.
func turn(dst *float32, dstRow int, src *float32, srcRow, rows, cols, n int, block func(dst *float32, dstRow int, src *float32, srcRow int)) {
	down, across := rows-rows%n, cols-cols%n
	for r := 0; r < down; r += n { // so that src is read as it lies
		for c := 0; c < across; c += n {
			block(at(dst, c*dstRow+r), dstRow, at(src, r*srcRow+c), srcRow)
		}
	}
	if across < cols {
		genericTurn(at(dst, across*dstRow), dstRow, at(src, across), srcRow, down, cols-across)
	}
	if down < rows {
		genericTurn(at(dst, down), dstRow, at(src, down*srcRow), srcRow, rows-down, cols)
	}
}
