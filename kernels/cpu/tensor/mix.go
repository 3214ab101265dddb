package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// mixCodes is the most codes of a table that are multiplied at a time, mixRows the
// rows that are skipped together where their cells are observed.
const (
	mixCodes = 32
	mixRows  = 64
)

// mixBuffers are a thread's for the product of flows and tables.
type mixBuffers struct {
	flows []float32 // [rowsMax, units]: flow into an input that several elements read
	rows  []float32 // codes of a table whose numbers have exponents or which are few, [codes, units]
	table []float32 // the same as [units, codes]
	strip []float32 // [rowsMax, mixCodes]: probabilities of the last codes
	seen  float32   // what fetch has read, so that it is read
}

// mixSizes are for that many rows, units of an input, and units of one that several
// elements read.
type mixSizes struct{ rows, units, shared int }

func (z mixSizes) total() int { return z.rows*(z.shared+mixCodes) + 2*mixCodes*panelled(z.units) }

// panelled rounds units up to whole panels.
func panelled(units int) int { return (units + mixCodes - 1) / mixCodes * mixCodes }

func (b *mixBuffers) init(z mixSizes) {
	b.flows, b.strip = cpu.Aligned[float32](z.rows*z.shared), cpu.Aligned[float32](z.rows*mixCodes)
	b.rows, b.table = cpu.Aligned[float32](mixCodes*panelled(z.units)), cpu.Aligned[float32](mixCodes*panelled(z.units))
}

// inputFlow is the flow into an input: from each element that reads it, rows of the
// call, row apart.
type inputFlow struct {
	input int32
	flows [][]float32
	row   int
}

// mix writes what is asked for of a column in the rows lo to hi-1, given the flows into
// all of its inputs.
func (x *executor) mix(w *worker, column int32, inputs []inputFlow, lo, hi int) {
	q := x.call.query
	if !q.asked(column) {
		return
	}
	codes, all := int(x.prog.Columns[column].Codes), [][2]int{{lo, hi}}
	unitsAt, spans := q.unitsAt(column), all
	switch {
	case codes == 0:
		unitsAt = q.at[column]
	case q.at[column] < 0:
		spans = nil
	default:
		spans = x.missing(&x.prog.Inputs[inputs[0].input], lo, hi)
	}
	for i := range inputs {
		rows := spans
		if unitsAt >= 0 {
			rows = all
		}
		f := x.joined(w, &inputs[i], rows)
		in := &x.prog.Inputs[f.input]
		if unitsAt >= 0 {
			at, units := unitsAt+q.before[f.input], int(x.prog.Vectors[in.Vector].Units)
			for r := lo; r < hi; r++ {
				copy(q.row(r)[at:], f.flows[0][r*f.row:][:units])
			}
		}
		if codes > 0 && len(spans) > 0 {
			w.mix.fetch(x.call.params[in.Table:][:codes*x.prog.Width(in.Vector)])
		}
		for c := 0; c < codes && len(spans) > 0; c += mixCodes {
			x.mixTable(w, f, c, min(mixCodes, codes-c), spans, i > 0)
		}
	}
	if codes > 0 && q.at[column] >= 0 {
		x.certain(&x.prog.Inputs[inputs[0].input], lo, hi)
	}
}

// joined adds the flows into an input up, where they come from several elements.
func (x *executor) joined(w *worker, f *inputFlow, spans [][2]int) *inputFlow {
	if len(f.flows) == 1 {
		return f
	}
	width := x.prog.Width(x.prog.Inputs[f.input].Vector)
	for _, s := range spans {
		to, n := w.mix.flows[s[0]*width:], s[1]-s[0]
		copyRows(to, width, f.flows[0][s[0]*f.row:], f.row, n, width)
		for _, more := range f.flows[1:] {
			x.set.AddRows(&to[0], width, &more[s[0]*f.row], f.row, n, width)
		}
	}
	return &inputFlow{f.input, [][]float32{w.mix.flows}, width}
}

