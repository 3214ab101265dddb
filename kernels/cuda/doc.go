// Package cuda is the CUDA device: it plans a tensor program as launches of PTX
// kernels and runs them through a Driver, the real one or an emulator.
//
// # Shapes and units
//
// Buffers have the types and lengths of kernels.Device. Values in the card's
// memory stand as [vector][row][unit] mantissas with an exponent of two for each
// vector and row.
//
// # Errors
//
// Errors match kernels.ErrDevice or kernels.ErrMemory; those of a driver name the
// call, its arguments and the code.
//
// # Source
//
// The seam is the CUDA driver API.
package cuda
