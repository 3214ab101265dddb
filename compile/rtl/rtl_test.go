package rtl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/compile/rtl"
)

const sharedData = "../../../shared/data"

// shared opens a network of the FPGA paper.
func shared(t testing.TB, name string) *format.Model {
	t.Helper()
	path := filepath.Join(sharedData, "spn/text", name+".spn")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skip("no networks in ../shared/data/spn: they are in the repository esa-tu-darmstadt/spn-compiler, branch feature/circt-llvm-19.0.0")
	}
	m, err := spflow.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// table1 has the counts of the paper's Table 1 and, for default passes, the most that they may
// have: multipliers, adders, depth; 0 where no bound is given.
var table1 = []struct {
	name                   string
	mulStages              int
	adds, muls, depth      int
	maxMul, maxAdd, maxDep int
}{
	{"ACCIDENTS_4000", 6, 27, 217, 99, 21, 2, 51},
	{"BAUDIO_4000", 6, 12, 275, 99, 38, 3, 70},
	{"MSNBC_200", 7, 30, 165, 245, 12, 5, 84},
	{"NLTCS_200", 6, 27, 152, 150, 9, 4, 59},
	{"PLANTS_4000", 7, 14, 256, 206, 34, 4, 89},
	{"NIPS5", 6, 1, 10, 38, 8, 1, 33},
	{"NIPS10", 6, 3, 25, 76, 20, 3, 71},
	{"NIPS20", 6, 7, 56, 82, 42, 7, 77},
	{"NIPS40", 6, 16, 122, 94, 93, 16, 89},
	{"NIPS50", 6, 16, 143, 100, 111, 16, 89},
	{"NIPS70", 6, 14, 180, 106, 147, 14, 89},
}

// TestTable1 wants the structure that the paper reports, and at most the operators of the
// prototype from the default passes.
func TestTable1(t *testing.T) {
	for _, c := range table1 {
		t.Run(c.name, func(t *testing.T) {
			m := shared(t, c.name)
			o := rtl.DefaultOptions()
			o.Faithful, o.MulStages = true, c.mulStages
			d, err := rtl.Compile(m.Graph, m.Params64, o)
			if err != nil {
				t.Fatal(err)
			}
			if r := d.Report(&o); r.Adders != c.adds || r.Multipliers != c.muls || r.Depth != c.depth {
				t.Errorf("%d adders, %d multipliers, depth %d; the paper has %d, %d, %d", r.Adders, r.Multipliers, r.Depth, c.adds, c.muls, c.depth)
			}
			o = rtl.DefaultOptions()
			d, err = rtl.Compile(m.Graph, m.Params64, o)
			if err != nil {
				t.Fatal(err)
			}
			r := d.Report(&o)
			if r.Multipliers > c.maxMul || r.Adders > c.maxAdd || r.Depth > c.maxDep {
				t.Errorf("default: %d multipliers, %d adders, depth %d; want at most %d, %d, %d", r.Multipliers, r.Adders, r.Depth, c.maxMul, c.maxAdd, c.maxDep)
			}
			t.Logf("default: %d/%d/%d, %d tables, %d bits per row, %d LUT", r.Multipliers, r.Adders, r.Depth, r.Tables, r.RowBits, r.LUT)
		})
	}
}
