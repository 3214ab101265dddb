// Package circuit says what a probabilistic circuit is: a graph of input,
// product and sum nodes, the leaf distributions, and the checks on them.
//
// # Shapes and units
//
// A node is a block of Units like units that share scope and wiring. Parameters
// are probabilities (or leaf parameters) in the node's canonical order, float32 as
// devices compute or float64 as they were imported:
//
//	dense sum        [Units, total units of the children]
//	block-sparse sum [len(Edges.Pairs), Edges.Rows, Edges.Cols]
//	input            [Units, Leaf.NumParams()]
//
// One unit of a leaf has the parameters
//
//	categorical           probability of each code
//	bernoulli             probabilities of 0 and 1
//	binomial              probability of success
//	gaussian              mean, standard deviation
//	discretised-logistic  mean, scale, in codes
//	histogram             mass of each bin
//	log-normal            mean, standard deviation of the logarithm
//	poisson               rate
//	indicator             none
//
// Log-probabilities are natural logarithms (nats). Flows are plain expected
// counts.
//
// # Errors
//
// Functions that take a graph from outside return errors that match ErrGraph;
// leaves return errors that match ErrLeaf.
// Nothing in this package panics on bad input.
//
// # Source
//
// Definitions follow Choi, Vergari, Van den Broeck, "Probabilistic Circuits: A
// Unifying Framework for Tractable Probabilistic Models", 2020; node blocks
// follow Liu, Ahmed, Van den Broeck, "Scaling Tractable Probabilistic Circuits:
// A Systems Perspective", ICML 2024.
package circuit
