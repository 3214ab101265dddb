package format

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrModel means that a file is no valid model or that parameters are none.
	ErrModel = errors.New("format: bad model")
	// ErrNoParams means that a model leaves a node's parameters open.
	ErrNoParams = errors.New("format: node has no parameters")
)
