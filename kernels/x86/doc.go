// Package x86 compiles modules of package simt to machine code of x86-64 processors with AVX2 and FMA, or with
// AVX-512, and runs it. Results are those of simt.Interpreter, to the bit.
//
// # Passes
//
// Compile is a list of passes: lower (instructions become nodes on virtual registers, which machine
// instructions compute; equal ones are one), allocate and encode in one scan (the value that is read last
// leaves its register where they run out). Control flow is by masks: a block is left out where no row takes it.
// There is no code for a module whose group of rows could take longer than a call may last: such errors match
// ErrUnsupported, and the caller takes the interpreter.
//
// # Shapes and units
//
// A vector register has as many rows as fit with the largest values of a module: with AVX2 eight of 32 bits or four
// of 64, with AVX-512 sixteen or eight, where truth values are in mask registers. Modules with outputs of less than 32 bits
// have code of AVX2. With AVX-512 a turn of the loop over rows takes two or four groups of a module without branches, and a second
// loop the groups that are left. Rows that do not fill a
// group are copied to buffers of one group, so that code never reads or writes beyond the rows that it is run for.
//
// # Machine code in a Go process
//
// Code is written to pages that are executable only afterwards, and never comes from a file. It is called by an
// assembly function; it calls nothing, uses no stack and leaves the stack and frame pointers alone. The garbage
// collector and the scheduler wait for a call to end, as they cannot interrupt its instructions, so a call is
// short: callNodes bounds it. Indices of tables are clamped, and columns are checked before a call, so that
// every address is inside the buffers; a fault nevertheless becomes an error.
//
// # Errors
//
// Compile returns errors that match ErrUnsupported where there is no code on this machine or for this module, and
// simt.ErrModule for a bad module. Run returns errors as simt.Interpreter does, and ErrFault.
//
// # Source
//
// Poletto and Sarkar, "Linear Scan Register Allocation", TOPLAS 1999, with the choice of Belady, "A Study of
// Replacement Algorithms for a Virtual-Storage Computer", IBM Systems Journal 1966.
package x86
