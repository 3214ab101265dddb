//go:build !linux || !amd64 || noasm

package x86

import "errors"

func supported() bool { return false }

func supported512() bool { return false }

type executable struct{}

func newExecutable([]byte) (*executable, error) {
	return nil, errors.New("another system or processor")
}

func (*executable) free() {}

func (*executable) call([]uint64) { panic("BUG: x86: native code on another system or processor") }
