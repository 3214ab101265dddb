// Package rtl compiles circuits to datapaths: pipelines of look-ups, multipliers and adders that
// take a row in every cycle. Package verilog writes them as text.
//
// # Passes
//
// Compile is a list of passes: import (units become operations), columns (values that no leaf
// tells apart get one code), build, ranges (nothing may overflow), fit. Build follows the paper if
// Options.Faithful says so. Otherwise it makes a network of sums of products, in which weights
// are scales of tables, and
//
//   - terms of a sum whose tables fit one table become one, and so do their sums;
//   - factors that all terms share are taken out;
//   - a sum of which one term at most is not 0 becomes a selection, factor by factor, and a table
//     where that fits: a Chow-Liu tree over n columns takes n-1 multipliers;
//   - the tables of a product are packed, when the network is lowered.
//
// Ways that differ in what readers of a shared product compute again, and the paper's, are
// compared; the one with the fewest multipliers wins.
//
// # Shapes and units
//
// A row is a code per column; with valid bits, a bit above each code is 1 unless the cell is
// missing. A number is a float64 that is not negative, without its sign: 63 bits. Time is in
// cycles; the result of a row is there Depth cycles after its codes.
//
// # Numbers
//
// Multiply and Add say what operators compute: nearest, ties to even, 0 below the least normal
// number. Evaluate is the whole datapath, and every bit of it is what hardware has to give.
//
// # Errors
//
// Errors match ErrOptions, ErrCircuit, ErrFit or ErrRow, or those of package circuit.
//
// # Source
//
// Sommer, Oppermann, Molina, Binnig, Kersting, Koch: "Automatic Mapping of the Sum-Product Network
// Inference Problem to FPGA-Based Accelerators", ICCD 2018. Its Table 1 fixes the order of
// operands and the schedule; its operators are replaced by our own, of the same latencies.
package rtl
