package tensor_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// testGrid is the unit of counts in tests.
const testGrid = 0x1p-14

// logRow turns a row into one in log space: logs to the base 2 less the exponent in
// place of mantissas, far from each other, and flows in place of ratios.
func (l *level) logRow(r int) {
	for _, e := range l.elements {
		for _, f := range l.factors[e.Factor : e.Factor+e.Count] {
			for u := range int(e.Width) {
				if f.Kind == tensor.StoredFactor {
					x := &l.val[int(f.Base)+r*int(e.Width)+u]
					*x = float32(math.Log2(float64(*x))) - float32(100*l.rng.IntN(3))
					if l.rng.IntN(10) == 0 {
						*x = float32(math.Inf(-1))
					}
				}
			}
		}
	}
	for id, s := range l.sums {
		logs := l.logSums(id, r)
		for u := range int(s.Width) {
			at := int(s.Val) + r*int(s.Width) + u
			l.ratio[at] = poison
			if u < int(s.Units) {
				l.val[at] = float32(logs[u])
				l.ratio[at] = float32(l.rng.IntN(3)) * l.rng.Float32()
				if math.IsInf(logs[u], -1) {
					l.ratio[at] = 0
				}
			}
		}
	}
	l.badRows[0]++
	l.badRows[l.badRows[0]] = uint32(r)
}

// logSums returns the logs to the base 2 of the units of a sum, less its exponent,
// in a row whose factors are in log space.
func (l *level) logSums(id, row int) []float64 {
	s := &l.sums[id]
	exp := float64(l.exp[int(s.Exp)+row])
	logs := make([]float64, s.Width)
	for u := range logs {
		logs[u] = math.Inf(-1)
	}
	for _, w := range l.weights[id] {
		if theta := float64(l.params[w.param]); theta > 0 {
			x := l.logOperand(int(s.Element)+w.element, row, w.column) - exp + math.Log2(theta)
			high, low := max(logs[w.unit], x), min(logs[w.unit], x)
			if !math.IsInf(low, -1) {
				high += math.Log2(1 + math.Exp2(low-high))
			}
			logs[w.unit] = high
		}
	}
	return logs
}

// paramFlows returns the flow of every parameter, less the weight.
func (l *level) paramFlows() []float64 {
	flows := make([]float64, len(l.params))
	for id, s := range l.sums {
		for r := range l.rows {
			exp := int(l.exp[int(s.Exp)+r])
			operands := make([][]float64, s.Elements)
			for e := range operands {
				element := int(s.Element) + e
				operands[e] = make([]float64, l.elements[element].Width)
				for u := range operands[e] {
					if l.bad[r] == 1 {
						operands[e][u] = l.logOperand(element, r, u) - float64(exp)
						continue
					}
					x, b := l.operand(element, r, u)
					operands[e][u] = math.Ldexp(x, b-exp)
				}
			}
			for _, w := range l.weights[id] {
				at := int(s.Val) + r*int(s.Width) + w.unit
				x, ratio := operands[w.element][w.column], float64(l.ratio[at])
				switch {
				case l.params[w.param] == 0:
				case l.bad[r] == 0:
					flows[w.param] += ratio * x
				case ratio > 0:
					flows[w.param] += ratio * math.Exp2(x-float64(l.val[at]))
				}
			}
		}
	}
	return flows
}

// logOperand is the log to the base 2 of an operand in a row in log space.
func (l *level) logOperand(element, row, unit int) float64 {
	e := &l.elements[element]
	sum := 0.0
	for _, f := range l.factors[e.Factor : e.Factor+e.Count] {
		if f.Kind == tensor.TableFactor {
			sum += math.Log2(float64(l.params[int(f.Base)+int(l.codes[int(f.At)+row])*int(e.Width)+unit]))
			continue
		}
		sum += float64(l.val[int(f.Base)+row*int(e.Width)+unit]) + float64(l.exp[int(f.At)+row])
	}
	return sum
}

func TestFlows(t *testing.T) {
	eachShape(t, func(t *testing.T, l *level) {
		l.flowing(t, l.logRow)
		l.setGrid()
		want := l.paramFlows()
		if !(tensor.Variant{Block: l.size}).Patches() {
			l.checkMove(t, l.checkCount(t, want, tensor.KernelCount, len(l.tiles)), tensor.KernelMove, len(l.tiles))
			return
		}
		params := slices.Clone(l.params)
		l.cut(tensor.NarrowPatch)
		count := l.checkCount(t, want, tensor.KernelCount, len(l.patches))
		l.checkMove(t, count, tensor.KernelMove, len(l.patches))
		copy(l.params, params)
		l.cut(tensor.WidePatch)
		if wide := l.checkCount(t, want, tensor.KernelCountWide, len(l.patches)); !slices.Equal(wide, count) {
			t.Error("other counts from wide patches")
		}
		l.checkMove(t, count, tensor.KernelMoveWide, len(l.patches))
	})
}

// checkCount counts flows, and compares them with those wanted, less the weight.
func (l *level) checkCount(t *testing.T, want []float64, kernel string, n int) []float32 {
	t.Helper()
	flows := make([]byte, 8*len(l.params))
	for i := range l.params {
		binary.LittleEndian.PutUint64(flows[8*i:], 1000)
	}
	l.more[tensor.ArgFlows] = flows
	l.run(t, kernel, upTo(n), 1)
	count := make([]float32, len(l.params))
	for i, theta := range l.params {
		n := int64(binary.LittleEndian.Uint64(flows[8*i:])) - 1000
		count[i] = float32(n) * testGrid
		if x := want[i] * float64(theta); !(math.Abs(float64(count[i])-x) <= (l.noise()+1e-6)*x+testGrid) {
			t.Fatalf("parameter %d: %g counts, want %g", i, count[i], x)
		}
	}
	return count
}

// setGrid writes the grid to the control words.
func (l *level) setGrid() {
	binary.LittleEndian.PutUint32(l.controls[tensor.ControlGrid:], math.Float32bits(testGrid))
	binary.LittleEndian.PutUint32(l.controls[tensor.ControlFine:], math.Float32bits(testGrid*0x1p23))
}

// checkMove moves the weights, and compares them bit by bit with those that the
// counts of the same flows give.
func (l *level) checkMove(t *testing.T, count []float32, kernel string, n int) {
	t.Helper()
	coefficients := make([][]float32, 3)
	for i, name := range []string{tensor.ArgKeep, tensor.ArgGain, tensor.ArgPrior} {
		for range l.units {
			coefficients[i] = append(coefficients[i], l.rng.Float32())
		}
		l.more[name] = raw(coefficients[i])
	}
	coefficients[0][0], coefficients[1][0], coefficients[2][0] = 0, 0, 0
	for i, name := range []string{tensor.ArgKeep, tensor.ArgGain, tensor.ArgPrior} {
		l.more[name] = raw(coefficients[i])
	}
	want := append([]float32(nil), l.params...)
	for _, tile := range l.tiles {
		for o := range int(tile.Blocks) * l.size {
			u := int(tile.Unit) + o
			keep, gain, prior := coefficients[0][u], coefficients[1][u], coefficients[2][u]
			for c := range l.size {
				i := int(tile.Param)*l.size*l.size + o*l.size + c
				if want[i] > 0 {
					want[i] = max(float32(float32(float32(want[i]*keep)+float32(count[i]*gain))+prior), 0x1p-100)
				}
			}
		}
	}
	l.run(t, kernel, upTo(n), 1)
	for i, w := range want {
		if got := l.params[i]; got != w {
			t.Fatalf("parameter %d: %g, want %g", i, got, w)
		}
	}
}
