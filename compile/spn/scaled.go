package spn

import (
	"encoding/binary"
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// leastScaled is log2 of the least likelihood that scaled space computes, so that exponents are whole numbers of
// float32.
const leastScaled = -1 << 20

const (
	// tile is how many operations of a block are computed side by side, so that an operand is loaded once for
	// all of them, and their results stay in the registers of AVX2.
	tile = 12
	// factors is how many factors of a product are multiplied before the exponent is taken out.
	factors = 4
)

// family is a list of operations whose values share an exponent: units of a node, with operands in the same families.
type family struct {
	ops  []int32
	from []int32 // the families of the operands, in their order, leaves of a product excepted; of a sum those that any has

	done     bool
	exponent simt.Value // of the values, a whole number of the type of values
	lost     simt.Value // bounds what a value is off beside its relative error, in units of the least normal number
	high     int        // values are below 2^high
}

// families divides the operations that are used into families, each behind those of its operands. The roots are one where
// they can be.
func (c *code) families() (list []family, of []int32) {
	of = make([]int32, len(c.ops))
	known := map[string]int32{}
	last := c.groups
	for _, r := range c.roots {
		if r != nowhere && c.ops[r].kind != circuit.Input {
			c.ops[r].group = last
		}
	}
	var key []byte
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used {
			continue
		}
		var from []int32
		key = append(key[:0], byte(o.kind))
		key = binary.LittleEndian.AppendUint32(key, uint32(o.group))
		if o.kind == circuit.Product {
			leaves := byte(0)
			for _, a := range o.args {
				if c.ops[a].kind == circuit.Input {
					leaves = 1
					continue
				}
				from = append(from, of[a])
				key = binary.LittleEndian.AppendUint32(key, uint32(of[a]))
			}
			key = append(key, leaves)
		}
		at, ok := known[string(key)]
		if !ok {
			at = int32(len(list))
			known[string(key)] = at
			list = append(list, family{from: from})
		}
		of[i] = at
		list[at].ops = append(list[at].ops, int32(i))
	}
	for i := range list {
		f := &list[i]
		if c.ops[f.ops[0]].kind != circuit.Sum {
			continue
		}
		seen := map[int32]bool{}
		for _, k := range f.ops {
			for _, a := range c.ops[k].args {
				if !seen[of[a]] {
					seen[of[a]] = true
					f.from = append(f.from, of[a])
				}
			}
		}
	}
	return list, of
}

// regular reports whether blocks are so large that their exponents cost little, and the circuit so shallow that
// what is lost below exponents is far from what counts.
func (c *code) regular(t simt.Type) bool {
	const own, most = 24, 0.5 // instructions of a family beside two for each operation, and their share of all
	operations, operands := 0, 0
	for i := range c.ops {
		if o := &c.ops[i]; o.used && o.kind != circuit.Input {
			operations, operands = operations+1, operands+len(o.args)
		}
	}
	if 2*float64(operations) > most*float64(operands) { // whatever the families are
		return false
	}
	list, _ := c.families()
	edges, extra := 0, 0
	depth := make([]int, len(list))
	deepest := 0
	for i := range list {
		f := &list[i]
		if c.ops[f.ops[0]].kind == circuit.Input {
			continue // part of the products that read it
		}
		extra += own + 2*len(f.ops)
		for _, k := range f.ops {
			edges += len(c.ops[k].args)
		}
		for _, k := range f.from {
			depth[i] = max(depth[i], depth[k]+1)
		}
		deepest = max(deepest, depth[i])
	}
	const perLevel = 4 // bits that are lost
	return float64(extra) <= most*float64(edges) && perLevel*float64(deepest) <= maxLinear(t)/2
}

