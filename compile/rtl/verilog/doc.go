// Package verilog writes datapaths as Verilog-2005. Names of modules start with pce_, names of
// testbenches with tb_.
//
// # Modules
//
// pce_datapath has a module per table and per operator. pce_stream is between AXI4-Streams of 512
// bits: pce_unpack cuts beats into rows, pce_core gives the datapath back-pressure, pce_pack makes
// beats of likelihoods. pce_top is between an AXI4 memory, by bursts, and itself, with control
// registers behind an AXI4-Lite port. tb_datapath, tb_stream and tb_memory test them.
//
// # Shapes and units
//
// Rows lie in memory one behind the other, each in whole bytes, columns from the lowest bit on.
// Likelihoods are float64. Time is in cycles of clk; registers take values on its rising edge. rst
// is synchronous and clears which rows are valid; values are not reset.
//
// # Numbers
//
// A value is 63 bits, a float64 without its sign: 11 of exponent, 52 of fraction. An exponent
// of 0 means 0. pce_mul and pce_add give every bit of rtl.Multiply and rtl.Add.
//
// # Errors
//
// Nothing here fails: what cannot be built, package rtl refuses.
//
// # Source
//
// IEEE 1364-2005 for the language; Arm IHI 0022 and 0051 for the AXI interfaces. The tiling of
// the multiplier follows the widths of the DSP48E1 slice, Xilinx UG479.
package verilog
