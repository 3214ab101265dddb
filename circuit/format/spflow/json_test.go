package spflow_test

import (
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/circuit/format/spflow"
)

// jsonText is the network of goodGraph but for its names: a shared child has its object twice.
const (
	jsonA    = `{"Categorical":{"id":3,"p":"[0.2 0.3\n 0.5]","scope":["kind"],"simulate":null}}`
	jsonG    = `{"Sum":{"children":[{"Gaussian":{"id":5,"mean":-1.5,"stdev":0.25,"scope":["x"]}},{"Gaussian":{"id":6,"mean":[2],"stdev":1e0,"scope":["x"]}}],"id":4,"scope":["x"],"weights":[0.4,0.6]}}`
	jsonText = `{"Sum":{"children":[
	{"Product":{"children":[
		{"Histogram":{"bin_repr_points":[0,1],"breaks":[0,1,2.5],"densities":[0.25,0.3],"id":2,"meta_type":"DISCRETE","scope":["count"],"type":"CATEGORICAL"}},` + jsonA + `,` + jsonG + `],"id":1,"scope":["count","kind","x"]}},
	{"Product":{"children":[` + jsonA + `,` + jsonG + `,
		{"Histogram":{"breaks":[-1,0,4],"densities":[0.5,0.125],"id":8,"scope":["count"]}}],"id":7}}],
	"id":0,"scope":["x","kind","count"],"weights":[0.3,0.7]}}`
)

// TestJSON: the nested objects are the network of the text with the same nodes.
func TestJSON(t *testing.T) {
	formattest.Run(t, spflow.Format, []byte(`{"Sum":{"children":[{"Bernoulli":{"p":0.25,"scope":[0]}},{"Categorical":{"p":[0.5,0.5],"scope":["0"]}}],"weights":[0.5,0.5]}}`))
	m, err := spflow.Parse(jsonText)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := spflow.Parse(goodGraph)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Graph.Nodes) != len(graph.Graph.Nodes) {
		t.Errorf("%d nodes, the text has %d", len(m.Graph.Nodes), len(graph.Graph.Nodes))
	}
	place := map[string]int{}
	for i, name := range m.Names {
		place[name] = i
	}
	a, b := formattest.Evaluator(t, m), formattest.Evaluator(t, graph)
	for _, x := range []float64{-1, 0.5, 2} {
		for _, kind := range []float64{0, 1, 2} {
			for _, count := range []float64{-1, 0, 2} {
				row := make([]float64, 3)
				row[place["x"]], row[place["kind"]], row[place["count"]] = x, kind, count
				got, err1 := a.LogLikelihood(row)
				want, err2 := b.LogLikelihood([]float64{x, kind, count})
				if err := errors.Join(err1, err2); err != nil || !(math.Abs(got-want) <= 1e-12) {
					t.Errorf("x %v, kind %v, count %v: %v, %v; the text has %v", x, kind, count, got, err, want)
				}
			}
		}
	}
}

