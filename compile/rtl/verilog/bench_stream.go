package verilog

// streamBench is the testbench of pce_stream: +rows=FILE has a beat per line, TKEEP's count of
// bytes and TLAST in front of its data, and +out=FILE receives a likelihood per line. +seed=N
// above 0 stalls both sides at random; the output then checks that a beat waits unchanged. A packet
// may follow another at once. It ends when all packets are out, or 4,000 cycles after the last beat
// of a design that has stopped.
const streamBench = `module tb_stream;
  reg clk = 1'b0, rst = 1'b1, valid = 1'b0, ready = 1'b0, last = 1'b0, held = 1'b0;
  reg [511:0] data = 0, next = 0, was = 0;
  reg [63:0] keep = 0;
  wire in_ready, out_valid, out_last;
  wire [511:0] out_data;
  wire [63:0] out_keep;
  integer in, out, got, bytes, ends, i, seed = 0, lasts = 0, packets = 0, changed = 0, idle = 0, now = 0;
  reg [8*1024-1:0] name;
  pce_stream dut (.clk(clk), .rst(rst),
    .s_axis_tvalid(valid), .s_axis_tready(in_ready), .s_axis_tdata(data), .s_axis_tkeep(keep), .s_axis_tlast(last),
    .m_axis_tvalid(out_valid), .m_axis_tready(ready), .m_axis_tdata(out_data), .m_axis_tkeep(out_keep), .m_axis_tlast(out_last));
  initial forever #1 clk = !clk;
  initial begin
    if (!$value$plusargs("rows=%s", name)) $finish;
    in = $fopen(name, "r");
    if (!$value$plusargs("out=%s", name)) $finish;
    out = $fopen(name, "w");
    if (!$value$plusargs("seed=%d", seed)) seed = 0;
    repeat (4) @(negedge clk);
    rst = 1'b0;
    got = $fscanf(in, "%d %d %h", bytes, ends, next);
    while (got == 3) begin
      while (seed > 0 && $random % 3 == 0) begin
        valid = 1'b0;
        @(negedge clk);
      end
      valid = 1'b1;
      data = next;
      keep = bytes == 64 ? 64'hffffffffffffffff : (64'd1 << bytes) - 64'd1;
      last = ends != 0;
      packets = packets + ends;
      @(posedge clk);
      while (!in_ready && idle < 4000) @(posedge clk);
      @(negedge clk);
      got = $fscanf(in, "%d %d %h", bytes, ends, next);
    end
    valid = 1'b0;
    while (idle < 4000 && lasts < packets) @(negedge clk);
    repeat (100) @(negedge clk);
    $fclose(out);
    $display("packets %0d of %0d changed %0d", lasts, packets, changed);
    $finish;
  end
  // A stall of 700 cycles fills every queue; then ready changes at random.
  always @(negedge clk) ready <= seed == 0 || (now % 1400 > 700 && $random % 3 != 0);
  always @(posedge clk) begin
    idle <= rst || out_valid ? 0 : idle + 1;
    now <= now + 1;
    held <= out_valid && !ready;
    was <= out_data;
    if (held && (!out_valid || out_data != was)) changed <= changed + 1;
    if (!rst && out_valid && ready) begin
      for (i = 0; i < 8; i = i + 1)
        if (out_keep[8*i]) $fwrite(out, "%h\n", out_data[64*i +: 64]);
      if (out_last) lasts <= lasts + 1;
    end
  end
endmodule
`

