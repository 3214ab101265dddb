package spn

import (
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// The exponents within which values of a type are normal numbers, with a margin for the
// roundings of a large circuit.
func minLinear(t simt.Type) float64 {
	if t == simt.F32 {
		return -120
	}
	return -1000
}

func maxLinear(t simt.Type) float64 {
	if t == simt.F32 {
		return 120
	}
	return 1000
}

// unit is the largest relative error of a rounding.
func unit(t simt.Type) float64 {
	if t == simt.F32 {
		return 0x1p-24
	}
	return 0x1p-53
}

// logSum is log2(2^a + 2^b).
func logSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log2(1+math.Exp2(b-a))
}

// ranges computes lo and hi of every operation: log2 of its least positive and its largest
// value over all rows, missing cells included. lo is -Inf where there is no least value. A
// missing cell has the value 1.
func (c *code) ranges() {
	c.least, c.largest = 0, 0
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used {
			continue
		}
		switch {
		case o.gaussian:
			o.lo, o.hi = math.Inf(-1), max(0, -math.Log2(o.sd*math.Sqrt(2*math.Pi)))
		case o.kind == circuit.Input:
			o.lo, o.hi = 0, 0
			list := o.table
			if o.histograms {
				list = append(list[:len(list):len(list)], o.histogram.Floor)
			}
			for k, p := range list {
				log := math.Log2(p)
				if o.logs != nil {
					log = o.logs[k]
				}
				zero := math.IsInf(log, -1)
				c.zeros = c.zeros || zero
				if !zero {
					o.lo, o.hi = min(o.lo, log), max(o.hi, log)
				}
			}
			o.lo, o.hi = o.lo+math.Log2(o.factor)+float64(o.lift), o.hi+math.Log2(o.factor)+float64(o.lift)
		case o.kind == circuit.Product:
			o.lo, o.hi, o.below, o.above = 0, 0, 0, 0
			for _, a := range o.args {
				o.lo += c.ops[a].lo
				o.hi += c.ops[a].hi
				o.below += min(0, c.ops[a].lo)
				o.above += max(0, c.ops[a].hi)
			}
			// Partial products, in any order, lie between the product of what is
			// below 1 and that of what is above.
			c.least, c.largest = min(c.least, o.below), max(c.largest, o.above)
		default:
			// A sum is at least its least positive term, as others may be 0.
			o.lo, o.hi = math.Inf(1), math.Inf(-1)
			for k, a := range o.args {
				w := math.Log2(o.weights[k])
				o.lo = min(o.lo, w+c.ops[a].lo)
				o.hi = logSum(o.hi, w+c.ops[a].hi)
			}
		}
		c.least, c.largest = min(c.least, o.lo), max(c.largest, o.hi)
	}
}

// rounds is the height of a balanced tree of n operands.
func rounds(n int) float64 { return math.Ceil(math.Log2(float64(max(n, 1)))) }

// linearBound counts roundings on the longest way to the root. The relative errors of factors
// add up; that of a sum of positive terms is at most the largest of its terms' and one for
// each addition. own is logBound of float64, which counts the roundings of the reference, and largest is that of the code before it was lifted.
func (c *code) linearBound(t simt.Type, own Bound, largest float64) Bound {
	exponents := 0.0                     // the error of a Gaussian for each unit of its logarithm
	trees := make([]float64, len(c.ops)) // log2 of the number of products of leaves that an operation is the sum of
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used {
			continue
		}
		o.relative = 0
		switch {
		case o.gaussian:
			absolute, relative := o.gaussianError(t)
			o.relative, exponents = math.Ln2*absolute+2*(simt.Exp2Error+1), max(exponents, relative)
		case o.kind == circuit.Input && t == simt.F32:
			o.relative = 1.01 // of the table in float64, too
		case o.kind == circuit.Input && o.logs == nil:
			o.relative = 1
		case o.kind == circuit.Input:
			o.relative = 4 // exponentials
		case o.kind == circuit.Product:
			for _, a := range o.args {
				o.relative += c.ops[a].relative
				trees[i] += trees[a]
			}
			o.relative += float64(len(o.args) - 1)
		default:
			trees[i] = math.Inf(-1)
			for _, a := range o.args {
				o.relative = max(o.relative, c.ops[a].relative)
				trees[i] = logSum(trees[a], trees[i])
			}
			o.relative += float64(len(o.args) + 1 + o.roundedFolds)
		}
	}
	roundings, most := c.worst(func(o *op) float64 { return o.relative }), 0.0
	for _, r := range c.roots {
		if r != nowhere {
			most = max(most, trees[r])
		}
	}
	// A root is the sum of products of leaves with shares s of it, whose logarithms to base 2 are those of the root and of s. So the sizes of the
	// logarithms of a product's Gaussians add up to at most that of the product and three times what is above 0, and on the
	// average of the products to that of the root, Σ s·log2(1/s) and the latter.
	gaussians := exponents * math.Ln2 * (3*largest + most)
	u := unit(t)
	// The last of these is the logarithm's.
	return Bound{
		Absolute: 1.001*u*(roundings+gaussians+1) + own.Absolute/2,
		Relative: u*(2*simt.LogError+1.001*exponents) + own.Relative/2,
	}
}

