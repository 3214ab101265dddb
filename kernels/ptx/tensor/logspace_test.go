package tensor_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// check compares logs and flows of marked rows with float64, and sees that nothing
// else was written.
func (c *logCircuit) check(t *testing.T, card *rowCard, marked []uint32, logTol, flowTol float64) {
	t.Helper()
	val, ratio := get[float32](card, tensor.ArgVal, len(c.val)), get[float32](card, tensor.ArgRatio, len(c.val))
	exp, kept := get[int32](card, tensor.ArgExp, len(c.exp)), get[float32](card, tensor.ArgKept, len(c.kept))
	worstLog, worstFlow := 0.0, 0.0
	for i, n := range c.nodes {
		for r := range c.rows {
			at := int(n.factor.Base) + r*n.width
			e := exp[int(n.factor.At)+r]
			if !slices.Contains(marked, uint32(r)) {
				for u := range n.width {
					if val[at+u] != sentinel || ratio[at+u] != sentinel || e != sentinel {
						t.Fatalf("vector %d, row %d, not marked: %v, %v, %v were written", i, r, val[at+u], e, ratio[at+u])
					}
				}
				continue
			}
			top := float32(math.Inf(-1))
			for u := range n.width {
				top = max(top, val[at+u])
				if u >= n.units {
					if !math.IsInf(float64(val[at+u]), -1) {
						t.Fatalf("vector %d, row %d, unit %d: padding is %v", i, r, u, val[at+u])
					}
					continue
				}
				want, got := n.log[r][u], float64(val[at+u])+float64(e)
				tol := logTol + math.Abs(float64(val[at+u]))*0x1p-20
				if got != want && !(math.Abs(got-want) <= tol) {
					t.Fatalf("vector %d of kind %d, row %d, unit %d: log2 %v (%v, exponent %d), want %v", i, n.kind, r, u, got, val[at+u], e, want)
				}
				if got != want {
					worstLog = max(worstLog, math.Abs(got-want)/tol)
				}
				if n.kind == 0 {
					continue
				}
				f, w := float64(ratio[at+u]), n.flow[r][u]
				if !(math.Abs(f-w) <= flowTol*w+0x1p-130) {
					t.Fatalf("vector %d of kind %d, row %d, unit %d: flow %v, want %v", i, n.kind, r, u, f, w)
				}
				if w > 0x1p-100 {
					worstFlow = max(worstFlow, math.Abs(f-w)/(flowTol*w))
				}
			}
			if !(top >= 0 && top <= 1) && !(math.IsInf(float64(top), -1) && e == 0) {
				t.Fatalf("vector %d, row %d: the largest is %v with exponent %d", i, r, top, e)
			}
		}
	}
	for _, e := range c.all {
		for i := 0; e.kept && i < c.rows*e.width; i++ {
			r, u := i/e.width, i%e.width
			want, tol, got := float64(sentinel), 0.0, float64(kept[e.place+i])
			if slices.Contains(marked, uint32(r)) {
				want = 0
				if u < e.units {
					want = e.flow[r][u]
					tol = flowTol*want + 0x1p-130
				}
			}
			if !(math.Abs(got-want) <= tol) {
				t.Fatalf("element %d, row %d, unit %d: flow kept %v, want %v", e.id, r, u, got, want)
			}
		}
	}
	t.Logf("largest errors: %.2g of what is allowed for logs, %.2g for flows", worstLog, worstFlow)
}

// random returns a weight or a probability that is 0 now and then, and now and then
// tiny.
func (c *logCircuit) random() float32 {
	switch c.rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return float32(math.Exp2(-140 * c.rng.Float64()))
	}
	return c.rng.Float32()
}

func (c *logCircuit) weight(_, _ int) float32 { return c.random() }

// everyThird lists marked rows, not all.
func everyThird(rows int) (list []uint32) {
	for r := 1; r < rows; r += 3 {
		list = append(list, uint32(r))
	}
	return list
}

