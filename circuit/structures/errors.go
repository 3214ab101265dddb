package structures

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrOptions means that the settings of a structure contradict each other
	// or are out of range.
	ErrOptions = errors.New("structures: bad options")
	// ErrData means that the data cannot tell the structure.
	ErrData = errors.New("structures: unusable data")
)
