package rtl

import "github.com/pce-engine/pce/circuit"

// faithful builds the datapath of the paper: a look-up per leaf, a multiplication by the weight
// for every operand of a sum, lists split at the middle.
func faithful(units []unit, columns []Column, o *Options) *Datapath {
	d := newDatapath(columns, o)
	d.distinct = true
	values := make([]int32, len(units))
	for i := range units {
		u := &units[i]
		operands := make([]int32, len(u.args))
		for k, a := range u.args {
			operands[k] = values[a]
		}
		switch u.kind {
		case circuit.Input:
			values[i] = d.lookup(d.leafTable(u))
		case circuit.Product:
			values[i] = d.split(Mul, operands)
		default:
			for k, w := range u.weights {
				operands[k] = d.add(Op{Kind: Mul, A: operands[k], B: d.constant(w)})
			}
			values[i] = d.split(Sum, operands)
		}
	}
	d.finish(values[len(units)-1])
	return d
}
