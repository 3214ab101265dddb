// Package equations builds circuits that are written as equations, in the language
// of package reduction:
//
//	param T, S : T >= 1, S >= 1;
//	param C : C >= 1;
//	input int x[T] in [0,C);
//	input float e[S,C], a[S,S], a0[S];
//	array float al[T,S], next[T,S], out[];
//	output out;
//
//	al[t,s]     = e[s,x[t]]*next[t,s] : { [t,s] : 0 <= t < T, 0 <= s < S };
//	next[t,r]  += a[r,s]*al[t+1,s]    : { [t,r,s] : 0 <= t < T-1, 0 <= r < S, 0 <= s < S };
//	next[t,r]  += 1                   : { [t,r] : t = T-1, 0 <= r < S };
//	out[]      += a0[s]*al[0,s]       : { [s] : 0 <= s < S };
//
// # Meaning
//
// The one input of type int is a row of the data. An input of type float that is
// read with an element of the row as an index, as e, holds the probabilities of
// the categories of an input node. Another input of type float holds weights: a
// += adds up over the indices of its weights, and each weight is a distribution
// over the indices that are summed, given the others. Sums share these parameters
// wherever the given indices are equal. = and *= are products.
//
// The program is simplified, and the circuit is built element by element from the
// output, each once. Arrays get one index, that of the state,
// which becomes the units of a node, where all statements treat its values alike; an
// array without one gets a node for each element.
//
// # Shapes and units
//
// Parameters of the program are integers. The number of columns, the number of
// categories and Latents give some of them their value, see Options.
//
// # Errors
//
// Equations that are not a circuit give errors that match reduction.ErrProgram and
// have the file, line and column of the statement and a point of its domain.
//
// # Source
//
// Explicit durations: Yu, "Hidden semi-Markov models", Artificial Intelligence
// 2010. Smoothness, decomposability: Poon and Domingos, UAI 2011.
package equations
