package verilog

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/rtl"
)

// File is a file of a design.
type File struct {
	Name string
	Text string
}

// names are the files of a design, in the order of Write.
var names = []string{"pce_datapath.v", "pce_top.v", "tb_datapath.v", "tb_stream.v", "tb_memory.v"}

// Names lists the files that Write returns.
func Names() []string { return slices.Clone(names) }

// Write returns the files of a datapath: the design, and testbenches that a simulator runs
// with them.
func Write(d *rtl.Datapath) []File {
	head := fmt.Sprintf("// Written by pce compile --target rtl: Verilog-2005, %d multipliers, %d adders, depth %d.\n/* verilator lint_off DECLFILENAME */\n\n",
		d.Count(rtl.Mul), d.Count(rtl.Sum), d.Depth)
	return []File{
		{names[0], head + parts + multiplier(d.MulStages) + adder(d.AddStages) + datapath(d)},
		{names[1], head + stream(d) + top(d)},
		{names[2], head + rowBench(d)},
		{names[3], head + streamBench},
		{names[4], head + memoryBench},
	}
}

// Operators returns a multiplier and an adder of some stages with the testbench tb_operators.
func Operators(mulStages, addStages int) []File {
	return []File{
		{"pce_operators.v", "/* verilator lint_off DECLFILENAME */\n\n" + parts + multiplier(mulStages) + adder(addStages)},
		{"tb_operators.v", operatorBench(mulStages, addStages)},
	}
}

// Hex is a row as testbenches read it: the hexadecimal digits of that many bits, one at least, the
// highest first.
func Hex(word []uint64, bits int) string {
	digits := max(1, (bits+3)/4)
	text := make([]byte, digits)
	for i := range text {
		x := uint64(0)
		if i/16 < len(word) {
			x = word[i/16] >> (4 * (i % 16)) & 15
		}
		text[digits-1-i] = "0123456789abcdef"[x]
	}
	return string(text)
}
