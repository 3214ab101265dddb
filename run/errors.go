package run

import "errors"

// Errors that callers may test for with errors.Is. They are those of the library,
// by whose name users know them.
var (
	// ErrOptions means that options contradict each other or the data.
	ErrOptions = errors.New("pce: bad options")
	// ErrRun means that a directory holds a run already.
	ErrRun = errors.New("pce: directory holds a run")
)
