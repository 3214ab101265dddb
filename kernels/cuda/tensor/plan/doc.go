// Package plan lowers a tensor program to what a card runs: the tables that its
// kernels read, the order of their launches, the memory that they take and the time
// that they should take. It needs no card.
//
// # Shapes and units
//
// Records and the meaning of their fields are those of package tensor. Memory
// counts bytes, times are seconds.
//
// # Errors
//
// Errors match kernels.ErrDevice: a leaf that there are no kernels for, too many
// rows.
//
// # Source
//
// The roofline model: S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009. Issue,
// latency and waves of blocks, too: S. Hong, H. Kim, An analytical model for a GPU
// architecture with memory-level and thread-level parallelism awareness, ISCA 2009.
package plan
