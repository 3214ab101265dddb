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
	flows []float32 // [rowsMax, units]: shares of the units of an input
	inv   []float32 // by row: what flows are multiplied by to add up to 1
	rows  []float32 // codes of a table, [codes, units] in panels of mixCodes units
	table []float32 // the same as [units, codes]
	strip []float32 // [rowsMax, mixCodes]: probabilities of the last codes
}

type mixSizes struct{ rows, units int }

func (z mixSizes) total() int {
	return z.rows*(z.units+1+mixCodes) + 2*mixCodes*panelled(z.units)
}

// panelled rounds units up to whole panels.
func panelled(units int) int { return (units + mixCodes - 1) / mixCodes * mixCodes }

func (b *mixBuffers) init(z mixSizes) {
	if z.rows == 0 {
		return
	}
	b.flows, b.inv = cpu.Aligned[float32](z.rows*z.units), cpu.Aligned[float32](z.rows)
	b.rows, b.table = cpu.Aligned[float32](mixCodes*panelled(z.units)), cpu.Aligned[float32](mixCodes*panelled(z.units))
	b.strip = cpu.Aligned[float32](z.rows * mixCodes)
}

// inputFlow is the flow into an input: from each element that reads it, rows of the
// call, row apart.
type inputFlow struct {
	input int32
	flows [][]float32
	row   int
}

// mix writes the places of a column in the rows lo to hi-1, given the flows into all
// of its inputs. Flows are divided by their sum, which rounding on a long way
// down takes away from 1.
func (x *executor) mix(w *worker, column int32, inputs []inputFlow, lo, hi int) {
	q, m := x.call.query, &w.mix
	if q.at[column] < 0 {
		return
	}
	x.invertFlows(m.inv[lo:hi], inputs, lo)
	codes := int(x.prog.Columns[column].Codes)
	spans := [][2]int{{lo, hi}}
	if codes > 0 {
		spans = x.missing(&x.prog.Inputs[inputs[0].input], lo, hi)
	}
	for i := range inputs {
		f := &inputs[i]
		in := &x.prog.Inputs[f.input]
		width, units := x.prog.Width(in.Vector), int(x.prog.Vectors[in.Vector].Units)
		for _, s := range spans {
			n := s[1] - s[0]
			shares := m.flows[s[0]*width:]
			copyRows(shares, width, f.flows[0][s[0]*f.row:], f.row, n, width)
			for _, more := range f.flows[1:] {
				x.set.AddRows(&shares[0], width, &more[s[0]*f.row], f.row, n, width)
			}
			x.set.ScalePanel(&shares[0], &m.inv[s[0]], n, width)
		}
		if codes == 0 {
			for r := lo; r < hi; r++ {
				copy(q.row(r)[q.at[column]+q.before[f.input]:], m.flows[r*width:][:units])
			}
			continue
		}
		for c := 0; c < codes && len(spans) > 0; {
			n := min(mixCodes, codes-c)
			x.mixTable(w, in, c, n, spans, i > 0)
			c += n
		}
	}
	if codes > 0 {
		x.certain(&x.prog.Inputs[inputs[0].input], lo, hi)
	}
}

// invertFlows sets inv to 1 over the flow into all inputs together, by row from lo on.
func (x *executor) invertFlows(inv []float32, inputs []inputFlow, lo int) {
	for r := range inv {
		total := float32(0)
		for i := range inputs {
			f := &inputs[i]
			units := int(x.prog.Vectors[x.prog.Inputs[f.input].Vector].Units)
			for _, flow := range f.flows {
				total += sumOf(flow[(lo+r)*f.row:][:units])
			}
		}
		inv[r] = 1 / total
	}
}

// sumOf adds numbers up in an order that depends on their count alone.
func sumOf(a []float32) float32 {
	var s [8]float32
	for ; len(a) >= 8; a = a[8:] {
		for i := range s {
			s[i] += a[i]
		}
	}
	for i, v := range a {
		s[i] += v
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
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

// certain writes rows whose cells of an input's column are observed.
func (x *executor) certain(in *layers.Input, lo, hi int) {
	q, codes := x.call.query, x.columnCodes(in)
	for r := lo; r < hi; r++ {
		if c := codes.at(r); c != in.Codes {
			places := q.row(r)[q.at[in.Column]:][:in.Codes]
			clear(places)
			places[c] = 1
		}
	}
}

// mixTable multiplies the shares in w.mix with n codes of an input's table, from
// the first one on, in some spans of rows, and writes or adds the products.
func (x *executor) mixTable(w *worker, in *layers.Input, first, n int, spans [][2]int, add bool) {
	q, m := x.call.query, &w.mix
	wide := 8 // the least columns that all assembly has
	for wide < n {
		wide *= 2
	}
	width, units := x.prog.Width(in.Vector), int(x.prog.Vectors[in.Vector].Units)
	x.turnTable(m, in, first, n, wide)
	at := q.at[in.Column] + first
	for _, s := range spans {
		a := micro.PanelArgs{
			Rows: s[1] - s[0], K: units, W: wide,
			A: &m.flows[s[0]*width], ARow: width, ACol: 1, B: &m.table[0], BRow: wide,
		}
		if n == wide {
			a.C, a.CRow, a.Add = &q.row(s[0])[at], q.width, add
			x.set.Panel(&a)
			continue
		}
		a.C, a.CRow = &m.strip[0], wide
		x.set.Panel(&a)
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

// turnTable writes n codes of an input's table to m.table, a row for each unit. Rows
// have wide numbers; those past n are left from other tables.
func (x *executor) turnTable(m *mixBuffers, in *layers.Input, first, n, wide int) {
	width := x.prog.Width(in.Vector)
	table := x.call.params[in.Table+int64(first*width):]
	for u := 0; u < width; u += wide {
		part := min(wide, width-u)
		for c := range n {
			to := m.rows[(u+c)*wide:][:part]
			copy(to, table[c*width+u:])
			if in.Exps >= 0 {
				scaleUp(to, x.call.params[in.Exps+int64((first+c)*width+u):])
			}
		}
	}
	x.set.Transpose(&m.table[0], &m.rows[0], wide, (width+wide-1)/wide*wide, wide)
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
