// Package polyhedron computes with sets of integer points that affine constraints
// describe: it projects, subtracts, shifts and compares them, finds out whether they
// are empty, and enumerates and counts their points. Unions of sets are disjoint where
// that is said. What is rational only, as Hollow, Implies and Generators, says so: a set may have
// rational points and no integer ones, but a set without rational points is empty.
//
// # Shapes and units
//
// A Row of a set in n variables has n+1 numbers: the coefficients of the
// variables, then the constant. It says that their sum is at least 0 or, as an
// equality, that it is 0. Variables are ordered from the outermost loop to the
// innermost; parameters, where a set has them, come first.
//
// # Errors
//
// ErrOverflow reports a coefficient that does not fit into 64 bits after the row
// was divided by the greatest common divisor of its coefficients. ErrSize reports
// a system with more rows than MaxRows, ErrUnbounded a variable without a bound.
// Nothing else fails, and nothing panics on a system whose rows have the right
// length.
//
// # Source
//
// Fourier-Motzkin elimination, with the tightening of constants that holds for
// integer points; Schrijver, "Theory of Linear and Integer Programming", 1986,
// section 12.2.
package polyhedron
