package pce

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrClosed means that a model was used after Close.
	ErrClosed = errors.New("pce: model is closed")
	// ErrOptions means that options contradict each other or the data.
	ErrOptions = errors.New("pce: bad options")
	// ErrRun means that a directory holds a run already.
	ErrRun = errors.New("pce: directory holds a run")
)
