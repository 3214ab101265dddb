package rtl_test

import (
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"io"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/rtl"
)

// dataOf names the rows of a shared network, and how many of their columns it reads, 0 for all.
func dataOf(name string) (path string, columns int) {
	switch name {
	case "ACCIDENTS_4000":
		return "accidents/accidents.test.data.gz", 0
	case "BAUDIO_4000":
		return "audio/baudio.test.data.gz", 0
	case "MSNBC_200":
		return "msnbc/msnbc.test.data.gz", 0
	case "NLTCS_200":
		return "nltcs/nltcs.test.data.gz", 0
	case "PLANTS_4000":
		return "plants/plants.test.data.gz", 0
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "NIPS"))
	return "nips-bow/nips100.csv.gz", n
}

// rowsOf reads the rows of a shared network.
func rowsOf(t testing.TB, name string) [][]float64 {
	t.Helper()
	path, columns := dataOf(name)
	f, err := os.Open(filepath.Join(sharedData, "density", path))
	if err != nil {
		t.Skipf("no rows %s in ../shared/data/density: DEBD has the binary sets, SPFlow's repository the counts", path)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float64
	for _, line := range strings.Fields(string(text)) {
		cells := strings.Split(line, ",")
		if columns > 0 {
			cells = cells[:columns]
		}
		row := make([]float64, len(cells))
		for i, c := range cells {
			if row[i], err = strconv.ParseFloat(c, 64); err != nil && len(rows) > 0 {
				t.Fatal(err)
			}
		}
		if err == nil { // the first line may be names
			rows = append(rows, row)
		}
	}
	return rows
}

// agree compares a datapath with the evaluator in float64 on rows, within a relative error.
func agree(t *testing.T, what string, d *rtl.Datapath, g *circuit.Graph, params reference.Params, rows [][]float64) {
	t.Helper()
	ev, err := reference.New(g, params)
	if err != nil {
		t.Fatal(err)
	}
	codes := make([]int, g.NumVars)
	for r, row := range rows {
		want, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Encode(row, codes); err != nil {
			t.Fatalf("%s, row %d: %v", what, r, err)
		}
		got := d.Evaluate(codes)
		// The logarithm of a likelihood within 1e-12 of the right one is within 1e-12 of its.
		if diff := math.Abs(math.Log(got) - want); !(diff <= 1e-12*math.Max(1, math.Abs(want))) && !(got == 0 && math.IsInf(want, -1)) {
			t.Fatalf("%s, row %d %v: log %v = %v, want %v", what, r, row, got, math.Log(got), want)
		}
	}
}

// options of both kinds of datapaths.
func kinds(base rtl.Options) map[string]rtl.Options {
	faithful := base
	faithful.Faithful = true
	return map[string]rtl.Options{"faithful": faithful, "default": base}
}

// TestSharedRows compares datapaths of public networks with float64 evaluation on their test rows.
func TestSharedRows(t *testing.T) {
	for _, c := range table1 {
		m := shared(t, c.name)
		params, err := reference.Load64(m.Graph, m.Params64)
		if err != nil {
			t.Fatal(err)
		}
		rows := rowsOf(t, c.name)
		if len(rows) > 300 {
			rows = rows[:300]
		}
		for kind, o := range kinds(rtl.DefaultOptions()) {
			for _, o.Marginals = range []bool{false, true} {
				d, err := rtl.Compile(m.Graph, m.Params64, o)
				if err != nil {
					t.Fatal(err)
				}
				list := rows
				if o.Marginals {
					list = withMissing(rows[:60])
				}
				agree(t, fmt.Sprintf("%s, %s, marginals %v", c.name, kind, o.Marginals), d, m.Graph, params, list)
			}
		}
	}
}

// withMissing copies rows without about a third of their cells.
func withMissing(rows [][]float64) [][]float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	var list [][]float64
	for _, row := range rows {
		row = append([]float64(nil), row...)
		for v := range row {
			if rng.IntN(3) == 0 {
				row[v] = math.NaN()
			}
		}
		list = append(list, row)
	}
	return append(list, reference.MissingRow(len(rows[0])))
}

// TestRandomCircuits compiles random circuits of blocks of units, with every size of tables.
func TestRandomCircuits(t *testing.T) {
	compiled := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		g := reference.Random(rng, reference.RandomOptions{MaxUnits: 3, MaxNodes: 20, Discrete: true})
		params, err := reference.Init(g, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if circuit.Count(g).SumEdges > 300 {
			continue
		}
		base := rtl.DefaultOptions()
		base.TableBits = 4 + int(seed%9)
		for kind, o := range kinds(base) {
			for _, o.Marginals = range []bool{false, true} {
				d, err := rtl.Compile(g, params.Read64, o)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				missing := 0.0
				if o.Marginals {
					missing = 0.3
				}
				compiled++
				agree(t, fmt.Sprintf("seed %d, %s", seed, kind), d, g, params, reference.RandomRows(g, rng, 12, missing))
			}
		}
	}
	if compiled < 100 {
		t.Errorf("only %d datapaths were compiled", compiled)
	}
}

// TestSharedProduct compiles sums of one term over a product that two of them read, each of which goes into a product of its own.
func TestSharedProduct(t *testing.T) {
	g := &circuit.Graph{NumVars: 4}
	var weights [][]float64
	add := func(n circuit.Node, p ...float64) circuit.NodeID {
		n.Units = 1
		g.Nodes, weights = append(g.Nodes, n), append(weights, p)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	leaf := func(v int, p float64) circuit.NodeID {
		return add(circuit.Node{Kind: circuit.Input, Var: v, Leaf: circuit.Categorical{Categories: 2}}, p, 1-p)
	}
	of := func(kind circuit.Kind, p []float64, children ...circuit.NodeID) circuit.NodeID {
		return add(circuit.Node{Kind: kind, Children: children}, p...)
	}
	shared := of(circuit.Product, nil, leaf(0, 0.3), leaf(1, 0.6), leaf(2, 0.9))
	one := []float64{1}
	left, right := of(circuit.Sum, one, shared), of(circuit.Sum, one, shared)
	g.Root = of(circuit.Sum, []float64{0.4, 0.6}, of(circuit.Product, nil, left, leaf(3, 0.9)), of(circuit.Product, nil, right, leaf(3, 0.2)))
	params, err := reference.Load64(g, func(id circuit.NodeID, dst []float64) error {
		copy(dst, weights[id])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float64
	for k := range 16 {
		rows = append(rows, []float64{float64(k & 1), float64(k >> 1 & 1), float64(k >> 2 & 1), float64(k >> 3)})
	}
	for kind, o := range kinds(rtl.DefaultOptions()) {
		d, err := rtl.Compile(g, params.Read64, o)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, kind, d, g, params, rows)
	}
}
