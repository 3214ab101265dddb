package simulate_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
	"github.com/pce-engine/pce/compile/rtl/verilog"
)

// product is a model of independent columns of as many codes as a width has: rows of any width
// with few operators.
func product(t testing.TB, columns, width int) *format.Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(columns), uint64(width)))
	g := &circuit.Graph{NumVars: columns}
	var params [][]float64
	root := circuit.Node{Kind: circuit.Product, Units: 1}
	for v := range columns {
		p, sum := make([]float64, 1<<width), 0.0
		for i := range p {
			p[i] = 1 + rng.Float64()
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Categorical{Categories: 1 << width}})
		params = append(params, p)
		root.Children = append(root.Children, circuit.NodeID(v))
	}
	g.Nodes = append(g.Nodes, root)
	g.Root = circuit.NodeID(columns)
	return format.NewModel(g, nil, format.Params{Float64: func(id circuit.NodeID, dst []float64) error {
		copy(dst, params[id])
		return nil
	}})
}

// packet is rows one behind the other, cut into lines of a beat; with marks a line starts with its
// bytes and whether it is the last one.
func packet(d *rtl.Datapath, rows [][]int, marks bool) string {
	var all []byte
	for _, codes := range rows {
		word := d.Word(codes)
		for i := range d.RowBytes() {
			x := byte(0)
			if i/8 < len(word) {
				x = byte(word[i/8] >> (8 * (i % 8)))
			}
			all = append(all, x)
		}
	}
	var text strings.Builder
	for beat := range slices.Chunk(all, 64) {
		if marks {
			last := 0
			if &beat[len(beat)-1] == &all[len(all)-1] {
				last = 1
			}
			fmt.Fprintf(&text, "%d %d ", len(beat), last)
		}
		padded := append(slices.Clone(beat), make([]byte, 64-len(beat))...)
		for i := range padded {
			fmt.Fprintf(&text, "%02x", padded[63-i])
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// sameBits wants the likelihoods of rows in a file.
func sameBits(t testing.TB, what, path string, d *rtl.Datapath, rows [][]int) {
	t.Helper()
	got, err := simulate.Words(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(rows) {
		t.Fatalf("%s: %d likelihoods of %d rows", what, len(got), len(rows))
	}
	for i, codes := range rows {
		if want := math.Float64bits(d.Evaluate(codes)); got[i] != want {
			t.Fatalf("%s: row %d is %x, want %x", what, i, got[i], want)
		}
	}
}

// randomRows draws codes for every column.
func randomRows(d *rtl.Datapath, count int) [][]int {
	rng := rand.New(rand.NewPCG(8, 9))
	rows := make([][]int, count)
	for i := range rows {
		rows[i] = make([]int, len(d.Columns))
		for v := range rows[i] {
			rows[i][v] = rng.IntN(1 << d.Columns[v].Bits)
		}
	}
	return rows
}

// TestStream sends packets of rows that are narrower than a beat, as wide and wider through
// pce_stream, at full speed and with both sides stalling at random, and wants every likelihood in
// order.
func TestStream(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short tests: simulating takes ten seconds")
	}
	sim := tool(t, simulate.Icarus)
	for _, c := range []struct{ columns, width, bytes int }{
		{3, 2, 1}, {5, 8, 5}, {6, 8, 6}, {32, 8, 32}, {43, 8, 43}, {64, 8, 64}, {65, 8, 65}, {96, 8, 96}, {128, 8, 128}, {130, 8, 130},
	} {
		if !*whole && c.bytes != 5 && c.bytes != 64 && c.bytes != 65 {
			continue
		}
		m := product(t, c.columns, c.width)
		d, err := rtl.Compile(m.Graph, m.Params64, rtl.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if d.RowBytes() != c.bytes {
			t.Fatalf("rows of %d bytes, want %d", d.RowBytes(), c.bytes)
		}
		dir := t.TempDir()
		command, err := simulate.Build(t.Context(), sim, dir, "tb_stream", verilog.Write(d))
		if err != nil {
			t.Fatal(err)
		}
		rows := randomRows(d, 80)
		// Packets of one row, of two, of eight, of rows that end a beat, and the others.
		var text strings.Builder
		packets := 0
		for from, sizes := 0, []int{1, 2, 8, 1, 64, len(rows)}; from < len(rows); packets++ {
			to := min(from+sizes[min(packets, len(sizes)-1)], len(rows))
			text.WriteString(packet(d, rows[from:to], true))
			from = to
		}
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		if err := os.WriteFile(in, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		for seed := range 2 {
			said, err := simulate.Command(t.Context(), append(slices.Clone(command), "+rows="+in, "+out="+out, fmt.Sprintf("+seed=%d", seed)))
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%d bytes, seed %d", c.bytes, seed)
			if want := fmt.Sprintf("packets %d of %d changed 0\n", packets, packets); !strings.Contains(said, want) {
				t.Errorf("%s: the testbench printed %q, want %q", what, said, want)
			}
			sameBits(t, what, out, d, rows)
		}
	}
}

// runMemory has pce_top take rows from memory twice and write their likelihoods there. It returns
// the cycles by the design's counter.
func runMemory(t testing.TB, simulator string, d *rtl.Datapath, rows [][]int) int {
	t.Helper()
	dir := t.TempDir()
	command, err := simulate.Build(t.Context(), simulator, dir, "tb_memory", verilog.Write(d))
	if err != nil {
		t.Fatal(err)
	}
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(packet(d, rows, false)), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := simulate.Command(t.Context(), append(command, "+rows="+in, "+out="+out, fmt.Sprintf("+count=%d", len(rows))))
	if err != nil {
		t.Fatal(err)
	}
	var cycles, again, bad int
	if _, err := fmt.Sscanf(said, "cycles %d\ncycles %d\nbad %d", &cycles, &again, &bad); err != nil || bad != 0 {
		t.Fatalf("the testbench printed %q", said)
	}
	if again != cycles {
		t.Errorf("%d cycles, then %d", cycles, again)
	}
	sameBits(t, fmt.Sprintf("%d rows", len(rows)), out, d, rows)
	return cycles
}

// TestMemory runs batches of rows from memory to memory, of lengths around those of beats and
// bursts.
func TestMemory(t *testing.T) {
	sim := tool(t, simulate.Icarus)
	m := product(t, 5, 8)
	d, err := rtl.Compile(m.Graph, m.Params64, rtl.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{1, 7, 8, 9, 64, 513} {
		cycles := runMemory(t, sim, d, randomRows(d, count))
		if least, most := count+d.Depth+200, count+d.Depth+260; cycles < least || cycles > most {
			t.Errorf("%d rows took %d cycles, want %d to %d", count, cycles, least, most)
		}
	}
}

// simulator names the one that plays whole networks.
var simulator = flag.String("simulator", "", "of -whole: verilator or iverilog")

// table2 has the rows and the cycle counter of the paper's Table 2 where its models are public.
var table2 = []struct {
	name         string
	rows, cycles int
}{
	{"NIPS5", 10_000, 10_236}, {"NIPS50", 10_000, 10_559}, {"NIPS70", 10_000, 14_022}, {"NLTCS_200", 21_574, 21_904},
	{"ACCIDENTS_4000", 17_009, 17_249}, {"BAUDIO_4000", 20_000, 20_317}, {"PLANTS_4000", 23_215, 23_592},
}

// TestTable2 compares the cycle counter with the paper's, behind a memory of 355 bits per cycle and
// 200 cycles of latency: faithful datapaths within 3 %, and the default one of NIPS70, whose rows
// are narrow enough for the memory, at most 10,400.
func TestTable2(t *testing.T) {
	for _, c := range table2 {
		t.Run(c.name, func(t *testing.T) {
			if !*whole && (c.name != "NIPS5" || testing.Short()) {
				t.Skip("go test ./compile/rtl/simulate -whole plays all networks, which takes minutes; without -short it plays NIPS5")
			}
			sim := tool(t, *simulator)
			if c.name == "NIPS5" {
				sim = tool(t, simulate.Icarus) // it starts at once
			}
			m := network(t, c.name)
			for _, faithful := range []bool{true, false} {
				o := rtl.DefaultOptions()
				o.Faithful, o.Rows = faithful, c.rows
				if strings.HasPrefix(c.name, "PLANTS") {
					o.MulStages = 7
				}
				d, err := rtl.Compile(m.Graph, m.Params64, o)
				if err != nil {
					t.Fatal(err)
				}
				cycles, estimate := runMemory(t, sim, d, randomRows(d, c.rows)), d.Report(&o).Cycles
				t.Logf("faithful %v: %d cycles, estimated %d, the paper %d", faithful, cycles, estimate, c.cycles)
				if off := math.Abs(float64(cycles-estimate)) / float64(cycles); !(off <= 0.03) {
					t.Errorf("faithful %v: %d cycles, the report says %d", faithful, cycles, estimate)
				}
				if off := math.Abs(float64(cycles-c.cycles)) / float64(c.cycles); faithful && !(off <= 0.03) {
					t.Errorf("%d cycles, the paper has %d: %.1f %% off", cycles, c.cycles, 100*off)
				}
				if !faithful && c.name == "NIPS70" && cycles > 10_400 {
					t.Errorf("%d cycles by default, want at most 10,400", cycles)
				}
			}
		})
	}
}
