// Package lanes multiplies weights with the numbers of eight rows at a time, and gives
// the same bits on every processor.
//
// # Shapes and units
//
// A Lane holds one number of each of eight rows. Weights are float32 and row-major; all
// arithmetic is float64, a product and a sum each rounded on its own, in the order that
// Up, Down and Dot state. On amd64 with AVX2 assembly does four rows of
// weights at a time, without fused operations; internal/gen/codec writes it, and "go
// generate" remakes it. The tag noasm leaves it out.
//
// # Errors
//
// Slices that are too short for the shape panic, as indices out of range do.
//
// # Source
//
// The loops are plain matrix products.
package lanes

//go:generate go -C ../../internal/gen run ./codec ../../codec/lanes
