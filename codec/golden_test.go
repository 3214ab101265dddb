package codec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/golden"
)

// exactUnits is the number of units of most nodes of exactModel: no multiple of what
// kernels take at a time.
const exactUnits = 5

// exactModel makes a circuit of all discrete leaves, dense and block-sparse sums of one
// and several children, tied nodes, two ways to split variables, and a variable that no
// leaf reads. Its parameters are quotients of whole numbers, which every platform rounds
// alike.
func exactModel(t testing.TB) *Model {
	t.Helper()
	g := &circuit.Graph{NumVars: 7}
	add := func(n circuit.Node) circuit.NodeID {
		if n.Units == 0 {
			n.Units = exactUnits
		}
		g.Nodes = append(g.Nodes, n)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	input := func(v int, l circuit.Leaf) circuit.NodeID {
		return add(circuit.Node{Kind: circuit.Input, Var: v, Leaf: l})
	}
	product := func(c ...circuit.NodeID) circuit.NodeID { return add(circuit.Node{Kind: circuit.Product, Children: c}) }
	sum := func(c ...circuit.NodeID) circuit.NodeID { return add(circuit.Node{Kind: circuit.Sum, Children: c}) }

	sky, cloud := input(0, circuit.Categorical{Categories: 3}), input(0, circuit.Categorical{Categories: 3})
	g.Nodes[cloud].Tie = circuit.TieTo(sky)
	wind := input(1, circuit.Bernoulli{})
	gusts := input(2, circuit.Binomial{Trials: 6})
	rain := input(3, circuit.Histogram{Edges: []int{0, 1, 4, 9}})
	light := input(4, circuit.DiscretisedLogistic{Domain: 32})
	day := sum(input(5, circuit.Indicator{Domain: 3, Value: 0}), input(5, circuit.Indicator{Domain: 3, Value: 2}), input(5, circuit.Indicator{Domain: 3, Value: 1}))
	low := sum(product(light, day))
	mid := sum(product(rain, low))
	g.Nodes[mid].Tie = circuit.TieTo(low)
	block := sum(product(gusts, mid))
	g.Nodes[block].Edges = &circuit.Edges{Rows: 1, Cols: 5, Pairs: [][2]int32{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}}, Mask: []uint64{0b11011_01111_11110_10101_11111}}
	pair := sum(product(sum(product(gusts, rain)), low), block)
	top := sum(product(sky, pair), product(cloud, pair))
	g.Root = sum(product(wind, top))
	g.Nodes[g.Root].Units = 1
	if err := circuit.Validate(g); err != nil {
		t.Fatal(err)
	}
	texts := []string{"clear", "grey", "rain, heavy"}
	s := &dataset.Schema{Missing: []string{"lost"}, Columns: []dataset.Column{
		{Name: "sky", Categories: 3, Labels: texts}, {Name: "wind", Categories: 2}, {Name: "gusts", Categories: 7},
		{Name: "rain", Categories: 9}, {Name: "light", Categories: 32}, {Name: "day", Categories: 3, Labels: []string{"1", "2.5", "x"}}, {Name: "note", Categories: 5},
	}}
	m, err := New(g, exactParams(g), s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// exactParams gives the parameters of exactModel.
func exactParams(g *circuit.Graph) circuit.ParamFunc {
	return func(id circuit.NodeID, dst []float32) error {
		n := &g.Nodes[id]
		share := func(row []float32, has func(int) bool) {
			all := 0
			raw := func(i int) int { return (31*i*i+17*i+7*int(id))%101 + 1 }
			for i := range row {
				if has(i) {
					all += raw(i)
				}
			}
			for i := range row {
				if has(i) {
					row[i] = float32(raw(i)) / float32(all)
				}
			}
		}
		width := len(dst) / n.Units
		for u := range n.Units {
			row := dst[u*width:][:width]
			switch n.Leaf.(type) {
			case circuit.Binomial:
				row[0] = float32(u) / (exactUnits - 1) // 0 and 1, too
			case circuit.DiscretisedLogistic:
				row[0], row[1] = float32(9*u)-1, float32(u+1)/4
			default:
				share(row, func(i int) bool { return n.Edges == nil || n.Edges.Has(u*width+i) })
			}
		}
		return nil
	}
}

// exactRows writes rows of the model, drawn by whole numbers.
func exactRows(m *Model, n int) []byte {
	l := linesOf(m.schema, style{}, nil)
	l.prepare()
	var out []byte
	state := uint32(1)
	next := func(n int) int {
		state = state*1664525 + 1013904223
		return int(state>>8) % n
	}
	codes, marks := make([]int32, 7), make([]byte, 7)
	for range n {
		for v := range codes {
			marks[v] = byte(next(3))
			if codes[v] = int32(next(next(m.schema.Columns[v].Categories) + 1)); next(12) == 0 {
				codes[v] = absent
			}
		}
		out = append(l.append(out, codes, marks), '\n')
	}
	return out
}

// bitSum is a cellCoder that hashes the probabilities of all codes. A rounding that differs
// in the last place may not show in a file.
type bitSum struct{ hash.Hash }

func (b bitSum) cell(d *distribution, code int) int {
	var p []byte
	for x := range d.codes + 1 {
		p = binary.LittleEndian.AppendUint64(p, math.Float64bits(d.below(x)))
	}
	b.Write(p)
	d.possible = d.below(code) < d.below(code+1)
	return code
}

func exactBits(m *Model, content []byte) string {
	sum, s := bitSum{sha256.New()}, newState(m)
	l := newLines(m.schema, content, true)
	l.prepare()
	var b block
	for line := range bytes.Lines(content) {
		codes, marks := b.grow(len(m.schema.Columns))
		l.parse(bytes.TrimSuffix(line, []byte("\n")), codes, marks)
	}
	for from := 0; from < b.rows; from += groupRows {
		rows := min(groupRows, b.rows-from)
		s.group(sum, b.codes[from*len(m.schema.Columns):][:rows*len(m.schema.Columns)], rows)
	}
	return fmt.Sprintf("%d rows, %x", b.rows, sum.Sum(nil))
}

// TestCodecGolden compresses the texts of testdata/files.txt, and many rows, to the same
// bytes on every platform, and restores them. The lines of the dialogue are
//
//	compress END   compress the input, whose lines end in END and the last one in none
//	rows N         compress N rows and print the size and SHA-256 of the file
//	bits N         print the SHA-256 of all probabilities that coding N rows computes
func TestCodecGolden(t *testing.T) {
	m := exactModel(t)
	golden.Run(t, "testdata/files.txt", func(cmd string, args []string, input string) string {
		content := []byte(input)
		if cmd != "compress" {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				t.Fatal(err)
			}
			if content = exactRows(m, n); cmd == "bits" {
				return exactBits(m, content)
			}
		} else {
			end, err := strconv.Unquote(`"` + args[0] + `"`)
			if err != nil {
				t.Fatal(err)
			}
			content = bytes.ReplaceAll(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"), []byte(end))
		}
		var file bytes.Buffer
		if _, err := m.Compress(context.Background(), &file, bytes.NewReader(content)); err != nil {
			return err.Error()
		}
		_, stats := roundTrip(t, m, content)
		out := fmt.Sprintf("%d rows, %d literals, %d bytes to %d\n", stats.Rows, stats.Literals, stats.Content, stats.Stored)
		if cmd == "rows" {
			return out + fmt.Sprintf("%x\n", sha256.Sum256(file.Bytes()))
		}
		for line := file.Bytes(); len(line) > 0; line = line[min(32, len(line)):] {
			out += hex.EncodeToString(line[:min(32, len(line))]) + "\n"
		}
		return strings.TrimSuffix(out, "\n")
	})
}
