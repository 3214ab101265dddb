//go:build !noasm

package lanes

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// native returns the assembly sets that this machine can run, fastest first.
var native = sync.OnceValue(func() []*Set {
	var sets []*Set
	var codes [len(routines)]uintptr
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasFMA {
		stop := addresses512(&codes)
		s := newSet("avx512", codes[:], stop, run512, routines[:])
		sets = append(sets, s)
	}
	if x.HasAVX2 && x.HasFMA {
		clear(codes[:])
		stop := addresses256(&codes)
		s := newSet("avx2", codes[:], stop, run256, routines[:])
		sets = append(sets, s)
	}
	return sets
})
