//go:build !noasm

package sliced

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"

	"golang.org/x/sys/cpu"
)

// native returns the assembly sets that this machine can run, fastest first.
func native() []*Loops {
	var sets []*Loops
	if x := &cpu.X86; x.HasAVX2 && x.HasPOPCNT {
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			if x.HasAVX512VBMI && x.HasAVX512GFNI {
				sets = append(sets, avx512vbmi())
			}
			sets = append(sets, avx512())
		}
		sets = append(sets, avx2)
	}
	return sets
}

var avx2 = &Loops{
	Name: "avx2", keysStep: 8,
	keys: keys256, quads: quads256, steps: []int{4, 8}, table: nodeTable, search: search256, ranks: ranks, fetch: fetch, nibbles: nibbles256, ends: ends256,
	mux:     [maxHeight + 1]func(*rowSet, *uint32, *rowSet, int){nil, mux1_256, mux2_256, mux3_256, mux4_256, mux5_256, mux6_256, mux7_256, mux8_256},
	indices: indices256, values: same, add: every(add256), double: addDouble256, walk: walk,
	descend: [maxHeight + 1]func(*uint32, *uint64, int, *uint32){nil, descend1, descend2, descend3, descend4, descend5, descend6, descend7, descend8},
}

// avx512 has AVX2's loops over bytes. Making it runs one of its routines, which processors without these instructions
// must never reach.
var avx512 = sync.OnceValue(func() *Loops {
	l := *avx2
	l.Name = "avx512"
	l.quads, l.steps, l.table, l.search = quads512, []int{4, 5, 6, 7, 8}, searchTable, search512
	l.nibbles, l.ends = nibbles512, ends512
	l.sigmoid = exactly(sigmoid512)
	l.mux = [maxHeight + 1]func(*rowSet, *uint32, *rowSet, int){nil, mux1_512, mux2_512, mux3_512, mux4_512, mux5_512, mux6_512, mux7_512, mux8_512}
	return &l
})

var avx512vbmi = sync.OnceValue(func() *Loops {
	l := *avx512()
	l.Name = "avx512vbmi"
	l.nibbles, l.indices, l.values, l.add = nibblesVBMI, indicesVBMI, bytePlanes, every(add6VBMI)
	l.add[7], l.add[8] = add7VBMI, add8VBMI
	return &l
})

// bytePlanes returns values as four tables, one for each of their bytes, of as many whole
// vectors as there are values.
func bytePlanes(values []float32) []float32 {
	size := max(len(values), setBytes)
	planes := make([]byte, 4*size)
	for i, v := range values {
		for b := range 4 {
			planes[b*size+i] = byte(math.Float32bits(v) >> (8 * b))
		}
	}
	out := make([]float32, size)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(planes[4*i:]))
	}
	return out
}

// exactly returns a routine if it has the bits of math.Exp on this machine, where that may have been told to do without some
// instructions; else nil.
func exactly(routine func(scores, out *float64, n int, minus float64) int) func(scores, out *float64, n int, minus float64) int {
	var x, got, want [512]float64
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range x {
		x[i] = (2*rng.Float64() - 1) * []float64{1, 10, sigmoidLimit}[i%3]
	}
	sigmoidGeneric(x[:], want[:], 1)
	if routine(&x[0], &got[0], len(x), -1) != len(x) || got != want {
		return nil
	}
	return routine
}
