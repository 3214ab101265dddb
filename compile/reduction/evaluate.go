package reduction

import (
	"math"
	"math/bits"
)

// expression evaluates an expression at a point. An expression of type int has
// both functions, one of type float has only float.
type expression struct {
	int   func(x []int64) int64
	float func(x []int64) float64
}

// condition evaluates a comparison at a point.
type condition func(x []int64) bool

// compiler turns checked expressions into functions of a point, whose numbers lie
// at the places of their names.
type compiler struct {
	m     *machine
	place map[string]int
}

// ofInt is an expression of type int.
func ofInt(f func(x []int64) int64) expression {
	return expression{int: f, float: func(x []int64) float64 { return float64(f(x)) }}
}

func (c *compiler) expression(e Expr) expression {
	switch e := e.(type) {
	case *Number:
		if e.Integer {
			return ofInt(func([]int64) int64 { return e.I })
		}
		return expression{float: func([]int64) float64 { return e.F }}
	case *Name:
		return c.name(e)
	case *Read:
		return c.read(e)
	case *Call:
		return c.call(e)
	case *Negate:
		v := c.expression(e.X)
		if v.int == nil {
			return expression{float: func(x []int64) float64 { return -v.float(x) }}
		}
		return ofInt(func(x []int64) int64 { return c.integers(e.Pos, "-", 0, v.int(x)) })
	}
	return c.binary(e.(*Binary))
}

func (c *compiler) name(e *Name) expression {
	if k, ok := c.place[e.Name]; ok {
		return ofInt(func(x []int64) int64 { return x[k] })
	}
	if n, ok := c.m.sizes[e.Name]; ok {
		return ofInt(func([]int64) int64 { return n })
	}
	s := c.m.arrays[e.Name]
	if s.decl.Type == Int {
		return ofInt(func([]int64) int64 { return s.Ints[0] })
	}
	return expression{float: func([]int64) float64 { return s.Floats[0] }}
}

// read is an element of an array, which is computed first if it is not there.
func (c *compiler) read(e *Read) expression {
	s := c.m.arrays[e.Array]
	index := make([]func(x []int64) int64, len(e.Index))
	for k, x := range e.Index {
		index[k] = c.expression(x).int
	}
	at := func(x []int64) int {
		at := int64(0)
		for k, f := range index {
			i := f(x)
			if i < 0 || i >= s.Extents[k] {
				fail(e.Pos, "index %s of %s is %d; want 0 to %d", Text(e.Index[k]), e.Array, i, s.Extents[k]-1)
			}
			at = at*s.Extents[k] + i
		}
		if s.state != nil {
			c.m.need(element{s, int(at)}, e.Pos)
		}
		return int(at)
	}
	if s.decl.Type == Int {
		return ofInt(func(x []int64) int64 { return s.Ints[at(x)] })
	}
	return expression{float: func(x []int64) float64 { return s.Floats[at(x)] }}
}

func (c *compiler) call(e *Call) expression {
	switch e.Function {
	case "select":
		return c.choice(e)
	case "floor":
		v := c.expression(e.Args[0])
		if v.int != nil {
			return v
		}
		return ofInt(func(x []int64) int64 {
			y := math.Floor(v.float(x))
			if !(y >= -1<<63 && y < 1<<63) {
				fail(e.Pos, "floor of %v does not fit into 64 bits", y)
			}
			return int64(y)
		})
	}
	args := make([]func([]int64) float64, len(e.Args))
	for k, a := range e.Args {
		args[k] = c.expression(a).float
	}
	apply := functions[e.Function].apply
	if len(args) == 1 {
		return expression{float: func(x []int64) float64 {
			a := [1]float64{args[0](x)}
			return apply(a[:])
		}}
	}
	return expression{float: func(x []int64) float64 {
		a := make([]float64, len(args))
		for k, f := range args {
			a[k] = f(x)
		}
		return apply(a)
	}}
}

// choice is select(condition, a, b), which evaluates one of the two.
func (c *compiler) choice(e *Call) expression {
	test, a, b := c.condition(e.Args[0]), c.expression(e.Args[1]), c.expression(e.Args[2])
	if a.int != nil && b.int != nil {
		return ofInt(func(x []int64) int64 {
			if test(x) {
				return a.int(x)
			}
			return b.int(x)
		})
	}
	return expression{float: func(x []int64) float64 {
		if test(x) {
			return a.float(x)
		}
		return b.float(x)
	}}
}

func (c *compiler) binary(e *Binary) expression {
	a, b := c.expression(e.X), c.expression(e.Y)
	if a.int != nil && b.int != nil && e.Op != "/" {
		return ofInt(func(x []int64) int64 { return c.integers(e.Pos, e.Op, a.int(x), b.int(x)) })
	}
	// The conversions keep products from being fused with sums, so that every machine
	// gives the same bits.
	switch e.Op {
	case "+":
		return expression{float: func(x []int64) float64 { return float64(a.float(x) + b.float(x)) }}
	case "-":
		return expression{float: func(x []int64) float64 { return float64(a.float(x) - b.float(x)) }}
	case "*":
		return expression{float: func(x []int64) float64 { return float64(a.float(x) * b.float(x)) }}
	}
	return expression{float: func(x []int64) float64 { return float64(a.float(x) / b.float(x)) }}
}

// integers computes x op y, or reports that it does not fit.
func (c *compiler) integers(at Pos, op string, x, y int64) int64 {
	var z int64
	ok := true
	switch op {
	case "+":
		z, ok = addInts(x, y)
	case "-":
		z = x - y
		ok = (z < x) == (y > 0)
	default:
		z, ok = mulInts(x, y)
	}
	if !ok {
		fail(at, "%d %s %d does not fit into 64 bits", x, op, y)
	}
	return z
}

func addInts(x, y int64) (int64, bool) {
	z := x + y
	return z, (z > x) == (y > 0)
}

func mulInts(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(absolute(x), absolute(y))
	negative, most := (x < 0) != (y < 0), uint64(math.MaxInt64)
	if negative {
		most++ // of -2^63
	}
	if hi != 0 || lo > most {
		return 0, false
	}
	if negative {
		return -int64(lo), true
	}
	return int64(lo), true
}

// condition turns a comparison into a function. Integers are compared as such.
func (c *compiler) condition(e Expr) condition {
	b := e.(*Binary)
	x, y := c.expression(b.X), c.expression(b.Y)
	if x.int != nil && y.int != nil {
		return func(p []int64) bool { return holds(b.Op, x.int(p), y.int(p)) }
	}
	return func(p []int64) bool { return holds(b.Op, x.float(p), y.float(p)) }
}

// holds compares as Go does: with a NaN only != holds.
func holds[T int64 | float64](op string, x, y T) bool {
	switch op {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	case ">=":
		return x >= y
	case "==":
		return x == y
	}
	return x != y
}