// leastTrusted is the natural log of the least likelihood that linear space computes within its
// bound. What an operation loses below the least normal number, if its values may be there, is at most that number, and
// arrives at the root multiplied by at most the largest values of the other factors.
func (c *code) leastTrusted(t simt.Type) float64 {
	tiny, digits, least := -1022.0, 53.0, minLinear(t)
	if t == simt.F32 {
		tiny, digits = -126, 24
	}
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used {
			continue
		}
		o.lost = math.Inf(-1)
		switch o.kind {
		case circuit.Input:
			if o.lo < least {
				o.lost = tiny
			}
		case circuit.Product:
			if o.below < least { // a product of some factors
				o.lost = tiny + o.above + math.Log2(float64(len(o.args)))
			}
			for _, a := range o.args {
				o.lost = logSum(o.lost, c.ops[a].lost+o.hi-c.ops[a].hi)
			}
		case circuit.Sum:
			if o.lo < least {
				o.lost = tiny + math.Log2(float64(len(o.args)))
			}
			for k, a := range o.args {
				o.lost = logSum(o.lost, c.ops[a].lost+math.Log2(o.weights[k]))
			}
		}
	}
	return (c.worst(func(o *op) float64 { return o.lost }) + digits - float64(c.lifted)) * math.Ln2
}

// logBound bounds errors of log space by absolute + relative · |value|, both in units of the
// type, for values to base 2. Errors of factors add up, and |x| of each factor is at most |Σ x|
// plus twice what the others have above 0. Of a sum's terms, those far below the largest count
// for less than they are off.
func (c *code) logBound(t simt.Type) Bound {
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used {
			continue
		}
		switch {
		case o.gaussian:
			o.absolute, o.relative = o.gaussianError(t)
		case o.kind == circuit.Input:
			o.absolute, o.relative = 4+3*o.moved, 4
		case o.kind == circuit.Product:
			o.absolute, o.relative = 0, 0
			for _, a := range o.args {
				o.absolute += c.ops[a].absolute
				o.relative = max(o.relative, c.ops[a].relative)
			}
			o.relative += rounds(len(o.args)) + 1
			if o.joined {
				c.joinedError(o)
			}
			o.absolute += 2 * o.above * o.relative
		default:
			o.absolute, o.relative = 0, 0
			for k, a := range o.args {
				o.absolute = max(o.absolute, c.ops[a].absolute+3*math.Abs(math.Log2(o.weights[k]))+float64(2*o.roundedFolds))
				o.relative = max(o.relative, c.ops[a].relative)
			}
			n := float64(len(o.args))
			o.relative += 3
			o.absolute += 3*o.moved + o.relative*(math.Log2(n)+2) + 2*(n+simt.Exp2Error+2) + 2*simt.Log2Error*(math.Log2(n)+1)
		}
	}
	u := unit(t) + unit(simt.F64) // of the reference, which has the same roundings
	return Bound{
		Absolute: 1.001 * u * c.worst(func(o *op) float64 { return o.absolute }) * math.Ln2,
		Relative: 1.001 * u * (c.worst(func(o *op) float64 { return o.relative }) + 2),
	}
}

// gaussianError bounds the error of a Gaussian's logarithm as logBound does.
func (o *op) gaussianError(t simt.Type) (absolute, relative float64) {
	constant := math.Abs(math.Log2(o.sd * math.Sqrt(2*math.Pi)))
	absolute, relative = 8*(1+constant), 10
	if t == simt.F32 { // z is off by the residual, z² by at most residual·(1 + z²)
		units := 2 * o.residual / unit(t)
		absolute, relative = absolute+units*(1+constant), relative+units
	}
	if o.near { // roundings of a, b, y and y²: with t² = c - value, |b·y| is at most t² + 3·shift², |a·y²| at most 2·t² + 2·shift²
		absolute, relative = max(absolute, 16*o.shift*o.shift+12*(1+constant)), max(relative, 12)
	}
	return absolute, relative
}

// joinedError adds what a product's Gaussians lose as terms of one sum. Before and after each leaf the sum is at most Σ|c| + Σ shift² + Σ t², and
// between its two terms at most 3·shift² + t² more.
func (c *code) joinedError(o *op) {
	terms, constants, shifts := 0.0, 0.0, 0.0
	for _, a := range o.args {
		if child := &c.ops[a]; child.gaussian {
			terms++
			shifts += child.shift * child.shift
			constants += math.Abs(math.Log2(child.sd * math.Sqrt(2*math.Pi)))
		}
	}
	n := 3*terms + 3 // roundings: of two terms and a missing cell's constant each
	o.absolute += n*(2*constants+shifts) + 3*shifts + constants
	o.relative += n + 1
}

// worst returns the largest of what the roots have, -Inf if all are 0.
func (c *code) worst(of func(o *op) float64) float64 {
	most := math.Inf(-1)
	for _, r := range c.roots {
		if r != nowhere {
			most = math.Max(most, of(&c.ops[r]))
		}
	}
	return most
}
