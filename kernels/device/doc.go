// Package device finds, opens and plans devices by name: cpu, cuda, cuda:1 and what
// else is registered.
//
// A Kind is a row of the table: how devices of one kind are opened, what a module
// takes on them and which kernels they can be told to use. The CPU and the cards are
// always there; a program that wants others, such as the emulator, registers them.
//
// # Shapes and units
//
// Memory is in bytes.
//
// # Errors
//
// Errors match kernels.ErrDevice, or kernels.ErrMemory where there is too little.
//
// # Source
//
// Original.
package device
