// Package text reads and writes circuits as text, made by hand or for a person to
// read.
//
// # Shapes and units
//
// A text model has one statement per line; an indented line continues the
// statement above, and # starts a comment. Children are defined before parents.
//
//	file      = "circuit" variables { statement }
//	statement = name "=" node | "root" name | "meta" string string
//	node      = "input" [units] variable family { setting "=" number { "," number } } [tie | rows]
//	          | "product" name { name }
//	          | "sum" [units] name { name } [edges] [tie | ":" rows]
//	units     = "[" integer "]"                            how many like units; 1 if left out
//	variable  = "x0" | "x1" | ...
//	edges     = "edges" rows "x" columns "(" row "," column ")" { "(" row "," column ")" } ["mask" bits { bits }]
//	tie       = "tied" name                                shares that node's parameters
//	rows      = number { ["/"] number }                    parameters in canonical order
//
// Numbers are decimals: a reader of float32 parameters gets each rounded once to
// float32, a reader of float64 parameters to float64. They are within the range of
// float32, in which engines compute.
//
// A slash may be between the rows of a dense sum, the units of an input or
// the edge blocks of a sparse sum, and nowhere else. Mask bits follow the order
// of the weights; the weight of a 0 bit is written as 0. A Bernoulli unit may be
// written as its probability of 1 alone. A node without parameters is left to be
// initialised. The root is the last node unless a statement names it. Names are
// made of letters, digits, "_" and ".", start with a letter or "_" and are not
// keywords; strings are quoted as in Go. Settings are those of circuit.LeafSpec.
// For example:
//
//	circuit 2
//	a = input[2] x0 bernoulli 0.3 / 0.9
//	b = input[2] x1 categorical categories=3 0.2 0.3 0.5 / 0.1 0.1 0.8
//	p = product a b
//	s = sum p : 0.4 0.6
//
// # Errors
//
// Errors match format.ErrModel, are of one line and start with the line and the
// column of the fault, counted from 1. A text of more than 64 MiB is refused.
//
// # Source
//
// The language is pce's own.
package text
