//go:build !noasm

package sliced

import "golang.org/x/sys/cpu"

// native returns the assembly sets that this machine can run, fastest first.
func native() []*Loops {
	if cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		return []*Loops{avx2}
	}
	return nil
}

var avx2 = &Loops{
	Name: "avx2", keysStep: 8,
	keys: keys256, search: search256, nibbles: nibbles256, ends: ends256,
	mux:     [maxHeight + 1]func(*rowSet, *uint32, *rowSet, int){nil, mux1_256, mux2_256, mux3_256, mux4_256, mux5_256, mux6_256, mux7_256, mux8_256},
	indices: indices256, add: add256, double: addDouble256,
	descend: [maxHeight + 1]func(*uint32, *uint64, int, *uint32){nil, descend1, descend2, descend3, descend4, descend5, descend6, descend7, descend8},
}
