package tensor_test

import (
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// flowing is a level after its forward pass, with random ratios at its sums; mark
// is called for some rows, some elements keep nothing and some factors take ratios.
func (l *level) flowing(t *testing.T, mark func(row int)) {
	t.Helper()
	l.run(t, tensor.KernelForward, upTo(len(l.groups)), l.tiles64())
	for _, s := range l.sums {
		for i := range l.rows * int(s.Width) {
			l.ratio[int(s.Val)+i] = 0
			if i%int(s.Width) < int(s.Units) && l.rng.IntN(5) > 0 {
				l.ratio[int(s.Val)+i] = l.rng.Float32() / l.val[int(s.Val)+i]
			}
		}
	}
	for r := 3; r < l.rows; r += 21 {
		l.bad[r] = 1
		mark(r)
	}
	for i := range l.elements {
		if i%3 == 1 {
			l.elements[i].Kept = tensor.NotKept
		}
	}
	for i := range l.factors {
		if f := &l.factors[i]; f.Kind == tensor.StoredFactor && i%2 == 0 {
			f.Down = tensor.DownRatio
		}
	}
}

// poisonRow makes the values of factors in a row NaN: in a marked row they are no
// mantissas.
func (l *level) poisonRow(r int) {
	for _, e := range l.elements {
		for _, f := range l.factors[e.Factor : e.Factor+e.Count] {
			if f.Kind == tensor.StoredFactor {
				for u := range int(e.Width) {
					l.val[int(f.Base)+r*int(e.Width)+u] = poison
				}
			}
		}
	}
}

// elementFlows returns the flows that enter the element of a sum in a row.
func (l *level) elementFlows(id, element, row int) []float64 {
	s := &l.sums[id]
	e := int(s.Element) + element
	flows := make([]float64, l.elements[e].Width)
	for _, w := range l.weights[id] {
		if w.element == element {
			flows[w.column] += float64(l.ratio[int(s.Val)+row*int(s.Width)+w.unit]) * float64(l.params[w.param])
		}
	}
	for u := range flows {
		x, b := l.operand(e, row, u)
		flows[u] *= math.Ldexp(x, b-int(l.exp[int(s.Exp)+row]))
	}
	return flows
}

// checkDown compares what an element keeps and what its factors get in a row with
// its flows.
func (l *level) checkDown(t *testing.T, element, row int, flows []float64) {
	t.Helper()
	e := &l.elements[element]
	for u, want := range flows {
		if e.Kept != tensor.NotKept {
			got := l.kept[int(e.Kept)+row*int(e.Width)+u]
			if l.bad[row] == 0 && !near(float64(got), want, l.noise()+1e-6) || l.bad[row] == 1 && got == got {
				t.Fatalf("element %d, row %d, unit %d: keeps %g, want %g", element, row, u, got, want)
			}
		}
		for i, f := range l.factors[e.Factor : e.Factor+e.Count] {
			if f.Kind == tensor.TableFactor {
				continue
			}
			at := int(f.Base) + row*int(e.Width) + u
			ratio, want := 0.0, want
			if v := float64(l.val[at]); v != 0 {
				ratio = want / v
			}
			got := l.ratio[at]
			if f.Down == tensor.DownRatio && l.bad[row] == 0 {
				if !near(float64(got), ratio, l.noise()+1e-6) {
					t.Fatalf("element %d, factor %d, row %d, unit %d: ratio %g, want %g", element, i, row, u, got, ratio)
				}
			} else if got == got {
				t.Fatalf("element %d, factor %d, row %d, unit %d: ratio %g, want none", element, i, row, u, got)
			}
		}
	}
}

func TestBackward(t *testing.T) {
	eachShape(t, func(t *testing.T, l *level) {
		l.flowing(t, l.poisonRow)
		l.run(t, tensor.KernelBackward, upTo(len(l.columns)), l.tiles64())
		for id, s := range l.sums {
			for e := range int(s.Elements) {
				for r := range l.rows {
					l.checkDown(t, int(s.Element)+e, r, l.elementFlows(id, e, r))
				}
			}
		}
		if (tensor.Variant{Block: l.size}).Patches() {
			l.checkWide(t)
		}
	})
}

// checkWide sends flows down in wide columns, and wants the bits of KernelBackward.
func (l *level) checkWide(t *testing.T) {
	t.Helper()
	ratio, kept := slices.Clone(l.ratio), slices.Clone(l.kept)
	for i := range l.kept {
		l.kept[i] = poison
	}
	for _, e := range l.elements {
		for _, f := range l.factors[e.Factor : e.Factor+e.Count] {
			if f.Down == tensor.DownRatio {
				for i := range l.cap * int(e.Width) {
					l.ratio[int(f.Base)+i] = poison
				}
			}
		}
	}
	first := len(l.columns)
	for id := range l.sums {
		most := uint32(tensor.WideColumns / l.size)
		for _, c := range l.merged(id) {
			for at := uint32(0); at < c.Blocks; at += most {
				part := c
				part.Column, part.Blocks = c.Column+at*uint32(l.size), min(most, c.Blocks-at)
				part.Step = uint32(len(l.rowSteps))
				for _, step := range l.rowSteps[c.Step : c.Step+c.Steps] {
					step.Param += at * c.Stride
					l.rowSteps = append(l.rowSteps, step)
				}
				l.columns = append(l.columns, part)
			}
		}
	}
	list := upTo(len(l.columns))[first:]
	l.run(t, tensor.KernelBackwardWide, list, (l.rows+tensor.WideRows-1)/tensor.WideRows)
	l.columns = l.columns[:first]
	same := func(what string, got, want []float32) {
		for i, w := range want {
			if math.Float32bits(got[i]) != math.Float32bits(w) && (got[i] == got[i] || w == w) {
				t.Fatalf("%s %d from wide columns: %g, want %g", what, i, got[i], w)
			}
		}
	}
	same("ratio", l.ratio, ratio)
	same("flow", l.kept, kept)
}

// TestRowsAlone runs forward and backward for all rows and for some, whose bits may
// not differ.
func TestRowsAlone(t *testing.T) {
	for _, size := range []int{2, 8, 16, 32} {
		levels := [2]*level{}
		for i, rows := range []int{90, 7} {
			l := newLevel(size, 90, 11)
			l.element(4*size, 4*size, 1, 2)
			l.element(2*size, 2*size, 4, 0)
			l.sum(5*size, 2, -1, band{blocks: 5})
			l.rows = rows
			l.run(t, tensor.KernelForward, upTo(len(l.groups)), l.tiles64())
			for at := range 7 * int(l.sums[0].Width) {
				l.ratio[int(l.sums[0].Val)+at] = float32(at%13) / 7
			}
			for at := 7 * int(l.sums[0].Width); at < rows*int(l.sums[0].Width); at++ {
				l.ratio[int(l.sums[0].Val)+at] = 3
			}
			l.run(t, tensor.KernelBackward, upTo(len(l.columns)), l.tiles64())
			levels[i] = l
		}
		a, b := levels[0], levels[1]
		same := func(what string, x, y []float32) {
			for i := range x {
				if x[i] != y[i] {
					t.Fatalf("size %d: %s %d is %g in 90 rows, %g in 7", size, what, i, x[i], y[i])
				}
			}
		}
		s := a.sums[0]
		same("value", a.val[s.Val:][:7*s.Width], b.val[s.Val:][:7*s.Width])
		for _, e := range a.elements {
			same("flow", a.kept[e.Kept:][:7*e.Width], b.kept[e.Kept:][:7*e.Width])
		}
	}
}
