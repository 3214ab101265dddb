package spn

import (
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// maxShift bounds |mean - center|/sd of the Gaussians that are computed as a quadratic form around a center: the roundings
// of its terms grow with the square.
const maxShift = 16

// Values around a center are cut at maxFar, so that no square overflows. Where the cut counts, the likelihood is below
// leastScaled: deviations are at most maxWide.
const (
	maxFar  = 0x1p50
	maxWide = 0x1p30
)

// centered is a variable around a center.
type centered struct {
	variable  int
	center    float64
	x, square simt.Value // 0 where the cell is missing
	missing   simt.Value
}

// logs returns for each list of leaves the sum of their logarithms to base 2. Gaussians of a variable are quadratic
// forms of the same two numbers: log2 of the density is c + b·y + a·y² with y the distance from a center. A missing cell
// has y = 0, and c is taken away again where a row has one.
func (e *emitter) logs(lists [][]int32) []simt.Value {
	b := e.b
	around, vars := e.centers(lists)
	type term struct{ a, b, c float64 }
	terms := make([]map[int]term, len(lists)) // by place among vars
	sums := make([]simt.Value, len(lists))
	for i, list := range lists {
		constant := 0.0
		terms[i] = map[int]term{}
		for _, k := range list {
			o := &e.c.ops[k]
			at, ok := around[o.variable]
			if !ok {
				continue
			}
			s := math.Sqrt(math.Log2E/2) / o.sd
			d := o.mean - vars[at].center
			t := term{a: -s * s, b: 2 * s * s * d, c: -s*s*d*d - math.Log2(o.sd*math.Sqrt(2*math.Pi))}
			terms[i][at] = t
			constant += t.c
			o.shift = max(o.shift, math.Abs(d)*s)
		}
		sums[i] = b.Float(e.t, constant)
	}
	each := func(of func(i, at int, t term)) {
		for lo := 0; lo < len(lists); lo += tile {
			for at := range vars {
				for i := lo; i < min(lo+tile, len(lists)); i++ {
					if t, ok := terms[i][at]; ok {
						of(i, at, t)
					}
				}
			}
		}
	}
	each(func(i, at int, t term) {
		sums[i] = b.FMA(vars[at].x, b.Float(e.t, t.b), sums[i])
		sums[i] = b.FMA(vars[at].square, b.Float(e.t, t.a), sums[i])
	})
	if len(vars) > 0 {
		missing := make([]simt.Value, len(vars))
		for at := range vars {
			missing[at] = vars[at].missing
		}
		whole, any := sums, e.tree(simt.Or, missing)
		from := b.Values()
		sums = b.If(any, func() []simt.Value {
			less := append([]simt.Value(nil), whole...)
			away := make([]simt.Value, len(vars))
			for at := range vars {
				away[at] = b.Select(vars[at].missing, b.Float(e.t, 1), b.Float(e.t, 0))
			}
			each(func(i, at int, t term) { less[i] = b.FMA(away[at], b.Float(e.t, -t.c), less[i]) })
			return less
		}, func() []simt.Value { return whole })
		e.spans = append(e.spans, span{from, b.Values(), spanMarginal, nil})
	}
	for i, list := range lists {
		for _, k := range list {
			if o := &e.c.ops[k]; !has(around, o.variable) {
				o.alone = true
				sums[i] = b.Add(sums[i], e.leaf(o))
			}
		}
	}
	return sums
}

func has(m map[int]int, k int) bool { _, ok := m[k]; return ok }

// centers loads the variables of leaves that are Gaussians near each other, around the middle of their means. Variables
// of other leaves are opened anew where they are read.
func (e *emitter) centers(lists [][]int32) (around map[int]int, vars []centered) {
	b := e.b
	type spread struct {
		low, high, narrow, wide float64 // of means and deviations
	}
	spreads := map[int]*spread{}
	var order []int
	for _, list := range lists {
		for _, k := range list {
			o := &e.c.ops[k]
			e.cols[o.variable].there, e.cols[o.variable].class = simt.None, simt.None
			if !o.gaussian {
				continue
			}
			s := spreads[o.variable]
			if s == nil {
				s = &spread{o.mean, o.mean, o.sd, o.sd}
				spreads[o.variable] = s
				order = append(order, o.variable)
			}
			s.low, s.high = min(s.low, o.mean), max(s.high, o.mean)
			s.narrow, s.wide = min(s.narrow, o.sd), max(s.wide, o.sd)
		}
	}
	around = map[int]int{}
	for _, v := range order {
		s := spreads[v]
		center := float64(float32(s.low + (s.high-s.low)/2))
		far := max(s.high-center, center-s.low)
		if !(far <= maxShift*s.narrow && s.wide <= maxWide && s.narrow >= 1/maxWide) {
			continue
		}
		x := b.Load(0, v)
		missing := b.Binary(simt.Ne, x, x)
		y := b.Sub(b.Convert(e.t, x), b.Float(e.t, center))
		y = b.Binary(simt.Max, b.Binary(simt.Min, b.Select(missing, b.Float(e.t, 0), y), b.Float(e.t, maxFar)), b.Float(e.t, -maxFar))
		around[v] = len(vars)
		vars = append(vars, centered{v, center, y, b.Mul(y, y), missing})
	}
	return around, vars
}

// scaledBound bounds errors of scaled space as logBound those of log space, by which it also counts the roundings of the reference.
func (c *code) scaledBound(t simt.Type) Bound {
	own := c.logBound(simt.F64)
	list, of := c.families()
	depth := make([]float64, len(list))
	deepest := 0.0
	for i := range c.ops {
		o := &c.ops[i]
		if o.used {
			o.absolute, o.relative = c.scaledError(o)
			for _, k := range list[of[i]].from {
				depth[of[i]] = max(depth[of[i]], depth[k]+1)
			}
			deepest = max(deepest, depth[of[i]])
		}
	}
	u := unit(t)
	const last = 2*simt.Log2Error + 8 // the logarithm and what is lost of the value
	return Bound{
		Absolute: 1.001*u*(c.worst(func(o *op) float64 { return o.absolute })+last)*math.Ln2 + own.Absolute/2,
		Relative: 1.001*u*(c.worst(func(o *op) float64 { return o.relative })+deepest+simt.Log2Error+4) + own.Relative/2,
	}
}

// scaledError returns what bounds the error of an operation's value to base 2, as of logBound.
func (c *code) scaledError(o *op) (absolute, relative float64) {
	switch {
	case o.gaussian:
		// The terms of the quadratic form are at most 2·z² + 8·shift² + |c| together; by itself the rounding
		// of the mean counts.
		constant := math.Abs(math.Log2(o.sd * math.Sqrt(2*math.Pi)))
		absolute, relative = 48*o.shift*o.shift+18*constant+12, 12
		if o.alone {
			mean := max(1, math.Abs(o.mean)/o.sd)
			absolute, relative = absolute+3*mean, relative+3*mean
		}
	case o.kind == circuit.Input:
		absolute, relative = 4, 4
	case o.kind == circuit.Product:
		leaves := 0.0
		for _, a := range o.args {
			child := &c.ops[a]
			absolute += child.absolute
			relative = max(relative, child.relative)
			if child.kind == circuit.Input {
				leaves++
			} else {
				absolute += 2
			}
		}
		if leaves > 0 {
			n := 2*leaves + 2 // roundings of the sum
			for _, a := range o.args {
				if child := &c.ops[a]; child.gaussian {
					absolute += n * (8*child.shift*child.shift + 3*math.Abs(math.Log2(child.sd*math.Sqrt(2*math.Pi))))
				}
			}
			relative += 2*n + 1
			absolute += 2 * (simt.Exp2Error + 2)
		}
		absolute += 2 * max(0, o.hi) * relative
	default:
		for k, a := range o.args {
			absolute = max(absolute, c.ops[a].absolute+3*math.Abs(math.Log2(o.weights[k]))+float64(2*o.roundedFolds))
			relative = max(relative, c.ops[a].relative)
		}
		n := float64(len(o.args))
		relative += 3
		absolute += relative*(math.Log2(n)+2) + 2*(n+3)
		if c.ops[o.args[0]].kind == circuit.Input { // by its exponential
			absolute += 2 * (simt.Exp2Error + 2)
		}
	}
	return absolute, relative
}
