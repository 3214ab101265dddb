//go:build linux && !noasm

package x86

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

//go:generate go -C ../../internal/gen run ./x86 ../../kernels/x86

// supported reports whether this machine runs the code that the package makes.
func supported() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// supported512 reports whether it runs code of sixteen lanes.
func supported512() bool {
	x := &cpu.X86
	return supported() && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VBMI
}

// executable is memory of machine code. It is given back when nothing refers to it any more, or by free.
type executable struct {
	mem     []byte
	cleanup runtime.Cleanup
}

func keep(mem []byte) *executable {
	e := &executable{mem: mem}
	e.cleanup = runtime.AddCleanup(e, func(mem []byte) { unix.Munmap(mem) }, mem)
	return e
}

// newExecutable copies code to pages of its own, which are writable first and executable then, never both
// at a time.
func newExecutable(code []byte) (*executable, error) {
	mem, err := unix.Mmap(-1, 0, len(code), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	copy(mem, code)
	if err := unix.Mprotect(mem, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		unix.Munmap(mem)
		return sharedExecutable(code)
	}
	return keep(mem), nil
}

// sharedExecutable is newExecutable where a page that was writable may not become executable: a file in
// memory is mapped twice, writable until it is written, and executable.
func sharedExecutable(code []byte) (*executable, error) {
	fd, err := unix.MemfdCreate("pce-code", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(len(code))); err != nil {
		return nil, err
	}
	writable, err := unix.Mmap(fd, 0, len(code), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	copy(writable, code)
	if err := unix.Munmap(writable); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, len(code), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return keep(mem), nil
}

func (e *executable) free() {
	if e.mem != nil {
		e.cleanup.Stop()
		unix.Munmap(e.mem)
		e.mem = nil
	}
}

// call runs the code with its arguments.
func (e *executable) call(args []uint64) {
	callCode(unsafe.Pointer(unsafe.SliceData(e.mem)), unsafe.Pointer(unsafe.SliceData(args)))
}
