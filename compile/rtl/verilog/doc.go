// Package verilog writes datapaths as Verilog-2005: a module per table, the operators of
// package rtl, pce_datapath, which wires them up, and a testbench. Names of modules start with
// pce_, names of testbenches with tb_.
//
// # Numbers
//
// A value is 63 bits, a float64 without its sign: 11 of exponent, 52 of fraction. An exponent
// of 0 means 0. pce_mul and pce_add give every bit of rtl.Multiply and rtl.Add.
//
// # Clock and reset
//
// Registers take values on the rising edge of clk. rst is synchronous and clears which rows are
// valid; values are not reset.
package verilog
