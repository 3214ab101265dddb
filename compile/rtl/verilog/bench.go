package verilog

import (
	"fmt"

	"github.com/pce-engine/pce/compile/rtl"
)

// rowBench is the testbench of a datapath alone: +rows=FILE has a row in hexadecimal per line,
// one of which enters in each cycle; +out=FILE receives the likelihoods. It prints the rows that
// came out and the cycles from the first input to the last output, both of them included.
func rowBench(d *rtl.Datapath) string {
	return fmt.Sprintf(`module tb_datapath;
  reg clk = 1'b0, rst = 1'b1, valid = 1'b0, started = 1'b0;
  reg [%d:0] row = 0;
  wire out_valid, out_last;
  wire [63:0] likelihood;
  integer in, out, got, rows = 0, cycles = 0, taken = 0;
  reg [8*1024-1:0] name;
  pce_datapath dut (.clk(clk), .rst(rst), .in_valid(valid), .in_last(valid), .row(row),
    .out_valid(out_valid), .out_last(out_last), .likelihood(likelihood));
  initial forever #1 clk = !clk;
  initial begin
    if (!$value$plusargs("rows=%%s", name)) $finish;
    in = $fopen(name, "r");
    if (!$value$plusargs("out=%%s", name)) $finish;
    out = $fopen(name, "w");
    repeat (4) @(negedge clk);
    rst = 1'b0;
    got = $fscanf(in, "%%h", row);
    while (got == 1) begin
      valid = 1'b1;
      @(negedge clk);
      got = $fscanf(in, "%%h", row);
    end
    valid = 1'b0;
    repeat (%d) @(negedge clk);
    $fclose(out);
    $display("rows %%0d cycles %%0d", rows, taken);
    $finish;
  end
  always @(posedge clk) begin
    started <= started | valid;
    if (started || valid) cycles <= cycles + 1;
    if (out_valid && out_last) begin
      $fwrite(out, "%%h\n", likelihood);
      rows <= rows + 1;
      taken <= cycles;
    end
  end
endmodule
`, rowWidth(d)-1, d.Depth+4)
}
