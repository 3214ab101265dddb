// Package cuda is the CUDA device: memory, copies beside launches, compiled PTX and
// graphs of launches, through a Driver, the real one or an emulator. It knows nothing
// of what is computed: a Loader makes a program of a module and its calls run through
// Device.Do, which lends them a Thread. Package kernels/cuda/tensor is the one for circuits.
//
// # Shapes and units
//
// Buffers have the types and lengths of kernels.Device; sizes are in bytes, times in
// seconds.
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
