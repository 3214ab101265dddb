package verilog

import (
	"fmt"
	"strings"
)

// step is what an operator computes between two places for registers: wires, then the signals
// that cross to the next step.
type step struct {
	text string
	cuts []signal
}

// signal is a value that a step hands on under a name.
type signal struct {
	name  string
	width int
	value string
}

// pipeline writes the steps of an operator with stages registers in all, spread evenly. With
// fewer stages than steps, steps follow each other without a register; with more, some
// boundaries have several, for a synthesiser that balances them.
func pipeline(b *strings.Builder, steps []step, stages int) {
	for i, s := range steps {
		b.WriteString(s.text)
		registers := (i+1)*stages/len(steps) - i*stages/len(steps)
		for _, c := range s.cuts {
			bits := fmt.Sprintf("[%d:0] ", c.width-1)
			switch registers {
			case 0:
				fmt.Fprintf(b, "  wire %s%s = %s;\n", bits, c.name, c.value)
			case 1:
				fmt.Fprintf(b, "  reg %s%s;\n  always @(posedge clk) %s <= %s;\n", bits, c.name, c.name, c.value)
			default:
				fmt.Fprintf(b, "  wire %s%s;\n", bits, c.name)
				fmt.Fprintf(b, "  pce_delay #(.W(%d), .D(%d)) delay_%s (.clk(clk), .d(%s), .q(%s));\n", c.width, registers, c.name, c.value, c.name)
			}
		}
	}
}

// multiplier is the text of pce_mul. The 53x53 product of significands is six tiles of 24x17
// bits, each a DSP48 slice; what they leave, five bits of x and two of y, is rows of ANDs.
//
//	x = x[52:48] x[47:24] x[23:0]     y = y[52:51] y[50:34] y[33:17] y[16:0]
//
// Tiles whose bits do not overlap are concatenated, so that three additions are left.
func multiplier(stages int) string {
	var b strings.Builder
	b.WriteString(`// a times b, rounded to nearest even; 0 below the least normal number.
module pce_mul (
  input wire clk,
  input wire [62:0] a,
  input wire [62:0] b,
  output wire [62:0] q
);
  wire [52:0] x = {1'b1, a[51:0]};
  wire [52:0] y = {1'b1, b[51:0]};
  wire [40:0] p00, p01, p02, p10, p11, p12;
  pce_tile tile00 (.a(x[23:0]), .b(y[16:0]), .p(p00));
  pce_tile tile01 (.a(x[23:0]), .b(y[33:17]), .p(p01));
  pce_tile tile02 (.a(x[23:0]), .b(y[50:34]), .p(p02));
  pce_tile tile10 (.a(x[47:24]), .b(y[16:0]), .p(p10));
  pce_tile tile11 (.a(x[47:24]), .b(y[33:17]), .p(p11));
  pce_tile tile12 (.a(x[47:24]), .b(y[50:34]), .p(p12));
`)
	// A row of the product of x[52:48] with y, and of x[47:0] with y[52:51].
	rows := func(n, shift int) string {
		operand, width, bit := "y", 53, fmt.Sprintf("x[%d]", 48+shift)
		if n == 1 {
			operand, width, bit = "x[47:0]", 48, fmt.Sprintf("y[%d]", 51+shift)
		}
		total := 58 - 8*n
		s := fmt.Sprintf("{%d{%s}} & %s", width, bit, operand)
		switch {
		case shift == 0:
			return fmt.Sprintf("{%d'd0, %s}", total-width, s)
		case total-width-shift == 0:
			return fmt.Sprintf("{%s, %d'd0}", s, shift)
		}
		return fmt.Sprintf("{%d'd0, %s, %d'd0}", total-width-shift, s, shift)
	}
	high := make([]string, 5)
	for i := range high {
		high[i] = rows(0, i)
	}
	pipeline(&b, []step{
		{"", []signal{
			{"t00", 41, "p00"}, {"t01", 41, "p01"}, {"t02", 41, "p02"}, {"t10", 41, "p10"}, {"t11", 41, "p11"}, {"t12", 41, "p12"},
			{"ra", 58, strings.Join(high, " + ")}, {"sa", 50, rows(1, 0) + " + " + rows(1, 1)},
			{"z0", 1, "a[62:52] == 11'd0 || b[62:52] == 11'd0"}, {"e0", 12, "{1'b0, a[62:52]} + {1'b0, b[62:52]}"},
		}},
		{"", []signal{
			{"u0", 106, "{24'd0, t11, t00} + {7'd0, t12, t01, 17'd0}"},
			{"u1", 106, "{31'd0, t02, 34'd0} + {41'd0, t10, 24'd0}"},
			{"u2", 106, "{ra, 48'd0} + {5'd0, sa, 51'd0}"},
			{"z1", 1, "z0"}, {"e1", 12, "e0"},
		}},
		{"", []signal{{"p", 106, "u0 + u1 + u2"}, {"z2", 1, "z1"}, {"e2", 12, "e1"}}},
		{"", []signal{
			{"s3", 53, "p[105] ? p[105:53] : p[104:52]"},
			{"g3", 1, "p[105] ? p[52] : p[51]"},
			{"k3", 1, "(p[105] & p[51]) | (|p[50:0])"},
			{"z3", 1, "z2"}, {"e3", 12, "e2 + {11'd0, p[105]}"},
		}},
		{"  wire up = g3 & (k3 | s3[0]);\n", []signal{{"r4", 54, "{1'b0, s3} + {53'd0, up}"}, {"z4", 1, "z3"}, {"e4", 12, "e3"}}},
		{`  wire [11:0] e = e4 + {11'd0, r4[53]};
  wire [11:0] biased = e - 12'd1023;
  wire normal = !z4 && e > 12'd1023;
  wire unused = &{1'b0, biased[11], r4[52]};
`, []signal{{"r5", 63, "normal ? {biased[10:0], r4[51:0]} : 63'd0"}}},
	}, stages)
	b.WriteString("  assign q = r5;\nendmodule\n\n")
	return b.String()
}

