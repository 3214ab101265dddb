package spn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/kernels/simt"
)

// Tasks is how a back end cuts a module. The zero value is one task.
type Tasks struct {
	Of []int32 // the task of each instruction of the body; nil: 0
	// Kept returns where a value lies that later tasks read, "" for those that each task loads for itself.
	Kept func(v simt.Value) string
}

// SplitTasks returns how simt.Split cuts a module into parts of at most limit instructions, as machine code of AVX-512 is cut. That of AVX2 is
// cut once leaves are tables by the bytes of cells, so that it has fewer parts.
func SplitTasks(m *simt.Module, limit int) Tasks {
	parts := simt.Split(m, limit)
	return Tasks{Of: parts.Part, Kept: func(v simt.Value) string {
		q, column, ok := parts.Place(m, v)
		if !ok {
			return ""
		}
		return fmt.Sprintf("kept_%v[%d]", q.Type, column)
	}}
}

// LoSPN returns the program as text behind the choice of space and type, with the tasks that cut makes of its modules:
// operations of one or two operands, a type on each, and what tasks read and write. Rows that are computed again are a
// kernel of their own behind the first one.
//
//	kernel "circuit in log space" {space log, type f64}
//	buffer x : f32 columns 1
//	buffer ll : f64 columns 1
//	task 0 {
//	  %0 = batch_read x[0] : f32
//	  %4 = observe %0 : i32
//	  %5 = categorical %4 {x0, 0.75 0.25} : log<f64>
//	  %7 = convert_log %5 : f64
//	  batch_write ll[0] %7
//	}
//
// It is a view of Module, not a copy: values have the numbers that they have there, and what an operation reads and gives
// follows from its instructions. log<T> are logarithms to base 2, and convert_log makes natural ones, which ln gives at once. observe gives a cell as
// leaves read it: as its class in their tables, or as a number and whether there is one. exponent gives the exponent of
// a number, and 2 to the power of minus that. An operation whose instructions are in several tasks is there in pieces. The text is
// written, not read.
func (p *Program) LoSPN(cut func(*simt.Module) Tasks) string {
	attributes := fmt.Sprintf("space %s, type %v, error %.3g + %.3g·|ll| nats", p.Space, p.Type, p.Bound.Absolute, p.Bound.Relative)
	if !math.IsInf(p.Least, -1) {
		attributes += fmt.Sprintf(", again below %.4g nats", p.Least)
	}
	var b strings.Builder
	lowered(&b, p.Module, p.spans, p.Space, attributes, cut(p.Module))
	if p.Exact == nil {
		return b.String()
	}
	return b.String() + "\n" + p.Exact.LoSPN(cut)
}

// lowering prints a module with its spans.
type lowering struct {
	*strings.Builder
	m      *simt.Module
	spans  []span
	space  Space
	tasks  Tasks
	by     []int32 // the instruction of the body that defines a value, -1 within its blocks
	span   []int32 // of each instruction, -1: none
	shown  []bool  // values that another operation reads
	logs   []bool  // values that are logarithms to base 2
	pieces [][]int32
}

func lowered(b *strings.Builder, m *simt.Module, spans []span, space Space, attributes string, tasks Tasks) {
	l := &lowering{Builder: b, m: m, spans: spans, space: space, tasks: tasks}
	l.index()
	fmt.Fprintf(b, "kernel %q {%s}\n", m.Name, attributes)
	for _, list := range [][]simt.Param{m.Inputs, m.Outputs} {
		for _, q := range list {
			fmt.Fprintf(b, "buffer %s : %v %v %d\n", q.Name, q.Type, q.Layout, q.Width)
		}
	}
	bodies := make([][]int, 1)
	for i := range m.Body {
		t := int(l.task(i))
		for t >= len(bodies) {
			bodies = append(bodies, nil)
		}
		bodies[t] = append(bodies[t], i)
	}
	for t, body := range bodies {
		l.body(t, body)
	}
}

func (l *lowering) task(i int) int32 {
	if l.tasks.Of == nil {
		return 0
	}
	return l.tasks.Of[i]
}

// apart reports whether an instruction is not part of an operation: a constant, or a load or store.
func apart(in *simt.Instr) bool {
	return in.Op == simt.Const || in.Op == simt.Load || in.Op == simt.Store
}

