package verilog

import (
	"fmt"
	"math/bits"

	"github.com/pce-engine/pce/compile/rtl"
)

// beatBytes is the size of a beat of the streams: 512 bits.
const beatBytes = 64

// gcd is the greatest common divisor of positive numbers.
func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// stream is the text of pce_stream and its parts: rows come in as beats of 512 bits, one behind
// the other without gaps, and likelihoods leave eight per beat.
func stream(d *rtl.Datapath) string {
	return unpack(d) + core(d) + pack + fmt.Sprintf(`// An AXI4-Stream of rows to an AXI4-Stream of likelihoods. TKEEP counts on the beat of TLAST only:
// its bytes are contiguous from the lowest. A packet is a whole number of rows.
module pce_stream (
  input wire clk,
  input wire rst,
  input wire s_axis_tvalid,
  output wire s_axis_tready,
  input wire [511:0] s_axis_tdata,
  input wire [63:0] s_axis_tkeep,
  input wire s_axis_tlast,
  output wire m_axis_tvalid,
  input wire m_axis_tready,
  output wire [511:0] m_axis_tdata,
  output wire [63:0] m_axis_tkeep,
  output wire m_axis_tlast
);
  wire row_valid, row_ready, row_last, valid, ready, last;
  wire [%d:0] row;
  wire [63:0] likelihood;
  pce_unpack unpack (.clk(clk), .rst(rst),
    .s_valid(s_axis_tvalid), .s_ready(s_axis_tready), .s_data(s_axis_tdata), .s_keep(s_axis_tkeep), .s_last(s_axis_tlast),
    .m_valid(row_valid), .m_ready(row_ready), .m_row(row), .m_last(row_last));
  pce_core core (.clk(clk), .rst(rst),
    .s_valid(row_valid), .s_ready(row_ready), .s_row(row), .s_last(row_last),
    .m_valid(valid), .m_ready(ready), .m_data(likelihood), .m_last(last));
  pce_pack pack (.clk(clk), .rst(rst),
    .s_valid(valid), .s_ready(ready), .s_data(likelihood), .s_last(last),
    .m_valid(m_axis_tvalid), .m_ready(m_axis_tready), .m_data(m_axis_tdata), .m_keep(m_axis_tkeep), .m_last(m_axis_tlast));
endmodule

`, rowWidth(d)-1)
}

// unpack is the text of pce_unpack, which cuts beats into rows. Both are multiples of a unit. A
// buffer of a beat and two rows, filled from the bottom, gives a row in every cycle in which it
// holds one: it takes a beat whenever one has room, so rows of up to a beat come without a gap.
func unpack(d *rtl.Datapath) string {
	row := d.RowBytes()
	unit := gcd(beatBytes, row)
	perBeat, perRow := beatBytes/unit, row/unit
	capacity := perBeat + 2*perRow
	width := bits.Len(uint(capacity + perBeat))
	return fmt.Sprintf(`// Beats of 64 bytes to rows of %[1]d bytes, in units of %[2]d bytes.
module pce_unpack (
  input wire clk,
  input wire rst,
  input wire s_valid,
  output wire s_ready,
  input wire [511:0] s_data,
  input wire [63:0] s_keep,
  input wire s_last,
  output reg m_valid,
  input wire m_ready,
  output reg [%[3]d:0] m_row,
  output reg m_last
);
  localparam [%[4]d:0] BEAT = %[5]d, ROW = %[6]d, ROOM = %[7]d;
  reg [%[8]d:0] buffer;
  reg [%[4]d:0] fill;
  reg ending;
  reg [6:0] kept;
  integer i;
  always @* begin
    kept = 7'd0;
    for (i = 0; i < 64; i = i + 1) kept = kept + {6'd0, s_keep[i]};
  end
  wire [%[4]d:0] units = s_last ? %[9]s : BEAT;
  wire give = fill >= ROW && (!m_valid || m_ready);
  wire [%[4]d:0] left = give ? fill - ROW : fill;
  wire [%[8]d:0] rest = give ? buffer >> %[10]d : buffer;
  wire take = s_valid && s_ready;
  assign s_ready = fill <= ROOM && !ending;
  always @(posedge clk)
    if (rst) begin
      m_valid <= 1'b0;
      m_row <= 0;
      m_last <= 1'b0;
      buffer <= 0;
      fill <= 0;
      ending <= 1'b0;
    end else begin
      if (give) begin
        m_valid <= 1'b1;
        m_row <= buffer[%[3]d:0];
        m_last <= ending && left < ROW;
      end else if (m_ready) m_valid <= 1'b0;
      if (take) begin
        buffer <= rest | ({%[11]d'd0, s_data} << (left * %[12]d));
        fill <= left + units;
        ending <= s_last;
      end else if (ending && left < ROW) begin
        buffer <= 0;
        fill <= 0;
        ending <= 1'b0;
      end else begin
        buffer <= rest;
        fill <= left;
      end
    end
endmodule

`, row, unit, rowWidth(d)-1, width-1, perBeat, perRow, capacity-perBeat, capacity*unit*8-1,
		keptUnits(unit, width), row*8, capacity*unit*8-512, unit*8)
}

