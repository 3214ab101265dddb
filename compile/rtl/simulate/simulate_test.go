package simulate_test

import (
	"compress/gzip"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
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

// network opens a network of the FPGA paper.
func network(t testing.TB, name string) *format.Model {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sharedData, "spn/text", name+".spn"))
	if err != nil {
		t.Skip("no networks in ../shared/data/spn: they are in the repository esa-tu-darmstadt/spn-compiler, branch feature/circt-llvm-19.0.0")
	}
	m, err := spflow.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shared opens a network and the rows of a file, cut to its columns.
func shared(t testing.TB, name, data string) (*format.Model, [][]float64) {
	t.Helper()
	m := network(t, name)
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

// check runs rows through a datapath in a simulator and wants every bit of the Go model, one row
// per cycle, and likelihoods within 1e-12 of those of the evaluator in float64. It returns the
// largest relative difference from the evaluator.
func check(t testing.TB, m *format.Model, o rtl.Options, simulator string, rows [][]float64) (worst float64) {
	t.Helper()
	params, err := reference.Load64(m.Graph, m.Params64)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(m.Graph, params)
	if err != nil {
		t.Fatal(err)
	}
	d, err := rtl.Compile(m.Graph, m.Params64, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.Open(t.Context(), simulator, t.TempDir(), d)
	if err != nil {
		t.Fatal(err)
	}
	list := make([][]int, len(rows))
	for i, row := range rows {
		list[i] = make([]int, len(row))
		if err := d.Encode(row, list[i]); err != nil {
			t.Fatal(err)
		}
	}
	bits, cycles, err := s.Run(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(rows) + d.Depth - 1; cycles != want {
		t.Errorf("%d rows took %d cycles, want %d", len(rows), cycles, want)
	}
	for i, x := range bits {
		if want := d.Evaluate(list[i]); x != math.Float64bits(want) {
			t.Fatalf("row %d is %v, want %v (%x, %x)", i, math.Float64frombits(x), want, x, math.Float64bits(want))
		}
		want, err := ev.LogLikelihood(rows[i])
		if err != nil {
			t.Fatal(err)
		}
		diff := math.Abs(math.Expm1(math.Log(math.Float64frombits(x)) - want))
		if !(diff <= 1e-12) {
			t.Fatalf("row %d is %v, the evaluator has the logarithm %v: %g off", i, math.Float64frombits(x), want, diff)
		}
		worst = max(worst, diff)
	}
	return worst
}

// withMissing drops about a third of the cells.
func withMissing(rows [][]float64) [][]float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, row := range rows {
		for v := range row {
			if rng.IntN(3) == 0 {
				row[v] = math.NaN()
			}
		}
	}
	return rows
}

// TestIcarus compares datapaths of NIPS5 with the Go model on all rows, whole and with missing
// cells, and of NLTCS on some.
func TestIcarus(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short tests: simulating takes ten seconds")
	}
	sim := tool(t, simulate.Icarus)
	m, rows := shared(t, "NLTCS_200", "nltcs/nltcs.test.data.gz")
	check(t, m, rtl.DefaultOptions(), sim, rows[:1000])
	m, rows = shared(t, "NIPS5", "nips-bow/nips100.csv.gz")
	for _, faithful := range []bool{true, false} {
		o := rtl.DefaultOptions()
		o.Faithful = faithful
		check(t, m, o, sim, rows)
	}
	rows = withMissing(rows)[:500]
	for _, faithful := range []bool{true, false} {
		o := rtl.DefaultOptions()
		o.Faithful, o.Marginals = faithful, true
		check(t, m, o, sim, rows)
	}
}

// whole plays all public networks in Verilator, which takes about a minute for each.
var whole = flag.Bool("whole", false, "all rows of all public networks in Verilator")

// TestVerilator compares datapaths with the Go model and the evaluator on all rows.
func TestVerilator(t *testing.T) {
	if !*whole {
		t.Skip("go test ./compile/rtl/simulate -whole plays all networks in Verilator, which takes minutes")
	}
	sim := tool(t, *simulator)
	for _, c := range []struct{ name, rows string }{
		{"NLTCS_200", "nltcs/nltcs"}, {"MSNBC_200", "msnbc/msnbc"}, {"PLANTS_4000", "plants/plants"},
		{"ACCIDENTS_4000", "accidents/accidents"}, {"BAUDIO_4000", "audio/baudio"}, {"NIPS5", "nips-bow/nips100"},
		{"NIPS10", "nips-bow/nips100"}, {"NIPS20", "nips-bow/nips100"}, {"NIPS40", "nips-bow/nips100"},
		{"NIPS50", "nips-bow/nips100"}, {"NIPS70", "nips-bow/nips100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasPrefix(c.rows, "nips") {
				c.rows += ".csv.gz"
			} else {
				c.rows += ".test.data.gz"
			}
			m, rows := shared(t, c.name, c.rows)
			if parts := strings.Split(c.rows, ".test."); len(parts) == 2 {
				for _, part := range []string{".train.", ".valid."} {
					name := parts[0] + part + parts[1]
					if _, err := os.Stat(filepath.Join(sharedData, "density", name)); err != nil {
						t.Logf("%s is not there", name)
						continue
					}
					_, more := shared(t, c.name, name)
					rows = append(rows, more...)
				}
			}
			for _, o := range []rtl.Options{{}, {Faithful: true}, {Marginals: true}, {Faithful: true, Marginals: true}} {
				options := rtl.DefaultOptions()
				options.Faithful, options.Marginals = o.Faithful, o.Marginals
				if o.Marginals {
					rows = withMissing(rows)
				}
				worst := check(t, m, options, sim, rows)
				t.Logf("%d rows, faithful %v, marginals %v: at most %.1e from the evaluator", len(rows), o.Faithful, o.Marginals, worst)
			}
		})
	}
}
