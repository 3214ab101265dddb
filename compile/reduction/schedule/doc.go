// Package schedule finds an order in which the elements of a program of equations can be computed:
// a lexicographic time for each element, later than the times of all that it needs.
//
// # Shapes and units
//
// A time is a list of components. An affine one is a row of the program's parameters, the
// array's indices, and 1.
//
// # Errors
//
// ErrCycle, with the arrays that need each other, where no affine order was found. Such a program
// may still have an order that is not affine. Errors of package polyhedron report systems that are too
// large.
//
// # Source
//
// Feautrier, "Some efficient solutions to the affine scheduling problem, part II:
// multidimensional time", 1992. Elements take the place of his operations: a reduction is computed
// at the time of its result.
package schedule
