// Package tensor is the executor of tensor programs on a CUDA device: it plans them
// as launches of the kernels of package kernels/ptx/tensor (kernels/cuda/tensor/plan
// says which, in which order, on which tables), and records the launches of each call
// as a graph.
//
// # Shapes and units
//
// Values in the card's memory are [vector][row][unit] mantissas with an exponent of
// two for each vector and row. Arguments have the shapes of package kernels/tensor.
//
// # Errors
//
// Errors match kernels.ErrDevice or kernels.ErrMemory.
//
// # Source
//
// A. Liu, K. Ahmed, G. Van den Broeck, "Scaling Tractable Probabilistic Circuits: A
// Systems Perspective", ICML 2024.
package tensor
