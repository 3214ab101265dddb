package micro

import (
	"math"
	"unsafe"
)

// genericLanes are the rows that the portable kernels of single units take.
const genericLanes = 16

type (
	words  = [genericLanes]uint32
	floats = [genericLanes]float32
)

var genericSingle = &SingleSet{Rows: genericLanes, Forward: genericSingleForward, Backward: genericSingleBackward}

// singleTape reads the tape of a circuit.
type singleTape struct {
	*SingleArgs
	at int
}

func (t *singleTape) next() int {
	v := *at(t.Tape, t.at)
	t.at++
	return int(v)
}

// value returns the mantissas and exponents of the vector at a place.
func (t *singleTape) value(place int) (m, e *words) {
	return (*words)(unsafe.Pointer(at(t.Values, place))), (*words)(unsafe.Pointer(at(t.Values, place+genericLanes)))
}

// flow returns the flows into that vector.
func (t *singleTape) flow(place int) *floats {
	return (*floats)(unsafe.Pointer(at(t.Flows, place/2)))
}

// operand returns mantissas, exponents and flows of an operand of the running group.
func (t *singleTape) operand(j int) (m, e *words, f *floats) {
	p := unsafe.Pointer(at(t.Scratch, 3*genericLanes*j))
	return (*words)(p), (*words)(unsafe.Add(p, 4*genericLanes)), (*floats)(unsafe.Add(p, 8*genericLanes))
}

// weight returns the mantissa and the exponent of a weight.
func (t *singleTape) weight(place int) (m float32, e int32) {
	return math.Float32frombits(*at(t.Weights, place)), int32(*at(t.Weights, place+1))
}

// operands multiplies the factors of a group's operands.
func (t *singleTape) operands(n int) {
	for j := range n {
		m, e, f := t.operand(j)
		leaves, nodes := t.next(), t.next()
		for i := range m {
			m[i], e[i], f[i] = math.Float32bits(1), 0, 0
		}
		for range leaves {
			table, codes := row(t.Tables, t.next(), 2*SingleCodes), row(t.Codes, t.next(), genericLanes)
			t.at += 2
			for i, c := range codes {
				m[i] = timesBits(m[i], table[c])
				e[i] += table[SingleCodes+c]
			}
		}
		for range nodes {
			fm, fe := t.value(t.next())
			for i := range fm {
				m[i] = timesBits(m[i], fm[i])
				e[i] = uint32(AddExponents(int32(e[i]), int32(fe[i])))
			}
		}
		for i := range e {
			if int32(e[i]) < leastExponent {
				m[i] = 0
			}
		}
	}
}

func timesBits(a, b uint32) uint32 {
	return math.Float32bits(math.Float32frombits(a) * math.Float32frombits(b))
}

// scaled returns x·2^e, x for 0.
func scaled(x float32, e int32) float32 {
	e = min(max(e, -127), 127)
	if e == -127 {
		return 0
	}
	return x * math.Float32frombits(uint32(e+127)<<23)
}

// leastExponent is the least exponent of an operand that is told from 0: with a weight's, it differs
// from every other one by an int32.
const leastExponent = Lost + 256

// singleBatch is how many operands of a sum are added up as they come. Sums of such batches are
// compensated, so the roundings of a sum of very many operands do not add up.
const singleBatch = 64

// compensated returns the sum of sum and x, and what rounding adds to it; lost is what it has
// added so far.
func compensated(sum, x, lost float32) (next, more float32) {
	x -= lost
	next = sum + x
	return next, (next - sum) - x
}

// lostTerm is below the exponents of all terms.
const lostTerm = Lost - 256

func genericSingleForward(a *SingleArgs) {
	t := singleTape{SingleArgs: a, at: int(*a.Starts)}
	for range a.Groups {
		n, sums := t.next(), t.next()
		t.operands(n)
		for range sums {
			m, e := t.value(t.next())
			weights := t.next()
			t.at++
			t.sum(m, e, weights, n)
		}
	}
}

// sum sets a sum of n operands.
func (t *singleTape) sum(m, e *words, weights, n int) {
	var top [genericLanes]int32
	for i := range top {
		top[i] = lostTerm
	}
	for j := range n {
		om, oe, _ := t.operand(j)
		wm, we := t.weight(weights + 2*j)
		for i := range top {
			if om[i] != 0 && wm != 0 {
				top[i] = max(top[i], int32(oe[i])+we)
			}
		}
	}
	var sum, lost floats
	for lo := 0; lo < n; lo += singleBatch {
		var part floats
		for j := lo; j < min(n, lo+singleBatch); j++ {
			om, oe, _ := t.operand(j)
			wm, we := t.weight(weights + 2*j)
			for i := range part {
				if x := float32(math.Float32frombits(om[i]) * wm); x != 0 {
					part[i] += scaled(x, int32(oe[i])+we-top[i])
				}
			}
		}
		for i, x := range part {
			sum[i], lost[i] = compensated(sum[i], x, lost[i])
		}
	}
	for i, s := range sum {
		m[i], e[i] = 0, 0
		if bits := math.Float32bits(s); s != 0 {
			m[i] = bits&(1<<23-1) | 127<<23
			e[i] = uint32(min(max(int64(top[i])+int64(bits>>23)-127, Lost), Most))
		}
	}
}

func genericSingleBackward(a *SingleArgs) {
	t := singleTape{SingleArgs: a}
	for g := a.Groups - 1; g >= 0; g-- {
		t.at = int(*at(a.Starts, g))
		n, sums := t.next(), t.next()
		first := t.at
		t.operands(n)
		for range sums {
			place, weights, counts := t.next(), t.next(), t.next()
			t.sumFlows(place, weights, row(a.Counts, counts, n))
		}
		t.at = first
		for j := range n {
			t.flowDown(j)
		}
	}
}

// sumFlows divides the flow into a sum among its operands.
func (t *singleTape) sumFlows(place, weights int, counts []float32) {
	m, e := t.value(place)
	f := t.flow(place)
	var ratio floats
	for i := range ratio {
		if m[i] != 0 {
			ratio[i] = f[i] / math.Float32frombits(m[i])
		}
		f[i] = 0
	}
	for j := range counts {
		om, oe, of := t.operand(j)
		wm, we := t.weight(weights + 2*j)
		total := float32(0)
		for i, r := range ratio {
			if x := float32(float32(math.Float32frombits(om[i])*wm) * r); x != 0 {
				x = scaled(x, int32(oe[i])+we-int32(e[i]))
				of[i] += x
				total += x
			}
		}
		counts[j] += total
	}
}

// flowDown hands the flow into an operand to its factors.
func (t *singleTape) flowDown(j int) {
	_, _, f := t.operand(j)
	leaves, nodes := t.next(), t.next()
	for range leaves {
		t.at++
		codes := row(t.Codes, t.next(), genericLanes)
		n := t.next()
		counts := row(t.Counts, t.next(), n)
		for c := range counts {
			total := float32(0)
			for i, x := range f {
				if codes[i] == uint32(c) {
					total += x
				}
			}
			counts[c] += total
		}
	}
	for range nodes {
		to := t.flow(t.next())
		for i, x := range f {
			to[i] += x
		}
	}
}
