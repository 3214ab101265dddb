// Package simplify rewrites programs of equations so that they do less work and mean the same.
//
// # What it does
//
// A reduction whose body does not change along a vector adds most of the same terms for an
// element as for a neighbour. Simplify replaces
//
//	X[f(z)] op= e(z) : P
//
// where e(z) = e(z-r), by
//
//	X[f(z)]      op= e(z)    : P less P+r               (what the neighbour lacks)
//	X[f(z)+F*r]  op= -e(z)   : P less P-r, where needed (what it has too much)
//	X[u]         op= X[u-F*r] : f(P and P+r)             (the neighbour)
//
// and then looks at what the first two lines leave to do, which has a dimension less. Before that it drops
// dimensions along which an array does not change.
//
// # Shapes and units
//
// Degrees are monomials of the parameters, as package reduction counts them.
//
// # Errors
//
// Errors are those of packages reduction and polyhedron: a domain too large to analyse, or bounds whose
// points cannot be counted. That nothing can be simplified is an answer: Report.Refused has the reasons.
//
// # Source
//
// Gautam and Rajopadhye, "Simplifying Reductions", 2006; Yang, "Simplifying Multiple-Statement Reductions
// with the Polyhedral Model", MIT 2020. Where this differs from them, docs/divergence.md says why.
package simplify
