package juice_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/circuit/format/juice"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/format/units"
	"github.com/pce-engine/pce/circuit/reference"
)

// The same distribution over a and b in the three kinds: a with 0.75, and b with 0.5 if a, else
// with 0.125.
const (
	jpc = `c a comment
jpc 8
L 0 0 1
L 1 0 -1
C 2 1 2 -0.6931471805599453 -0.6931471805599453
I 3 1 2 1
C 4 1 2 -0.13353139262452263 -2.0794415416798357
P 5 2 2 0 2
P 6 2 2 1 4
S 7 2 2 5 -0.2876820724517809 6 -1.3862943611198906
`
	psdd = `psdd 5
L 0 0 1
L 1 0 -1
T 2 1 2 -0.6931471805599453
T 3 1 2 -2.0794415416798357
D 4 2 2 0 2 -0.2876820724517809 1 3 -1.3862943611198906
`
	spn = `(2 2)
v 0 1
v 0 0
v 1 1
v 1 0
+ 2 -0.6931471805599453 3 -0.6931471805599453
+ 2 -2.0794415416798357 3 -0.13353139262452263
* 0 4
* 1 5
+ 6 -0.2876820724517809 7 -1.3862943611198906
EOF
`
)

// goodJPC is jpc without the node that no other has.
var goodJPC = strings.NewReplacer("I 3 1 2 1\n", "", "jpc 8", "jpc 7").Replace(jpc)

func TestFormat(t *testing.T) {
	formattest.Run(t, juice.Format, []byte(goodJPC), []byte("jpc 3\nB 0 0 1 3 -0.9\nG 1 0 2 -0.5 2.0\nP 2 0 2 0 1\n"), []byte(psdd), []byte(spn))
}

// TestRead: the three kinds have the probabilities that they are made of, also once a jpc text
// was written of them.
func TestRead(t *testing.T) {
	want := [2][2]float64{{0.25 * 0.875, 0.25 * 0.125}, {0.375, 0.375}}
	for name, text := range map[string]string{"jpc": goodJPC, "psdd": psdd, "spn": spn} {
		m, err := juice.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var b bytes.Buffer
		if lost, err := juice.Write(&b, m); err != nil || lost != nil {
			t.Fatal(lost, err)
		}
		back, err := juice.Parse(b.String())
		if err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, &b)
		}
		for _, ev := range []*reference.Evaluator{formattest.Evaluator(t, m), formattest.Evaluator(t, back)} {
			for x := range 2 {
				for y := range 2 {
					got, err := ev.LogLikelihood([]float64{float64(x), float64(y)})
					if err != nil || !(math.Abs(math.Exp(got)-want[x][y]) <= 1e-15) {
						t.Errorf("%s: P(%d, %d) is %v, %v; want %v", name, x, y, math.Exp(got), err, want[x][y])
					}
				}
			}
		}
	}
}

// TestDialects: texts of other tools are the same model: another number of nodes, literals that
// nothing refers to, comments of cc, two logarithms behind T, and a byte order mark.
func TestDialects(t *testing.T) {
	for _, tc := range []struct{ kind, text string }{
		{psdd, strings.Replace(psdd, "psdd 5", "psdd 99999999999", 1)},
		{psdd, strings.Replace(psdd, "psdd 5", "psdd 0", 1)},
		{psdd, strings.Replace(psdd, "psdd 5", "psdd", 1)},
		{psdd, strings.Replace(psdd, "D 4", "cc a comment\ncc\nD 4", 1)},
		{psdd, "cc a comment\n" + psdd},
		{psdd, strings.Replace(psdd, "T 2 1 2 ", "T 2 1 2 -0.7 ", 1)},
		{psdd, strings.Replace(psdd, "T 2 1", "L 8 1 -2\nL 9 1 2\nT 2 1", 1)},
		{psdd, "\ufeff" + psdd},
		{goodJPC, "\ufeff" + goodJPC},
		{spn, "\ufeff" + spn},
	} {
		want, err := juice.Parse(tc.kind)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := juice.Parse(tc.text); err != nil {
			t.Errorf("%v in\n%s", err, tc.text)
		} else if d := formattest.Diff64(got, want); d != "" {
			t.Errorf("%s in\n%s", d, tc.text)
		}
		if !juice.Format.Recognises([]byte(tc.text)) {
			t.Errorf("not recognised:\n%s", tc.text)
		}
	}
	m, err := juice.Parse(strings.Replace(psdd, "T 2 1", "L 8 1 3\nT 2 1", 1))
	if err != nil || m.Graph.NumVars != 3 || len(m.Graph.Nodes) != 7 {
		t.Errorf("%v; want the variable of a literal that nothing refers to, without its node", err)
	}
}

