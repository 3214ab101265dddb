package verilog

import (
	"fmt"

	"github.com/pce-engine/pce/compile/rtl"
)

// top is the text of pce_top and its units: control registers, bursts of reads, the stream, bursts
// of writes.
func top(d *rtl.Datapath) string {
	return load + store + fmt.Sprintf(topText, d.RowBytes(), d.Depth)
}

// load is the text of pce_load, an AXI4 read master.
const load = `// Reads bytes bytes from address, which is a multiple of 64, in bursts that end at 4 KiB
// boundaries, up to eight of them at a time.
module pce_load (
  input wire clk,
  input wire rst,
  input wire start,
  input wire [63:0] address,
  input wire [47:0] bytes,
  output reg m_axi_arvalid,
  input wire m_axi_arready,
  output reg [63:0] m_axi_araddr,
  output reg [7:0] m_axi_arlen,
  input wire m_axi_rvalid,
  output wire m_axi_rready,
  input wire [511:0] m_axi_rdata,
  input wire m_axi_rlast,
  output wire m_valid,
  input wire m_ready,
  output wire [511:0] m_data,
  output wire [63:0] m_keep,
  output wire m_last
);
  reg [63:0] at;
  reg [42:0] ask, beats;
  reg [5:0] tail;
  reg [3:0] flying;
  wire [6:0] page = 7'd64 - {1'b0, at[11:6]};
  wire [6:0] burst = ask < {36'd0, page} ? ask[6:0] : page;
  wire [6:0] last = burst - 7'd1;
  wire issue = ask != 43'd0 && !m_axi_arvalid && !flying[3];
  wire take = m_axi_rvalid && m_axi_rready;
  wire done = take && m_axi_rlast;
  assign m_valid = m_axi_rvalid;
  assign m_axi_rready = m_ready;
  assign m_data = m_axi_rdata;
  assign m_last = beats == 43'd1;
  assign m_keep = m_last && tail != 6'd0 ? (64'd1 << tail) - 64'd1 : 64'hffffffffffffffff;
  always @(posedge clk)
    if (rst) begin
      at <= 64'd0;
      ask <= 43'd0;
      beats <= 43'd0;
      tail <= 6'd0;
      flying <= 4'd0;
      m_axi_arvalid <= 1'b0;
      m_axi_araddr <= 64'd0;
      m_axi_arlen <= 8'd0;
    end else begin
      if (m_axi_arready) m_axi_arvalid <= 1'b0;
      if (start) begin
        at <= address;
        ask <= {1'b0, bytes[47:6]} + {42'd0, bytes[5:0] != 6'd0};
        beats <= {1'b0, bytes[47:6]} + {42'd0, bytes[5:0] != 6'd0};
        tail <= bytes[5:0];
      end else begin
        if (issue) begin
          m_axi_arvalid <= 1'b1;
          m_axi_araddr <= at;
          m_axi_arlen <= {1'b0, last};
          at <= at + {51'd0, burst, 6'd0};
          ask <= ask - {36'd0, burst};
        end
        if (take) beats <= beats - 43'd1;
        flying <= flying + {3'd0, issue} - {3'd0, done};
      end
    end
endmodule

`

