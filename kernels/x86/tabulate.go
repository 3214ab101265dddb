package x86

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pce-engine/pce/kernels/simt"
)

// maxTabulated bounds the bytes of the tables that tabulated makes: a part of them, of the bytes that are common, should stay in
// the second-level cache.
const maxTabulated = 1 << 20

// tabulated returns a module with the same results, in which a value that comes from one byte of a row alone is looked up by that
// byte, if computing it takes a load for each lane anyway. Leaves of a discrete variable are such values: what the variable's byte
// becomes on the way to them, through the numbers of bins and across a missing cell, is in the table. A byte is an index as it
// is in memory, and the loads of two leaves of a variable are one; see places.
func tabulated(m *simt.Module, s shape) *simt.Module {
	if s.evex || s.gathers {
		return m
	}
	t := &tabulator{shape: s, from: m, of: make([]int32, len(m.Types))}
	list := t.values()
	if len(list) == 0 {
		return m
	}
	return t.module(list, t.elements(list))
}

// tabulator makes the module of tabulated.
type tabulator struct {
	shape
	from    *simt.Module
	of      []int32 // what values come from: number in columns, or one of the two below
	columns []column
}

// What a value comes from that does not come from one column.
const (
	mixed    int32 = -1 - iota // anything, or nothing that is known
	constant                   // constants alone
)

// values returns the values to look up, in order.
func (t *tabulator) values() (list []simt.Value) {
	m := t.from
	for v := range t.of {
		t.of[v] = mixed
	}
	outside := make([]bool, len(m.Types)) // is read by what comes from elsewhere too
	known := map[column]int32{}
	for i := range m.Body {
		in := &m.Body[i]
		from := constant
		switch {
		case in.Op == simt.LoadAt || in.Out == simt.None:
			from = mixed
		case in.Op == simt.Load:
			if from = mixed; m.Inputs[in.Ref].Type == simt.U8 {
				c := column{false, in.Ref, int(in.Imm)}
				n, ok := known[c]
				if !ok {
					n = int32(len(t.columns))
					t.columns, known[c] = append(t.columns, c), n
				}
				from = n
			}
		}
		in.Reads(func(v simt.Value) {
			switch of := t.of[v]; {
			case of == constant:
			case from == constant:
				from = of
			case from != of:
				from = mixed
			}
		})
		in.Reads(func(v simt.Value) { outside[v] = outside[v] || from != t.of[v] })
		if in.Out != simt.None {
			t.of[in.Out] = from
		}
	}
	halfway := t.halfway(outside)
	loads, room := make([]bool, len(m.Types)), maxTabulated // takes a load for each lane, from what is looked up on
	for i := range m.Body {
		in := &m.Body[i]
		v := in.Out
		if v == simt.None || t.of[v] < 0 {
			continue
		}
		needs := t.loads(in)
		in.Reads(func(x simt.Value) { needs = needs || loads[x] })
		size := (math.MaxUint8 + 1) * 4
		if wide(m.Types[v]) {
			size *= 2
		}
		if needs && (outside[v] || halfway[v]) && m.Types[v] != simt.Pred && size <= room {
			needs, room = false, room-size
			list = append(list, v)
		}
		loads[v] = needs
	}
	return list
}

// loads reports whether an instruction takes a load for each lane.
func (t *tabulator) loads(in *simt.Instr) bool {
	return in.Op == simt.Gather && !t.small(&t.from.Tables[in.Ref])
}

// halfway returns the lookups between bytes and results, such as those of bins, that many small tables are looked up by. Loading
// such a bin by the byte and permuting the small tables is then cheaper than loading each result.
func (t *tabulator) halfway(outside []bool) map[simt.Value]bool {
	const several simt.Value = -2
	source := make([]simt.Value, len(t.of)) // the lookup by loads that a value comes from; None if from none
	type way struct{ results, permutations int }
	ways := map[simt.Value]way{}
	for i := range t.from.Body {
		in := &t.from.Body[i]
		v := in.Out
		if v == simt.None || t.of[v] < 0 {
			if v != simt.None {
				source[v] = simt.None
			}
			continue
		}
		source[v] = simt.None
		if t.loads(in) {
			source[v] = v
		}
		in.Reads(func(x simt.Value) {
			switch {
			case t.of[x] < 0 || source[x] == simt.None:
			case source[v] == simt.None:
				source[v] = source[x]
			case source[v] != source[x]:
				source[v] = several
			}
		})
		if from := source[v]; from >= 0 && from != v && outside[v] {
			w := ways[from]
			w.results++
			w.permutations++
			if in.Op == simt.Gather {
				w.permutations += t.permutations(&t.from.Tables[in.Ref]) - 1
			}
			ways[from] = w
		}
	}
	halfway := map[simt.Value]bool{}
	for v, w := range ways { // permutations across 32 bytes are two steps on some processors
		halfway[v] = t.byteLoads(1)+2*w.permutations < t.byteLoads(w.results)
	}
	return halfway
}

