//go:build unix

package parallel

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFaults: a fault in mapped memory that its file has lost, in any goroutine, is a panic of the caller that names the address.
func TestFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		t.Skipf("SKIPPED: files are not mapped here: %v", err)
	}
	defer func() { _ = syscall.Munmap(b) }()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, ok := recover().(interface{ Addr() uintptr }); !ok {
			t.Error("the fault did not reach the caller")
		}
	}()
	_ = Each(100, func() func(int) error {
		return func(i int) error {
			if b[len(b)-1-i] != 0 {
				t.Error("a page that is gone has a number")
			}
			return nil
		}
	})
}
