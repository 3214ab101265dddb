package circuit

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrGraph means that a graph breaks a rule: order, shapes or scopes.
	ErrGraph = errors.New("circuit: bad graph")
	// ErrLeaf means that a leaf has impossible settings or parameters.
	ErrLeaf = errors.New("circuit: bad leaf")
)
