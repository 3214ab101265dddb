package reduction

import (
	"math"
)

// Expr is an expression: *Number, *Name, *Read, *Call, *Negate or *Binary.
type Expr interface {
	Position() Pos
}

// Number is a literal.
type Number struct {
	Pos
	Integer bool
	I       int64   // of an integer
	F       float64 // of any other
}

// Name is a dimension, a parameter or a scalar input.
type Name struct {
	Pos
	Name string
}

// Read is an element of an array. An index may be any integer expression.
type Read struct {
	Pos
	Array string
	Index []Expr
}

// Call applies one of the functions below.
type Call struct {
	Pos
	Function string
	Args     []Expr
}

// Negate is -X.
type Negate struct {
	Pos
	X Expr
}

// Binary is X Op Y, with + - * / or a comparison.
type Binary struct {
	Pos
	Op   string
	X, Y Expr
}

// Position returns where the expression is.
func (p Pos) Position() Pos { return p }

// comparison reports whether op compares.
func comparison(op string) bool {
	switch op {
	case "<", "<=", ">", ">=", "==", "!=":
		return true
	}
	return false
}

// walk calls visit with e and everything in it, outer expressions first.
func walk(e Expr, visit func(Expr)) {
	visit(e)
	switch e := e.(type) {
	case *Read:
		for _, x := range e.Index {
			walk(x, visit)
		}
	case *Call:
		for _, x := range e.Args {
			walk(x, visit)
		}
	case *Negate:
		walk(e.X, visit)
	case *Binary:
		walk(e.X, visit)
		walk(e.Y, visit)
	}
}

// function is one that expressions may call.
type function struct {
	args   int
	result Type
	apply  func(a []float64) float64 // nil for select and floor, which have types of their own
}

// functions lists what an expression may call. lognormal is the log density of a
// normal distribution at x, given its mean and variance; log of numbers below 0
// is NaN, of 0 -Inf.
var functions = map[string]function{
	"log":  {1, Float, func(a []float64) float64 { return ln(a[0]) }},
	"exp":  {1, Float, func(a []float64) float64 { return math.Exp(a[0]) }},
	"sqrt": {1, Float, func(a []float64) float64 { return math.Sqrt(a[0]) }},
	"lgamma": {1, Float, func(a []float64) float64 {
		v, _ := math.Lgamma(a[0])
		return v
	}},
	"lognormal": {3, Float, func(a []float64) float64 {
		d := a[0] - a[1]
		return -0.5 * (float64(d*d)/a[2] + ln(2*math.Pi*a[2]))
	}},
	"floor":  {1, Int, nil},
	"select": {3, Float, nil},
}

// ln is math.Log, whose assembly for amd64 takes every positive number below the least normal one for about that one: of the least
// subnormal number, as a product of many probabilities may be, it is off by 35.
func ln(x float64) float64 {
	const least, digits = 0x1p-1022, 52
	if x > 0 && x < least {
		return math.Log(math.Ldexp(x, digits)) - digits*math.Ln2
	}
	return math.Log(x)
}
