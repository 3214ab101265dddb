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
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasBMI2 && x.HasFMA && x.HasF16C {
		stop := addresses512(&codes)
		comparisons512(&codes)
		s := newSet("avx512", codes[:], stop, run512, routines[:])
		s.multiply = multiply512
		s.memory = &memory{locate512, locateShared512, spread512, gather512, known512, note512}
		sets = append(sets, s)
	}
	if x.HasAVX2 && x.HasFMA && x.HasF16C {
		clear(codes[:])
		stop := addresses256(&codes)
		comparisons256(&codes)
		s := newSet("avx2", codes[:], stop, run256, routines[:])
		s.multiply = multiply256
		s.memory = &memory{locate256, locateShared256, spread256, gather256, known256, note256}
		sets = append(sets, s)
	}
	return sets
})
