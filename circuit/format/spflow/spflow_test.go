package spflow_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/reference"
)

// shared is where the SPNs of other programs lie, beside the repository.
const shared = "../../../../shared/data"

// graphText has a shared node, every family and numbers over lines; equationText is a tree.
const (
	graphText = `S SumNode(0.3*P, 0.7*Q){
	P ProductNode(H1, A, G){
		H1 Histogram(count|[ 0., 1.,
		  2.5];[0.25,.3];[0.5,1.75])
		A Categorical(kind|p=[0.2, 0.3, 5e-1])
		G SumNode(0.4*G1, 0.6*G2){
			G1 Gaussian(x|mean=-1.5;stdev=0.25)
			G2 Gaussian(x|mean=2;stdev=1e0)
			}
		}
	Q ProductNode(A, G, H2){
		H2 Hist(count|pw=0.0,pd=0.03) [-1. 0. 4.] [0.5 0.125]
		}
	}

# x;kind;count
`
	equationText = `(0.25*((Bernoulli(V1|p=0.3) * Poisson(V0|mean=2.5) * LogNormal(V2|mean=1;stdev=1))) + 0.75*((LogNormal(V2|mean=0.5;stdev=2) * (1*(Bernoulli(V1|p=1))) * Poisson(V0|mean=4))))`
)

// commas puts commas into the lists of graphText's early histogram.
var goodGraph = strings.NewReplacer("[-1. 0. 4.]", "[-1.,0.,4.]", "[0.5 0.125]", "[0.5,0.125]").Replace(graphText)

func TestFormat(t *testing.T) {
	formattest.Run(t, spflow.Format, []byte(goodGraph), []byte("\ufeff"+goodGraph), []byte(equationText))
}

func TestParse(t *testing.T) {
	m, err := spflow.Parse(goodGraph)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"x", "kind", "count"}; !slices.Equal(m.Names, want) {
		t.Errorf("names %v, want %v", m.Names, want)
	}
	ev := formattest.Evaluator(t, m)
	gauss := func(x, mean, s float64) float64 {
		return math.Exp(-(x-mean)*(x-mean)/(2*s*s)) / (s * math.Sqrt(2*math.Pi))
	}
	for _, row := range [][]float64{{0.5, 1, 0.5}, {3, 2, 2.4999}, {0, 0, 2.5}, {1, 1, -0.5}, {1, 1, 99}, {math.NaN(), 2, 1}, {1, math.NaN(), math.NaN()}} {
		g, a := 1.0, 1.0
		if x := row[0]; x == x {
			g = 0.4*gauss(x, -1.5, 0.25) + 0.6*gauss(x, 2, 1)
		}
		if k := row[1]; k == k {
			a = []float64{0.2, 0.3, 0.5}[int(k)]
		}
		h1, h2 := 1.0, 1.0
		if c := row[2]; c == c {
			h1, h2 = spflow.Floor, spflow.Floor
			switch {
			case c >= 0 && c < 1:
				h1 = 0.25
			case c >= 1 && c < 2.5:
				h1 = 0.3
			}
			switch {
			case c >= -1 && c < 0:
				h2 = 0.5
			case c >= 0 && c < 4:
				h2 = 0.125
			}
		}
		want := math.Log(0.3*h1*a*g + 0.7*a*g*h2)
		if got, err := ev.LogLikelihood(row); err != nil || !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("row %v: %v, %v; want %v", row, got, err, want)
		}
	}
}

