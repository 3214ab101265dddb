package spn

import (
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// emitter writes the instructions of a code.
type emitter struct {
	b     *simt.Builder
	c     *code
	space Space
	t     simt.Type
	bytes bool // the input is rows of bytes
	cols  []column
	value []simt.Value // of operations; None before they are emitted
	joint int          // as of Options
	scope []*scope     // of operations that a table can have; nil: of others
	// gaussians has the sum of the Gaussian factors of a product in log space that are computed together with those of
	// other products; see together.
	gaussians map[int32]simt.Value
	spans     []span // see lospn.go

	families []family // in scaled space
	family   []int32  // of operations
}

// emit returns the module of the code, and what its instructions are for.
func (c *code) emit(numVars int, o Options) (*simt.Module, []span, error) {
	space, t := o.Space, o.Type
	e := &emitter{b: simt.NewBuilder("circuit in " + string(space) + " space"), c: c, space: space, t: t, bytes: o.Bytes, cols: c.columns(numVars), joint: o.Joint}
	for v := range e.cols {
		e.cols[v].there, e.cols[v].class = simt.None, simt.None
		e.plan(&e.cols[v])
	}
	e.scopes()
	e.value = make([]simt.Value, len(c.ops))
	for i := range e.value {
		e.value[i] = simt.None
	}
	if o.Bytes {
		e.b.Input("x", simt.U8, o.Layout, numVars)
	} else {
		e.b.Input("x", simt.F32, simt.Columns, numVars)
	}
	out := e.b.Output("ll", t, simt.Columns, len(c.roots))
	if space == Scaled {
		e.scaled(out)
		return e.module()
	}
	for k, r := range c.roots {
		if r == nowhere {
			e.b.Store(out, k, e.b.Float(t, math.Inf(-1)))
			continue
		}
		e.all(r)
		root := e.value[r]
		switch {
		case space == Linear && (len(c.roots) > 1 || c.zeros && c.least >= minLinear(t)):
			root = e.ln(root, -c.lifted)
		case space == Linear: // rows of less than normal numbers are computed again
			root = e.span(spanLn, nil, func() simt.Value { return e.b.LogNormal(root, -c.lifted) })
		default:
			root = e.nats(root)
		}
		e.b.Store(out, k, root)
	}
	return e.module()
}

func (e *emitter) module() (*simt.Module, []span, error) {
	m, err := e.b.Module()
	return m, e.spans, err
}

// all emits what a root needs depth first: an operation when its operands are there, so
// that few values wait.
func (e *emitter) all(root int32) {
	type visit struct {
		op   int32
		next int
		// Of a sum in linear space: what the operands so far add up to, so that they need not wait for the others.
		sum simt.Value
		// The last operand is its value times this one, unless None.
		times simt.Value
		split bool // of a product: its reader multiplies the two halves
	}
	if e.value[root] != simt.None {
		return
	}
	for stack := []visit{{op: root, sum: simt.None, times: simt.None}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		o := &e.c.ops[top.op]
		if s := e.scope[top.op]; s != nil {
			e.value[top.op] = e.lookup([]int32{top.op}, s)
			stack = stack[:len(stack)-1]
			continue
		}
		if top.next == 0 && o.kind == circuit.Sum && e.space == Log {
			e.together(o)
		}
		sums := o.kind == circuit.Sum && e.space == Linear
		if sums && top.next > 0 {
			top.sum, top.times = e.plus(o, top.next-1, top.sum, top.times), simt.None
		}
		if top.next < len(o.args) {
			a := o.args[top.next]
			top.next++
			if _, ok := e.gaussians[top.op]; ok && e.c.ops[a].gaussian {
				continue
			}
			if e.value[a] == simt.None && (o.kind != circuit.Product || e.scope[a] == nil) {
				child := &e.c.ops[a]
				split := sums && top.sum != simt.None && o.weights[top.next-1] == 1 && child.kind == circuit.Product && child.uses == 1 && len(child.args) > 1
				stack = append(stack, visit{op: a, sum: simt.None, times: simt.None, split: split})
			}
			continue
		}
		switch {
		case sums:
			e.value[top.op] = top.sum
		case top.split:
			list := e.factors(o)
			if half := len(list) / 2; half > 0 {
				stack[len(stack)-2].times = e.tree(simt.Mul, list[half:])
				list = list[:half]
			}
			e.value[top.op] = e.tree(simt.Mul, list)
		default:
			e.value[top.op] = e.operation(top.op)
		}
		stack = stack[:len(stack)-1]
	}
}

func (e *emitter) operation(k int32) simt.Value {
	o := &e.c.ops[k]
	if o.kind == circuit.Input {
		return e.leaf(o)
	}
	if len(o.args) == 0 {
		return e.b.Float(e.t, e.inSpace(1))
	}
	if o.kind == circuit.Product && e.space == Linear {
		return e.tree(simt.Mul, e.factors(o))
	}
	terms := make([]simt.Value, 0, len(o.args))
	known, joined := e.gaussians[k]
	if joined {
		terms = append(terms, known)
	}
	for _, a := range o.args {
		if !joined || !e.c.ops[a].gaussian {
			terms = append(terms, e.value[a])
		}
	}
	b := e.b
	if o.kind == circuit.Product {
		return e.tree(simt.Add, terms)
	}
	for i, w := range o.weights {
		if w != 1 {
			terms[i] = b.Add(terms[i], b.Float(e.t, math.Log2(w)))
		}
	}
	if len(terms) == 1 {
		return terms[0]
	}
	// log2 Σ 2^t = m + log2 Σ 2^(t-m) with the largest t as m, so that the sum is normal and what it leaves out of terms far below
	// m does not count. Where all terms are 0 m would be -Inf; a finite number in its place keeps differences numbers.
	least := b.Float(e.t, leastFinite(e.t))
	top := b.Binary(simt.Max, e.tree(simt.Max, terms), least)
	for i := range terms {
		terms[i] = e.exp2Normal(b.Sub(terms[i], top))
	}
	sum := e.tree(simt.Add, terms)
	sum = e.span(spanLog2, nil, func() simt.Value { return b.Log2Normal(sum) })
	return b.Select(b.Binary(simt.Lt, least, top), b.Add(top, sum), b.Float(e.t, math.Inf(-1)))
}

// plus adds an operand of a sum, times another value unless that is None, to those before it.
func (e *emitter) plus(o *op, at int, sum, times simt.Value) simt.Value {
	b, x, w := e.b, e.value[o.args[at]], o.weights[at]
	switch {
	case sum == simt.None && w == 1:
		return x
	case sum == simt.None:
		return b.Mul(x, b.Float(e.t, w))
	case times != simt.None:
		return b.FMA(x, times, sum)
	case w == 1:
		return b.Add(sum, x)
	}
	return b.FMA(x, b.Float(e.t, w), sum)
}

// leastFinite is the least finite number of a type.
func leastFinite(t simt.Type) float64 {
	if t == simt.F32 {
		return -math.MaxFloat32
	}
	return -math.MaxFloat64
}

// tree joins values in pairs of halves.
func (e *emitter) tree(op simt.Op, list []simt.Value) simt.Value {
	if len(list) == 1 {
		return list[0]
	}
	half := len(list) / 2
	return e.b.Binary(op, e.tree(op, list[:half]), e.tree(op, list[half:]))
}
