// Package nest runs kernels within loops over rows and trees, as a schedule of a decision forest says: tiles of rows,
// tiles of trees, threads. A Module is data; New makes a Program of it with a function that makes code of kernels.
//
// # Shapes and units
//
// Rows are row-major. Sums are [row][output]. A kernel has the inputs x by rows, sums by columns, and if its trees
// are chosen by a loop around it first and end, one column each; its output is sums by columns, or kept by rows: a
// word for each tree, that the module's last kernel has as an input.
//
// # Errors
//
// Errors match ErrModule, or are those of the code.
//
// # Source
//
// The loops are those of SilvanForge's schedules that do not become lanes of a kernel.
package nest
