// Package spnc reads and writes sum-product networks in the binary files of the SPNC compiler,
// whose names end in .bin or .bspn.
//
// # Shapes and units
//
// A file is a stream of Cap'n Proto, not packed, of which the first message counts: a query or
// a network alone. Offsets are in bytes within the data of a struct; pointers are numbered.
//
//	Header      data: u16 0 network, 1 query                pointers: Model or Query
//	Query       i32 rows per batch, u16 @4 kind of error,   JointProbability
//	            f64 @8 largest error
//	Joint...    bit 0: cells may be missing                 Model
//	Model       i32 root, i32 features                      name, type of features, scope i32, nodes
//	Node        i32 id, bit 0 of byte 4 root, u16 @6 kind   the node
//	product                                                 children i32
//	sum                                                     children i32, weights f64
//	histogram   u16 type, u16 meta type, i32 @4 variable    breaks i32, densities f64, points f64
//	gaussian    f64 mean, f64 deviation, i32 @16 variable
//	categorical i32 variable                                probabilities f64
//
// The column of a variable is its rank among the numbers of the scope, not its number; names are
// V and the number. A histogram's densities hold from a break to below the next; elsewhere the
// density is Floor. Parameters are float64, and the root is the last node of the graph. What a query says
// of batches and errors is kept in the strings of the model (MetaQuery and so on) and
// written again. A model from elsewhere becomes a query with the defaults of SPNC, which does not compile networks
// alone. Points that represent the bins of a histogram, and types of histograms, are not kept.
//
// # Errors
//
// Errors match format.ErrModel and are of one line. Pointers outside of their segment, cycles,
// lists that many pointers share, truncated files, and files of more than MaxBytes are refused
// within memory of a multiple of the file's size.
//
// # Source
//
// SPNC 0.2 (Sommer et al., "SPNC: an open-source MLIR-based compiler for fast sum-product network
// inference", CGO 2022); the encoding is that of capnproto.org.
package spnc