// TestRoundTrip: what is written reads back as the same model, bit by bit, once the nodes are
// in the order of a text, and as the same function.
func TestRoundTrip(t *testing.T) {
	for name, text := range map[string]string{"graph": goodGraph, "equation": equationText} {
		m, err := spflow.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for form, print := range map[string]func(io.Writer, *format.Model) ([]string, error){"graph": spflow.Print, "equation": spflow.PrintEquation} {
			var b bytes.Buffer
			lost, err := print(&b, m)
			if name == "graph" && form == "equation" {
				if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "two parents") {
					t.Errorf("an equation of a shared node: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			back, err := spflow.Parse(b.String())
			if err != nil {
				t.Fatalf("%v\n%s", err, b.String())
			}
			if lost != nil {
				t.Errorf("%s as %s: lost %q", name, form, lost)
			}
			if d := formattest.Diff64(back, m); d != "" || !slices.Equal(back.Names, m.Names) {
				t.Errorf("%s as %s: %s; names %v and %v", name, form, d, back.Names, m.Names)
			}
		}
	}
}

// TestRepeated: SPFlow writes the definition of a node below each of its parents, which is one
// node if all say the same.
func TestRepeated(t *testing.T) {
	want, err := spflow.Parse(goodGraph)
	if err != nil {
		t.Fatal(err)
	}
	const again = `Q ProductNode(A, G, H2){
		A Categorical(kind|p=[.2,0.3,0.5])
		G SumNode(0.4*G1, 0.6*G2){
			G1 Gaussian(x|mean=-1.5;stdev=0.25)
			G2 Gaussian(x|mean=2;stdev=1)
		}`
	text := strings.Replace(goodGraph, "Q ProductNode(A, G, H2){", again, 1)
	got, err := spflow.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := formattest.Diff64(got, want); d != "" {
		t.Error(d)
	}
	for _, c := range []struct{ old, new, want string }{
		{"p=[.2,0.3,0.5]", "p=[.3,0.2,0.5]", `the node "A" is another one than at line 5, column 3`},
		{"p=[.2,0.3,0.5]", "p=[.2,0.8]", `the node "A"`},
		{"A Categorical(kind|p=[.2,0.3,0.5])", "A Categorical(x|p=[.2,0.3,0.5])", `the node "A"`},
		{"A Categorical(kind|p=[.2,0.3,0.5])", "A Poisson(kind|mean=1)", `the node "A"`},
		{"SumNode(0.4*G1, 0.6*G2)", "SumNode(0.6*G1, 0.4*G2)", `the node "G"`},
		{"SumNode(0.4*G1, 0.6*G2)", "SumNode(0.4*G2, 0.6*G1)", `the node "G"`},
		{"SumNode(0.4*G1, 0.6*G2)", "ProductNode(G1, G2)", `the node "G"`},
	} {
		refuse(t, strings.Replace(text, again, strings.Replace(again, c.old, c.new, 1), 1), c.want)
	}
}

// TestPrintLost names the strings of a model, which the texts do not keep.
func TestPrintLost(t *testing.T) {
	m, err := spflow.Parse(goodGraph)
	if err != nil {
		t.Fatal(err)
	}
	m.Meta = map[string]string{"b": "1", "a": "2"}
	if lost, err := spflow.Print(io.Discard, m); err != nil || !slices.Equal(lost, []string{`the string "a"`, `the string "b"`}) {
		t.Errorf("lost %q, %v", lost, err)
	}
	m.Meta, m.Names = nil, slices.Clone(m.Names)
	m.Names[0] = ""
	want := "that 1 of the variables have no name, in place of which it has V and their number"
	var b bytes.Buffer
	if lost, err := spflow.Print(&b, m); err != nil || !slices.Equal(lost, []string{want}) || !strings.Contains(b.String(), "\n# V0;"+m.Names[1]) {
		t.Errorf("lost %q, %v: %s", lost, err, &b)
	}
	b.Reset()
	m.Names[1] = "V0" // as the first one would be called
	if lost, err := spflow.Print(&b, m); err != nil || !slices.Equal(lost, []string{want}) || !strings.Contains(b.String(), "\n# V0_;V0;") {
		t.Errorf("lost %q, %v: %s", lost, err, &b)
	}
}

// TestPrintUnused writes a circuit with a leaf that the text does not have and that the root does not reach, as other formats do.
func TestPrintUnused(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Binomial{Trials: 1}}, {Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}},
	}}
	m := format.NewModel(g, nil, format.Params{Float64: func(_ circuit.NodeID, dst []float64) error {
		for i := range dst {
			dst[i] = 0.5
		}
		return nil
	}})
	var b bytes.Buffer
	if _, err := spflow.Print(&b, m); err != nil || !strings.Contains(b.String(), "Bernoulli(V0|p=0.5)") {
		t.Errorf("%v: %s", err, &b)
	}
	g.Root = 0
	if _, err := spflow.Print(&b, m); !errors.Is(err, format.ErrModel) {
		t.Errorf("the leaf as the root: %v, want a refusal", err)
	}
}

// TestPrintDeep writes a chain of sums: a text of it is a few dozen bytes for each, as are other formats, and not as long as the square of
// the depth.
func TestPrintDeep(t *testing.T) {
	const depth = 3000
	var text strings.Builder
	for i := range depth {
		fmt.Fprintf(&text, "S%d SumNode(1*S%d){\n", i, i+1)
	}
	fmt.Fprintf(&text, "S%d Bernoulli(x|p=0.25)\n%s", depth, strings.Repeat("}\n", depth))
	m, err := spflow.Parse(text.String())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := spflow.Print(&b, m); err != nil || b.Len() > 150*depth {
		t.Fatalf("%d bytes, %v", b.Len(), err)
	}
	back, err := spflow.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if d := formattest.Diff64(back, m); d != "" {
		t.Error(d)
	}
}