// store is the text of pce_store, an AXI4 write master.
const store = `// Writes beats beats to address, a multiple of 64, in bursts that end at 4 KiB boundaries. The
// data of a burst follows its address. done is 1 when all were acknowledged.
module pce_store (
  input wire clk,
  input wire rst,
  input wire start,
  input wire [63:0] address,
  input wire [31:0] beats,
  output wire done,
  output reg m_axi_awvalid,
  input wire m_axi_awready,
  output reg [63:0] m_axi_awaddr,
  output reg [7:0] m_axi_awlen,
  output wire m_axi_wvalid,
  input wire m_axi_wready,
  output wire [511:0] m_axi_wdata,
  output wire [63:0] m_axi_wstrb,
  output wire m_axi_wlast,
  input wire m_axi_bvalid,
  output wire m_axi_bready,
  input wire s_valid,
  output wire s_ready,
  input wire [511:0] s_data,
  input wire [63:0] s_keep
);
  reg [63:0] at;
  reg [31:0] ask;
  reg [6:0] left;
  reg [31:0] flying;
  wire [6:0] page = 7'd64 - {1'b0, at[11:6]};
  wire [6:0] burst = ask < {25'd0, page} ? ask[6:0] : page;
  wire [6:0] last = burst - 7'd1;
  wire put = m_axi_wvalid && m_axi_wready;
  wire issue = ask != 32'd0 && left == 7'd0 && !m_axi_awvalid;
  assign done = ask == 32'd0 && left == 7'd0 && flying == 32'd0;
  assign m_axi_bready = 1'b1;
  assign m_axi_wvalid = s_valid && left != 7'd0 && !m_axi_awvalid;
  assign s_ready = m_axi_wready && left != 7'd0 && !m_axi_awvalid;
  assign m_axi_wdata = s_data;
  assign m_axi_wstrb = s_keep;
  assign m_axi_wlast = left == 7'd1;
  always @(posedge clk)
    if (rst) begin
      at <= 64'd0;
      ask <= 32'd0;
      left <= 7'd0;
      flying <= 32'd0;
      m_axi_awvalid <= 1'b0;
      m_axi_awaddr <= 64'd0;
      m_axi_awlen <= 8'd0;
    end else begin
      if (m_axi_awready) m_axi_awvalid <= 1'b0;
      if (start) begin
        at <= address;
        ask <= beats;
      end else begin
        if (issue) begin
          m_axi_awvalid <= 1'b1;
          m_axi_awaddr <= at;
          m_axi_awlen <= {1'b0, last};
          at <= at + {51'd0, burst, 6'd0};
          ask <= ask - {25'd0, burst};
          left <= burst;
        end else if (put) left <= left - 7'd1;
        flying <= flying + {31'd0, issue} - {31'd0, m_axi_bvalid};
      end
    end
endmodule

`