// TestRareNegation: a variable of a PSDD that nearly always holds does not hold with the probability that its logarithm says.
func TestRareNegation(t *testing.T) {
	for word, want := range map[string]float64{"-1e-17": 1e-17, "-1e-14": 1e-14, "-0.5": 1 - math.Exp(-0.5), "0": 0, "-Inf": 1} {
		m, err := juice.Parse("psdd\nT 0 0 1 " + word + "\n")
		if err != nil {
			t.Fatal(err)
		}
		got, err := formattest.Evaluator(t, m).LogLikelihood([]float64{0})
		if want = math.Log(want); err != nil || got != want && !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("%s: %v, %v; want %v", word, got, err, want)
		}
	}
}

// TestCategories: values beyond two, and a weight of 0.
func TestCategories(t *testing.T) {
	m, err := juice.Parse("jpc 4\nI 0 0 1 0\nI 1 0 1 2\nC 2 0 1 -1.3862943611198906 -Inf -0.2876820724517809\nS 3 0 3 0 -0.6931471805599453 1 -0.6931471805599453 2 -Inf\n")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := juice.Write(&b, m); err != nil {
		t.Fatal(err)
	}
	if back, err := juice.Parse(b.String()); err != nil || formattest.Diff64(back, m) != "" {
		t.Errorf("%v in\n%s", err, &b)
	}
	for x, want := range []float64{0.5, 0, 0.5} {
		if got, err := formattest.Evaluator(t, m).LogLikelihood([]float64{float64(x)}); err != nil || math.Exp(got) != want {
			t.Errorf("P(%d) is %v, %v; want %v", x, math.Exp(got), err, want)
		}
	}
}