// TestJSONRefuses: each fault is one line; of two leaves with one number, all has to be the same, not the parameters alone.
func TestJSONRefuses(t *testing.T) {
	twice := func(a, b, rest string) string {
		rest += `,"id":1,"scope":["x"]}}`
		return `{"Sum":{"children":[{` + a + "," + rest + `,{` + b + "," + rest + `],"weights":[0.5,0.5]}}`
	}
	const one = `"Histogram":{"breaks":[0,1,2]`
	if _, err := spflow.Parse(twice(one, one, `"densities":[0.5,0.5]`)); err != nil {
		t.Error(err)
	}
	leaf := `{"Gaussian":{"mean":1,"stdev":2,"scope":["x"]}}`
	for text, want := range map[string]string{
		`{"Sum":{"children":[` + leaf + `],"weights":[1]}`:    "line 1, column 84: EOF",
		`{"Sum":{"children":[],"weights":[]}}`:                "without children",
		`{"Sum":{"weights":[1]}}`:                             "without children",
		`{"Sum":{"children":[` + leaf + `],"weights":[1,0]}}`: "2 weights for 1 children",
		`{"Sum":{"children":[` + leaf + `],"weights":[0.5]}}`: "0.5",
		`{"Sum":{"children":[` + leaf + `],"weights":"one"}}`: "0 weights for 1 children",
		`{"Sum":{"children":[{}],"weights":[1]}}`:             "without a kind",
		`{"Sum":{"children":{"a":1},"weights":[1]}}`:          "where an array should be",
		`{"Sum":[1]}`: "where an object should be",
		`{"Sum":{"children":[` + leaf + `],"weights":[1]},"Product":{}}`:                                                       "a second kind",
		`{"Product":{"children":[{"Cauchy":{"scope":["x"]}}]}}`:                                                                `"Cauchy" where a kind`,
		`{"Gaussian":{"mean":1,"scope":["x"]}}`:                                                                                `0 numbers for "stdev"`,
		`{"Gaussian":{"mean":1,"stdev":-2,"scope":["x"]}}`:                                                                     "gaussian",
		`{"Gaussian":{"mean":1,"stdev":2,"scope":["x","y"]}}`:                                                                  "a leaf over 2 variables",
		`{"Gaussian":{"mean":1,"stdev":2,"scope":[["x"]]}}`:                                                                    `"[" where a variable`,
		`{"Histogram":{"breaks":[0,1],"densities":[1,2],"scope":["x"]}}`:                                                       "2 breaks and 2 densities",
		`{"Product":{"children":[{"Bernoulli":{"p":0.5,"id":1,"scope":["a"]}},{"Bernoulli":{"p":0.6,"id":1,"scope":["b"]}}]}}`: "is not the one that had this number",
		twice(`"Histogram":{"breaks":[0,1,2]`, `"Histogram":{"breaks":[0,2,4]`, `"densities":[0.5,0.25]`):                      "is not the one that had this number",
		twice(`"Gaussian":{"type":0`, `"LogNormal":{"type":0`, `"mean":1,"stdev":2`):                                           "is not the one that had this number",
		`{"Product":{"scope":["a"],"children":[{"Bernoulli":{"p":0.5,"scope":["b"]}}]}}`:                                       `"b" is not in the scope of the outermost object`,
		`{"Bernoulli":{"p":0.5,"scope":[2000000]}}`:                                                                            "give them in the scope of the outermost object",
		leaf + leaf: "\"{\" behind the network; give one network",
		leaf + "}":  "behind the network",
		leaf + " ]": "behind the network",
		leaf + "x":  "behind the network",
		strings.Repeat(`{"Product":{"children":[`, 11000): "nested more than 10000 deep",
	} {
		if _, err := spflow.Parse(text); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want %q in %.200s", err, want, text)
		}
	}
}

// TestSharedJSON: a network that SPNC's authors published as JSON, as a text of SPFlow and with values.
func TestSharedJSON(t *testing.T) {
	for _, name := range []string{"capnp/NIPS5.json", "capnp/NIPS5.execute-example.json", "text/NIPS5.spnc-java.json", "capnp/mini-example.json"} {
		text, err := os.ReadFile(shared + "/spn/" + name)
		if err != nil {
			t.Skip("SKIPPED: no networks in ../shared/data/spn, which is not part of the repository: they are in esa-tu-darmstadt/spn-compiler")
		}
		m, err := spflow.Parse(string(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(name, "NIPS5") {
			continue
		}
		ev, want := formattest.Evaluator(t, m), numbers(t, shared+"/spn/capnp/NIPS5.output.txt")
		cells := strings.Fields(strings.ReplaceAll(string(open(t, shared+"/spn/capnp/NIPS5.input.txt")), ";", " "))
		for i := 0; i < len(want); i += 100 {
			row := make([]float64, 5)
			for v := range row {
				if row[v], err = strconv.ParseFloat(cells[5*i+v], 64); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := ev.LogLikelihood(row); err != nil || !(math.Abs(got-want[i]) <= 1e-9) {
				t.Fatalf("%s, row %d: %v, %v; want %v", name, i, got, err, want[i])
			}
		}
	}
}
