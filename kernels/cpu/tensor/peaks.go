package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// peaks are the largest probabilities of the units of inputs with tables, each like a
// row of the table, and the logs of the largest densities of others.
type peaks struct {
	at        []int     // by input: where its units begin; inputs that share a table share them
	table     []float32 // of the tables
	exps      []float32 // the same of tables with exponents
	modes     []float64 // of the functions
	functions int       // units of the functions
}

// placePeaks gives the inputs their places and returns how many the tables have.
func (x *executor) placePeaks() (n int) {
	p := x.prog
	x.peaks.at, x.peaks.functions = make([]int, len(p.Inputs)), 0
	for i := range p.Inputs {
		in := &p.Inputs[i]
		switch {
		case in.Codes == 0:
			x.peaks.at[i] = x.peaks.functions
			x.peaks.functions += int(p.Vectors[in.Vector].Units)
		case in.Owner == int32(i):
			x.peaks.at[i] = n
			n += p.Width(in.Vector)
		}
	}
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.Codes > 0 {
			x.peaks.at[i] = x.peaks.at[in.Owner]
		}
	}
	return n
}

// findPeaks sets the peaks of an input that owns a table.
func (x *executor) findPeaks(i int32) {
	in := &x.prog.Inputs[i]
	if in.Codes == 0 || in.Owner != i {
		return
	}
	width, n := x.prog.Width(in.Vector), int(in.Codes)
	top, table := x.peaks.table[x.peaks.at[i]:][:width], x.call.params[in.Table:][:n*width]
	if in.Exps < 0 {
		one := float32(1)
		for j, w := 0, 32; j < width; j += w {
			for w > width-j {
				w /= 2
			}
			x.set.MaxPanel(&micro.PanelArgs{Rows: 1, K: n, W: w, A: &one, B: &table[j], BRow: width, C: &top[j]})
		}
		return
	}
	exp, exps := x.peaks.exps[x.peaks.at[i]:][:width], x.call.params[in.Exps:][:n*width]
	copy(top, table)
	copy(exp, exps)
	for c := range n {
		for u, m := range table[c*width:][:width] {
			if e := exps[c*width+u]; above(m, e, top[u], exp[u]) {
				top[u], exp[u] = m, e
			}
		}
	}
}

// above reports whether a·2^e is above b·2^f. Without exponents both are 0; with them,
// a and b are 0 or from 1 to 2, or what layers.SplitLog gives below -2^24.
func above(a, e, b, f float32) bool {
	switch {
	case a == 0 || b == 0 || e == f:
		return a > b
	case e == f+1:
		return 2*a > b
	}
	return e > f
}

// peakCode returns the first code of the largest probability of a unit.
func (x *executor) peakCode(in *layers.Input, unit int) (code int) {
	width, n := x.prog.Width(in.Vector), int(in.Codes)
	table, exps := x.call.params[in.Table:][:n*width], []float32(nil)
	if in.Exps >= 0 {
		exps = x.call.params[in.Exps:][:n*width]
	}
	var most, exp float32
	for c := range n {
		at, e := c*width+unit, float32(0)
		if exps != nil {
			e = exps[at]
		}
		if above(table[at], e, most, exp) {
			code, most, exp = c, table[at], e
		}
	}
	return code
}

// logPeak returns the natural log of the peak of a unit of an input with a table.
func (x *executor) logPeak(in *layers.Input, unit int) float64 {
	at := x.peakAt(in) + unit
	l := math.Log(float64(x.peaks.table[at]))
	if in.Exps >= 0 {
		l += float64(x.peaks.exps[at]) * math.Ln2
	}
	return l
}

// modesOf returns the logs of the largest densities of the units of a function.
func (x *executor) modesOf(in *layers.Input) []float64 {
	return x.peaks.modes[x.peakAt(in):][:x.prog.Vectors[in.Vector].Units]
}

func (x *executor) peakAt(in *layers.Input) int { return x.peaks.at[x.prog.Vectors[in.Vector].Def] }

// peaked reports whether a factor is the peaks of an input in a row.
func (x *executor) peaked(f *factor, row int) bool {
	if x.call.peaks == nil || f.input < 0 {
		return false
	}
	in := &x.prog.Inputs[f.input]
	return x.columnCodes(in).at(row) == in.Codes
}

// peakFactor is such a factor in any number of rows.
func (x *executor) peakFactor(input int32) micro.Factor {
	at := x.peaks.at[input]
	f := micro.Factor{Base: &x.peaks.table[at]}
	if x.prog.Inputs[input].Exps >= 0 {
		f.Exps = &x.peaks.exps[at]
	}
	return f
}

// alike returns how many rows from r on, n at most, have the same factors of an element
// as their peaks.
func (x *executor) alike(e *elem, r, n int) int {
	if x.call.peaks == nil {
		return n
	}
	for i := 1; i < n; i++ {
		for k := range e.factors {
			if f := &e.factors[k]; x.peaked(f, r+i) != x.peaked(f, r) {
				return i
			}
		}
	}
	return n
}