// adder is the text of pce_add: the smaller significand is shifted to the larger one's exponent,
// with a guard bit and a sticky bit that remembers what was shifted out.
func adder(stages int) string {
	shift := func(from, to, sticky string, by, bit int) string {
		return fmt.Sprintf("  wire [53:0] %[2]s = sh%[6]d[%[5]d] ? {%[4]d'd0, %[1]s[53:%[4]d]} : %[1]s;\n  wire %[3]s%[4]d = sh%[6]d[%[5]d] & (|%[1]s[%[7]d:0]);\n",
			from, to, sticky, by, bit, map[bool]int{true: 1, false: 2}[by >= 8], by-1)
	}
	var b strings.Builder
	b.WriteString(`// a plus b, rounded to nearest even.
module pce_add (
  input wire clk,
  input wire [62:0] a,
  input wire [62:0] b,
  output wire [62:0] q
);
`)
	pipeline(&b, []step{
		{"  wire swap = b > a;\n", []signal{{"hi", 63, "swap ? b : a"}, {"lo", 63, "swap ? a : b"}}},
		{"  wire [10:0] gap = hi[62:52] - lo[62:52];\n", []signal{
			{"e1", 11, "hi[62:52]"},
			{"m1", 53, "{hi[62:52] != 11'd0, hi[51:0]}"},
			{"x1", 54, "lo[62:52] != 11'd0 ? {1'b1, lo[51:0], 1'b0} : 54'd0"},
			{"sh1", 6, "gap[10:6] != 5'd0 ? 6'd63 : gap[5:0]"},
		}},
		{shift("x1", "x32", "k", 32, 5) + shift("x32", "x16", "k", 16, 4) + shift("x16", "x8", "k", 8, 3), []signal{
			{"e2", 11, "e1"}, {"m2", 53, "m1"}, {"x2", 54, "x8"}, {"sh2", 3, "sh1[2:0]"}, {"k2", 1, "k32 | k16 | k8"},
		}},
		{shift("x2", "x4", "l", 4, 2) + shift("x4", "xx", "l", 2, 1) + shift("xx", "x0", "l", 1, 0), []signal{
			{"e3", 11, "e2"}, {"m3", 53, "m2"}, {"x3", 54, "x0"}, {"k3", 1, "k2 | l4 | l2 | l1"},
		}},
		{"", []signal{{"e4", 11, "e3"}, {"s4", 55, "{1'b0, m3, 1'b0} + {1'b0, x3}"}, {"k4", 1, "k3"}}},
		{`  wire [52:0] kept = s4[54] ? s4[54:2] : s4[53:1];
  wire guard = s4[54] ? s4[1] : s4[0];
  wire sticky = k4 | (s4[54] & s4[0]);
  wire up = guard & (sticky | kept[0]);
`, []signal{{"r5", 54, "{1'b0, kept} + {53'd0, up}"}, {"e5", 11, "e4 + {10'd0, s4[54]}"}}},
		{"  wire unused = r5[52];\n", []signal{{"r6", 63, "{e5 + {10'd0, r5[53]}, r5[51:0]}"}}},
	}, stages)
	b.WriteString("  assign q = r6;\nendmodule\n\n")
	return b.String()
}

// parts are the modules that do not depend on options.
const parts = `// The product of two numbers that one DSP48 slice multiplies.
module pce_tile (
  input wire [23:0] a,
  input wire [16:0] b,
  output wire [40:0] p
);
  assign p = {17'd0, a} * {24'd0, b};
endmodule

// d, D cycles later.
module pce_delay #(parameter W = 1, parameter D = 1) (
  input wire clk,
  input wire [W-1:0] d,
  output wire [W-1:0] q
);
  reg [W*D-1:0] line;
  generate
    if (D == 1) begin : one
      always @(posedge clk) line <= d;
    end else begin : many
      always @(posedge clk) line <= {line[W*(D-1)-1:0], d};
    end
  endgenerate
  assign q = line[W*D-1 -: W];
endmodule

// d, D cycles later; 0 from a reset on.
module pce_flag #(parameter D = 1) (
  input wire clk,
  input wire rst,
  input wire d,
  output wire q
);
  reg [D-1:0] line;
  generate
    if (D == 1) begin : one
      always @(posedge clk) line <= rst ? 1'b0 : d;
    end else begin : many
      always @(posedge clk) line <= rst ? {D{1'b0}} : {line[D-2:0], d};
    end
  endgenerate
  assign q = line[D-1];
endmodule

`
