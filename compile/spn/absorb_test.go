package spn_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// TestAbsorb holds circuits whose weights go into leaves, in part or not at all, to the evaluator, and counts the weights that are left
// in the code.
func TestAbsorb(t *testing.T) {
	leaf := func(v int, p ...float64) string {
		return fmt.Sprintf("Categorical(V%d|p=[%s])", v, strings.Trim(strings.ReplaceAll(fmt.Sprint(p), " ", ","), "[]"))
	}
	product := func(list ...string) string { return "(" + strings.Join(list, " * ") + ")" }
	sum := func(list ...any) string {
		var terms []string
		for i := 0; i < len(list); i += 2 {
			terms = append(terms, fmt.Sprintf("%v*(%s)", list[i], list[i+1]))
		}
		return "(" + strings.Join(terms, " + ") + ")"
	}
	shared := leaf(0, 0.25, 0.75)
	gauss := func(mean float64) string {
		return fmt.Sprintf("(Gaussian(V0|mean=%v;stdev=1) * Gaussian(V1|mean=%v;stdev=1))", mean, -mean)
	}
	for _, test := range []struct {
		name, text string
		left       int // weights in the code
	}{
		{"tree", sum(0.3, product(leaf(0, 0.1, 0.9), leaf(1, 0.5, 0.5)), 0.7, product(leaf(0, 0.6, 0.4), leaf(1, 0.2, 0.8))), 0},
		{"a sum as a factor", sum(0.3, product(leaf(0, 0.1, 0.9), sum(0.25, product(leaf(1, 0.3, 0.7), leaf(2, 0.9, 0.1)), 0.75, product(leaf(1, 0.2, 0.8), leaf(2, 0.4, 0.6)))),
			0.7, product(sum(0.5, product(leaf(0, 0.35, 0.65), leaf(1, 0.05, 0.95)), 0.5, product(leaf(0, 0.15, 0.85), leaf(1, 0.45, 0.55))), leaf(2, 0.7, 0.3))), 0},
		{"leaves of which others are readers too", sum(0.3, product(shared, leaf(1, 0.5, 0.5)), 0.7, product(shared, leaf(1, 0.2, 0.8))), 0},
		{"only leaves of which others are readers too", sum(0.3, product(shared, leaf(1, 0.5, 0.5)), 0.5, product(shared, leaf(1, 0.2, 0.8)), 0.2, product(leaf(0, 0.6, 0.4), leaf(1, 0.5, 0.5))), 1},
		{"Gaussians", sum(0.3, gauss(1), 0.7, gauss(2)), 2},
		{"a sum of leaves", sum(0.125, leaf(0, 0.3, 0.7), 0.875, leaf(0, 0.6, 0.4)), 0},
		{"weights that are not normal together", sum(1e-200, product(leaf(0, 0.1, 0.9), sum(1e-200, product(leaf(1, 0.3, 0.7), leaf(2, 0.9, 0.1)), 1, product(leaf(1, 0.2, 0.8), leaf(2, 0.4, 0.6)))), 1,
			product(leaf(0, 0.6, 0.4), product(leaf(1, 0.5, 0.5), leaf(2, 0.25, 0.75)))), 0},
		{"tiny probabilities", sum(1e-200, product(leaf(0, 1e-150, 1), leaf(1, 0.5, 0.5)), 1, product(leaf(0, 0, 1), leaf(1, 0.2, 0.8))), 0},
	} {
		m, err := spflow.Parse(test.text)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		params, err := reference.Load64(m.Graph, m.Params64)
		if err != nil {
			t.Fatal(err)
		}
		var rows [][]float64
		for k := range int(math.Pow(3, float64(m.Graph.NumVars))) {
			row := make([]float64, m.Graph.NumVars)
			for v := range row {
				if row[v] = float64(k % 3); k%3 == 2 {
					row[v] = math.NaN()
				}
				k /= 3
			}
			rows = append(rows, row)
		}
		for _, o := range options {
			check(t, test.name, m.Graph, params, o, rows)
		}
		for _, space := range []spn.Space{spn.Linear, spn.Log} {
			p, err := spn.Compile(m.Graph, m.Params64, spn.Options{Space: space, Type: simt.F64})
			if err != nil {
				t.Fatal(err)
			}
			quadratic := space == spn.Log && strings.Contains(test.text, "Gaussian") // forms have numbers of their own
			if got := weightsIn(p); got != test.left && !quadratic {
				t.Errorf("%s, %s space: %d weights in the code, want %d:\n%s", test.name, space, got, test.left, p.LoSPN(cutAt(1<<30)))
			}
			plain, err := spn.Compile(m.Graph, m.Params64, spn.Options{Space: spn.Scaled, Type: simt.F64})
			if err != nil {
				t.Fatal(err)
			}
			if graph := func(p *spn.Program) string { return p.HiSPN()[strings.Index(p.HiSPN(), "graph"):] }; graph(p) != graph(plain) {
				t.Errorf("%s, %s space: the graph is\n%s\nwant\n%s", test.name, space, graph(p), graph(plain))
			}
		}
	}
}

// weightsIn counts the operations of a text in which a number is a factor, or a term in log space.
func weightsIn(p *spn.Program) int {
	n := 0
	for _, line := range strings.Split(p.LoSPN(cutAt(1<<30)), "\n") {
		if strings.HasPrefix(line, "kernel") && strings.Contains(line, "log space") && p.Space == spn.Linear {
			break // of rows that are computed again
		}
		words := strings.Fields(line)
		if len(words) > 3 && slices.Contains([]string{"mul", "fma", "add"}, words[2]) && slices.ContainsFunc(words[3:], func(w string) bool { return w[0] >= '0' && w[0] <= '9' || w[0] == '-' }) {
			n++
		}
	}
	return n
}
