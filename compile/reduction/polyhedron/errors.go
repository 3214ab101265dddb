package polyhedron

import "errors"

var (
	// ErrOverflow means that a coefficient does not fit into 64 bits.
	ErrOverflow = errors.New("polyhedron: a coefficient beyond 2^63")
	// ErrSize means that elimination made more rows than MaxRows.
	ErrSize = errors.New("polyhedron: too many constraints")
	// ErrUnbounded means that a variable has no lower or no upper bound.
	ErrUnbounded = errors.New("polyhedron: a variable without a bound")
)
