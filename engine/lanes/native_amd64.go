//go:build !noasm

package lanes

import "golang.org/x/sys/cpu"

var native = func() kernels {
	if !cpu.X86.HasAVX2 {
		return kernels{}
	}
	k := kernels{codes: codes256, whole: whole256, numbers: numbers256, narrow: narrow256, widen: widen256, less: less256}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ {
		k.numbersWide = numbers512
	}
	return k
}()
