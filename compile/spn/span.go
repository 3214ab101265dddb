package spn

import (
	"math"

	"github.com/pce-engine/pce/kernels/simt"
)

// spanKind is the kind of a span.
type spanKind uint8

const (
	spanClass    spanKind = iota // a cell as the class of its leaves' tables, or with 0 where it is missing
	spanLeaf                     // a leaf
	spanTable                    // a table over several variables
	spanLog2                     // a logarithm
	spanExp2                     // an exponential
	spanExponent                 // the exponent of a number and its inverse as a power of 2
	spanMarginal                 // what missing cells take away from quadratic forms
	spanLn                       // a natural logarithm
	spanNats                     // from logarithms to base 2 to natural ones
)

var spanNames = [...]string{"observe", "", "table", "log", "exp", "exponent", "marginal", "ln", "convert_log"}

// span says that the instructions which define the values from..to are one operation of LoSPN. Loads and constants
// among them are not part of it.
type span struct {
	from, to simt.Value
	kind     spanKind
	op       *op     // of a leaf or table
	times    float64 // of a leaf: by what it is multiplied
}

// span calls emit, and notes that what it appends is one operation.
func (e *emitter) span(kind spanKind, o *op, emit func() simt.Value) simt.Value {
	from := e.b.Values()
	v := emit()
	if to := e.b.Values(); to > from {
		s := span{from: from, to: to, kind: kind, op: o, times: 1}
		if kind == spanLeaf {
			if s.times = o.factor; e.space == Linear {
				s.times = math.Ldexp(s.times, o.lift)
			}
		}
		e.spans = append(e.spans, s)
	}
	return v
}

func (e *emitter) ln(x simt.Value, power int) simt.Value {
	return e.span(spanLn, nil, func() simt.Value { return e.b.Log(x, power) })
}

func (e *emitter) exp2Normal(x simt.Value) simt.Value {
	return e.span(spanExp2, nil, func() simt.Value { return e.b.Exp2Normal(x) })
}

// nats returns the natural logarithm of which x is that to base 2.
func (e *emitter) nats(x simt.Value) simt.Value {
	return e.span(spanNats, nil, func() simt.Value { return e.b.Mul(x, e.b.Float(e.t, math.Ln2)) })
}
