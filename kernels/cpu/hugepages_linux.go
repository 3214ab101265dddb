package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// preferHugePages asks the kernel for huge pages under b. It is a hint: where
// they are switched off nothing changes.
func preferHugePages(b []byte) {
	const page = 4096
	skip := int(-uintptr(unsafe.Pointer(&b[0])) % page)
	if n := (len(b) - skip) / page * page; n > 0 {
		_ = unix.Madvise(b[skip:skip+n], unix.MADV_HUGEPAGE)
	}
}