// topText is the text of pce_top for a size of rows and a depth.
const topText = `// Likelihoods of rows in memory, to memory. Registers, of 32 bits:
//
//	0x00 control  write 1 to start; reads 1 while it runs, 2 when it is done
//	0x04 rows     how many
//	0x08 source   address of the rows, low and, at 0x0c, high; a multiple of 64
//	0x10 target   address of the likelihoods, low and, at 0x14, high; a multiple of 64
//	0x18 cycles   of the last run, low and, at 0x1c, high
//	0x20 bytes    of a row
//	0x24 depth    of the datapath
module pce_top (
  input wire clk,
  input wire rst,
  input wire s_axi_awvalid,
  output wire s_axi_awready,
  input wire [7:0] s_axi_awaddr,
  input wire s_axi_wvalid,
  output wire s_axi_wready,
  input wire [31:0] s_axi_wdata,
  output reg s_axi_bvalid,
  input wire s_axi_bready,
  output wire [1:0] s_axi_bresp,
  input wire s_axi_arvalid,
  output wire s_axi_arready,
  input wire [7:0] s_axi_araddr,
  output reg s_axi_rvalid,
  input wire s_axi_rready,
  output reg [31:0] s_axi_rdata,
  output wire [1:0] s_axi_rresp,
  output wire m_axi_arvalid,
  input wire m_axi_arready,
  output wire [63:0] m_axi_araddr,
  output wire [7:0] m_axi_arlen,
  output wire [2:0] m_axi_arsize,
  output wire [1:0] m_axi_arburst,
  input wire m_axi_rvalid,
  output wire m_axi_rready,
  input wire [511:0] m_axi_rdata,
  input wire m_axi_rlast,
  output wire m_axi_awvalid,
  input wire m_axi_awready,
  output wire [63:0] m_axi_awaddr,
  output wire [7:0] m_axi_awlen,
  output wire [2:0] m_axi_awsize,
  output wire [1:0] m_axi_awburst,
  output wire m_axi_wvalid,
  input wire m_axi_wready,
  output wire [511:0] m_axi_wdata,
  output wire [63:0] m_axi_wstrb,
  output wire m_axi_wlast,
  input wire m_axi_bvalid,
  output wire m_axi_bready
);
  reg [31:0] rows;
  reg [63:0] source, target, cycles;
  reg start, running, finished;
  wire write = s_axi_awvalid && s_axi_wvalid && (!s_axi_bvalid || s_axi_bready);
  wire read = s_axi_arvalid && (!s_axi_rvalid || s_axi_rready);
  wire stored;
  assign s_axi_awready = write;
  assign s_axi_wready = write;
  assign s_axi_arready = read;
  assign s_axi_bresp = 2'd0;
  assign s_axi_rresp = 2'd0;
  assign m_axi_arsize = 3'd6;
  assign m_axi_arburst = 2'd1;
  assign m_axi_awsize = 3'd6;
  assign m_axi_awburst = 2'd1;
  always @(posedge clk)
    if (rst) begin
      rows <= 32'd0;
      source <= 64'd0;
      target <= 64'd0;
      cycles <= 64'd0;
      start <= 1'b0;
      running <= 1'b0;
      finished <= 1'b0;
      s_axi_bvalid <= 1'b0;
      s_axi_rvalid <= 1'b0;
      s_axi_rdata <= 32'd0;
    end else begin
      start <= 1'b0;
      if (s_axi_bready) s_axi_bvalid <= 1'b0;
      if (s_axi_rready) s_axi_rvalid <= 1'b0;
      if (running) begin
        cycles <= cycles + 64'd1;
        if (!start && stored) begin
          running <= 1'b0;
          finished <= 1'b1;
        end
      end
      if (write) begin
        s_axi_bvalid <= 1'b1;
        if (!running)
          case (s_axi_awaddr)
            8'h00: if (s_axi_wdata[0]) begin
              start <= 1'b1;
              running <= 1'b1;
              finished <= 1'b0;
              cycles <= 64'd0;
            end
            8'h04: rows <= s_axi_wdata;
            8'h08: source[31:0] <= s_axi_wdata;
            8'h0c: source[63:32] <= s_axi_wdata;
            8'h10: target[31:0] <= s_axi_wdata;
            8'h14: target[63:32] <= s_axi_wdata;
            default: ;
          endcase
      end
      if (read) begin
        s_axi_rvalid <= 1'b1;
        case (s_axi_araddr)
          8'h00: s_axi_rdata <= {30'd0, finished, running};
          8'h04: s_axi_rdata <= rows;
          8'h08: s_axi_rdata <= source[31:0];
          8'h0c: s_axi_rdata <= source[63:32];
          8'h10: s_axi_rdata <= target[31:0];
          8'h14: s_axi_rdata <= target[63:32];
          8'h18: s_axi_rdata <= cycles[31:0];
          8'h1c: s_axi_rdata <= cycles[63:32];
          8'h20: s_axi_rdata <= 32'd%[1]d;
          8'h24: s_axi_rdata <= 32'd%[2]d;
          default: s_axi_rdata <= 32'd0;
        endcase
      end
    end
  wire in_valid, in_ready, in_last, out_valid, out_ready, out_last;
  wire [511:0] in_data, out_data;
  wire [63:0] in_keep, out_keep;
  pce_load load (.clk(clk), .rst(rst), .start(start), .address(source), .bytes({16'd0, rows} * 48'd%[1]d),
    .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen),
    .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready), .m_axi_rdata(m_axi_rdata), .m_axi_rlast(m_axi_rlast),
    .m_valid(in_valid), .m_ready(in_ready), .m_data(in_data), .m_keep(in_keep), .m_last(in_last));
  pce_stream stream (.clk(clk), .rst(rst),
    .s_axis_tvalid(in_valid), .s_axis_tready(in_ready), .s_axis_tdata(in_data), .s_axis_tkeep(in_keep), .s_axis_tlast(in_last),
    .m_axis_tvalid(out_valid), .m_axis_tready(out_ready), .m_axis_tdata(out_data), .m_axis_tkeep(out_keep), .m_axis_tlast(out_last));
  pce_store store (.clk(clk), .rst(rst), .start(start), .address(target), .beats({3'd0, rows[31:3]} + {31'd0, rows[2:0] != 3'd0}), .done(stored),
    .m_axi_awvalid(m_axi_awvalid), .m_axi_awready(m_axi_awready), .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen),
    .m_axi_wvalid(m_axi_wvalid), .m_axi_wready(m_axi_wready), .m_axi_wdata(m_axi_wdata), .m_axi_wstrb(m_axi_wstrb), .m_axi_wlast(m_axi_wlast),
    .m_axi_bvalid(m_axi_bvalid), .m_axi_bready(m_axi_bready),
    .s_valid(out_valid), .s_ready(out_ready), .s_data(out_data), .s_keep(out_keep));
  wire unused = &{1'b0, out_last};
endmodule

`