// elements returns the bits of values for every byte: what the interpreter computes for as many rows, in which each column has
// the number of the row.
func (t *tabulator) elements(list []simt.Value) [][]uint64 {
	m := &simt.Module{Name: t.from.Name, Inputs: []simt.Param{{Name: "byte", Type: simt.U8, Width: 1}}, Tables: slices.Clone(t.from.Tables)}
	for i := range m.Tables { // whatever they are called
		m.Tables[i].Name = fmt.Sprintf("table_%d", i)
	}
	needed := make([]bool, len(t.of))
	for _, v := range list {
		needed[v] = true
	}
	for i := len(t.from.Body) - 1; i >= 0; i-- {
		if in := &t.from.Body[i]; in.Out != simt.None && needed[in.Out] {
			in.Reads(func(v simt.Value) { needed[v] = true })
		}
	}
	number := make([]simt.Value, len(t.of)) // of values in m
	for _, in := range t.from.Body {
		if in.Out == simt.None || !needed[in.Out] {
			continue
		}
		number[in.Out] = simt.Value(len(m.Types))
		m.Types = append(m.Types, t.from.Types[in.Out])
		in.Out = number[in.Out]
		for i := range in.Op.Args() {
			in.Args[i] = number[in.Args[i]]
		}
		if in.Op == simt.Load {
			in.Ref, in.Imm = 0, 0
		}
		m.Body = append(m.Body, in)
	}
	for i, v := range list {
		m.Outputs = append(m.Outputs, simt.Param{Name: fmt.Sprintf("value_%d", i), Type: t.from.Types[v], Width: 1})
		m.Body = append(m.Body, simt.Instr{Op: simt.Store, Out: simt.None, Ref: i, Args: [3]simt.Value{number[v], simt.None, simt.None}})
	}
	run, err := simt.Compile(m, 1)
	if err != nil {
		panic("BUG: x86: " + err.Error())
	}
	const rows = math.MaxUint8 + 1
	bytes, out := make([]uint8, rows), rowsOf(m.Outputs, rows)
	for i := range bytes {
		bytes[i] = uint8(i)
	}
	if err := run.Run(context.Background(), 0, rows, []any{bytes}, out); err != nil {
		panic("BUG: x86: " + err.Error())
	}
	all := make([][]uint64, len(list))
	for i := range list {
		all[i] = bitsOf(out[i])
	}
	return all
}

// module returns the module that looks values up.
func (t *tabulator) module(list []simt.Value, elements [][]uint64) *simt.Module {
	m := &simt.Module{
		Name: t.from.Name, Inputs: t.from.Inputs, Outputs: t.from.Outputs, Tables: slices.Clone(t.from.Tables), Types: slices.Clone(t.from.Types),
		Body: make(simt.Block, 0, len(t.from.Body)+len(t.columns)),
	}
	name := "by_byte" // with which no other name begins
	for slices.ContainsFunc(slices.Concat(m.Inputs, m.Outputs), func(p simt.Param) bool { return strings.HasPrefix(p.Name, name) }) ||
		slices.ContainsFunc(m.Tables, func(t simt.Table) bool { return strings.HasPrefix(t.Name, name) }) {
		name += "_"
	}
	place := make(map[simt.Value]int, len(list))
	for i, v := range list {
		place[v] = len(m.Tables)
		m.Tables = append(m.Tables, simt.Table{Name: fmt.Sprintf("%s_%d", name, i), Type: m.Types[v], Bits: elements[i]})
	}
	index := make([]simt.Value, len(t.columns)) // the bytes of columns, as indices; 0: not yet
	for i := range t.from.Body {
		in := t.from.Body[i]
		table, looked := place[in.Out]
		if looked {
			in = simt.Instr{Op: simt.Gather, Out: in.Out, Ref: table, Args: [3]simt.Value{index[t.of[in.Out]], simt.None, simt.None}}
		}
		m.Body = append(m.Body, in)
		if in.Op == simt.Load && t.of[in.Out] >= 0 && index[t.of[in.Out]] == 0 {
			index[t.of[in.Out]] = simt.Value(len(m.Types))
			m.Body = append(m.Body, simt.Instr{Op: simt.Convert, Out: simt.Value(len(m.Types)), Args: [3]simt.Value{in.Out, simt.None, simt.None}})
			m.Types = append(m.Types, simt.I32)
		}
	}
	reads := make([]bool, len(m.Types))
	for i := len(m.Body) - 1; i >= 0; i-- {
		in := &m.Body[i]
		if in.Out != simt.None && !reads[in.Out] {
			*in = simt.Instr{Op: simt.Const, Out: in.Out, Args: [3]simt.Value{simt.None, simt.None, simt.None}}
			continue
		}
		in.Reads(func(v simt.Value) { reads[v] = true })
	}
	return m
}
