//go:build cuda && cgo

package driver

// #include "load.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// LoadError says which call of Load failed, and what the compiler found in the text.
type LoadError struct {
	Code Code
	Call string
	Log  string
}

func (e *LoadError) Error() string {
	if e.Log == "" {
		return fmt.Sprintf("%s: %v", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %v: %s", e.Call, e.Code, e.Log)
}

func (e *LoadError) Unwrap() error { return e.Code }

// Load compiles PTX text for the card of the current context and loads it. The code
// that it returns loads with LoadCode as long as card and driver stay the same; it
// is empty where the driver compiles without giving it away.
func Load(text []byte) (cu.Module, []byte, error) {
	p := C.CBytes(append(text[:len(text):len(text)], 0))
	defer C.free(p)
	to := (*C.loaded)(C.calloc(1, C.sizeof_loaded))
	defer C.free(unsafe.Pointer(to))

	r := C.loadPTX((*C.char)(p), C.size_t(len(text)+1), to)
	if r != C.CUDA_SUCCESS {
		first := loadError(r, to)
		to.log[0] = 0
		// Some drivers refuse to link text that they load.
		if r = C.loadPTXWhole((*C.char)(p), to); r != C.CUDA_SUCCESS {
			second := loadError(r, to)
			if second.Log == "" {
				return cu.Module{}, nil, first
			}
			return cu.Module{}, nil, second
		}
	}
	var code []byte
	if to.code != nil {
		code = C.GoBytes(to.code, C.int(to.size))
		C.free(to.code)
	}
	return module(to.module), code, nil
}

// LoadCode loads code that Load returned.
func LoadCode(code []byte) (cu.Module, error) {
	p := C.CBytes(code)
	defer C.free(p)
	var m C.CUmodule
	if err := check(C.cuModuleLoadData(&m, p)); err != nil {
		return cu.Module{}, err
	}
	return module(m), nil
}

func module(m C.CUmodule) cu.Module { return *(*cu.Module)(unsafe.Pointer(&m)) }

// loadError gathers what a load left, the log in one line.
func loadError(r C.CUresult, to *C.loaded) *LoadError {
	lines := strings.FieldsFunc(C.GoString(&to.log[0]), func(r rune) bool { return r == '\n' || r == '\r' })
	return &LoadError{Code: Code(r), Call: C.GoString(to.call), Log: strings.TrimSpace(strings.Join(lines, "; "))}
}