// missing returns the rows from lo to hi-1 but for runs of mixRows rows in which all
// cells of an input's column are observed.
func (x *executor) missing(in *layers.Input, lo, hi int) (spans [][2]int) {
	codes := x.columnCodes(in)
	for a := lo; a < hi; a += mixRows {
		b := min(a+mixRows, hi)
		for r := a; r < b; r++ {
			if codes.at(r) != in.Codes {
				continue
			}
			if n := len(spans); n > 0 && spans[n-1][1] == a {
				spans[n-1][1] = b
			} else {
				spans = append(spans, [2]int{a, b})
			}
			break
		}
	}
	return spans
}

// certain writes rows whose cells of an input's column are observed: zeros where they are
// evidence.
func (x *executor) certain(in *layers.Input, lo, hi int) {
	q, codes := x.call.query, x.columnCodes(in)
	for r := lo; r < hi; r++ {
		if c := codes.at(r); c != in.Codes {
			places := q.row(r)[q.at[in.Column]:][:in.Codes]
			clear(places)
			if c < in.Codes {
				places[c] = 1
			}
		}
	}
}

// mixTable multiplies the flow into an input with n codes of its table, from the first
// one on, in some spans of rows, and writes or adds the products.
func (x *executor) mixTable(w *worker, f *inputFlow, first, n int, spans [][2]int, add bool) {
	q, m, in := x.call.query, &w.mix, &x.prog.Inputs[f.input]
	wide := 8 // the least columns that all assembly has
	for wide < n {
		wide *= 2
	}
	x.turnTable(m, in, first, n, wide)
	at := q.at[in.Column] + first
	for _, s := range spans {
		a := &w.panel
		*a = micro.PanelArgs{
			Rows: s[1] - s[0], K: int(x.prog.Vectors[in.Vector].Units), W: wide,
			A: &f.flows[0][s[0]*f.row], ARow: f.row, ACol: 1, B: &m.table[0], BRow: wide,
		}
		if n == wide {
			a.C, a.CRow, a.Add, a.Stream = &q.row(s[0])[at], q.width, add, q.far
			x.set.Panel(a)
			continue
		}
		a.C, a.CRow = &m.strip[0], wide
		x.set.Panel(a)
		for r := s[0]; r < s[1]; r++ {
			places, strip := q.row(r)[at:][:n], m.strip[(r-s[0])*wide:]
			if !add {
				copy(places, strip)
				continue
			}
			for i := range places {
				places[i] += strip[i]
			}
		}
	}
}

// fetch brings a table near, line after line, as memory gives it fastest. Turning it reads 16 lines at
// a time that lie apart, and waits for each of them.
func (b *mixBuffers) fetch(table []float32) {
	const line = 16 // numbers
	var sum [4]float32
	for ; len(table) >= 4*line; table = table[4*line:] {
		sum[0] += table[0]
		sum[1] += table[line]
		sum[2] += table[2*line]
		sum[3] += table[3*line]
	}
	b.seen = sum[0] + sum[1] + sum[2] + sum[3]
}

// turnTable writes n codes of an input's table to m.table, a row for each unit. Rows
// have wide numbers; those past n are left from other tables.
func (x *executor) turnTable(m *mixBuffers, in *layers.Input, first, n, wide int) {
	width := x.prog.Width(in.Vector)
	table := x.call.params[in.Table+int64(first*width):]
	if in.Exps < 0 && n == wide {
		x.set.Turn(&m.table[0], wide, &table[0], width, n, width)
		return
	}
	for c := range n {
		to := m.rows[c*width:][:width]
		copy(to, table[c*width:])
		if in.Exps >= 0 {
			scaleUp(to, x.call.params[in.Exps+int64((first+c)*width):])
		}
	}
	x.set.Turn(&m.table[0], wide, &m.rows[0], width, wide, width)
}

// scaleUp multiplies numbers from 1 to 2 by powers of two up to 1, those below 2^-126
// counting as 0.
func scaleUp(x, exps []float32) {
	for i := range x {
		if e := int32(max(exps[i], -127)); e > -127 {
			x[i] *= math.Float32frombits(uint32(e+127) << 23)
		} else {
			x[i] = 0
		}
	}
}
