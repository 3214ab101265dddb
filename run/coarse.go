package run

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// coarseSteps is how many numbers of float32 a standard deviation spans at least where rounding to these changes little: with fewer, the
// log-likelihood of an ordinary number may be off by more than a tenth.
const coarseSteps = 4

// Coarse says in a line of which column float32, in which cells are kept, is too coarse for the Gaussian leaves of a circuit that was made
// elsewhere, so that all answers are about rounded numbers; "" where none is. Columns that training has scaled never are.
func (b *Blueprint) Coarse() string {
	read := b.params64()
	seen := map[circuit.NodeID]bool{}
	for i := range b.Graph.Nodes {
		n, owner := &b.Graph.Nodes[i], b.Graph.Owner(circuit.NodeID(i))
		c := &b.Schema.Columns[n.Var]
		if _, normal := n.Leaf.(circuit.Gaussian); !normal || c.Kind != dataset.Continuous || c.Scale != 0 || seen[owner] {
			continue
		}
		seen[owner] = true
		p := make([]float64, b.Graph.NumParams(owner))
		if read(owner, p) != nil { // who computes with them says what is wrong
			continue
		}
		for k := 0; k < len(p); k += 2 {
			size := float32(math.Abs(p[k]))
			if size == 0 { // around which float32 is as fine as it gets
				continue
			}
			if step := float64(math.Nextafter32(size, math.MaxFloat32) - size); p[k+1] < coarseSteps*step {
				rounded := "answers are about rounded numbers"
				if step <= 1 { // whole numbers are as they are, of which a column of pce's own may be
					rounded = "answers about numbers that are not whole are about rounded ones"
				}
				return fmt.Sprintf("%s has Gaussian leaves of a deviation of %.3g around %.6g, where float32, in which cells are kept, has numbers %.3g apart, so that %s; subtract an offset from the model and from the rows",
					b.Schema.ColumnName(n.Var), p[k+1], p[k], step, rounded)
			}
		}
	}
	return ""
}

// Faint says in a line how many probabilities of a circuit that was made elsewhere float32, of which tensors are made, has as 0, so that rows
// which are possible count as impossible there: those that are too small for it, and what a binomial leaf leaves its failures where
// float32 rounds its successes to 1. It is "" where none is.
func (b *Blueprint) Faint() string {
	if b.wide == nil { // no file has more digits than tensors
		return ""
	}
	g, wide := circuit.Reached(b.Graph, b.wide)
	count, least := 0, math.Inf(1)
	for i := range g.Nodes {
		id, n := circuit.NodeID(i), &g.Nodes[i]
		_, binomial := n.Leaf.(circuit.Binomial)
		if !g.OwnsParams(id) || n.Kind == circuit.Input && !binomial && !circuit.ParamsAreTable(n.Leaf) {
			continue
		}
		p := make([]float64, g.NumParams(id))
		if wide(id, p) != nil { // who computes with them says what is wrong
			return ""
		}
		for _, x := range p {
			switch {
			case x > 0 && float32(x) == 0:
				count, least = count+1, min(least, x)
			case binomial && x < 1 && float32(x) == 1:
				count, least = count+1, min(least, 1-x)
			}
		}
	}
	if count == 0 {
		return ""
	}
	are, them := fmt.Sprintf("%d probabilities, the least %.3g, are", count, least), "one of them"
	if count == 1 {
		are, them = fmt.Sprintf("a probability of %.3g is", least), "it"
	}
	return fmt.Sprintf("%s 0 in answers of the tensor path, whose parameters are float32, so that rows which need %s count as impossible; the path of code has float64, for log-likelihoods",
		are, them)
}
