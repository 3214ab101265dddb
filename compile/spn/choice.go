package spn

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// ErrorKind is what Choice.MaxError bounds, for every row.
type ErrorKind string

// The kinds.
const (
	Absolute    ErrorKind = "absolute"     // of likelihoods
	Relative    ErrorKind = "relative"     // of likelihoods
	AbsoluteLog ErrorKind = "absolute-log" // of log-likelihoods, in nats
)

// DefaultMaxError is the bound of a Choice without one. No float32 is that exact, so a caller who does not say which error
// is allowed gets float64.
const DefaultMaxError = 1e-9

// AutoType lets a Choice take the fastest type that is exact enough.
const AutoType = "auto"

// joint is Options.Joint of float32, whose sixteen elements fit a register of AVX-512.
const joint = 16

// Choice is what a caller wants of numbers. The zero value is float64; with a MaxError of 1e-4 nats float32 is
// exact enough for most circuits of some hundred operations.
type Choice struct {
	Space Space  // "" is Auto
	Type  string // auto, f32 or f64; "" is AutoType
	// MaxError is the largest error that float32 may have; 0: DefaultMaxError, and anything where Type is f32.
	MaxError float64
	Error    ErrorKind // "" is AbsoluteLog
}

// check returns what is wrong with a choice.
func (c *Choice) check() error {
	switch c.Error {
	case Absolute, Relative, AbsoluteLog:
	default:
		return fmt.Errorf("%w: an error of kind %.40q; want absolute, relative or absolute-log", ErrOptions, c.Error)
	}
	switch c.Type {
	case AutoType, simt.F32.String(), simt.F64.String():
	default:
		return fmt.Errorf("%w: numbers of type %.40q; want auto, f32 or f64", ErrOptions, c.Type)
	}
	if !(c.MaxError >= 0) || math.IsInf(c.MaxError, 1) {
		return fmt.Errorf("%w: a largest error of %v; want a number of at least 0", ErrOptions, c.MaxError)
	}
	return nil
}

// CompileFor compiles a valid circuit with its parameters as a choice says: in float32 if its error is small enough
// for every row that it computes, else in float64. float32 that was asked for by name and is not exact enough is an
// error that matches ErrOptions.
//
// The modules read columns of float32, and where all cells fit them columns of bytes, which take a quarter of the memory and
// are indices as they are: where variables have at most 255 codes, or histograms with whole breaks from 0 to Outside. The caller
// rounds the numbers of such a histogram down, and writes Outside for those below 0 and from Outside on.
func CompileFor(g *circuit.Graph, params circuit.ParamFunc64, c Choice) (*Program, error) {
	return choose(g, c, func(o Options) (*Program, error) { return Compile(g, params, o) })
}

// CompileClassesFor is CompileFor for the codes of a class, as of CompileClasses.
func CompileClassesFor(g *circuit.Graph, params circuit.ParamFunc64, class int, c Choice) (*Program, error) {
	return choose(g, c, func(o Options) (*Program, error) { return CompileClasses(g, params, class, o) })
}

// choose compiles a circuit as a choice says.
func choose(g *circuit.Graph, c Choice, compile func(Options) (*Program, error)) (*Program, error) {
	bytes := fitBytes(g)
	p, err := c.compile(func(o Options) (*Program, error) {
		if bytes {
			o.Bytes, o.Layout = true, simt.Columns
		}
		return compile(o)
	})
	if err != nil {
		return nil, err
	}
	p.choice = &c
	return p, nil
}

// most returns the largest error that a choice allows of float32, 0: any.
func (c *Choice) most() float64 {
	if c.MaxError == 0 && c.Type != simt.F32.String() {
		return DefaultMaxError
	}
	return c.MaxError
}

func (c Choice) compile(compile func(Options) (*Program, error)) (*Program, error) {
	if c.Type == "" {
		c.Type = AutoType
	}
	if c.Error == "" {
		c.Error = AbsoluteLog
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Type != simt.F64.String() {
		p, err := compile(Options{Space: c.Space, Type: simt.F32, Joint: joint})
		if err != nil && c.Type == AutoType && c.Space == Linear {
			return compile(Options{Space: c.Space, Type: simt.F64}) // which has a larger range
		}
		if err != nil {
			return nil, err
		}
		most, worst := c.most(), p.worst(c.Error)
		if most == 0 || worst <= most {
			return p, nil
		}
		if c.Type != AutoType {
			return nil, fmt.Errorf("%w: the %s error of f32 is up to %.3g, want at most %v; let the type be auto or f64", ErrOptions, c.Error, worst, most)
		}
	}
	return compile(Options{Space: c.Space, Type: simt.F64})
}

// worst bounds the error of the rows that Module computes for good: their
// log-likelihoods are from low to high.
func (p *Program) worst(kind ErrorKind) float64 {
	nats := p.Bound.Absolute + p.Bound.Relative*math.Max(math.Abs(p.low), math.Abs(p.high))
	switch kind {
	case Relative:
		return math.Expm1(nats)
	case Absolute:
		return math.Exp(p.high) * math.Expm1(nats)
	}
	return nats
}
