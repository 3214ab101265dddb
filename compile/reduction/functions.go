package reduction

import "math"

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
	"log":  {1, Float, func(a []float64) float64 { return math.Log(a[0]) }},
	"exp":  {1, Float, func(a []float64) float64 { return math.Exp(a[0]) }},
	"sqrt": {1, Float, func(a []float64) float64 { return math.Sqrt(a[0]) }},
	"lgamma": {1, Float, func(a []float64) float64 {
		v, _ := math.Lgamma(a[0])
		return v
	}},
	"lognormal": {3, Float, func(a []float64) float64 {
		d := a[0] - a[1]
		return -0.5 * (float64(d*d)/a[2] + math.Log(2*math.Pi*a[2]))
	}},
	"floor":  {1, Int, nil},
	"select": {3, Float, nil},
}