// index finds which instructions are an operation, what it gives, and which values are logarithms.
func (l *lowering) index() {
	values := len(l.m.Types)
	l.by, l.span = make([]int32, values), make([]int32, len(l.m.Body))
	l.shown, l.logs = make([]bool, values), make([]bool, values)
	l.pieces = make([][]int32, len(l.spans))
	for v := range l.by {
		l.by[v] = -1
	}
	for i := range l.m.Body {
		in := &l.m.Body[i]
		l.span[i] = -1
		results := in.Results()
		for _, v := range results {
			l.by[v] = int32(i)
		}
		if len(results) == 0 || apart(in) {
			continue
		}
		at, _ := slices.BinarySearchFunc(l.spans, results[0], func(s span, v simt.Value) int { return cmp.Compare(s.to, v+1) })
		if at < len(l.spans) && l.spans[at].from <= results[0] {
			l.span[i] = int32(at)
			if t := l.task(i); !slices.Contains(l.pieces[at], t) {
				l.pieces[at] = append(l.pieces[at], t)
			}
		}
	}
	for i := range l.m.Body {
		in := &l.m.Body[i]
		in.Reads(func(v simt.Value) {
			d := l.by[v]
			if d >= 0 && (l.span[i] < 0 || l.span[d] != l.span[i] || l.task(i) != l.task(int(d))) {
				l.shown[v] = true
			}
		})
		for _, v := range in.Results() {
			l.logs[v] = l.m.Types[v].Float() && l.logarithm(i, in)
		}
	}
	for _, s := range l.pieces {
		slices.Sort(s)
	}
}

// logarithm reports whether what an instruction gives is a logarithm to base 2, as far as it follows from its operation or
// else from what it reads.
func (l *lowering) logarithm(i int, in *simt.Instr) bool {
	if at := l.span[i]; at >= 0 {
		s := &l.spans[at]
		last := in.Op == simt.If || in.Out == s.to-1 // of its values, which may be in another piece
		switch s.kind {
		case spanLeaf:
			return last && l.space != Linear
		case spanLog2, spanMarginal:
			return last
		case spanExponent:
			return in.Op == simt.Convert
		}
		return false
	}
	if in.Op == simt.Const || in.Op == simt.Load || in.Op == simt.If || in.Op == simt.Loop {
		return false
	}
	is := false
	in.Reads(func(v simt.Value) { is = is || l.logs[v] })
	return is
}

// body prints a task.
func (l *lowering) body(task int, body []int) {
	fmt.Fprintf(l, "task %d {\n", task)
	there := map[simt.Value]bool{} // values of other tasks that are read
	for n, i := range body {
		in := &l.m.Body[i]
		last := n+1 == len(body) || l.span[i] < 0 || l.next(body[n+1:]) != l.span[i]
		if in.Op == simt.Const || in.Op == simt.Load && !l.read(in.Out, int32(task)) || !last {
			continue
		}
		list := []int{i}
		if l.span[i] >= 0 {
			for at := n - 1; at >= 0 && (l.span[body[at]] == l.span[i] || apart(&l.m.Body[body[at]])); at-- {
				if l.span[body[at]] == l.span[i] {
					list = append(list, body[at])
				}
			}
			slices.Reverse(list)
		}
		l.operation(list, int32(task), there)
	}
	l.WriteString("}\n")
}

// next returns the span of the first instruction that can have one.
func (l *lowering) next(body []int) int32 {
	for _, i := range body {
		if !apart(&l.m.Body[i]) {
			return l.span[i]
		}
	}
	return -1
}

// read reports whether a load is to be printed in a task: it is shown there where it is first, others print it when they read it.
func (l *lowering) read(v simt.Value, task int32) bool {
	return l.shown[v] && l.task(int(l.by[v])) == task
}

