package spn

import (
	"math"

	"github.com/pce-engine/pce/circuit"
)

// Again computes rows of a program in scaled space that its module does not compute: those that have NaN. x has the cells
// of rows as the module's input of float32, [variable][pitch], ll the natural-log likelihoods of the first rows,
// [row][root]. It walks the operations in float64 and log space, which takes some nanoseconds for each operand.
func (p *Program) Again(x []float32, pitch, rows int, ll []float64) {
	c := p.code
	values := make([]float64, len(c.ops)) // logarithms to base 2
	for r := range rows {
		for i := range c.ops {
			if o := &c.ops[i]; o.used {
				values[i] = o.log(values, func(v int) float64 { return float64(x[v*pitch+r]) })
			}
		}
		for k, root := range c.roots {
			at := &ll[r*len(c.roots)+k]
			if *at = math.Inf(-1); root != nowhere {
				*at = values[root] * math.Ln2
			}
		}
	}
}

// log returns the logarithm of an operation to base 2.
func (o *op) log(values []float64, cell func(variable int) float64) float64 {
	switch {
	case o.gaussian:
		x := cell(o.variable)
		if x != x {
			return 0
		}
		z := (x - o.mean) / o.sd
		return -z*z*(math.Log2E/2) - math.Log2(o.sd*math.Sqrt(2*math.Pi))
	case o.kind == circuit.Input:
		return o.logAt(cell(o.variable))
	case o.kind == circuit.Product:
		sum := 0.0
		for _, a := range o.args {
			sum += values[a]
		}
		return sum
	}
	top := math.Inf(-1)
	for _, a := range o.args {
		top = math.Max(top, values[a])
	}
	if math.IsInf(top, -1) {
		return top
	}
	const far = 1100 // terms that are less by that power of 2 do not count
	sum := 0.0
	for k, a := range o.args {
		if d := values[a] - top; d > -far {
			sum += o.weights[k] * math.Exp2(d)
		}
	}
	if sum > 0x1p-900 {
		return top + math.Log2(sum)
	}
	// Weights are so small that their products with values are not normal numbers.
	term := func(k int) float64 { return values[o.args[k]] + math.Log2(o.weights[k]) }
	top, sum = math.Inf(-1), 0
	for k := range o.args {
		top = math.Max(top, term(k))
	}
	for k := range o.args {
		if d := term(k) - top; d > -far {
			sum += math.Exp2(d)
		}
	}
	return top + math.Log2(sum)
}
