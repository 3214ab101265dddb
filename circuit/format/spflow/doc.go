// Package spflow reads sum-product networks in the two texts and the JSON of SPFlow, and writes
// the texts.
//
// # Shapes and units
//
// The reference graph has the definition of a node in braces below the first node that has it
// as a child. A node may be named as a child any number of times, and its definition may be repeated, as SPFlow
// does below each parent, if it says the same:
//
//	file     = node { node } [ "#" name { ";" name } ]
//	node     = name ( sum | product | leaf )
//	sum      = "SumNode" "(" number "*" name { "," number "*" name } ")" [ block ]
//	product  = "ProductNode" "(" name { "," name } ")" [ block ]
//	block    = "{" { node } "}"
//	leaf     = "Histogram" "(" variable "|" list ";" list [ ";" list ] ")"
//	         | "Hist" "(" variable "|" text ")" list list
//	         | "Categorical" "(" variable "|" "p=" list ")"
//	         | "Bernoulli" "(" variable "|" "p=" number ")"
//	         | "Gaussian" "(" variable "|" "mean=" number ";" "stdev=" number ")"
//	         | "LogNormal" "(" variable "|" "mean=" number ";" "stdev=" number ")"
//	         | "Poisson" "(" variable "|" "mean=" number ")"
//	list     = "[" number { "," number } "]"
//
// The first node is the root. The equation is one expression of leaves, products (a * b) and
// sums (w*(a) + w*(b)). The line of names, of either text, gives the order of the variables.
// Without one, variables named V0, V1, ... are in the order of their numbers and others in
// that of their first leaf. Words and numbers may be divided over lines.
//
// The third form is nested JSON, an object {"Sum": {...}} per node with children, weights, scope and
// what leaves have; objects with the same id are one node, arrays may be texts as numpy prints them, and
// names in the root's scope are in the order of the variables.
//
// A histogram's densities hold for the numbers from a break to below the next. Other numbers,
// and bins of less, have the density Floor. The third list, points that represent the bins, is
// checked and dropped. Parameters are float64. The root is the last node of the graph.
//
// # Errors
//
// Errors match format.ErrModel, are of one line and start with line and column. A text of more
// than MaxBytes, or one nested more than MaxDepth deep, is refused.
//
// # Source
//
// SPFlow 0.0.48: spn.io.Text writes the texts, and its histograms have Floor; the lists behind
// Hist are those of an earlier version. Molina et al., "SPFlow: An Easy and Extensible Library
// for Deep Probabilistic Learning using Sum-Product Networks", 2019.
package spflow