// scaled emits the circuit in scaled space. A row of which more may have been lost than a unit of the largest root's last place
// has NaN.
func (e *emitter) scaled(out int) {
	b, c := e.b, e.c
	e.families, e.family = c.families()
	room := 0
	for i := range c.ops {
		if o := &c.ops[i]; o.used {
			const each = 2 // a constant and what multiplies by it
			room += each * (len(o.args) + 1)
			if o.kind == circuit.Product {
				const more = 2 * each // of a Gaussian, beside that
				room += more * len(o.args)
			}
		}
	}
	b.Grow(room)
	for _, r := range c.roots {
		if r != nowhere {
			e.visit(e.family[r])
		}
	}
	b.Forget()
	trusted := map[int32]simt.Value{}
	for k, r := range c.roots {
		if r == nowhere {
			b.Store(out, k, b.Float(e.t, math.Inf(-1)))
			continue
		}
		f := &e.families[e.family[r]]
		ok, there := trusted[e.family[r]]
		if !there {
			var roots []simt.Value
			for _, i := range f.ops {
				roots = append(roots, e.value[i])
			}
			// What is lost times the least normal number is at most a unit of the value.
			least := math.Ldexp(1, smallest(e.t)) / unit(e.t)
			ok = b.Binary(simt.Le, b.Mul(f.lost, b.Float(e.t, least)), e.tree(simt.Max, roots))
			ok = b.Binary(simt.And, ok, b.Binary(simt.Le, b.Float(e.t, leastScaled), f.exponent))
			trusted[e.family[r]] = ok
		}
		ln := e.ln(e.value[r], 0)
		ll := e.span(spanNats, nil, func() simt.Value { return b.FMA(f.exponent, b.Float(e.t, math.Ln2), ln) })
		b.Store(out, k, b.Select(ok, ll, b.Float(e.t, math.NaN())))
	}
}

// smallest is the exponent of the least normal number of a type.
func smallest(t simt.Type) int {
	if t == simt.F32 {
		return -126
	}
	return -1022
}

// visit emits a family behind those that it reads, depth first.
func (e *emitter) visit(root int32) {
	type visit struct {
		family int32
		next   int
	}
	for stack := []visit{{family: root}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		f := &e.families[top.family]
		switch {
		case f.done:
		case top.next < len(f.from):
			top.next++
			stack = append(stack, visit{family: f.from[top.next-1]})
			continue
		default:
			e.b.Forget()
			if e.c.ops[f.ops[0]].kind == circuit.Sum {
				e.sums(f)
			} else {
				e.products(f)
			}
			f.done = true
		}
		stack = stack[:len(stack)-1]
	}
}

// products emits products, or leaves, which are products of themselves.
func (e *emitter) products(f *family) {
	b, c := e.b, e.c
	values := make([]simt.Value, len(f.ops))
	lists := make([][]int32, len(f.ops))
	leaves := false
	for i, k := range f.ops {
		values[i] = b.Float(e.t, 1)
		if o := &c.ops[k]; o.kind == circuit.Input {
			lists[i] = []int32{k}
		} else {
			for _, a := range o.args {
				if c.ops[a].kind == circuit.Input {
					lists[i] = append(lists[i], a)
				}
			}
		}
		leaves = leaves || len(lists[i]) > 0
	}
	if leaves {
		logs := e.logs(lists)
		// The finite number keeps differences numbers where all are -Inf.
		f.exponent = b.Unary(simt.Floor, b.Binary(simt.Max, e.tree(simt.Max, logs), b.Float(e.t, leastFinite(e.t))))
		for i, x := range logs {
			values[i] = e.exp2Normal(b.Sub(x, f.exponent))
		}
		f.lost, f.high = b.Float(e.t, 2), 1
	} else {
		f.exponent, f.lost, f.high = b.Float(e.t, 0), b.Float(e.t, 0), 1
	}
	for at, k := range f.from {
		g := &e.families[k]
		if at == 0 && !leaves {
			f.exponent, f.lost, f.high = g.exponent, g.lost, g.high
			for i := range values {
				values[i] = e.value[e.inner(f.ops[i], at)]
			}
			continue
		}
		for i := range values {
			values[i] = b.Mul(values[i], e.value[e.inner(f.ops[i], at)])
		}
		f.exponent = b.Add(f.exponent, g.exponent)
		f.lost = e.lostOf(f.lost, f.high, g.lost, g.high)
		if f.high += g.high; (at+1)%factors == 0 {
			e.normalise(f, values)
		}
	}
	for i, k := range f.ops {
		e.value[k] = values[i]
	}
}