// TestPrintBlocks writes circuits of blocks of units, of which each is a node of the text.
func TestPrintBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	written := 0
	for range 60 {
		m := formattest.Random64(t, rng)
		var b bytes.Buffer
		if _, err := spflow.Print(&b, m); err != nil {
			if !errors.Is(err, format.ErrModel) || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			continue
		}
		written++
		back, err := spflow.Parse(b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		one, two := formattest.Evaluator(t, m), formattest.Evaluator(t, back)
		for _, row := range reference.RandomRows(m.Graph, rng, 5, 0.3) {
			x, err := one.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			if y, err := two.LogLikelihood(row); err != nil || !(x == y || math.Abs(x-y) <= 1e-12*math.Max(1, math.Abs(x))) {
				t.Errorf("row %v: %v, written and read %v, %v", row, x, y, err)
			}
		}
	}
	if written == 0 {
		t.Error("no circuit could be written")
	}
}

func TestParseRefuses(t *testing.T) {
	var deepGraph strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&deepGraph, "A%d SumNode(1*A%d){", i, i+1)
	}
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"0.3*P", "0.4*P", "sum to 1.1"},
		{"0.3*P", "nan*P", "a number"},
		{"0.3*P", "1e999*P", "finite number"},
		{"0.3*P", "-0.3*P", "a probability"},
		{"0.3*P", "0x1p-1*P", "finite number"},
		{"0.3*P", "0.3*R", "no node \"R\""},
		{"G1 Gaussian", "G1 SumNode(1*S)\nGX Gaussian", "descendant of itself"},
		{"G2 Gaussian", "G1 Gaussian", "line 8, column 4: the node \"G1\" is another one than at line 7, column 4"},
		{"stdev=0.25", "stdev=0", "positive number"},
		{"stdev=0.25", "stdev=nan", "a number"},
		{"[0.2, 0.3, 5e-1]", "[0.2, 0.3]", "sum to 0.5"},
		{"[0.2, 0.3, 5e-1]", "[]", "a number"},
		{"[ 0., 1.,", "[ 0., 3.,", "ascending"},
		{"[0.25,.3];[0.5,1.75]", "[0.25]", "one break more"},
		{"[0.25,.3]", "[0,0]", "integrate to 0"},
		{"[0.5,1.75]", "[0.5]", "1 points for 2 bins"},
		{"# x;kind;count", "# x;kind", "not in the line of names"},
		{"# x;kind;count", "# x;kind;count;x", "is given twice"},
		{"A Categorical(kind", "A Categorical(x", "variable"},
		{"A Categorical", "A Uniform", "SumNode, ProductNode"},
		{"\n# x", "\nZ Gaussian(x|mean=0;stdev=1)\n# x", "not reached"},
		{"Q ProductNode(A, G, H2)", "Q ProductNode(A, H2)", "smooth"},
		{"# x;kind;count\n", "# x;kind;count\nmore", "behind the network"},
	} {
		text := strings.Replace(goodGraph, c.old, c.new, 1)
		if c.want == "" {
			if _, err := spflow.Parse(text); err != nil {
				t.Fatal(err)
			}
			continue
		}
		refuse(t, text, c.want)
	}
	for text, want := range map[string]string{
		"":  "a node should be",
		"(": "where a leaf",
		"(0.5*(Bernoulli(V0|p=0.5)) + (Bernoulli(V0|p=0.5)))":     "a weight should be",
		"(Bernoulli(V0|p=0.5) * 0.5*(Bernoulli(V1|p=0.5)))":       "without weight",
		"(Bernoulli(V0|p=0.5) + Bernoulli(V1|p=0.5))":             "or ) should be",
		"(0.5*(Bernoulli(V0|p=0.5)) * 0.5*(Bernoulli(V0|p=0.5)))": "or ) should be",
		"Bernoulli(V0|p=2)":                                        "probabilit",
		"Bernoulli(V9999999|p=0.5)":                                "line of names",
		strings.Repeat("(", 1000000):                               "nested more than",
		strings.Repeat("(1*(", 500000) + "Bernoulli(V0|p=0.5)":     "nested more than",
		deepGraph.String():                                         "nested more than",
		"A SumNode(0.5*B, 0.5*B){B Gaussian(\xff|mean=1;stdev=1)}": "UTF-8",
	} {
		refuse(t, text, want)
	}
}

func refuse(t *testing.T, text, want string) {
	t.Helper()
	_, err := spflow.Parse(text)
	if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
		t.Errorf("%.60q: error is %q, want one line with %q", text, err, want)
	}
}

