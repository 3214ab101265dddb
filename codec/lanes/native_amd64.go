//go:build !noasm

package lanes

import "golang.org/x/sys/cpu"

var native = func() kernels {
	if cpu.X86.HasAVX2 {
		return kernels{up256, down256, dot256, times256, tops256, rows256, fetch64}
	}
	return kernels{}
}()
