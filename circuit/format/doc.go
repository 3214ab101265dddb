// Package format reads and writes model files: the native file of every trained
// circuit and a text format for circuits made by hand.
//
// # Shapes and units
//
// A Model is a graph, free strings and parameters, which are read node by node
// in the canonical order of package circuit: no caller needs all of them at
// once. The native file is one safetensors file. With N nodes, C child entries,
// S block-sparse sums of B edge blocks and W mask words, P parameters:
//
//	node.child_start   I64 [N+1]   first entry of each node in children
//	node.kind          U8  [N]     0 input, 1 product, 2 sum
//	node.units         I32 [N]
//	node.variable      I32 [N]     inputs, else -1
//	node.leaf          I32 [N]     inputs: entry of the metadata leaves, else -1
//	node.tied_to       I32 [N]     the node whose parameters are shared, else -1
//	children           I32 [C]     node ids
//	sparse.node        I32 [S]     ids of the block-sparse sums, ascending
//	sparse.block_size  I64 [S, 2]  rows and columns of an edge block
//	sparse.pair_start  I64 [S+1]   first entry of each sum in sparse.pair
//	sparse.pair        I32 [B, 2]  row block and column block
//	sparse.mask_start  I64 [S+1]   first word of each sum; no words: no mask
//	sparse.mask        U64 [W]     bit i of word w is weight 64w+i
//	params             F32 [P]     of the nodes that own parameters, in node order
//
// The metadata are format (pce.circuit), format_version (major.minor),
// variables, root, leaves (a JSON list of leaf specs), digest (SHA-256 of the
// structure, see Digest) and the caller's strings under meta.<key>. A reader
// accepts its own major version up to its own minor. Opening reads the whole file
// once to compare the checksum.
//
// # Text
//
// A text model has one statement a line; an indented line goes on with the
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
// A slash may stand between the rows of a dense sum, the units of an input or
// the edge blocks of a sparse sum, and nowhere else. Mask bits follow the order
// of the weights; the weight of a 0 bit is written as 0. A Bernoulli unit may be
// written as its probability of 1 alone. A node without parameters is left to be
// initialised. The root is the last node unless a statement names it. Names are
// made of letters, digits, "_" and ".", start with a letter or "_" and are no
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
// Files that are no valid models give errors of one line that match ErrModel
// and name the file, for text with line and column. Nothing is allocated before
// its size is checked against the file: opening a native file takes a small
// multiple of the bytes of its structure. Nothing panics on bad input.
//
// # Source
//
// The formats are pce's own.
package format

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrModel means that a file is no valid model or that parameters are none.
	ErrModel = errors.New("format: bad model")
	// ErrNoParams means that a text model leaves a node's parameters open.
	ErrNoParams = errors.New("format: node has no parameters")
)
