package reference

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrRow means that a row has the wrong length or a cell no leaf allows.
	ErrRow = errors.New("reference: bad row")
	// ErrDomain means that the states of a circuit cannot be enumerated.
	ErrDomain = errors.New("reference: too many states")
)
