package fold

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/kernels/simt"
)

// Operator combines two elements into one. It has to be associative and commutative up to the rounding of floats.
type Operator struct {
	Name string
	// Types are those of the numbers of an element.
	Types []simt.Type
	// Initial returns the element that changes no other when it is combined with it.
	Initial func(b *simt.Builder) []simt.Value
	// Combine returns two elements as one.
	Combine func(b *simt.Builder, x, y []simt.Value) []simt.Value
}

// Sum adds. Its initial element is -0 for floats, which changes no sum, not even -0.
func Sum(t simt.Type) *Operator { return arithmetic("sum", simt.Add, t, math.Copysign(0, -1), 0) }

// Product multiplies.
func Product(t simt.Type) *Operator { return arithmetic("product", simt.Mul, t, 1, 1) }

// Max takes the largest number. Of floats none may be NaN.
func Max(t simt.Type) *Operator { return arithmetic("max", simt.Max, t, math.Inf(-1), least(t)) }

// Min takes the smallest number. Of floats none may be NaN.
func Min(t simt.Type) *Operator { return arithmetic("min", simt.Min, t, math.Inf(1), ^least(t)) }

// least is the smallest integer of a type.
func least(t simt.Type) int64 {
	if t == simt.I64 {
		return math.MinInt64
	}
	return math.MinInt32
}

// arithmetic is an operator of one number by one operation of the language.
func arithmetic(name string, op simt.Op, t simt.Type, float float64, integer int64) *Operator {
	return &Operator{Name: name, Types: []simt.Type{t},
		Initial: func(b *simt.Builder) []simt.Value { return []simt.Value{constant(b, t, float, integer)} },
		Combine: func(b *simt.Builder, x, y []simt.Value) []simt.Value {
			return []simt.Value{b.Binary(op, x[0], y[0])}
		}}
}

// constant returns a number of a type.
func constant(b *simt.Builder, t simt.Type, float float64, integer int64) simt.Value {
	if t == simt.F32 || t == simt.F64 {
		return b.Float(t, float)
	}
	return b.Int(t, integer)
}

// ArgMax takes the largest number and its index, an i32: of equal numbers the smallest index. NaN is never taken; where
// there is nothing else, the index is the largest i32.
func ArgMax(t simt.Type) *Operator {
	return &Operator{Name: "argMax", Types: []simt.Type{t, simt.I32},
		Initial: func(b *simt.Builder) []simt.Value {
			return []simt.Value{constant(b, t, math.Inf(-1), least(t)), b.Int(simt.I32, math.MaxInt32)}
		},
		Combine: func(b *simt.Builder, x, y []simt.Value) []simt.Value {
			first := b.Binary(simt.And, b.Binary(simt.Eq, y[0], x[0]), b.Binary(simt.Lt, y[1], x[1]))
			taken := b.Binary(simt.Or, b.Binary(simt.Lt, x[0], y[0]), first)
			return []simt.Value{b.Select(taken, y[0], x[0]), b.Select(taken, y[1], x[1])}
		}}
}

// Combiner returns a module whose lanes are elements: the inputs are the numbers of x and then those of y, a column for
// each, and the outputs those of the combined elements, which may lie where x does.
func (o *Operator) Combiner() (*simt.Module, error) {
	b := simt.NewBuilder(o.Name)
	var sides [2][]simt.Value
	for i, name := range []string{"x", "y"} {
		for k, t := range o.Types {
			sides[i] = append(sides[i], b.Load(b.Input(fmt.Sprint(name, k), t, simt.Columns, 1), 0))
		}
	}
	o.store(b, o.Combine(b, sides[0], sides[1]))
	return b.Module()
}

// Filler returns a module without inputs whose outputs are the numbers of initial elements.
func (o *Operator) Filler() (*simt.Module, error) {
	b := simt.NewBuilder(o.Name + "_initial")
	o.store(b, o.Initial(b))
	return b.Module()
}

// store writes an element.
func (o *Operator) store(b *simt.Builder, numbers []simt.Value) {
	for k, t := range o.Types {
		b.Store(b.Output(fmt.Sprint("out", k), t, simt.Columns, 1), 0, numbers[k])
	}
}
