package simulate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
	"github.com/pce-engine/pce/compile/rtl/verilog"
)

// fault replaces texts of a design: from, to, from, to.
type fault struct {
	name  string
	texts []string
}

// inject returns files with a fault. Each text to replace must be in them exactly once.
func inject(t *testing.T, files []verilog.File, f fault) []verilog.File {
	t.Helper()
	files = slices.Clone(files)
	for pair := range slices.Chunk(f.texts, 2) {
		found := 0
		for i := range files {
			found += strings.Count(files[i].Text, pair[0])
			files[i].Text = strings.Replace(files[i].Text, pair[0], pair[1], 1)
		}
		if found != 1 {
			t.Fatalf("%s: %q is in the design %d times, want once", f.name, pair[0], found)
		}
	}
	return files
}

// play builds a testbench of files, runs it on a text of rows and returns what it printed and the
// words that it wrote, none if they cannot be read.
func play(t *testing.T, simulator, top string, files []verilog.File, rows string, flags ...string) (string, []uint64) {
	t.Helper()
	dir := t.TempDir()
	command, err := simulate.Build(t.Context(), simulator, dir, top, files)
	if err != nil {
		t.Fatal(err)
	}
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := simulate.Command(t.Context(), append(append(command, "+rows="+in, "+out="+out), flags...))
	if err != nil {
		t.Fatal(err)
	}
	words, err := simulate.Words(out)
	if err != nil {
		return said, nil
	}
	return said, words
}

// expected are the bits that the Go model gives rows.
func expected(d *rtl.Datapath, rows [][]int) []uint64 {
	bits := make([]uint64, len(rows))
	for i, codes := range rows {
		bits[i] = math.Float64bits(d.Evaluate(codes))
	}
	return bits
}

// mixture is a datapath with --marginals of a sum of two products of three columns of eight
// values, in tables of a column each.
func mixture(t *testing.T) *rtl.Datapath {
	t.Helper()
	rng := rand.New(rand.NewPCG(6, 7))
	text := "Root SumNode(0.3*P0, 0.7*P1){\n"
	for p := range 2 {
		text += fmt.Sprintf("P%[1]d ProductNode(A%[1]d, B%[1]d, C%[1]d){\n", p)
		for _, column := range []string{"A", "B", "C"} {
			var density []string
			for range 8 {
				density = append(density, fmt.Sprint(0.05+rng.Float64()))
			}
			text += fmt.Sprintf("%s%d Histogram(%s|[0., 1., 2., 3., 4., 5., 6., 7., 8.];[%s])\n", column, p, strings.ToLower(column), strings.Join(density, ","))
		}
		text += "}\n"
	}
	m, err := spflow.Parse(text + "}\n# a;b;c\n")
	if err != nil {
		t.Fatal(err)
	}
	o := rtl.DefaultOptions()
	o.TableBits, o.Marginals = 4, true
	d, err := rtl.Compile(m.Graph, m.Params64, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFaults puts faults into designs. What the other tests compare must be equal without a fault
// and differ with each of them.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short tests: simulating a dozen designs takes seconds")
	}
	sim := tool(t, simulate.Icarus)

	d := mixture(t)
	rows := make([][]int, 200)
	var lines strings.Builder
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range rows {
		rows[i] = make([]int, 3)
		for v := range rows[i] {
			if rows[i][v] = rng.IntN(8); rng.IntN(3) == 0 {
				rows[i][v] = rtl.Missing
			}
		}
		lines.WriteString(verilog.Hex(d.Word(rows[i]), d.RowBits()) + "\n")
	}
	datapath := func(files []verilog.File) bool {
		said, words := play(t, sim, "tb_datapath", files, lines.String())
		return strings.Contains(said, fmt.Sprintf("rows %d cycles %d\n", len(rows), len(rows)+d.Depth-1)) && slices.Equal(words, expected(d, rows))
	}

	var operands strings.Builder
	var results []uint64
	for _, p := range pairs(1000) {
		fmt.Fprintf(&operands, "%016x%016x\n", math.Float64bits(p[0]), math.Float64bits(p[1]))
		results = append(results, math.Float64bits(rtl.Multiply(p[0], p[1])), math.Float64bits(rtl.Add(p[0], p[1])))
	}
	operators := func(files []verilog.File) bool {
		_, words := play(t, sim, "tb_operators", files, operands.String())
		return slices.Equal(words, results)
	}

	m := product(t, 5, 8)
	narrow, err := rtl.Compile(m.Graph, m.Params64, rtl.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	packets := randomRows(narrow, 400)
	beats := packet(narrow, packets[:200], true) + packet(narrow, packets[200:], true)
	streams := func(files []verilog.File) bool {
		said, words := play(t, sim, "tb_stream", files, beats, "+seed=1")
		return strings.Contains(said, "packets 2 of 2 changed 0\n") && slices.Equal(words, expected(narrow, packets))
	}

	entry := math.Float64bits(d.Tables[0].Values[8+3])
	for _, group := range []struct {
		name   string
		files  []verilog.File
		equal  func([]verilog.File) bool
		faults []fault
	}{
		{"datapath", verilog.Write(d), datapath, []fault{
			{"a delay of a code one short", []string{"#(.W(4), .D(6))", "#(.W(4), .D(5))"}},
			{"a table entry", []string{fmt.Sprintf("63'h%016x", entry), fmt.Sprintf("63'h%016x", entry^1)}},
			{"valid bits of two columns swapped", []string{"c0 = row[3:0]", "c0 = {row[7], row[2:0]}", "c1 = row[7:4]", "c1 = {row[3], row[6:4]}"}},
			{"the row's valid one short", []string{fmt.Sprintf("#(.D(%d)) valid", d.Depth), fmt.Sprintf("#(.D(%d)) valid", d.Depth-1)}},
		}},
		{"operators", verilog.Operators(6, 13), operators, []fault{
			{"no sticky bit in the multiplier", []string{"(p[105] & p[51]) | (|p[50:0])", "p[105] & p[51]"}},
			{"no sticky bit in the adder", []string{"sticky = k4 |", "sticky ="}},
			{"a tie to odd", []string{"guard & (sticky | kept[0])", "guard & (sticky | !kept[0])"}},
		}},
		{"stream", verilog.Write(narrow), streams, []fault{
			{"the datapath's stall lost", []string{"assign s_ready = !used[", "assign s_ready = 1'b1 | !used["}},
			{"the stall of the rows lost", []string{"fill >= ROW && (!m_valid || m_ready)", "fill >= ROW"}},
			{"the stall of the beats lost", []string{"wire take = s_valid && s_ready;\n  wire full", "wire take = s_valid;\n  wire full"}},
			{"valid and last swapped", []string{".out_valid(valid), .out_last(last)", ".out_valid(last), .out_last(valid)"}},
		}},
	} {
		if !group.equal(group.files) {
			t.Errorf("%s without a fault differs from the Go model", group.name)
		}
		for _, f := range group.faults {
			if group.equal(inject(t, group.files, f)) {
				t.Errorf("%s: the comparison does not see %s", group.name, f.name)
			}
		}
	}
}