// TestLogRandom runs circuits with every kind of vector: tied sums, sparse ones,
// vectors that several products read, stored products, functions.
func TestLogRandom(t *testing.T) {
	for _, s := range []int{1, 2, 4, 8, 32} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("S=%d/seed=%d", s, seed), func(t *testing.T) {
				c := newLogCircuit(s, 10, seed)
				units := 2*s + 1 + c.rng.IntN(s)
				table := func() *logNode {
					return c.table(units, 3, func(int, int) float32 { return c.random() })
				}
				x, y := c.gaussian(units, 3), c.gaussian(units, 1)
				blocks := c.widthOf(units) / s
				a := c.sum(units, nil, nil, c.weight, c.times(table(), table()), c.times(x))
				bands := []logBand{
					{1, func(col int) bool { return col != 1 }},
					{blocks - 1, func(col int) bool { return col > 0 }},
				}
				b := c.sum(units, nil, bands, c.weight, c.times(table(), y, table(), table(), table()), c.times(table(), a))
				d := c.sum(units, b, bands, nil, c.times(b, table()), c.times(table()))
				p := c.product(a, b, table())
				q := c.sum(units, nil, nil, c.weight, c.times(p), c.times(p, d), c.times(x, table()))
				p2 := c.product(q, table(), y, c.breaks(units))
				p3 := c.product(table(), table())
				c.sum(1+int(seed), nil, nil, c.weight, c.times(p2, a), c.times(q, p), c.times(p3))
				marked := everyThird(c.rows)
				c.check(t, c.run(t, marked, 2), marked, 0x1p-19, 0x1p-16)
			})
		}
	}
}

// TestLogFarDown has values near 2^-7000, and differences that their last bits hold.
func TestLogFarDown(t *testing.T) {
	c := newLogCircuit(4, 5, 3)
	const units = 6
	var factors []*logNode
	for range 75 {
		factors = append(factors, c.table(units, 2, func(int, int) float32 {
			return float32(math.Exp2(-90 - 10*c.rng.Float64()))
		}))
	}
	a := c.sum(units, nil, nil, func(int, int) float32 { return c.rng.Float32() }, c.times(factors...))
	b := c.sum(units, nil, nil, func(int, int) float32 { return c.rng.Float32() }, c.times(factors[:60]...), c.times(factors[15:]...))
	p := c.product(a, b)
	c.sum(1, nil, nil, func(int, int) float32 { return c.rng.Float32() }, c.times(p), c.times(b, a))
	marked := []uint32{0, 1, 3}
	// 135 logs of tables, each up to 2^-22 off, add up to some 2^-18.
	c.check(t, c.run(t, marked, 1), marked, 0x1p-17, 0x1p-15)
	if w := c.nodes[len(c.nodes)-1].log[0][0]; !(w < -7000) {
		t.Errorf("the root's log2 is %v; want one below -7000", w)
	}
}

// TestLogOpposed multiplies (1, tiny) by (tiny, 1), where tiny is far beyond
// float32: units that are 2^-7000 of the largest in their vector count all the same,
// and outputs whose only term is one of them keep it.
func TestLogOpposed(t *testing.T) {
	c := newLogCircuit(2, 4, 4)
	c.keep = true
	vector := func(tiny int) *logNode {
		var factors []*logNode
		for range 70 {
			factors = append(factors, c.table(2, 2, func(_, unit int) float32 {
				if unit == tiny {
					return float32(math.Exp2(-100 - c.rng.Float64()))
				}
				return 1 - c.rng.Float32()/4
			}))
		}
		id := func(unit, column int) float32 { return float32((1 + unit + column) % 2) }
		return c.sum(2, nil, nil, id, c.times(factors...))
	}
	a, b := vector(0), vector(1)
	c.sum(1, nil, nil, func(_, column int) float32 { return 0.25 + float32(column)/2 }, c.times(a, b))
	marked := []uint32{1, 2, 3}
	// A log of 7000 has steps of 2^-11 in float32.
	c.check(t, c.run(t, marked, 3), marked, 0x1p-10, 0x1p-10)
}

