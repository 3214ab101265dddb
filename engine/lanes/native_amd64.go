//go:build !noasm

package lanes

import "golang.org/x/sys/cpu"

var native = func() kernels {
	if cpu.X86.HasAVX2 {
		return kernels{codes256, whole256, numbers256, narrow256}
	}
	return kernels{}
}()