// operation prints instructions that are one operation, behind what they read of other tasks and before what they keep.
func (l *lowering) operation(list []int, task int32, there map[simt.Value]bool) {
	var operands, results []simt.Value
	for _, i := range list {
		in := &l.m.Body[i]
		in.Reads(func(v simt.Value) {
			d := int(l.by[v])
			switch {
			case d < 0 || slices.Contains(list, d):
			case l.m.Body[d].Op == simt.Const && (len(list) > 1 || l.span[i] >= 0):
			case len(list) == 1 && l.span[i] < 0 || !slices.Contains(operands, v):
				operands = append(operands, v)
			}
		})
		for _, v := range in.Results() {
			if l.shown[v] {
				results = append(results, v)
			}
		}
	}
	for _, v := range operands {
		d := int(l.by[v])
		if l.m.Body[d].Op == simt.Const || l.task(d) == task || there[v] {
			continue
		}
		there[v] = true
		if in := &l.m.Body[d]; in.Op == simt.Load {
			fmt.Fprintf(l, "  %%%d = %s : %s\n", v, l.load(in), l.typeOf(v))
		} else {
			fmt.Fprintf(l, "  %%%d = batch_read %s : %s\n", v, l.tasks.Kept(v), l.typeOf(v))
		}
	}
	if in := &l.m.Body[list[0]]; in.Op == simt.Store {
		fmt.Fprintf(l, "  batch_write %s[%d]%s\n", l.m.Outputs[in.Ref].Name, in.Imm, l.names(operands))
		return
	}
	if len(results) == 0 {
		return // of which nothing is read
	}
	types := make([]string, len(results))
	for k, v := range results {
		types[k] = l.typeOf(v)
	}
	fmt.Fprintf(l, "  %s = %s : %s\n", strings.TrimPrefix(l.names(results), " "), l.name(list[0], operands, task), strings.Join(types, " "))
	for _, v := range results {
		if l.tasks.Kept != nil {
			if place := l.tasks.Kept(v); place != "" {
				fmt.Fprintf(l, "  batch_write %s %%%d\n", place, v)
			}
		}
	}
}

// name returns an operation with its operands and attributes.
func (l *lowering) name(i int, operands []simt.Value, task int32) string {
	in, args := &l.m.Body[i], l.names(operands)
	if in.Op == simt.Load {
		return l.load(in)
	}
	at := l.span[i]
	if at < 0 {
		text := in.Op.String() + args
		if in.Op == simt.Shl || in.Op == simt.Shr || in.Op == simt.Sar {
			text += " " + strconv.FormatUint(in.Imm, 10)
		}
		return text
	}
	s := &l.spans[at]
	text := spanNames[s.kind] + args
	switch s.kind {
	case spanLeaf:
		kind, attributes := s.op.leafText()
		if s.times != 1 {
			attributes += fmt.Sprintf(", times %v", s.times)
		}
		text = fmt.Sprintf("%s%s {x%d, %s}", kind, args, s.op.variable, attributes)
	case spanTable:
		text += fmt.Sprintf(" {%s}", strings.TrimPrefix(numbers(s.op.table), " "))
	}
	if n := len(l.pieces[at]); n > 1 {
		piece, _ := slices.BinarySearch(l.pieces[at], task)
		text += fmt.Sprintf(" {piece %d of %d}", piece+1, n)
	}
	return text
}

func (l *lowering) load(in *simt.Instr) string {
	return fmt.Sprintf("batch_read %s[%d]", l.m.Inputs[in.Ref].Name, in.Imm)
}

// names returns each value behind a blank, constants as numbers.
func (l *lowering) names(list []simt.Value) string {
	var b strings.Builder
	for _, v := range list {
		if in := &l.m.Body[l.by[v]]; in.Op == simt.Const {
			b.WriteString(" " + literal(l.m.Types[v], in.Imm))
		} else {
			fmt.Fprintf(&b, " %%%d", v)
		}
	}
	return b.String()
}

// literal returns a constant.
func literal(t simt.Type, bits uint64) string {
	switch t {
	case simt.F32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(bits))), 'g', -1, 32)
	case simt.F64:
		return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
	case simt.I32:
		return strconv.Itoa(int(int32(bits)))
	}
	return strconv.FormatInt(int64(bits), 10)
}

func (l *lowering) typeOf(v simt.Value) string {
	if l.logs[v] {
		return fmt.Sprintf("log<%v>", l.m.Types[v])
	}
	return l.m.Types[v].String()
}
