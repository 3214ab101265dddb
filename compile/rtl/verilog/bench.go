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
  reg [%[1]d:0] row = 0, next = 0;
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
    got = $fscanf(in, "%%h", next);
    while (got == 1) begin
      valid = 1'b1;
      row = next;
      @(negedge clk);
      got = $fscanf(in, "%%h", next);
    end
    valid = 1'b0;
    repeat (%[2]d) @(negedge clk);
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

// operatorBench is the testbench of the operators: +rows=FILE has two numbers per line, and
// +out=FILE receives their product and their sum.
func operatorBench(mulStages, addStages int) string {
	return fmt.Sprintf(`module tb_operators;
  reg clk = 1'b0;
  reg [127:0] pair = 0, next = 0;
  wire [62:0] product, sum;
  integer in, out, got;
  reg [8*1024-1:0] name;
  pce_mul mul (.clk(clk), .a(pair[126:64]), .b(pair[62:0]), .q(product));
  pce_add add (.clk(clk), .a(pair[126:64]), .b(pair[62:0]), .q(sum));
  initial forever #1 clk = !clk;
  initial begin
    if (!$value$plusargs("rows=%%s", name)) $finish;
    in = $fopen(name, "r");
    if (!$value$plusargs("out=%%s", name)) $finish;
    out = $fopen(name, "w");
    got = $fscanf(in, "%%h", next);
    while (got == 1) begin
      pair = next;
      repeat (%d) @(negedge clk);
      $fwrite(out, "%%h\n%%h\n", {1'b0, product}, {1'b0, sum});
      got = $fscanf(in, "%%h", next);
    end
    $fclose(out);
    $finish;
  end
  wire unused = &{1'b0, pair[127], pair[63]};
endmodule
`, max(mulStages, addStages))
}
