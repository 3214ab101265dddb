package codec

import (
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// order lists the variables that the root depends on in the order in which they are
// coded: that of a walk down from the root, product by product, along the first child
// of each sum, whose other children have the same variables. Where all products of one
// scope split it alike, the variables below any node then follow one another.
func order(g *circuit.Graph) []int32 {
	var vars []int32
	stack := []circuit.NodeID{g.Root}
	for len(stack) > 0 {
		n := &g.Nodes[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		switch n.Kind {
		case circuit.Input:
			vars = append(vars, int32(n.Var))
		case circuit.Sum:
			stack = append(stack, n.Children[0])
		case circuit.Product:
			for _, c := range slices.Backward(n.Children) {
				stack = append(stack, c)
			}
		}
	}
	return vars
}

// span is a run of steps, from inclusive to exclusive. Step t codes variable order[t].
type span struct{ from, to int32 }

// maxSpans bounds the memory of spans, and maxOps that of a plan.
const (
	maxSpans = 1 << 25
	maxOps   = 1 << 27
)

// stepsOf returns for each node that the root reaches the steps of the variables in its
// scope, as ascending runs that do not touch.
func stepsOf(g *circuit.Graph, vars []int32, used []bool) ([][]span, error) {
	at := make([]int32, g.NumVars)
	for t, v := range vars {
		at[v] = int32(t)
	}
	steps := make([][]span, len(g.Nodes))
	total := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch {
		case !used[i]:
		case n.Kind == circuit.Input:
			t := at[n.Var]
			steps[i] = []span{{t, t + 1}}
		case n.Kind == circuit.Sum || len(n.Children) == 1:
			steps[i] = steps[n.Children[0]]
		default:
			var all []span
			for _, c := range n.Children {
				all = append(all, steps[c]...)
			}
			slices.SortFunc(all, func(a, b span) int { return int(a.from) - int(b.from) })
			joined := all[:1]
			for _, s := range all[1:] {
				if last := &joined[len(joined)-1]; last.to == s.from {
					last.to = s.to
				} else {
					joined = append(joined, s)
				}
			}
			steps[i] = slices.Clip(joined)
			if total += len(joined); total > maxSpans {
				return nil, badModel("the circuit splits its variables in too many ways to code them one by one")
			}
		}
	}
	return steps, nil
}

// runStart returns where the run of steps begins that holds step t.
func runStart(steps []span, t int32) int32 {
	i, found := slices.BinarySearchFunc(steps, t, func(s span, t int32) int { return int(s.from) - int(t) })
	if !found {
		i--
	}
	return steps[i].from
}
