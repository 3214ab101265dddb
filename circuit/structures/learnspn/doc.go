// Package learnspn learns the structure and the parameters of a sum-product network from
// rows of categories, counts and real numbers, with missing cells.
//
// The table is cut again and again. Columns that a test of independence finds apart become
// the children of a product; where it finds none, the rows are clustered and the clusters
// become the children of a sum, weighted by their rows. A part of few rows, or of one
// column, is not cut further: it gets a Chow-Liu tree, or independent leaves.
//
// A Chow-Liu tree is written as a deterministic circuit: a variable with children is, for
// each state of its parent, a sum over indicators of its codes, each times what its children
// have for that code; a variable without children is a leaf for each state of its parent.
// Numbers, and columns of many codes, are never parents.
//
// # Shapes and units
//
// Every node has one unit. Log-likelihoods and information are in nats. The graph and the
// parameters are in memory; a node's parameters are in canonical order.
//
// # Errors
//
// Impossible settings give errors that match structures.ErrOptions, rows that cannot be
// learned from errors that match structures.ErrData: one line that says what, where and what
// to do.
//
// # Goroutines
//
// Learn starts at most Options.Workers - 1 goroutines at a time and waits for them. Equal
// options and rows give equal bits, whatever their number: what is random in a slice follows
// from the seed and the place of the slice in the circuit.
//
// # Source
//
// LearnSPN: Gens and Domingos, "Learning the Structure of Sum-Product Networks", ICML 2013.
// Leaves that are trees: Vergari, Di Mauro and Esposito, "Simplifying, Regularizing and
// Strengthening Sum-Product Network Structure Learning", ECML 2015. Mixed columns: Molina et
// al., "Mixed Sum-Product Networks", AAAI 2018, over the randomized dependence coefficient of
// Lopez-Paz, Hennig and Schölkopf, NIPS 2013.
package learnspn
