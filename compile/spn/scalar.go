package spn

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// maxOps bounds the scalar operations and operands of a circuit.
const maxOps = 1 << 26

// op is a scalar operation; its operands come before it.
type op struct {
	kind    circuit.Kind
	args    []int32
	weights []float64 // of a sum
	given   []float64 // of a sum: its weights before some were absorbed; nil: as they are

	// Of a leaf.
	variable   int
	gaussian   bool
	mean, sd   float64
	table      []float64             // probabilities of the codes
	logs       []float64             // of probabilities that a formula gives, to base 2; nil: those of the table
	histogram  circuit.RealHistogram // with density in table
	histograms bool
	factor     float64 // by which the leaf is multiplied, see absorb

	group        int32 // the units of a node have the same; see scaled.go
	uses         int   // operations that read it, the outputs included
	used         bool  // reached from a root, once fold has run
	lo, hi       float64
	below, above float64 // of a product: the least and the largest value of a product of some of its factors, to base 2
	relative     float64 // see bound.go
	absolute     float64
	lost         float64
	roundedFolds int     // weights that fold has multiplied
	lift         int     // the power of 2 by which the leaf is multiplied too, in linear space; see lift
	moved        float64 // Σ|log2| of the weights that absorb has multiplied it by
	near         bool    // of a Gaussian: computed around a center, see logs
	shift        float64 // of one: |mean - center|·s
	residual     float64 // of one: how far the mean is from the one that is subtracted, in deviations
	joined       bool    // of a product: its Gaussians are computed with those of others, see together
}

// code is a circuit as scalar operations.
type code struct {
	ops            []op
	roots          []int32 // nowhere: an output that is 0
	known          map[string]int32
	key            []byte // memory of add
	groups         int32
	least, largest float64 // log2 of values that are not 0
	lifted         int     // the power of 2 by which roots are multiplied in linear space
	zeros          bool    // a leaf may be 0
}

// sumOf returns unit u of a sum, without weights of 0.
func sumOf(g *circuit.Graph, n *circuit.Node, columns []int32, p []float64, u int) op {
	o := op{kind: circuit.Sum}
	term := func(column, param int) {
		if w := p[param]; w > 0 && columns[column] != nowhere {
			o.args, o.weights = append(o.args, columns[column]), append(o.weights, w)
		}
	}
	if n.Edges == nil {
		for k := range columns {
			term(k, u*len(columns)+k)
		}
		return o
	}
	e := n.Edges
	for k, pair := range e.Pairs {
		if r := u - int(pair[0])*e.Rows; r >= 0 && r < e.Rows {
			for col := range e.Cols {
				if at := (k*e.Rows+r)*e.Cols + col; e.Has(at) {
					term(int(pair[1])*e.Cols+col, at)
				}
			}
		}
	}
	return o
}

// leafOf returns a unit of an input.
func leafOf(n *circuit.Node, p []float64) op {
	o := op{kind: circuit.Input, variable: n.Var}
	switch l := n.Leaf.(type) {
	case circuit.Gaussian:
		o.gaussian, o.mean, o.sd = true, p[0], p[1]
	case circuit.RealHistogram:
		o.histograms, o.histogram = true, l
		o.table = make([]float64, len(p))
		for i, d := range p {
			o.table[i] = max(d, l.Floor)
		}
	default:
		o.table = make([]float64, l.Codes())
		if circuit.ParamsAreTable(l) {
			copy(o.table, p)
			break
		}
		o.logs = make([]float64, len(o.table)) // also of what is too small for float64
		for x := range o.table {
			log := l.LogProb(p, float64(x))
			o.table[x], o.logs[x] = math.Exp(log), log*math.Log2E
		}
	}
	return o
}

// add returns the number of an operation that equals o, which it makes if there is none. A
// product or sum of one operand without weight is that operand.
func (c *code) add(o op) int32 {
	if len(o.args) == 1 && (o.kind == circuit.Product || o.weights[0] == 1) {
		return o.args[0]
	}
	key := append(c.key[:0], byte(o.kind), 0)
	if o.gaussian {
		key[1] = 1
	}
	if o.histograms {
		key[1] = 2
	}
	word := func(x uint64) { key = binary.LittleEndian.AppendUint64(key, x) }
	word(uint64(o.variable))
	word(uint64(len(o.args)))
	for _, a := range o.args {
		word(uint64(a))
	}
	for _, list := range [][]float64{o.weights, {o.mean, o.sd, o.histogram.Floor}, o.table, o.logs, o.histogram.Breaks} {
		word(uint64(len(list)))
		for _, x := range list {
			word(math.Float64bits(x))
		}
	}
	c.key = key
	if at, ok := c.known[string(key)]; ok {
		return at
	}
	o.factor = 1
	c.ops = append(c.ops, o)
	at := int32(len(c.ops) - 1)
	c.known[string(key)] = at
	return at
}

// fold joins products within products and sums within sums that have no other reader, and
// marks what the roots need.
func (c *code) fold() {
	for _, r := range c.roots {
		if r != nowhere {
			c.ops[r].uses++
		}
	}
	for i := range c.ops {
		for _, a := range c.ops[i].args {
			c.ops[a].uses++
		}
	}
	for i := range c.ops {
		o := &c.ops[i]
		var args []int32
		var weights []float64
		joined := false
		joins := func(k int) bool {
			child := &c.ops[o.args[k]]
			// A product of weights below the least normal number is not what they are one after the other.
			return child.kind == o.kind && child.uses == 1 && len(child.args) > 0 &&
				(o.weights == nil || o.weights[k]*slices.Min(child.weights) >= 0x1p-1022)
		}
		for k := range o.args {
			joined = joined || joins(k)
		}
		if !joined {
			continue
		}
		for k, a := range o.args {
			child := &c.ops[a]
			if !joins(k) {
				args = append(args, a)
				if o.weights != nil {
					weights = append(weights, o.weights[k])
				}
				continue
			}
			for i := range child.weights {
				child.weights[i] *= o.weights[k]
			}
			if k == 0 { // nothing else reads them, and long chains take no copy for each operation
				args, weights = child.args, child.weights
			} else {
				args, weights = append(args, child.args...), append(weights, child.weights...)
			}
			child.args, child.weights = nil, nil
			o.roundedFolds = max(o.roundedFolds, child.roundedFolds+1)
		}
		o.args, o.weights = args, weights
	}
	for _, r := range c.roots {
		if r != nowhere {
			c.ops[r].used = true
		}
	}
	for i := len(c.ops) - 1; i >= 0; i-- {
		if c.ops[i].used {
			for _, a := range c.ops[i].args {
				c.ops[a].used = true
			}
		}
	}
}
