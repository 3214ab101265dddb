package spn

import (
	"cmp"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// maxShift bounds |mean - center|/sd of the Gaussians that are computed as a quadratic form around a center: the roundings
// of its terms grow with the square.
const (
	maxShift    = 16
	maxShiftLog = 4
)

// fewestAround is how many Gaussians a variable's second center needs, and every later one. A distance and its square take up
// to six operations, and spare two in each Gaussian.
const fewestAround = 4

// ownMean is the place of a Gaussian that is not near to any center.
const ownMean = -1

// Values around a center are cut at maxFar, so that no square overflows. Where the cut counts, the likelihood is below
// leastScaled: deviations are at most maxWide.
const (
	maxFar  = 0x1p50
	maxWide = 0x1p30
	// maxLinearTerm bounds what float32 multiplies by b in log space, where squares may be infinite and b·y may not.
	maxLinearTerm = 0x1p60
	// leastSquares is a log-likelihood above those of all rows in which a square is infinite that float64 has: rows below it are
	// computed again. A density whose square float32 does not have is below 2^-(2^127).
	leastSquares = -0x1p120
)

// centered is a variable around one center or several.
type centered struct {
	variable int
	around   []around
	most     float64    // deviations from a center to the mean of a leaf that is near
	scale    float64    // of distances from centers, a power of 2
	cell     simt.Value // as it is
	missing  simt.Value
	there    simt.Value // an integer of as many bits as the values have, all of them set where the cell is not missing
}

// around is the distance of a cell from a center, and its square; both are 0 where the cell is missing.
type around struct {
	center    float64
	x, square simt.Value
}

// together computes the Gaussian factors of a sum's products, variable by variable, so that a variable's two numbers are loaded once
// for a tile of products.
func (e *emitter) together(o *op) {
	const fewest = 2 // of products, and of Gaussians in each
	var products []int32
	var lists [][]int32
	for _, a := range o.args {
		p := &e.c.ops[a]
		if _, ok := e.gaussians[a]; ok || p.kind != circuit.Product || e.value[a] != simt.None {
			continue
		}
		var list []int32
		for _, k := range p.args {
			if e.c.ops[k].gaussian {
				list = append(list, k)
			}
		}
		if len(list) >= fewest {
			products, lists = append(products, a), append(lists, list)
		}
	}
	if len(products) < fewest {
		return
	}
	if e.gaussians == nil {
		e.gaussians = map[int32]simt.Value{}
	}
	for i, v := range e.logs(lists) {
		e.gaussians[products[i]] = v
		e.c.ops[products[i]].joined = true
	}
}

// logs returns for each list of leaves the sum of their logarithms to base 2. Gaussians of a variable that are near each other are
// quadratic forms of the same two numbers: log2 of the density is c + b·y + a·y² with y the distance from a center. In log space others
// are c + a·d², with d the distance from their own mean. A missing cell has y = d = 0, and c is taken away again where a row has one.
func (e *emitter) logs(lists [][]int32) []simt.Value {
	b := e.b
	vars := e.centers(lists)
	at := make(map[int]int, len(vars)) // by variable
	for i := range vars {
		at[vars[i].variable] = i
	}
	terms := make([][]term, len(lists)) // by place among vars
	sums := make([]simt.Value, len(lists))
	alone := make([][]*op, len(lists))
	for i, list := range lists {
		constant := 0.0
		terms[i] = make([]term, len(vars))
		for _, k := range list {
			o := &e.c.ops[k]
			v, ok := at[o.variable]
			if !ok || !o.narrow() || e.space == Scaled && vars[v].near(o) == ownMean {
				alone[i] = append(alone[i], o)
				continue
			}
			terms[i][v] = e.term(&vars[v], o)
			constant += terms[i][v].c
		}
		sums[i] = b.Float(e.t, constant)
	}
	for lo := 0; lo < len(lists); lo += tile {
		for at := range vars {
			for i := lo; i < min(lo+tile, len(lists)); i++ {
				sums[i] = e.quadratic(&vars[at], &terms[i][at], sums[i])
			}
		}
	}
	if len(vars) > 0 {
		sums = e.marginal(vars, terms, sums)
	}
	for i := range alone {
		for _, o := range alone[i] {
			sums[i] = b.Add(sums[i], e.leaf(o))
		}
	}
	return sums
}

// term is a Gaussian of a list as a quadratic form; the zero value is that of none.
type term struct {
	o       *op
	center  int // by place among the variable's, or ownMean
	a, b, c float64
}

// near returns the center around which a leaf over the variable is computed, by its place, or ownMean.
func (v *centered) near(o *op) int {
	nearest, least := ownMean, math.Inf(1)
	for i := range v.around {
		if d := math.Abs(o.mean - v.around[i].center); d < least && isNear(o, v.around[i].center, v.most) {
			nearest, least = i, d
		}
	}
	return nearest
}

// isNear reports whether the mean of a Gaussian is within some deviations of a center.
func isNear(o *op, center, most float64) bool {
	return o.gaussian && o.narrow() && math.Abs(o.mean-center) <= most*o.sd
}

// narrow reports whether the deviation of a Gaussian is one with which a quadratic form stays in range.
func (o *op) narrow() bool { return o.sd <= maxWide && o.sd >= 1/maxWide }

// term returns the quadratic form of a leaf, and notes which one it has.
func (e *emitter) term(v *centered, o *op) term {
	s := math.Sqrt(math.Log2E/2) / o.sd
	c := -math.Log2(o.sd * math.Sqrt(2*math.Pi))
	at := v.near(o)
	if at == ownMean {
		return term{o: o, center: ownMean, a: -s * s, c: c}
	}
	d := o.mean - v.around[at].center
	o.near, o.shift = true, max(o.shift, math.Abs(d)*s)
	return term{o: o, center: at, a: -s * s / (v.scale * v.scale), b: 2 * s * s * d / v.scale, c: c - s*s*d*d}
}

// quadratic adds a quadratic form, without its constant, to a sum.
func (e *emitter) quadratic(v *centered, t *term, sum simt.Value) simt.Value {
	b := e.b
	switch {
	case t.o == nil:
		return sum
	case t.center != ownMean:
		y := &v.around[t.center]
		sum = b.FMA(y.x, b.Float(e.t, t.b), sum)
		return b.FMA(y.square, b.Float(e.t, t.a), sum)
	}
	d, shrunk := e.distance(v.cell, t.o)
	integer := simt.I32
	if e.t == simt.F64 {
		integer = simt.I64
	}
	d = b.Bitcast(e.t, b.Binary(simt.And, b.Bitcast(integer, d), v.there))
	return b.FMA(b.Mul(d, b.Float(e.t, t.a/(shrunk*shrunk))), d, sum) // d² may be infinite where a·d² is not
}

// maxResidual is how far, in deviations, the mean of a Gaussian may be from the one that is subtracted.
const maxResidual = 0x1p-20

// farAway is from where on the difference of a cell and a mean, or one over a deviation, may leave float32.
const farAway = 0x1p100

// distance returns how far a cell is from the mean of a Gaussian, times shrunk: a power of two, 1 unless the distance could
// be too large for the type. A mean that is not exact enough as a number of the type is subtracted in two parts.
func (e *emitter) distance(x simt.Value, o *op) (d simt.Value, shrunk float64) {
	b := e.b
	mean, shrunk := o.mean, 1.0
	if e.t == simt.F32 {
		if max(math.Abs(o.mean), o.sd) >= farAway {
			shrunk = 0x1p-3
		}
		mean = float64(float32(o.mean*shrunk)) / shrunk
	}
	if shrunk < 1 {
		d = b.FMA(x, b.Float(e.t, shrunk), b.Float(e.t, -mean*shrunk))
	} else {
		d = b.Sub(x, b.Float(e.t, mean))
	}
	rest := o.mean - mean
	if math.Abs(rest) > maxResidual*o.sd {
		return b.Sub(d, b.Float(e.t, rest*shrunk)), shrunk
	}
	o.residual = max(o.residual, math.Abs(rest)/o.sd)
	return d, shrunk
}

// marginal takes the constants of missing cells out of sums, where a row has such a cell.
func (e *emitter) marginal(vars []centered, terms [][]term, sums []simt.Value) []simt.Value {
	b := e.b
	missing := make([]simt.Value, len(vars))
	for at := range vars {
		missing[at] = vars[at].missing
	}
	from, any := b.Values(), e.tree(simt.Or, missing)
	var all []simt.Value
	for lo := 0; lo < len(sums); lo = len(all) {
		hi, some := lo, 0
		for ; hi < len(sums) && (hi == lo || some < branchTerms); hi++ {
			some += len(vars)
		}
		all = append(all, e.without(vars, terms[lo:hi], sums[lo:hi], any)...)
		e.spans = append(e.spans, span{from: from, to: b.Values(), kind: spanMarginal})
		from = b.Values()
	}
	return all
}

// branchTerms is about how many terms a branch takes out of sums. Branches are not divided among the parts of a module, and machine code has
// no room for one of some hundred thousand instructions. Tests lower it.
var branchTerms = 1 << 13

// without takes the constants of missing cells out of sums where any is missing.
func (e *emitter) without(vars []centered, terms [][]term, sums []simt.Value, any simt.Value) []simt.Value {
	b := e.b
	return b.If(any, func() []simt.Value {
		if e.tables() {
			return e.marginalTables(vars, terms, sums)
		}
		less := append([]simt.Value(nil), sums...)
		for at := range vars {
			away := b.Select(vars[at].missing, b.Float(e.t, 1), b.Float(e.t, 0))
			for i := range less {
				if t := &terms[i][at]; t.o != nil {
					less[i] = b.FMA(away, b.Float(e.t, -t.c), less[i])
				}
			}
		}
		return less
	}, func() []simt.Value { return sums })
}

// cellsTogether is how many cells choose among the constants of a list at once, where tables of that many bits are as quick as
// an instruction.
const cellsTogether = 4

// tables reports whether constants of missing cells come from tables.
func (e *emitter) tables() bool { return e.t == simt.F32 && e.joint >= 1<<cellsTogether }

// marginalTables is what marginal does for rows with missing cells, by tables over several cells: an addition for each of these,
// not a multiply-add for each cell.
func (e *emitter) marginalTables(vars []centered, terms [][]term, sums []simt.Value) []simt.Value {
	b := e.b
	var there []simt.Value // of each group of cells, a bit for each
	for lo := 0; lo < len(vars); lo += cellsTogether {
		bits := make([]simt.Value, min(cellsTogether, len(vars)-lo))
		for k := range bits {
			bits[k] = b.Binary(simt.And, vars[lo+k].there, b.Int(simt.I32, 1<<k))
		}
		there = append(there, e.tree(simt.Or, bits))
	}
	less := append([]simt.Value(nil), sums...)
	for i := range less {
		for g, index := range there {
			some := terms[i][g*cellsTogether : min((g+1)*cellsTogether, len(vars))]
			if !slices.ContainsFunc(some, func(t term) bool { return t.o != nil }) {
				continue
			}
			table := make([]float64, 1<<cellsTogether)
			for pattern := range table {
				for k := range some {
					if pattern>>k&1 == 0 {
						table[pattern] -= some[k].c
					}
				}
			}
			less[i] = b.Add(less[i], b.Gather(b.FloatTable(e.t, table), index))
		}
	}
	return less
}

// centers loads the variables of Gaussians, around centers that are near to most. Variables of other leaves are opened
// anew where they are read.
func (e *emitter) centers(lists [][]int32) (vars []centered) {
	leaves := map[int][]*op{}
	var order []int
	for _, list := range lists {
		for _, k := range list {
			o := &e.c.ops[k]
			e.cols[o.variable].there, e.cols[o.variable].class = simt.None, simt.None
			if !o.gaussian || !o.narrow() {
				continue
			}
			if leaves[o.variable] == nil {
				order = append(order, o.variable)
			}
			leaves[o.variable] = append(leaves[o.variable], o)
		}
	}
	for _, v := range order {
		vars = append(vars, e.center(v, leaves[v]))
	}
	return vars
}

// center loads a variable around centers of its Gaussians.
func (e *emitter) center(variable int, leaves []*op) centered {
	b := e.b
	v := centered{variable: variable, scale: 1, most: e.maxShift()}
	x := b.Load(0, variable)
	v.missing = b.Binary(simt.Ne, x, x)
	v.cell = b.Convert(e.t, x)
	if e.space != Scaled || e.tables() {
		v.there = e.ones(v.missing)
	}
	if e.space != Scaled && e.t == simt.F32 {
		// In units of at least the widest deviation the square is infinite only where all densities are 0.
		widest := 0.0
		for _, o := range leaves {
			widest = max(widest, o.sd)
		}
		v.scale = math.Ldexp(1, -int(math.Ceil(math.Log2(widest)))-1)
	}
	for _, center := range middles(leaves, v.most) {
		v.around = append(v.around, e.distances(&v, center))
	}
	return v
}

// distances computes how far the cells of a variable are from a center.
func (e *emitter) distances(v *centered, center float64) around {
	b := e.b
	y := b.Select(v.missing, b.Float(e.t, 0), b.Sub(v.cell, b.Float(e.t, center)))
	cut := func(y simt.Value, far float64) simt.Value {
		return b.Binary(simt.Max, b.Binary(simt.Min, y, b.Float(e.t, far)), b.Float(e.t, -far))
	}
	switch {
	case e.space == Scaled:
		y = cut(y, maxFar)
		return around{center, y, b.Mul(y, y)}
	case e.t == simt.F32:
		y = b.Mul(y, b.Float(e.t, v.scale))
		return around{center, cut(y, maxLinearTerm), b.Mul(y, y)}
	}
	return around{center, y, b.Mul(y, y)} // in float64 squares of cells, which are float32, are finite
}

// ones returns an integer whose bits are those of the type of values, all set where a condition does not hold.
func (e *emitter) ones(not simt.Value) simt.Value {
	integer := simt.I32
	if e.t == simt.F64 {
		integer = simt.I64
	}
	return e.b.Select(not, e.b.Int(integer, 0), e.b.Int(integer, -1))
}

// maxShift is how many deviations a Gaussian's mean may be from the center. Scaled space, whose circuits have as many sums as
// leaves and more, takes larger errors for fewer instructions.
func (e *emitter) maxShift() float64 {
	if e.space == Scaled {
		return maxShift
	}
	return maxShiftLog
}

// middles returns one center or several of Gaussians over a variable, such that most are near to one.
func middles(leaves []*op, most float64) (centers []float64) {
	for left := leaves; ; {
		center := middle(left, most)
		var far []*op
		for _, o := range left {
			if !isNear(o, center, most) {
				far = append(far, o)
			}
		}
		if len(centers) > 0 && len(left)-len(far) < fewestAround {
			return centers
		}
		centers = append(centers, center)
		if left = far; len(left) < fewestAround {
			return centers
		}
	}
}

// middle returns a number of float32 that is within some deviations of the means of most Gaussians: the middle of their means if it is of all.
func middle(leaves []*op, most float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, o := range leaves {
		low, high = min(low, o.mean), max(high, o.mean)
	}
	center := float64(float32(low + (high-low)/2))
	if !slices.ContainsFunc(leaves, func(o *op) bool { return !isNear(o, center, most) }) {
		return center
	}
	// The middle of where most of the intervals around means meet.
	type end struct {
		at   float64
		open int // 1 where an interval starts, -1 where one ends
	}
	var ends []end
	for _, o := range leaves {
		ends = append(ends, end{o.mean - most*o.sd, 1}, end{o.mean + most*o.sd, -1})
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmp.Compare(a.at, b.at), b.open-a.open) })
	open, meet := 0, 0
	for i, p := range ends {
		if open += p.open; open > meet {
			meet, center = open, p.at+(ends[i+1].at-p.at)/2
		}
	}
	return float64(float32(center))
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
	const last = 2*simt.LogError + 8 // the logarithm and what is lost of the value
	return Bound{
		Absolute: 1.001*u*(c.worst(func(o *op) float64 { return o.absolute })+last)*math.Ln2 + own.Absolute/2,
		Relative: 1.001*u*(c.worst(func(o *op) float64 { return o.relative })+deepest+simt.LogError+4) + own.Relative/2,
	}
}

// scaledError returns what bounds the error of an operation's value to base 2, as of logBound.
func (c *code) scaledError(o *op) (absolute, relative float64) {
	switch {
	case o.gaussian:
		// The terms of the quadratic form are at most 2·z² + 8·shift² + |c| together. By itself the mean may be off by
		// maxResidual, 16 units of float32: by less than 16·(1 + z²) of them, which is within what follows and the sum of the product.
		constant := math.Abs(math.Log2(o.sd * math.Sqrt(2*math.Pi)))
		absolute, relative = 48*o.shift*o.shift+18*constant+12, 12
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
