package spn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrCode means that a circuit cannot be compiled to code.
	ErrCode = errors.New("spn: no code for the circuit")
	// ErrOptions means that options contradict each other or the circuit.
	ErrOptions = errors.New("spn: bad options")
)

// Space is how values are represented.
type Space string

// The spaces.
const (
	Auto   Space = "auto"
	Linear Space = "linear" // probabilities
	Log    Space = "log"    // their logarithms to base 2
	// Scaled is linear space with an exponent of each row that the units of a node share. It suits circuits of
	// large blocks.
	Scaled Space = "scaled"
)

// Options choose how a circuit is compiled. The zero value is float32, whatever error that has, in the space that the compiler
// chooses; DefaultOptions are the usual ones.
type Options struct {
	Space Space     // "" is Auto
	Type  simt.Type // F32, the zero value, or F64; of values
	// Bytes: the modules read bytes, in which MissingByte is a missing cell. It wants variables whose codes are
	// below that, or histograms with whole breaks. Layout says how they lie: simt.Rows, [row][variable], or simt.Columns.
	Bytes  bool
	Layout simt.Layout
	// Joint is the most elements of a table over the classes of several variables, which in linear space has the
	// place of all operations on them; 0: none. Machine code of AVX-512 looks up as quickly in sixteen as in two.
	Joint int
}

// Bytes of cells that are not codes.
const (
	MissingByte = 255 // a missing cell
	Outside     = 254 // a number that is in no bin of a histogram, where CompileFor chose bytes
)

// DefaultOptions are the usual options: float64 values, in which no model needs a compromise.
func DefaultOptions() Options { return Options{Space: Auto, Type: simt.F64} }

// Program is a compiled circuit.
type Program struct {
	Module *simt.Module
	Space  Space
	Type   simt.Type
	// Exact computes the rows whose likelihoods by Module are below e^Least: in float64 where Module has float32, else in log space.
	// Where it is nil Module computes all rows, Least being -Inf, or the others are for Again.
	Exact *Program
	Least float64
	Bound Bound
	Info  Info

	code      *code
	choice    *Choice // nil where Compile was called, not CompileFor
	spans     []span  // of Module
	low, high float64 // log-likelihoods of the rows that Module computes for good
}

// Bound bounds the distance of a log-likelihood ll from that of circuit/reference, in nats:
// Absolute + Relative · |ll|.
type Bound struct {
	Absolute float64 `json:"absolute"`
	Relative float64 `json:"relative"`
}

// Of returns the bound for a log-likelihood.
func (b Bound) Of(ll float64) float64 {
	if math.IsInf(ll, 0) {
		return 0
	}
	return b.Absolute + b.Relative*math.Abs(ll)
}

// Info says what the compiler found and did.
type Info struct {
	Leaves   int  `json:"leaves"` // distinct
	Products int  `json:"multiplications"`
	Sums     int  `json:"additions"`
	Proven   bool `json:"proven"` // in range for every row: no row is computed twice
	// Least and Largest are log2 of the least and largest value of an operation over all
	// rows, as Module has them, lifted or not: 0 values, which structural zeros are, excepted. They
	// are nil where nothing bounds the values, as those of densities.
	Least        *float64 `json:"least_log2,omitempty"`
	Largest      *float64 `json:"largest_log2,omitempty"`
	Instructions int      `json:"instructions"`
	TableBytes   int64    `json:"table_bytes"`
}

// Supported reports why a valid circuit cannot be compiled, or nil: a leaf that code does not
// have.
func Supported(g *circuit.Graph) error {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != circuit.Input || n.Leaf.Codes() > 0 {
			continue
		}
		switch n.Leaf.(type) {
		case circuit.Gaussian, circuit.RealHistogram:
		default:
			return fmt.Errorf("%w: node %d is a %s leaf; use the tensor path", ErrCode, i, n.Leaf.Name())
		}
	}
	return nil
}

// Compile compiles a valid circuit with its parameters.
func Compile(g *circuit.Graph, params circuit.ParamFunc64, o Options) (*Program, error) {
	return compile(g, params, noClass, o)
}

// CompileClasses compiles a valid circuit with its parameters for the codes of a finite variable, the class: the output of
// the module has a column for each code, the log-likelihood of the row with that code as its cell of the variable. What the
// cell itself says does not count, and what does not depend on the variable is computed once for all codes. A variable
// without codes is an error that matches ErrOptions.
func CompileClasses(g *circuit.Graph, params circuit.ParamFunc64, class int, o Options) (*Program, error) {
	if class < 0 || class >= g.NumVars {
		return nil, fmt.Errorf("%w: the class is variable %d of %d, counted from 0; name one that the circuit has", ErrOptions, class, g.NumVars)
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == circuit.Input && n.Var == class && n.Leaf.Codes() == 0 {
			return nil, fmt.Errorf("%w: variable %d is a %s, which has no codes; name a finite one as the class", ErrOptions, class, n.Leaf.Name())
		}
	}
	if circuit.RootDomains(g)[class] < 0 { // one root would be there, as if the first code were certain
		return nil, fmt.Errorf("%w: variable %d is in no leaf, so nothing can be said of it; name another one as the class", ErrOptions, class)
	}
	return compile(g, params, class, o)
}

// noClass is the class of circuits without one.
const noClass = -1

