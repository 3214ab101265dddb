// Package ir is the second and third form of a decision forest on its way to code. Build makes the MIR of an
// ensemble and a nest of loops: loops over rows and trees with walks of trees within. Lower makes the LIR of it:
// the nodes are elements of buffers, which a Representation lays out. Emit makes kernels of that, modules of
// package simt, and the loops around them.
//
// # Shapes and units
//
// One loop over single rows becomes the lanes of kernels. Loops within it are part of a kernel, loops around it
// are run by package nest. A node is the index of its tile, in what units the representation says.
//
// # Errors
//
// Errors match ErrLower and name the loop or the tree, and what a CPU cannot do with it.
//
// # Source
//
// SilvanForge: A Schedule-Guided Retargetable Compiler for Decision Tree Inference, SOSP 2024, Table 1, whose names
// of operations are kept; array and sparse are Treebeard's representations, reorg is Tahoe's.
package ir
