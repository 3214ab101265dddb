// Package reduction reads programs of equations, in which each statement defines
// elements of an array over a polyhedral domain, checks them and says what they
// mean by running them.
//
//	param N : N >= 2;
//	size N = 100000;
//	input float a0;
//	array float A[N], B[N];
//	output B;
//
//	A[0]   = a0             : { [] : };
//	B[i]  += A[j]           : { [i,j] : 0 <= i < N, 0 <= j <= i };
//	A[i+1] = 0.5*B[i] + 1.0 : { [i] : 0 <= i < N-1 };
//
// # Meaning
//
// A statement with = gives each element one value. With a reduction operator
// every point of the domain whose guards hold adds its value to the element that
// the index list names; the elements that no point reaches are the operator's
// identity. An element is written by at most one point of one = statement, or by
// reductions with one operator. draw(u)= and drawlog(u)= reduce over the one
// dimension that the index list lacks: the value is the least one whose running
// weight reaches u times the whole, where a weight is the value of the body, or exp of it.
//
// Statements have no order. Interpret computes what the outputs need and no
// schedule decides on it, so that it says what a faster program must return.
//
// # Shapes and units
//
// Indices of an array run from 0 to its extents, less one. Integers have 64 bits,
// other numbers are float64, and / always gives a float64. Operands of a reduction are added
// in the lexicographic order of the domain's points, statement by statement.
//
// # Errors
//
// Errors match ErrProgram and are one line with the line and column in the
// source: what, where, and where it is not obvious, a point at which it happens.
// Those about arrays above Options.MaxMemory match ErrMemory too.
//
// # Source
//
// The form of the equations follows Yang, "Simplifying Multiple-Statement
// Reductions with the Polyhedral Model", MIT 2020.
package reduction