// lostOf returns what the product of two values may be off, each of which is below 2^high and may be off by lost.
// What is off by more than counts anyway becomes infinite, so that it cannot become less again.
func (e *emitter) lostOf(lost1 simt.Value, high1 int, lost2 simt.Value, high2 int) simt.Value {
	b := e.b
	number := func(x float64) simt.Value { return b.Float(e.t, x) }
	x := b.FMA(lost2, number(math.Ldexp(1.01, high1)), number(1))
	x = b.FMA(lost1, number(math.Ldexp(1.01, high2)), x)
	much := number(math.Ldexp(1, -smallest(e.t)-16))
	excess := b.Binary(simt.Max, b.Sub(x, much), number(0))
	return b.FMA(excess, much, x)
}

// inner returns the operand at a place among those of a product that are not leaves.
func (e *emitter) inner(k int32, at int) int32 {
	for _, a := range e.c.ops[k].args {
		if e.c.ops[a].kind == circuit.Input {
			continue
		}
		if at == 0 {
			return a
		}
		at--
	}
	panic("BUG: spn: an operand that is not there")
}

// sums emits sums, a tile at a time.
func (e *emitter) sums(f *family) {
	b, c := e.b, e.c
	first := &e.families[f.from[0]]
	f.exponent, f.lost, f.high = first.exponent, first.lost, first.high
	operand := func(a int32) simt.Value { return e.value[a] }
	if len(f.from) > 1 {
		operand = e.align(f)
	}
	largest, terms := 1.0, 0
	values := make([]simt.Value, len(f.ops))
	for lo := 0; lo < len(f.ops); lo += tile {
		ops := f.ops[lo:min(lo+tile, len(f.ops))]
		most := 0
		for _, k := range ops {
			sum := 0.0
			for _, w := range c.ops[k].weights {
				sum += w
			}
			largest = max(largest, sum)
			most = max(most, len(c.ops[k].args))
		}
		terms = max(terms, most)
		for at := range most {
			for i, k := range ops {
				o := &c.ops[k]
				if at >= len(o.args) {
					continue
				}
				x, w := operand(o.args[at]), b.Float(e.t, o.weights[at])
				if at == 0 {
					values[lo+i] = b.Mul(x, w)
				} else {
					values[lo+i] = b.FMA(x, w, values[lo+i])
				}
			}
		}
	}
	f.lost = b.FMA(f.lost, b.Float(e.t, 1.01*largest), b.Float(e.t, float64(terms)))
	f.high += int(math.Ceil(math.Log2(1.01 * largest)))
	e.normalise(f, values)
	for i, k := range f.ops {
		e.value[k] = values[i]
	}
}

// align gives the operands of sums one exponent, the largest, and returns where they are.
func (e *emitter) align(f *family) func(a int32) simt.Value {
	b := e.b
	tops := make([]simt.Value, len(f.from))
	for i, k := range f.from {
		tops[i] = e.families[k].exponent
		f.high = max(f.high, e.families[k].high)
	}
	f.exponent = e.tree(simt.Max, tops)
	f.lost = b.Float(e.t, math.Ldexp(2, f.high)) // of a power that is less than the least
	scales := map[int32]simt.Value{}
	for _, k := range f.from {
		g := &e.families[k]
		scales[k] = e.exp2Normal(b.Sub(g.exponent, f.exponent))
		f.lost = b.Add(f.lost, b.FMA(g.lost, scales[k], b.Float(e.t, 1)))
	}
	moved := map[int32]simt.Value{}
	return func(a int32) simt.Value {
		v, ok := moved[a]
		if !ok {
			v = b.Mul(e.value[a], scales[e.family[a]])
			moved[a] = v
		}
		return v
	}
}

// normalise takes the exponent out of values.
func (e *emitter) normalise(f *family, values []simt.Value) {
	b := e.b
	top := e.tree(simt.Max, values)
	var k, scale simt.Value
	e.span(spanExponent, nil, func() simt.Value { k, scale = b.Exponent(top); return k })
	for i := range values {
		values[i] = b.Mul(values[i], scale)
	}
	f.exponent = b.Add(f.exponent, k)
	f.lost = b.FMA(f.lost, scale, b.Float(e.t, 1))
	f.high = 1
}