func compile(g *circuit.Graph, params circuit.ParamFunc64, class int, o Options) (*Program, error) {
	if o.Space == "" {
		o.Space = Auto
	}
	if !slices.Contains([]Space{Auto, Linear, Log, Scaled}, o.Space) || !o.Type.Float() {
		return nil, fmt.Errorf("%w: space %q and type %v; want auto, linear, log or scaled, and f32 or f64", ErrOptions, o.Space, o.Type)
	}
	if o.Joint < 0 || o.Joint > maxJoint {
		return nil, fmt.Errorf("%w: tables of %d elements over several variables, want 0 to %d", ErrOptions, o.Joint, maxJoint)
	}
	if err := Supported(g); err != nil {
		return nil, err
	}
	c, err := importGraph(g, params, class)
	if err != nil {
		return nil, err
	}
	if o.Bytes {
		if err := c.checkBytes(); err != nil {
			return nil, err
		}
	}
	c.fold()
	c.ranges()
	if o.Space == Linear && c.largest > maxLinear(o.Type) {
		return nil, fmt.Errorf("%w: values up to 2^%.0f overflow %v in linear space; compile in log space", ErrOptions, c.largest, o.Type)
	}
	if o.Space == Auto {
		o.Space = c.space(o.Type)
	}
	if o.Space != Scaled { // whose blocks share their leaves
		c.absorb()
	}
	return c.program(g.NumVars, o)
}

// program compiles the code in a space, behind the program for rows that it does not compute for good: operations are lifted for one
// module at a time.
func (c *code) program(numVars int, o Options) (p *Program, err error) {
	p = &Program{Space: o.Space, Type: o.Type, Least: math.Inf(-1), code: c}
	own, largest := c.logBound(simt.F64), c.largest // counts the roundings of the reference
	proven := true
	if o.Space == Linear && c.least < minLinear(o.Type) {
		c.lift(o.Type)
		if proven = c.least >= minLinear(o.Type); !proven {
			p.Least = c.leastTrusted(o.Type)
			c.lower()
			if p.Exact, p.Bound, err = c.exact(numVars, o, p.Least); err != nil {
				return nil, err
			}
			c.lift(o.Type)
		}
	}
	if p.Module, p.spans, err = c.emit(numVars, o); err != nil {
		return nil, err
	}
	p.Info = c.info(p.Module)
	p.Info.Proven = proven
	switch p.Space {
	case Linear:
		b := c.linearBound(o.Type, own, largest)
		p.Bound.Absolute, p.Bound.Relative = max(p.Bound.Absolute, b.Absolute), max(p.Bound.Relative, b.Relative)
	case Scaled:
		p.Info.Proven, p.Least = false, leastScaled*math.Ln2
		p.Bound = c.scaledBound(o.Type)
	default:
		p.Bound = c.logBound(o.Type)
		if o.Type == simt.F32 && math.IsInf(c.least, -1) { // only a Gaussian has no least value
			p.Info.Proven, p.Least = false, leastSquares
		}
	}
	lifted := float64(c.lifted)
	p.low = math.Max(p.Least, -c.worst(func(o *op) float64 { return lifted - o.lo })*math.Ln2)
	p.high = c.worst(func(o *op) float64 { return o.hi - lifted }) * math.Ln2
	c.lower()
	return p, nil
}

// space chooses linear space where values stay in range, and where exponentials of Gaussian
// leaves do not outnumber those of sums in log space; scaled space where values do not stay in range and blocks are so
// large that their exponents cost little.
func (c *code) space(t simt.Type) Space {
	leaves, edges := 0, 0
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used {
			continue
		}
		if o.kind == circuit.Sum {
			edges += len(o.args) + 1
		}
		if o.gaussian {
			leaves++
		}
	}
	switch {
	case (c.least < minLinear(t) || c.largest > maxLinear(t)) && c.regular(t):
		return Scaled
	case c.largest > maxLinear(t) || leaves > edges:
		return Log
	}
	return Linear
}

func (c *code) info(m *simt.Module) Info {
	i := Info{Least: finite(c.least), Largest: finite(c.largest), Instructions: len(m.Body)}
	for k := range c.ops {
		o := &c.ops[k]
		switch {
		case !o.used:
		case o.kind == circuit.Input:
			i.Leaves++
		case o.kind == circuit.Product:
			i.Products += len(o.args) - 1
		default:
			i.Sums += len(o.args) - 1
			i.Products += len(o.args)
		}
	}
	for _, t := range m.Tables {
		i.TableBytes += int64(len(t.Bits)) * int64(t.Type.Bits()/8)
	}
	return i
}

// finite returns nil for an infinite number, which JSON does not have.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// String describes a program in a line.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v in %s space, %d leaves, %d multiplications, %d additions, within %.3g + %.3g·|ll| nats of float64",
		p.Type, p.Space, p.Info.Leaves, p.Info.Products, p.Info.Sums, p.Bound.Absolute, p.Bound.Relative)
	for ; p.Exact != nil; p = p.Exact {
		fmt.Fprintf(&b, "; rows below %.4g nats again in %s space, %v", p.Least, p.Exact.Space, p.Exact.Type)
	}
	if !math.IsInf(p.Least, -1) {
		fmt.Fprintf(&b, "; rows below %.4g nats again in log space on the host", p.Least)
	}
	return b.String()
}