// TestNumbers: binomials and Gaussians have the probabilities and densities of their formulas, and come back.
func TestNumbers(t *testing.T) {
	m, err := juice.Parse("jpc 3\nB 0 0 1 3 -0.916290731874155\nG 1 0 2 -0.5 2.0\nP 2 0 2 0 1\n")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if lost, err := juice.Write(&b, m); err != nil || lost != nil {
		t.Fatal(lost, err)
	}
	back, err := juice.Parse(b.String())
	if err != nil || !strings.Contains(b.String(), "\nB 0 0 1 3 -0.916290731874155\nG 1 0 2 -0.5 2\n") {
		t.Fatalf("%v in\n%s", err, &b)
	}
	for k, choose := range []float64{1, 3, 3, 1} {
		p := choose * math.Pow(0.4, float64(k)) * math.Pow(0.6, float64(3-k))
		want := math.Log(p) - 1.5*1.5/8 - math.Log(2*math.Sqrt(2*math.Pi))
		for _, m := range []*format.Model{m, back} {
			if got, err := formattest.Evaluator(t, m).LogLikelihood([]float64{float64(k), 1}); err != nil || !(math.Abs(got-want) <= 1e-14) {
				t.Errorf("%d successes: %v, %v; want %v", k, got, err, want)
			}
		}
	}
	for text, want := range map[string]string{
		"B 0 0 1 3":                      "1 words for a binomial",
		"B 0 0 1 3 -1 -1":                "3 words for a binomial",
		"B 0 0 1 0 -1":                   "binomial with 0 trials",
		"B 0 0 1 -1 -1":                  "a variable of 0 values",
		"B 0 0 1 16777216 -1":            "a variable of 16777217 values",
		"B 0 0 1 9223372036854775807 -1": "a variable of 16777217 values",
		"B 0 0 0 3 -1":                   "the variable is out of range",
		"B 0 0 1 3 0.4":                  `"0.4" where the logarithm`,
		"G 0 0 1 0":                      "1 words for a Gaussian",
		"G 0 0 1 0 x":                    `"x" where a number should be`,
		"G 0 0 1 0 -1":                   "gaussian",
		"G 0 0 1 NaN 1":                  "gaussian",
	} {
		if _, err := juice.Parse("jpc 1\n" + text + "\n"); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "line 2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// rewritten reads a text, writes it as jpc, and reads that.
func rewritten(t *testing.T, text string) *format.Model {
	t.Helper()
	m, err := juice.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := juice.Write(&b, m); err != nil {
		t.Fatal(err)
	}
	if m, err = juice.Parse(b.String()); err != nil {
		t.Fatalf("%v in\n%s", err, &b)
	}
	return m
}

// TestSums: weights and probabilities that sum to 1 but for their digits stay as they are, in all
// kinds, and come back from a text within a rounding.
func TestSums(t *testing.T) {
	const third, half = "-1.0987122955", "-0.6932471856" // 0.3333 and 0.49995
	for name, text := range map[string]string{
		"jpc":      "jpc 4\nI 0 0 1 0\nI 1 0 1 1\nI 2 0 1 2\nS 3 0 3 0 " + third + " 1 " + third + " 2 " + third + "\n",
		"category": "jpc 1\nC 0 0 1 " + third + " " + third + " " + third + "\n",
		"spn":      "(3)\nv 0 0\nv 0 1\nv 0 2\n+ 0 " + third + " 1 " + third + " 2 " + third + "\nEOF\n",
	} {
		if got, err := formattest.Evaluator(t, rewritten(t, text)).LogLikelihood([]float64{1}); err != nil || !(math.Abs(got - -1.0987122955) <= 1e-15) {
			t.Errorf("%s: %v, %v; want %s", name, got, err, third)
		}
	}
	m := rewritten(t, "psdd 5\nL 0 0 1\nL 1 0 -1\nL 2 0 2\nL 3 0 -2\nD 4 0 2 0 2 "+half+" 1 3 "+half+"\n")
	if got, err := formattest.Evaluator(t, m).LogLikelihood([]float64{1, 1}); err != nil || !(math.Abs(got - -0.6932471856) <= 1e-15) {
		t.Errorf("psdd: %v, %v; want %s", got, err, half)
	}
}

// TestWriteRefuses: leaves that the text does not have, and a full disk.
func TestWriteRefuses(t *testing.T) {
	m, err := spflow.Parse("L Poisson(calls|mean=2)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := juice.Write(io.Discard, m); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "family poisson") {
		t.Errorf("a Poisson: %v", err)
	}
	if m, err = spflow.Parse("L Bernoulli(tall|p=0.5)"); err != nil {
		t.Fatal(err)
	}
	m.Meta = map[string]string{"a": "b"}
	if lost, err := juice.Write(io.Discard, m); err != nil || len(lost) != 2 {
		t.Errorf("lost %q, %v; want names and strings", lost, err)
	}
	if _, err := juice.Write(&formattest.FullDisk{Room: 5}, m); err == nil {
		t.Error("a full disk was not noticed")
	}
}

// TestSmallest: the least normal probability is read and comes back; what is smaller is written, but not read.
func TestSmallest(t *testing.T) {
	for _, least := range []float64{circuit.Log(0x1p-1022), -708.3964185, -708, math.Inf(-1)} {
		m := rewritten(t, fmt.Sprintf("jpc 3\nL 0 0 1\nL 1 0 -1\nS 2 0 2 0 %v 1 0\n", least))
		if got, err := formattest.Evaluator(t, m).LogLikelihood([]float64{1}); err != nil || got != least && !(math.Abs(got-least) <= 1e-12) {
			t.Errorf("%v, %v; want %v", got, err, least)
		}
	}
	m, err := spflow.Parse("L Categorical(V0|p=[1,1e-310])")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := juice.Write(&b, m); err != nil {
		t.Fatal(err)
	}
	if _, err = juice.Parse(b.String()); err == nil || !strings.Contains(err.Error(), "the logarithm -713.8") {
		t.Errorf("error is %v in\n%s", err, &b)
	}
}

// TestWriteLost: variables and categories of which the leaves do not tell are named as lost, and no others.
func TestWriteLost(t *testing.T) {
	half := []float64{0.5, 0.5}
	mixture := func(second units.Node) []units.Node {
		return []units.Node{{Leaf: circuit.Indicator{Domain: 5}}, second, {Kind: circuit.Sum, Children: []int{0, 1}, Weights: half}}
	}
	for name, tc := range map[string]struct {
		vars  int
		nodes []units.Node
		want  string
	}{
		"the last category":  {1, []units.Node{{Leaf: circuit.Indicator{Domain: 3, Value: 2}}}, ""},
		"the first of two":   {1, []units.Node{{Leaf: circuit.Indicator{Domain: 2}}}, ""},
		"the first variable": {2, []units.Node{{Leaf: circuit.Bernoulli{}, Params: half, Var: 1}}, ""},
		"the last variables": {4, []units.Node{{Leaf: circuit.Bernoulli{}, Params: half, Var: 1}}, "the variables from number 3 on, which no leaf reads"},
		"some categories":    {1, mixture(units.Node{Leaf: circuit.Indicator{Domain: 5, Value: 3}}), "how many categories 1 of the variables have, as no leaf has their last ones"},
		"all categories":     {1, mixture(units.Node{Leaf: circuit.Categorical{Categories: 5}, Params: []float64{0, 0, 1, 0, 0}}), ""},
	} {
		m, err := units.Assemble(tc.nodes, len(tc.nodes)-1, tc.vars)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		lost, err := juice.Write(&b, m)
		if err != nil || strings.Join(lost, ";") != tc.want {
			t.Errorf("%s: lost %q, %v; want %q", name, lost, err, tc.want)
		}
		back, err := juice.Parse(b.String())
		if err != nil {
			t.Fatal(err)
		}
		if kept := reflect.DeepEqual(circuit.Domains(back.Graph), circuit.Domains(m.Graph)); kept != (tc.want == "") {
			t.Errorf("%s: variables %v, were %v; lost %q", name, circuit.Domains(back.Graph), circuit.Domains(m.Graph), lost)
		}
	}
}

// TestRefuses: each fault is one line that names the line of the text.
func TestRefuses(t *testing.T) {
	change := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, tc := range []struct{ text, want string }{
		{"jpc 0\n", "no nodes"},
		{"jpc 2\nL 0 0 1\n", "1 nodes, where the first line says 2"},
		{jpc, "line 6: the node is not reached"},
		{change(goodJPC, "L 1 0 -1", "L 0 0 -1"), "line 4: node 0 is there twice"},
		{change(goodJPC, "L 1 0 -1", "L 1 0 0"), "line 4: the literal 0"},
		{change(goodJPC, "L 1 0 -1", "L 1 0 x"), `line 4: "x" where a whole number`},
		{change(goodJPC, "L 1 0 -1", "L 1 0"), "line 4: the line is cut short"},
		{change(goodJPC, "L 1 0 -1", "L 1 0 9999999999"), "line 4: the variable is out of range"},
		{change(goodJPC, "L 1 0 -1", "L 1 0 -1 C 2 1 2 0"), `line 4: "C" where the line should end`},
		{change(goodJPC, "L 1 0 -1", "I 1 0 1 0 L"), `line 4: "L" where the line should end`},
		{"jpc -1\nL 5 0 1\n", "line 1: -1 nodes"},
		{change(goodJPC, "L 1 0 -1", "Q 1 0 -1"), `line 4: "Q"`},
		{change(goodJPC, "P 5 2 2 0 2", "P 5 2 3 0 2"), "line 7: 2 words for 3 children"},
		{change(goodJPC, "P 5 2 2 0 2", "P 5 2 0"), "line 7: 0 words for 0 children"},
		{change(goodJPC, "P 5 2 2 0 2", "P 5 2 2 0 6"), "line 7: node 6 is not there"},
		{change(goodJPC, "P 5 2 2 0 2", "P 5 2 2 0 5"), "line 7: node 5 is not there"},
		{change(goodJPC, "5 -0.2876820724517809", "5 -0.3876820724517809"), "line 9: circuit: bad graph: sum node 6 has weights of unit 0 that sum to 0.9"},
		{change(goodJPC, "5 -0.2876820724517809", "5 NaN"), `line 9: "NaN" where the logarithm`},
		{change(goodJPC, "5 -0.2876820724517809", "5 -750"), `line 9: the logarithm -750 is below -708.40: float64`},
		{change(goodJPC, "5 -0.2876820724517809", "5 -708.3965"), `line 9: the logarithm -708.3965`},
		{change(goodJPC, "5 -0.2876820724517809", "5 -1e999"), `line 9: the logarithm -1e999`},
		{change(goodJPC, "5 -0.2876820724517809", "5 0.2"), `line 9: "0.2" where the logarithm`},
		{change(goodJPC, "C 2 1 2 -0.69", "C 2 1 2 -9."), "line 5: circuit: bad leaf: categorical: probabilities sum to 0.5"},
		{change(goodJPC, "C 2 1 2 -0.6931471805599453 -0.6931471805599453", "I 2 1 2 16777217"), "line 5: a variable of 16777218 values"},
		{change(psdd, "T 2 1 2 -0.6931471805599453", "T 2 1 2"), `line 4: "T 2 1 2" where a node should be`},
		{change(psdd, "T 2 1 2 -0.6931471805599453", "F 2 1 2"), `line 4: "F" where a kind of node should be`},
		{change(psdd, "T 2 1 2 -0.6931471805599453", "cfoo"), `line 4: "cfoo" where a kind of node should be`},
		{change(psdd, "T 2 1 2 -0.6931471805599453", "T 2 1 2 x -0.7"), `line 4: "x" where the logarithm`},
		{change(psdd, "T 2 1 2 -0.6931471805599453", "T 2 1 2 -1 -1 -1"), `line 4: "T 2 1 2 -1 -1 -1" where a node should be`},
		{change(psdd, "psdd 5", "psdd five"), `line 1: "five" where a whole number`},
		{change(psdd, "D 4", "T 8 1 2 -1\nD 4"), "line 6: the node is not reached"},
		{psdd + "L 5 0 2\n", "the node is not reached"},
		{change(psdd, "D 4 2 2 0 2", "D 4 2 2 0"), "line 6: 5 words for 2 elements"},
		{change(psdd, "D 4 2 2 0 2", "D 4 2 2 0 9"), "line 6: node 9 is not there"},
		{change(spn, "EOF\n", ""), "no EOF"},
		{spn + "v 0 0\n", "line 12: a line behind EOF"},
		{change(spn, "v 0 1", "v 2 1"), "line 2: the variable is out of range: the text may have 2"},
		{change(spn, "v 0 1", "v 0 1 v 0 0"), `line 2: "v" where the line should end`},
		{change(spn, "v 0 1", "v 0 2"), "line 2: value 2 of a variable that has 2"},
		{change(spn, "v 0 1", "v 0 -1"), "line 2: the value -1"},
		{change(spn, "* 0 4", "*"), "line 8: 0 words for 0 children"},
		{change(spn, "* 0 4", "* 0 1"), ""},
		{change(spn, "+ 2 -0.6931471805599453 3", "+ 2 -0.6931471805599453 3 4"), "line 6: 5 words for 2 children"},
		{"(2 0)\nEOF\n", "line 1: a variable of 0 values"},
		{"nothing", "the first line"},
	} {
		_, err := juice.Parse(tc.text)
		if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want %q in\n%s", err, tc.want, tc.text)
		}
	}
	var deep strings.Builder // no recursion
	deep.WriteString("jpc 100001\nL 0 0 1\n")
	for i := range 100_000 {
		fmt.Fprintf(&deep, "P %d 0 1 %d\n", i+1, i)
	}
	if _, err := juice.Parse(deep.String()); err != nil {
		t.Errorf("100,000 products above each other: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(goodJPC)
	f.Add("jpc 3\nB 0 0 1 3 -0.9\nG 1 0 2 -0.5 2.0\nP 2 0 2 0 1\n")
	f.Add(psdd)
	f.Add(spn)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := juice.Parse(text)
		if err != nil {
			if !errors.Is(err, format.ErrModel) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %q", err)
			}
			return
		}
		var b bytes.Buffer
		if _, err := juice.Write(&b, m); err != nil {
			t.Fatal(err)
		}
		back, err := juice.Parse(b.String())
		if err != nil {
			t.Fatalf("%v in\n%s", err, &b)
		}
		if len(back.Graph.Nodes) != len(m.Graph.Nodes) {
			t.Fatalf("%d nodes, were %d, in\n%s", len(back.Graph.Nodes), len(m.Graph.Nodes), &b)
		}
	})
}
