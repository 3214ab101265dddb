package simulate_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
	"github.com/pce-engine/pce/compile/rtl/verilog"
)

const sharedData = "../../../../shared/data"

// tool skips a test if a simulator is not installed.
func tool(t testing.TB, name string) string {
	t.Helper()
	found, err := simulate.Find(name)
	if err != nil {
		t.Skip(err)
	}
	return found
}

// shared opens a network of the FPGA paper and the rows of a file, cut to its columns.
func shared(t testing.TB, name, data string) (*format.Model, [][]float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sharedData, "spn/text", name+".spn"))
	if err != nil {
		t.Skip("no networks in ../shared/data/spn: they are in the repository esa-tu-darmstadt/spn-compiler, branch feature/circt-llvm-19.0.0")
	}
	m, err := spflow.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(sharedData, "density", data))
	if err != nil {
		t.Skipf("no rows %s in ../shared/data/density: DEBD has the binary sets, SPFlow's repository the counts", data)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float64
	for i, line := range strings.Fields(string(all)) {
		row := make([]float64, m.Graph.NumVars)
		bad := false
		for v, cell := range strings.Split(line, ",")[:len(row)] {
			row[v], err = strconv.ParseFloat(cell, 64)
			bad = bad || err != nil
		}
		if bad && i > 0 {
			t.Fatalf("line %d is not numbers", i+1)
		}
		if !bad { // the first line may be names
			rows = append(rows, row)
		}
	}
	return m, rows
}

// simulated is a datapath in a simulator.
type simulated struct {
	d       *rtl.Datapath
	program *simulate.Program
	dir     string
}

func build(t testing.TB, m *format.Model, o rtl.Options, simulator string) *simulated {
	t.Helper()
	d, err := rtl.Compile(m.Graph, m.Params64, o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p, err := simulate.Build(t.Context(), simulator, dir, "tb_datapath", verilog.Write(d))
	if err != nil {
		t.Fatal(err)
	}
	return &simulated{d, p, dir}
}

// check runs rows and wants every bit of the Go model, one row per cycle.
func (s *simulated) check(t testing.TB, rows [][]float64) {
	t.Helper()
	in, out := filepath.Join(s.dir, "rows.hex"), filepath.Join(s.dir, "out.hex")
	want := make([]float64, len(rows))
	var text strings.Builder
	codes := make([]int, len(s.d.Columns))
	for i, row := range rows {
		if err := s.d.Encode(row, codes); err != nil {
			t.Fatal(err)
		}
		want[i] = s.d.Evaluate(codes)
		text.WriteString(verilog.Hex(s.d.Word(codes), s.d.RowBits()) + "\n")
	}
	if err := os.WriteFile(in, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := s.program.Run(t.Context(), "+rows="+in, "+out="+out)
	if err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf("rows %d cycles %d\n", len(rows), len(rows)+s.d.Depth-1); !strings.Contains(said, line) {
		t.Errorf("the testbench printed %q, want %q", said, line)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		bits, err := strconv.ParseUint(lines.Text(), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if n < len(want) && bits != math.Float64bits(want[n]) {
			t.Fatalf("row %d is %v, want %v (%x, %x)", n, math.Float64frombits(bits), want[n], bits, math.Float64bits(want[n]))
		}
	}
	if n != len(want) {
		t.Errorf("%d results of %d rows", n, len(want))
	}
}

// TestIcarus compares datapaths of NIPS5 with the Go model on all rows, and of NLTCS on some.
func TestIcarus(t *testing.T) {
	sim := tool(t, simulate.Icarus)
	m, rows := shared(t, "NIPS5", "nips-bow/nips100.csv.gz")
	faithful := rtl.DefaultOptions()
	faithful.Faithful = true
	build(t, m, faithful, sim).check(t, rows)
	build(t, m, rtl.DefaultOptions(), sim).check(t, rows)
	m, rows = shared(t, "NLTCS_200", "nltcs/nltcs.test.data.gz")
	build(t, m, rtl.DefaultOptions(), sim).check(t, rows[:1000])
}
