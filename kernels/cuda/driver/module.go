//go:build cuda && cgo

package driver

// #include "load.h"
import "C"

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// LoadError is why a text does not load, with what the compiler found in it, in one
// line.
type LoadError struct {
	Code Code
	Log  string
}

func (e *LoadError) Error() string {
	if e.Log == "" {
		return e.Code.Error()
	}
	return fmt.Sprintf("%v: %s", e.Code, e.Log)
}

func (e *LoadError) Unwrap() error { return e.Code }

// Load compiles PTX text for the card of the current context and loads it.
func Load(text []byte) (cu.Module, error) {
	text = append(text[:len(text):len(text)], 0)
	log := make([]byte, 16<<10)
	var m C.CUmodule
	r := C.loadPTX(&m, (*C.char)(unsafe.Pointer(&text[0])), (*C.char)(unsafe.Pointer(&log[0])), C.size_t(len(log)))
	if r != C.CUDA_SUCCESS {
		log, _, _ = bytes.Cut(log, []byte{0})
		lines := strings.FieldsFunc(string(log), func(r rune) bool { return r == '\n' || r == '\r' })
		return cu.Module{}, &LoadError{Code(r), strings.TrimSpace(strings.Join(lines, "; "))}
	}
	return *(*cu.Module)(unsafe.Pointer(&m)), nil
}
