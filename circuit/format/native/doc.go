// Package native reads and writes pce's own model files, which hold every trained
// circuit: structure and parameters as the tensors of one safetensors file.
//
// # Shapes and units
//
// With N nodes, C child entries, S block-sparse sums of B edge blocks and W mask
// words, P parameters:
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
//	params             F32 [P]     of the nodes that own parameters, in node order;
//	                   or F64      where they were imported with more digits
//
// The metadata are format (pce.circuit), format_version (major.minor),
// variables, root, leaves (a JSON list of leaf specs), digest (SHA-256 of the
// structure, see Digest) and the caller's strings under meta.<key>. The last
// tensor, sha256, is the checksum of all bytes before it; files of version 1.0
// have none. Files with float32 parameters are of version 1.1, those with float64
// parameters of version 1.2. A reader accepts its own major version up to its own
// minor. Opening reads the whole file once to compare the checksum; parameters
// stay on disk until they are asked for.
//
// # Errors
//
// Errors match format.ErrModel; a file that cannot be written gives the error of
// the operating system. Opening takes a small multiple of the bytes of the
// structure, and nothing is allocated before its size is checked against the file.
//
// # Source
//
// The tensors are pce's own; package internal/safetensors names the container's
// description.
package native
