package verilog

import (
	"fmt"
	"math"
	"strings"

	"github.com/pce-engine/pce/compile/rtl"
)

// datapath is the text of a datapath: its tables and pce_datapath, which wires them up.
func datapath(d *rtl.Datapath) string {
	var b strings.Builder
	for i := range d.Tables {
		table(&b, i, &d.Tables[i])
	}
	w := wiring{d: d, b: &b}
	w.module()
	return b.String()
}

// table writes a read-only memory with a register behind it.
func table(b *strings.Builder, number int, t *rtl.Table) {
	fmt.Fprintf(b, "module pce_table%d (\n  input wire clk,\n", number)
	if t.Bits == 0 {
		fmt.Fprintf(b, "  output reg [62:0] q\n);\n  always @(posedge clk) q <= %s;\nendmodule\n\n", number63(t.Values[0]))
		return
	}
	fmt.Fprintf(b, "  input wire [%d:0] a,\n  output reg [62:0] q\n);\n  always @(posedge clk)\n    case (a)\n", t.Bits-1)
	for i, x := range t.Values {
		if x != 0 {
			fmt.Fprintf(b, "      %d'd%d: q <= %s;\n", t.Bits, i, number63(x))
		}
	}
	b.WriteString("      default: q <= 63'd0;\n    endcase\nendmodule\n\n")
}

// number63 is a number as a constant of 63 bits.
func number63(x float64) string { return fmt.Sprintf("63'h%016x", math.Float64bits(x)) }

// wiring writes pce_datapath.
type wiring struct {
	d *rtl.Datapath
	b *strings.Builder
}

func (w *wiring) line(format string, args ...any) { fmt.Fprintf(w.b, "  "+format+"\n", args...) }

func (w *wiring) module() {
	d := w.d
	fmt.Fprintf(w.b, `// The likelihood of a row, as a float64, %d cycles after its codes.
module pce_datapath (
  input wire clk,
  input wire rst,
  input wire in_valid,
  input wire in_last,
  input wire [%d:0] row,
  output wire out_valid,
  output wire out_last,
  output wire [63:0] likelihood
);
`, d.Depth, rowWidth(d)-1)
	w.line("pce_flag #(.D(%d)) valid (.clk(clk), .rst(rst), .d(in_valid), .q(out_valid));", d.Depth)
	w.line("pce_flag #(.D(%d)) last (.clk(clk), .rst(rst), .d(in_last), .q(out_last));", d.Depth)
	w.codes()
	delays := d.Delays()
	for i := range d.Ops {
		w.operator(i)
		from := fmt.Sprintf("v%d", i)
		w.chain(from, 63, delays[i])
	}
	w.line("assign likelihood = {1'b0, v%d};", d.Out)
	w.b.WriteString("endmodule\n\n")
}

// rowWidth is the width of the port for rows, at least 1.
func rowWidth(d *rtl.Datapath) int { return max(1, d.RowBits()) }

// codes names the codes of columns, at the input and delayed as they are read.
func (w *wiring) codes() {
	at := 0
	delays := w.d.CodeDelays()
	for v := range w.d.Columns {
		width := w.d.Width(v)
		if width == 0 {
			continue
		}
		w.line("wire [%d:0] c%d = row[%d:%d];", width-1, v, at+width-1, at)
		w.chain(fmt.Sprintf("c%d", v), width, delays[v])
		at += width
	}
	if at == 0 {
		w.line("wire unused = row[0];")
	}
}

// chain delays a signal by each of some ascending numbers of cycles.
func (w *wiring) chain(name string, width int, delays []int) {
	from, at := name, 0
	for _, by := range delays {
		to := fmt.Sprintf("%s_%d", name, by)
		w.line("wire [%d:0] %s;", width-1, to)
		w.line("pce_delay #(.W(%d), .D(%d)) delay_%s (.clk(clk), .d(%s), .q(%s));", width, by-at, to, from, to)
		from, at = to, by
	}
}

// delayed is the name of an operand at a cycle.
func (w *wiring) delayed(op int32, at int) string {
	o := &w.d.Ops[op]
	if by := at - o.Ready; by > 0 && o.Kind != rtl.Constant {
		return fmt.Sprintf("v%d_%d", op, by)
	}
	return fmt.Sprintf("v%d", op)
}

// code is the name of a column's code at a cycle.
func code(column, at int) string {
	if at == 0 {
		return fmt.Sprintf("c%d", column)
	}
	return fmt.Sprintf("c%d_%d", column, at)
}

func (w *wiring) operator(i int) {
	d := w.d
	o, at := &d.Ops[i], d.Start(i)
	switch o.Kind {
	case rtl.Constant:
		w.line("wire [62:0] v%d = %s;", i, number63(o.Value))
	case rtl.Lookup:
		w.line("wire [62:0] v%d;", i)
		var index []string
		columns := d.Tables[o.Table].Columns
		for k := len(columns) - 1; k >= 0; k-- {
			if d.Width(columns[k]) > 0 {
				index = append(index, code(columns[k], at))
			}
		}
		if len(index) == 0 {
			w.line("pce_table%d op%d (.clk(clk), .q(v%d));", o.Table, i, i)
			return
		}
		w.line("pce_table%d op%d (.clk(clk), .a({%s}), .q(v%d));", o.Table, i, strings.Join(index, ", "), i)
	case rtl.Mul, rtl.Sum:
		name := map[rtl.OpKind]string{rtl.Mul: "pce_mul", rtl.Sum: "pce_add"}[o.Kind]
		w.line("wire [62:0] v%d;", i)
		w.line("%s op%d (.clk(clk), .a(%s), .b(%s), .q(v%d));", name, i, w.delayed(o.A, at), w.delayed(o.B, at), i)
	case rtl.Select:
		bits := d.Columns[o.Column].Bits
		mask := make([]byte, 1<<bits)
		for k := range mask {
			mask[len(mask)-1-k] = '0'
			if k < len(o.Choose) && o.Choose[k] {
				mask[len(mask)-1-k] = '1'
			}
		}
		w.line("wire [%d:0] choose%d = %d'b%s;", len(mask)-1, i, len(mask), mask)
		w.line("reg [62:0] v%d;", i)
		w.line("always @(posedge clk) v%d <= choose%d[%s] ? %s : %s;", i, i, code(o.Column, at), w.delayed(o.B, at), w.delayed(o.A, at))
	}
}
