//go:build cuda && cgo

package driver

/*
#cgo CFLAGS: -I${SRCDIR}/include -I${SRCDIR}/lazy
#cgo LDFLAGS: -lcuda
#include <cuda.h>
#include "lazy.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
)

// Code is what a call of the driver returned, other than success.
type Code int

// Codes that callers tell from others.
const (
	OutOfMemory       Code = C.CUDA_ERROR_OUT_OF_MEMORY
	NoDevice          Code = C.CUDA_ERROR_NO_DEVICE
	InvalidDevice     Code = C.CUDA_ERROR_INVALID_DEVICE
	DeviceUnavailable Code = C.CUDA_ERROR_DEVICE_UNAVAILABLE
	NoBinary          Code = C.CUDA_ERROR_NO_BINARY_FOR_GPU
	InvalidPTX        Code = C.CUDA_ERROR_INVALID_PTX
	NoCompiler        Code = C.CUDA_ERROR_JIT_COMPILER_NOT_FOUND
	UnsupportedPTX    Code = C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
	MissingSymbol     Code = C.CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
	InvalidHandle     Code = C.CUDA_ERROR_INVALID_HANDLE
	NotFound          Code = C.CUDA_ERROR_NOT_FOUND
	IllegalAddress    Code = C.CUDA_ERROR_ILLEGAL_ADDRESS
	TooManyResources  Code = C.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
	LaunchTimeout     Code = C.CUDA_ERROR_LAUNCH_TIMEOUT
	Assertion         Code = C.CUDA_ERROR_ASSERT
	hardwareStack     Code = C.CUDA_ERROR_HARDWARE_STACK_ERROR
	LaunchFailed      Code = C.CUDA_ERROR_LAUNCH_FAILED
	SystemNotReady    Code = C.CUDA_ERROR_SYSTEM_NOT_READY
	DriverMismatch    Code = C.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
)

// Error gives the driver's name of the code, the number and what it means.
func (c Code) Error() string {
	var name, text *C.char
	if C.cuGetErrorName(C.CUresult(c), &name) != C.CUDA_SUCCESS || name == nil {
		return fmt.Sprintf("CUDA code %d", int(c))
	}
	if C.cuGetErrorString(C.CUresult(c), &text) != C.CUDA_SUCCESS || text == nil {
		return fmt.Sprintf("%s (%d)", C.GoString(name), int(c))
	}
	return fmt.Sprintf("%s (%d, %s)", C.GoString(name), int(c), C.GoString(text))
}

// Lost reports whether the context cannot be used after this code: every later
// call fails too, until the process ends.
func (c Code) Lost() bool {
	return c == IllegalAddress || c == LaunchTimeout || c == Assertion || c >= hardwareStack && c <= LaunchFailed
}

// check makes an error of a result.
func check(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return Code(r)
}

// CodeOf returns the code in an error of this package or of gorgonia.org/cu, whose
// type has no name outside.
func CodeOf(err error) (Code, bool) {
	var code Code
	if errors.As(err, &code) {
		return code, true
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if v := reflect.ValueOf(err); v.Kind() == reflect.Int && v.Type().PkgPath() == "gorgonia.org/cu" {
			return Code(v.Int()), true
		}
	}
	return 0, false
}

// Problem starts the driver, unless that has happened, and says why it did not come
// up: there is no library, or it refuses. It returns nothing where all is well.
func Problem() string { return C.GoString(C.pceCudaProblem()) }
