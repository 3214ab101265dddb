package spn

import (
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// absorb moves weights of sums into the tables of leaves, where they cost no instruction: a product that nothing else reads is w times
// as large if one of its factors is. So a weight goes down from operation to operation, as long as each has no other reader: of a
// product into one factor, a leaf if there is one; of a sum into all its weights, which go down in their turn. What the table of a
// leaf has for a missing cell, 1, is multiplied too. Values and products of some factors stay in the range that they had, because what
// is w times as large now was multiplied by w one operation later; only what is lost below the least normal number counts for more.
func (c *code) absorb() {
	takes := make([]bool, len(c.ops))
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used || o.uses != 1 {
			continue
		}
		switch o.kind {
		case circuit.Input:
			takes[i] = !o.gaussian
		case circuit.Product:
			takes[i] = slices.ContainsFunc(o.args, func(a int32) bool { return takes[a] })
		default:
			takes[i] = true
		}
	}
	for i := len(c.ops) - 1; i >= 0; i-- { // readers first
		o := &c.ops[i]
		if !o.used || o.kind != circuit.Sum {
			continue
		}
		for k, a := range o.args {
			w := o.weights[k]
			if w == 1 || !takes[a] {
				continue
			}
			to := &c.ops[a]
			for to.kind == circuit.Product {
				at := slices.IndexFunc(to.args, func(a int32) bool { return takes[a] && c.ops[a].kind == circuit.Input })
				if at < 0 {
					at = slices.IndexFunc(to.args, func(a int32) bool { return takes[a] })
				}
				to = &c.ops[to.args[at]]
			}
			if to.multiply(w) {
				o.keep()
				o.weights[k] = 1
			}
		}
	}
	c.ranges()
}

// multiply multiplies a leaf by a weight, or the weights of a sum, unless one of them would not be a normal number.
func (o *op) multiply(w float64) bool {
	normal := func(x float64) bool { return x >= 0x1p-1022 && !math.IsInf(x, 1) }
	if o.kind == circuit.Input {
		if !normal(o.factor * w) {
			return false
		}
		o.factor *= w
	} else {
		if !normal(slices.Min(o.weights)*w) || !normal(slices.Max(o.weights)*w) {
			return false
		}
		o.keep()
		for i := range o.weights {
			o.weights[i] *= w
		}
	}
	o.moved += math.Abs(math.Log2(w))
	return true
}

// keep notes the weights that a sum has in the circuit before they change.
func (o *op) keep() {
	if o.given == nil {
		o.given, o.weights = o.weights, slices.Clone(o.weights)
	}
}

// weightsGiven returns the weights that a sum has in the circuit.
func (o *op) weightsGiven() []float64 {
	if o.given != nil {
		return o.given
	}
	return o.weights
}