// TestLogTiny has weights down to the least float32 on operands that make up for it.
func TestLogTiny(t *testing.T) {
	c := newLogCircuit(4, 6, 5)
	x := c.table(8, 2, func(_, unit int) float32 { return []float32{1, 0x1p-149, 0x1p-126, 0x1p-100}[unit%4] })
	a := c.sum(4, nil, nil, func(unit, column int) float32 {
		if unit == 3 && column%4 == 0 {
			return 0x1p-149
		}
		return []float32{0, 0x1p-149, 0x1p-127, 0x1p-60}[(unit+column)%4]
	}, c.times(x, x, x))
	c.sum(1, nil, nil, func(_, column int) float32 { return []float32{0x1p-149, 0x1p-140, 0.5, 1}[column] }, c.times(a))
	marked := []uint32{0, 1, 2, 3, 4, 5}
	c.check(t, c.run(t, marked, 4), marked, 0x1p-19, 0x1p-16)
}

// TestLogVanished has outputs of which float32 would keep a part only, in units of
// the largest operand.
func TestLogVanished(t *testing.T) {
	c := newLogCircuit(8, 3, 9)
	x := c.table(8, 2, func(_, unit int) float32 {
		switch unit {
		case 0:
			return 1
		case 1:
			return 0x1p-110
		}
		return 0x1p-128
	})
	c.sum(1, nil, nil, func(_, column int) float32 { return []float32{0, 0x1.8p-18, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7}[column] }, c.times(x))
	marked := []uint32{0, 1, 2}
	c.check(t, c.run(t, marked, 2), marked, 0x1p-19, 0x1p-16)
}

// TestLogImpossible has rows without a value: flows are 0.
func TestLogImpossible(t *testing.T) {
	c := newLogCircuit(4, 6, 8)
	zero := c.table(4, 2, func(code, _ int) float32 { return float32(code) })
	a := c.sum(4, nil, nil, func(unit, column int) float32 { return float32(unit % 2) }, c.times(zero))
	p := c.product(a, c.table(4, 2, func(_, unit int) float32 { return float32(unit) / 4 }))
	c.sum(1, nil, nil, func(int, int) float32 { return 0.25 }, c.times(p))
	marked := []uint32{0, 1, 2, 3, 4, 5}
	c.check(t, c.run(t, marked, 2), marked, 0x1p-19, 0x1p-16)
	impossible := 0
	for _, log := range c.nodes[len(c.nodes)-1].log {
		if math.IsInf(log[0], -1) {
			impossible++
		}
	}
	if impossible == 0 || impossible == c.rows {
		t.Errorf("%d of %d rows are impossible; want some", impossible, c.rows)
	}
}

// TestLogRowsAlone checks that a row's bits depend neither on the other marked rows
// nor on the number of blocks.
func TestLogRowsAlone(t *testing.T) {
	var first []float32
	for _, tc := range []struct {
		marked []uint32
		blocks int
	}{{[]uint32{4}, 1}, {[]uint32{0, 2, 4, 5}, 2}, {[]uint32{3, 4}, 5}} {
		c := newLogCircuit(4, 6, 7)
		a := c.sum(5, nil, nil, c.weight, c.times(c.table(9, 2, func(int, int) float32 { return c.random() })))
		c.sum(1, nil, nil, c.weight, c.times(a))
		card := c.run(t, tc.marked, tc.blocks)
		var bits []float32
		for _, name := range []string{tensor.ArgVal, tensor.ArgRatio} {
			all := get[float32](card, name, len(c.val))
			for _, n := range c.nodes {
				at := int(n.factor.Base) + 4*n.width
				bits = append(bits, all[at:at+n.width]...)
			}
		}
		if first == nil {
			first = bits
		}
		same := slices.EqualFunc(first, bits, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
		if !same {
			t.Errorf("rows %v in %d blocks: %v, want %v", tc.marked, tc.blocks, bits, first)
		}
	}
}
