// Package layers holds the compiled form of a circuit: layers of index tensors
// over blocks of units. It holds no weights, no device memory and no code.
// Package compile builds programs, devices run them; neither needs the graph
// they came from.
//
// # Shapes and units
//
// A program counts in blocks of BlockSize units. There are three spaces of
// blocks, and block 0 of each is the padding slot:
//
//	node space     outputs of inputs, sums and stored products; slot 0 reads 1
//	element space  products in front of a sum, never stored; slot 0 reads 0
//	param space    edge blocks, BlockSize × BlockSize weights, [sum unit][child unit]; slot 0 reads 0
//
// The edge blocks of a sum stand one column block after another and, within a
// column block, in the order of the row blocks: the rows of a column of blocks
// are one panel of BlockSize columns.
//
// # Errors
//
// Validate returns errors that match ErrShape or ErrIndex, FlowCheck those that
// match ErrFlows. No function in this package panics on bad input.
//
// # Source
//
// The layout follows Liu, Ahmed, Van den Broeck, "Scaling Tractable
// Probabilistic Circuits: A Systems Perspective", ICML 2024.
package layers

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrShape means that two tensors of a program disagree in length.
	ErrShape = errors.New("layers: shapes disagree")
	// ErrIndex means that an index points outside its space or backwards in time.
	ErrIndex = errors.New("layers: index out of range")
	// ErrFlows means that flows cannot be those of the owner they are said to be of.
	ErrFlows = errors.New("layers: bad flows")
)
