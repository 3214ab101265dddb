// Package asm encodes the x86-64 instructions that package x86 uses: those of general registers, and
// vector instructions of AVX, AVX2 and FMA (VEX) and of AVX-512 (EVEX).
//
// # Shapes and units
//
// Displacements and distances are in bytes.
//
// # Errors
//
// The caller chooses among operands that an instruction has; others are a fault of the program, and
// panic.
//
// # Source
//
// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. The tests compare the bytes
// with those of Go's assembler.
package asm
