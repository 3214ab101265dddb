//go:build unix

package format

import (
	"os"
	"syscall"
)

// mapped returns the first n bytes of a file as they lie in the system's memory, and what gives them back; nil where the
// file's system does not map.
func mapped(f *os.File, n int) ([]byte, func()) {
	b, err := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil
	}
	return b, func() { _ = syscall.Munmap(b) } // of a mapping that there is, so it cannot fail
}
