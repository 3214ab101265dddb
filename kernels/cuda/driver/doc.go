// Package driver makes the calls of the CUDA driver API that gorgonia.org/cu lacks:
// limits of functions, launches whose arguments are in slots of eight bytes,
// capture and launch of graphs, pinned memory, loading with the compiler's log,
// names of codes. It works on the handles of that package.
//
// The package is empty without the build tag cuda and cgo. With them it compiles
// against the declarations in include, and a program that imports it is linked
// with the libcuda.a that the script .ci/cuda makes of lazy/lazy.c, so it starts
// without a driver too.
//
// # Shapes and units
//
// Sizes are bytes.
//
// # Errors
//
// Errors are a Code; CodeOf finds it in errors of gorgonia.org/cu too.
//
// # Source
//
// The CUDA driver API of CUDA 11.8, as later drivers have it.
package driver
