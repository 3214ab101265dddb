package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestAsk wants one computation for equal questions, and another for whatever a
// question may differ in.
func TestAsk(t *testing.T) {
	type question struct {
		g    *circuit.Graph
		p    reference.Params
		rows [][]float64
		text string
	}
	fresh := func() question {
		g, p := banded()
		return question{g, p, [][]float64{{0, 1, 0, 1, 0, math.NaN()}, {0, 1, 1, 1, 1, 1}}, fmt.Sprintf("%p", t)}
	}
	asked := 0
	ask := func(q question) {
		_, _ = remember(digestOf(q.g, q.p).ask(q.text, q.rows...), func() (int, error) { asked++; return 0, nil })
	}
	ask(fresh())
	ask(fresh())
	if asked != 1 {
		t.Fatalf("an equal question was computed %d times, want once", asked)
	}
	for what, edit := range map[string]func(q *question){
		"the question":        func(q *question) { q.text += "s" },
		"a cell":              func(q *question) { q.rows[1][2] = 0 },
		"a missing cell":      func(q *question) { q.rows[0][5] = 0 },
		"the rows":            func(q *question) { q.rows = q.rows[:1] },
		"where rows end":      func(q *question) { q.rows[0] = append(q.rows[0], q.rows[1][0]); q.rows[1] = q.rows[1][1:] },
		"a parameter":         func(q *question) { q.p[0][1] = math.Nextafter(q.p[0][1], 1) },
		"the variables":       func(q *question) { q.g.NumVars++ },
		"the root":            func(q *question) { q.g.Root-- },
		"a leaf":              func(q *question) { q.g.Nodes[0].Leaf = circuit.Categorical{Categories: 3} },
		"a leaf's family":     func(q *question) { q.g.Nodes[0].Leaf = circuit.Bernoulli{} },
		"a tie":               func(q *question) { q.g.Nodes[1].Tie = circuit.TieTo(0) },
		"a mask":              func(q *question) { last(q.g).Edges.Mask[0] ^= 1 },
		"a pair":              func(q *question) { last(q.g).Edges.Pairs[0][0]++ },
		"that it has no mask": func(q *question) { last(q.g).Edges = nil },
	} {
		q, before := fresh(), asked
		edit(&q)
		ask(q)
		ask(q)
		if asked != before+1 {
			t.Errorf("a question that differs in %s was computed %d times, want once", what, asked-before)
		}
	}
}

func last(g *circuit.Graph) *circuit.Node { return &g.Nodes[len(g.Nodes)-1] }