// keptUnits is the expression for the units of a last beat.
func keptUnits(unit, width int) string {
	shift := bits.Len(uint(unit)) - 1
	n := 7 - shift
	if width >= n {
		return fmt.Sprintf("{%s kept[6:%d]}", zeros(width-n), shift)
	}
	return fmt.Sprintf("kept[%d:%d]", shift+width-1, shift)
}

// zeros is a constant in front of a concatenation, nothing for no bits.
func zeros(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d'd0,", n)
}

// core is the text of pce_core. The datapath has no way to stop: a queue has room for all rows
// that are in it, and a row is taken only if its likelihood has a place. So no enable reaches the
// datapath's registers.
func core(d *rtl.Datapath) string {
	address := bits.Len(uint(d.Depth + 4))
	return fmt.Sprintf(`// The datapath with back-pressure: rows are taken while the queue has room for their likelihoods.
module pce_core (
  input wire clk,
  input wire rst,
  input wire s_valid,
  output wire s_ready,
  input wire [%[1]d:0] s_row,
  input wire s_last,
  output reg m_valid,
  input wire m_ready,
  output reg [63:0] m_data,
  output reg m_last
);
  reg [%[2]d:0] used;
  reg [%[3]d:0] head, tail;
  reg [64:0] queue [0:%[4]d];
  wire valid, last;
  wire [63:0] likelihood;
  wire take = s_valid && s_ready;
  wire free = m_valid && m_ready;
  assign s_ready = !used[%[2]d];
  pce_datapath datapath (.clk(clk), .rst(rst), .in_valid(take), .in_last(take && s_last), .row(s_row),
    .out_valid(valid), .out_last(last), .likelihood(likelihood));
  always @(posedge clk) if (valid) queue[tail] <= {last, likelihood};
  always @(posedge clk)
    if (rst) begin
      used <= 0;
      head <= 0;
      tail <= 0;
      m_valid <= 1'b0;
      m_data <= 64'd0;
      m_last <= 1'b0;
    end else begin
      used <= used + {%[3]d'd0, 1'b0, take} - {%[3]d'd0, 1'b0, free};
      if (valid) tail <= tail + %[5]d'd1;
      if (!m_valid || m_ready) begin
        m_valid <= head != tail;
        if (head != tail) begin
          {m_last, m_data} <= queue[head];
          head <= head + %[5]d'd1;
        end
      end
    end
endmodule

`, rowWidth(d)-1, address, address-1, 1<<address-1, address)
}

// pack is the text of pce_pack.
const pack = `// Likelihoods to beats of eight.
module pce_pack (
  input wire clk,
  input wire rst,
  input wire s_valid,
  output wire s_ready,
  input wire [63:0] s_data,
  input wire s_last,
  output reg m_valid,
  input wire m_ready,
  output reg [511:0] m_data,
  output reg [63:0] m_keep,
  output reg m_last
);
  reg [511:0] data;
  reg [63:0] keep;
  reg [2:0] count;
  wire take = s_valid && s_ready;
  wire full = count == 3'd7 || s_last;
  wire [511:0] with_data = data | ({448'd0, s_data} << {count, 6'd0});
  wire [63:0] with_keep = keep | (64'd255 << {count, 3'd0});
  assign s_ready = !m_valid || m_ready;
  always @(posedge clk)
    if (rst) begin
      data <= 512'd0;
      keep <= 64'd0;
      count <= 3'd0;
      m_valid <= 1'b0;
      m_data <= 512'd0;
      m_keep <= 64'd0;
      m_last <= 1'b0;
    end else begin
      if (m_ready) m_valid <= 1'b0;
      if (take) begin
        data <= full ? 512'd0 : with_data;
        keep <= full ? 64'd0 : with_keep;
        count <= full ? 3'd0 : count + 3'd1;
        if (full) begin
          m_valid <= 1'b1;
          m_data <= with_data;
          m_keep <= with_keep;
          m_last <= s_last;
        end
      end
    end
endmodule

`
