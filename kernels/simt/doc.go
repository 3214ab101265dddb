// Package simt is a small typed language for programs that compute each row of their
// outputs from the same row of their inputs. One lane is one row: a program is written
// for a lane, and a back end runs it for many at a time.
//
// A Module has inputs, outputs, tables and a block of instructions in static single
// assignment form. Control flow is structured: If joins the values of two blocks, Loop
// repeats one up to a fixed number of times. Every operation has a result for every
// operand, so that lanes that a mask switches off may compute anything, and no program
// reads or writes outside its buffers: an index into a table is clamped to it.
//
// Compile lowers a module to an Interpreter, which says what a module means. Other back
// ends give the same bits.
//
// # Shapes and units
//
// An input or output has Width columns of one type for each row, by rows
// ([row][column]) or by columns ([column][row]). Exp2 is of base 2, Log natural.
//
// # Numbers
//
// f32 and f64 are those of IEEE 754, with subnormal numbers, rounded to nearest even; FMA
// rounds once, and Mul and Add are never contracted to it. Which NaN an operation gives is
// not said. Integers wrap. Min(a, b) is a where a < b, else b, and Max(a, b) is a where a > b,
// else b. Convert truncates floats to integers and saturates there, with 0 for NaN; from one
// integer to another it keeps the low bits, and u8 and u16 are extended with zeros. Values of
// u8 and u16 can be loaded, looked up, compared, chosen, converted and stored; arithmetic
// wants a wider type.
//
// # Errors
//
// Verify, Parse and Compile return errors that match ErrModule. The builder panics where
// the types of its operands do not fit, as that is a fault of the program that calls it.
//
// # Source
//
// Structured control flow with values that blocks yield follows the scf dialect of MLIR.
package simt
