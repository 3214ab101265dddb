package format

import (
	"errors"
	"strings"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrModel means that a file is not a valid model or that its parameters are not parameters of it.
	ErrModel = errors.New("format: bad model")
	// ErrNoParams means that a model leaves a node's parameters open.
	ErrNoParams = errors.New("format: node has no parameters")
)

// UnknownError says that no registered format recognises a file.
type UnknownError struct {
	Tried []string // the names of the formats
}

func (e *UnknownError) Error() string {
	tried := strings.Join(e.Tried, ", ")
	if tried == "" {
		tried = "none, for the program registers none"
	}
	return "its first bytes are those of no known format (tried: " + tried + "); give a model file, or get it again if it was cut short"
}
