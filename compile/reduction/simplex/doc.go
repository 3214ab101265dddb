// Package simplex solves small linear programs exactly, in rational numbers.
//
// # Shapes and units
//
// A constraint of a program in n variables has n+1 integers: the coefficients of
// the variables, then the constant. Variables are free: they may be negative.
//
// # Errors
//
// There are none: every program is infeasible, unbounded, or has a maximum. A
// constraint of another length than n+1, or an objective of another length than n,
// is an error of the caller, and panics.
//
// # Source
//
// The two-phase simplex method on dictionaries, with Bland's rule, which cannot cycle:
// Chvátal, "Linear Programming", 1983, chapters 2 and 3. Entries are integers over one
// common denominator, the determinant of the basis, so a pivot divides without a remainder:
// Edmonds and Maurras, "Note sur les Q-matrices d'Edmonds", 1997.
package simplex
