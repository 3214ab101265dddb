package spn

import (
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// maxRareCode is the most instructions in log space that are compiled for rows which are rare: some tenths of a second.
const maxRareCode = 50_000

// exact returns the program for the rows that a module of o's type does not compute, whose log-likelihoods are below least, and the bound of
// what it returns or, where that is nil, of Again.
func (c *code) exact(numVars int, o Options, least float64) (*Program, Bound, error) {
	if o.Type == simt.F64 {
		// Code in log space is some ten times as long as in linear space. Where twice the logarithm that the circuit's own rows have is above
		// least, hardly any row needs it.
		if o.Space = Log; 2*c.typical()*math.Ln2 > least && c.logCode() > maxRareCode {
			return nil, c.logBound(simt.F64), nil
		}
	}
	o.Type, o.Joint = simt.F64, 0
	p, err := c.program(numVars, o)
	if err != nil {
		return nil, Bound{}, err
	}
	return p, p.Bound, nil
}

// logCode is about how many instructions the code has in log space.
func (c *code) logCode() int {
	const each, term, sum = 2, 27, 40 // of an operand, of one of a sum with its exponential, and of a sum's logarithm
	n := 0
	for i := range c.ops {
		switch o := &c.ops[i]; {
		case !o.used:
		case o.kind == circuit.Sum && len(o.args) > 1:
			n += sum + term*len(o.args)
		default:
			n += each * (1 + len(o.args))
		}
	}
	return n
}

// typical is about the mean logarithm to base 2 of the likelihoods of rows that the circuit draws: leaves have their entropy, and sums what their
// operands have on average, which is less than what they have together.
func (c *code) typical() float64 {
	mean := make([]float64, len(c.ops))
	entropy := func(p, d float64) float64 { // of probability p with density d
		if p == 0 {
			return 0
		}
		return p * math.Log2(d)
	}
	for i := range c.ops {
		o := &c.ops[i]
		switch {
		case !o.used:
		case o.gaussian:
			mean[i] = -math.Log2(o.sd * math.Sqrt(2*math.Pi*math.E))
		case o.kind == circuit.Input:
			for k, d := range o.table {
				p := d
				if o.histograms {
					p *= o.histogram.Breaks[k+1] - o.histogram.Breaks[k]
				}
				mean[i] += entropy(p, d)
			}
		case o.kind == circuit.Product:
			for _, a := range o.args {
				mean[i] += mean[a]
			}
		default:
			weights, total := o.weightsGiven(), 0.0
			for k, a := range o.args {
				mean[i] += weights[k] * mean[a]
				total += weights[k]
			}
			mean[i] /= total
		}
	}
	most := math.Inf(-1)
	for _, r := range c.roots {
		if r != nowhere {
			most = math.Max(most, mean[r])
		}
	}
	return most
}

// Again computes the rows of a program that neither its module nor Exact computes: those below Least and, of scaled space, with NaN. x has the cells
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