// TestSharedModels holds the evaluator in float64 to log-likelihoods that were computed for
// models of others.
func TestSharedModels(t *testing.T) {
	if _, err := os.Stat(shared + "/spn/text"); err != nil {
		t.Skip("no SPNs of others in ../shared/data/spn: they are in the repository esa-tu-darmstadt/spn-compiler, branch feature/circt-llvm-19.0.0")
	}
	for name, rows := range map[string]string{
		"NIPS5": "nips-bow/nips100.csv.gz", "NIPS10": "nips-bow/nips100.csv.gz", "NIPS20": "nips-bow/nips100.csv.gz",
		"NIPS40": "nips-bow/nips100.csv.gz", "NIPS50": "nips-bow/nips100.csv.gz", "NIPS70": "nips-bow/nips100.csv.gz",
		"NLTCS_200": "nltcs/nltcs.test", "MSNBC_200": "msnbc/msnbc.test", "PLANTS_4000": "plants/plants.test",
		"ACCIDENTS_4000": "accidents/accidents.test", "BAUDIO_4000": "audio/baudio.test",
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(shared, "spn/text", name+".spn"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := spflow.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			ev, want := formattest.Evaluator(t, m), numbers(t, filepath.Join(shared, "spn/text", name+".expected_ll.txt.gz"))
			table := rowsOf(t, filepath.Join(shared, "density", rows))
			if table == nil {
				t.Skipf("no rows %s in ../shared/data/density: DEBD has the binary sets, the repository of SPFlow the counts", rows)
			}
			if len(table) != len(want) {
				t.Fatalf("%d rows and %d log-likelihoods", len(table), len(want))
			}
			step := len(table)/80 + 1
			for i := 0; i < len(table); i += step {
				got, err := ev.LogLikelihood(table[i][:m.Graph.NumVars])
				if err != nil || !(math.Abs(got-want[i]) <= 1e-9) {
					t.Fatalf("row %d: %v, %v; want %v", i, got, err, want[i])
				}
			}
		})
	}
}

// open returns the content of a file, unpacked; nil if there is none.
func open(t *testing.T, path string) []byte {
	t.Helper()
	for _, p := range []string{path, path + ".gz", path + ".data", path + ".data.gz"} {
		b, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			if b, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	return nil
}

func numbers(t *testing.T, path string) (list []float64) {
	t.Helper()
	for _, s := range strings.Fields(string(open(t, path))) {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

func rowsOf(t *testing.T, path string) (rows [][]float64) {
	t.Helper()
	b := open(t, path)
	if b == nil {
		return nil
	}
	lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		row := make([]float64, len(line))
		for k, s := range line {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				row = nil // the header
				break
			}
			row[k] = x
		}
		if row == nil && i == 0 {
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// TestEarlyText: the network that an early SPFlow wrote in both forms, and its authors' own
// log-likelihoods, within the rounding of the text.
func TestEarlyText(t *testing.T) {
	dir := shared + "/spn/text/NIPS_40_early/"
	eq, err := os.ReadFile(dir + "40_eqq.txt")
	if err != nil {
		t.Skipf("no network of an early SPFlow: %s40_eqq.txt and 40_spn.txt, of the repository esa-tu-darmstadt/spn-compiler, are missing", dir)
	}
	graph, err := os.ReadFile(dir + "40_spn.txt")
	if err != nil {
		t.Fatal(err)
	}
	data := strings.Split(strings.TrimSpace(string(open(t, dir+"40_testdata.txt"))), "\n")
	names := strings.Split(strings.TrimPrefix(strings.TrimSpace(data[0]), "# "), ";")
	want := numbers(t, dir+"40_ll.txt")
	for form, text := range map[string][]byte{"equation": eq, "graph": graph} {
		m, err := spflow.Parse(string(text) + "\n# " + strings.Join(names, ";"))
		if err != nil {
			t.Fatal(form, err)
		}
		ev := formattest.Evaluator(t, m)
		for i, line := range data[1:] {
			row := make([]float64, len(names))
			for k, s := range strings.Split(strings.TrimSpace(line), ";") {
				if row[k], err = strconv.ParseFloat(s, 64); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := ev.LogLikelihood(row); err != nil || !(math.Abs(got-want[i]) <= 1e-6) {
				t.Fatalf("%s, row %d: %v, %v; want %v", form, i, got, err, want[i])
			}
		}
	}
}

// FuzzParse: a text is a model that is written and read back as itself, or an error of one line.
func FuzzParse(f *testing.F) {
	f.Add(goodGraph)
	f.Add(equationText)
	f.Add(jsonText)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := spflow.Parse(text)
		if err != nil {
			if !errors.Is(err, format.ErrModel) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %q", err)
			}
			return
		}
		var b bytes.Buffer
		if _, err := spflow.Print(&b, m); err != nil {
			if !errors.Is(err, format.ErrModel) {
				t.Fatal(err)
			}
			return
		}
		back, err := spflow.Parse(b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if d := formattest.Diff64(back, m); d != "" && !bernoulli(m.Graph) {
			t.Fatalf("%s\n%s", d, b.String())
		}
	})
}

// bernoulli reports whether a leaf may be written as another family: one whose probabilities
// have no decimal that gives both.
func bernoulli(g *circuit.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n circuit.Node) bool { _, ok := n.Leaf.(circuit.Bernoulli); return ok })
}