// memoryBench is the testbench of pce_top with a memory behind it: +rows=FILE has a beat of 64
// bytes per line, +count=N says how many rows they are, and +out=FILE receives the likelihoods.
// Reads take latency cycles, and bandwidth bits pass per cycle in each direction. It prints the
// cycle counter of the design.
const memoryBench = `module tb_memory;
  parameter BEATS = 16384;
  localparam BANDWIDTH = 355, LATENCY = 200;
  reg clk = 1'b0, rst = 1'b1;
  reg [511:0] memory [0:BEATS-1];
  reg [511:0] next = 0, result [0:BEATS-1];
  reg awvalid = 1'b0, wvalid = 1'b0, arvalid = 1'b0;
  reg [7:0] address = 0;
  reg [31:0] data = 0;
  wire awready, wready, bvalid, arready, rvalid;
  wire [31:0] rdata;
  wire [1:0] bresp, rresp;
  wire m_arvalid, m_rready, m_awvalid, m_wvalid, m_wlast, m_bready;
  wire [63:0] m_araddr, m_awaddr, m_wstrb;
  wire [7:0] m_arlen, m_awlen;
  wire [2:0] m_arsize, m_awsize;
  wire [1:0] m_arburst, m_awburst;
  wire [511:0] m_wdata;
  reg m_rvalid = 1'b0, m_rlast = 1'b0, m_bvalid = 1'b0;
  reg [511:0] m_rdata = 0;
  integer in, out, got, count, i, loaded = 0, now = 0, bad = 0;
  reg [8*1024-1:0] name;
  reg [31:0] status = 0;
  pce_top dut (.clk(clk), .rst(rst),
    .s_axi_awvalid(awvalid), .s_axi_awready(awready), .s_axi_awaddr(address), .s_axi_wvalid(wvalid), .s_axi_wready(wready),
    .s_axi_wdata(data), .s_axi_bvalid(bvalid), .s_axi_bready(1'b1), .s_axi_bresp(bresp),
    .s_axi_arvalid(arvalid), .s_axi_arready(arready), .s_axi_araddr(address), .s_axi_rvalid(rvalid), .s_axi_rready(1'b1),
    .s_axi_rdata(rdata), .s_axi_rresp(rresp),
    .m_axi_arvalid(m_arvalid), .m_axi_arready(asked - served < 16), .m_axi_araddr(m_araddr), .m_axi_arlen(m_arlen),
    .m_axi_arsize(m_arsize), .m_axi_arburst(m_arburst),
    .m_axi_rvalid(m_rvalid), .m_axi_rready(m_rready), .m_axi_rdata(m_rdata), .m_axi_rlast(m_rlast),
    .m_axi_awvalid(m_awvalid), .m_axi_awready(!writing), .m_axi_awaddr(m_awaddr), .m_axi_awlen(m_awlen),
    .m_axi_awsize(m_awsize), .m_axi_awburst(m_awburst),
    .m_axi_wvalid(m_wvalid), .m_axi_wready(writing && write_bits >= 512), .m_axi_wdata(m_wdata), .m_axi_wstrb(m_wstrb),
    .m_axi_wlast(m_wlast), .m_axi_bvalid(m_bvalid), .m_axi_bready(m_bready));
  initial forever #1 clk = !clk;

  // Reads: bursts wait in a ring; a beat leaves when its burst is old enough and bits are left.
  reg [63:0] burst_at [0:15];
  integer burst_beats [0:15], burst_time [0:15];
  integer asked = 0, served = 0, beat = 0, read_bits = 0, write_bits = 0;
  reg writing = 1'b0;
  reg [63:0] write_at = 0;
  integer write_left = 0;
  always @(posedge clk) begin
    now <= now + 1;
    read_bits <= read_bits + BANDWIDTH > 1024 ? 1024 : read_bits + BANDWIDTH;
    write_bits <= write_bits + BANDWIDTH > 1024 ? 1024 : write_bits + BANDWIDTH;
    if (m_arvalid && asked - served < 16) begin
      burst_at[asked % 16] <= m_araddr;
      burst_beats[asked % 16] <= {24'd0, m_arlen} + 1;
      burst_time[asked % 16] <= now;
      asked <= asked + 1;
      if (m_araddr[5:0] != 0 || {52'd0, m_araddr[11:0]} + 64 * ({56'd0, m_arlen} + 1) > 4096) bad <= bad + 1;
    end
    if (m_rready) m_rvalid <= 1'b0;
    if ((!m_rvalid || m_rready) && served < asked && now >= burst_time[served % 16] + LATENCY && read_bits >= 512) begin
      m_rvalid <= 1'b1;
      m_rdata <= memory[({6'd0, burst_at[served % 16][31:6]} + beat) % BEATS];
      m_rlast <= beat + 1 == burst_beats[served % 16];
      read_bits <= read_bits + BANDWIDTH - 512;
      if (beat + 1 == burst_beats[served % 16]) begin
        served <= served + 1;
        beat <= 0;
      end else beat <= beat + 1;
    end
    m_bvalid <= 1'b0;
    if (m_awvalid && !writing) begin
      writing <= 1'b1;
      write_at <= m_awaddr;
      write_left <= {24'd0, m_awlen} + 1;
      if (m_awaddr[5:0] != 0 || {52'd0, m_awaddr[11:0]} + 64 * ({56'd0, m_awlen} + 1) > 4096) bad <= bad + 1;
    end
    if (writing && m_wvalid && write_bits >= 512) begin
      for (i = 0; i < 64; i = i + 1)
        if (m_wstrb[i]) result[{6'd0, write_at[31:6]} % BEATS][8*i +: 8] <= m_wdata[8*i +: 8];
      write_bits <= write_bits + BANDWIDTH - 512;
      write_at <= write_at + 64;
      write_left <= write_left - 1;
      if (m_wlast != (write_left == 1)) bad <= bad + 1;
      if (m_wlast) begin
        writing <= 1'b0;
        m_bvalid <= 1'b1;
      end
    end
  end

  task set(input [7:0] to, input [31:0] value);
    begin
      address = to;
      data = value;
      awvalid = 1'b1;
      wvalid = 1'b1;
      @(posedge clk);
      while (!awready) @(posedge clk);
      @(negedge clk);
      awvalid = 1'b0;
      wvalid = 1'b0;
      @(negedge clk);
    end
  endtask
  task get(input [7:0] from);
    begin
      address = from;
      arvalid = 1'b1;
      @(posedge clk);
      @(negedge clk);
      arvalid = 1'b0;
      status = rdata;
      @(negedge clk);
    end
  endtask
  task once;
    begin
      set(8'h00, 1);
      status = 1;
      while (status[1:0] != 2 && now < 2000000) get(8'h00);
      get(8'h18);
      $display("cycles %0d", status);
    end
  endtask
  initial begin
    if (!$value$plusargs("rows=%s", name)) $finish;
    in = $fopen(name, "r");
    if (!$value$plusargs("count=%d", count)) $finish;
    if (!$value$plusargs("out=%s", name)) $finish;
    out = $fopen(name, "w");
    got = $fscanf(in, "%h", next);
    while (got == 1 && loaded < BEATS) begin
      memory[loaded] = next;
      loaded = loaded + 1;
      got = $fscanf(in, "%h", next);
    end
    repeat (4) @(negedge clk);
    rst = 1'b0;
    @(negedge clk);
    set(8'h04, count);
    set(8'h08, 0);
    set(8'h0c, 0);
    set(8'h10, 32'd64 * 32'd3);
    set(8'h14, 0);
    once;
    once;
    for (i = 0; i < count; i = i + 1) $fwrite(out, "%h\n", result[(i / 8 + 3) % BEATS][64 * (i % 8) +: 64]);
    $fclose(out);
    $display("bad %0d", bad);
    $finish;
  end
  wire unused = &{1'b0, bvalid, arready, rvalid, wready, bresp, rresp, m_arsize, m_awsize, m_arburst, m_awburst, m_bready, m_araddr, write_at};
endmodule
`
