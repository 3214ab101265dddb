// Command card measures what a card can do and how it computes, apart from any
// circuit: the ceilings that the model of training steps assumes, and the arithmetic
// that the emulator assumes. bench/gpu runs it.
//
//	card -device cuda:0 -part warmup|ceilings|products|functions|variants
//
// # Shapes and units
//
// Every line of the output is a JSON object. Most are readings: what was read, its
// value, unit and a note. Rates are bytes, operations or instructions per second, of
// the median of several launches timed by events; an operation is a multiplication or
// an addition.
//
// # Errors
//
// A failed call of the driver ends the program with exit code 1; lines printed so far
// hold. An assumption of the emulator that does not hold on the card is a reading, not
// an error.
//
// # Source
//
// The ceilings are measured with kernels that do nothing else, as in Jia, Maggioni,
// Staiger, Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
// Microbenchmarking" (arXiv 1804.06826).
package main
