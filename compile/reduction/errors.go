package reduction

import (
	"errors"
	"fmt"
)

var (
	// ErrProgram means that a program, or its data, is not what it has to be.
	ErrProgram = errors.New("reduction: bad program")
	// ErrMemory means that the arrays of a program need more memory than allowed.
	ErrMemory = errors.New("reduction: arrays need more memory than allowed")
)

// Pos is a place in the source, counted from 1.
type Pos struct {
	Line, Column int
}

// Error is what is wrong with a program, at a place of its source.
type Error struct {
	Pos
	Msg string

	memory bool
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
}

// Is makes every Error match ErrProgram, and one about memory ErrMemory too.
func (e *Error) Is(target error) bool {
	return target == ErrProgram || e.memory && target == ErrMemory
}

func errorf(at Pos, format string, args ...any) error {
	return &Error{Pos: at, Msg: fmt.Sprintf(format, args...)}
}
