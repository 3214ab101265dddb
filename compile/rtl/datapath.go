package rtl

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"math"
)

// OpKind is what an operator computes.
type OpKind uint8

// The operators.
const (
	Constant OpKind = iota // Value, without a register
	Lookup                 // an entry of Table, chosen by codes
	Mul                    // A times B
	Sum                    // A plus B
	Select                 // B where Choose has the code of Column, else A
)

// Op is an operator of a datapath. Its operands are earlier operators.
type Op struct {
	Kind   OpKind
	A, B   int32
	Table  int32
	Column int
	Choose []bool
	Value  float64
	// Ready is the number of registers between the datapath's inputs and the result: the
	// result of a row is there that many cycles after its codes.
	Ready int
}

// Table is a read-only memory. Its index has the codes of Columns, the first lowest, each with
// its valid bit above it where the datapath has valid bits.
type Table struct {
	Columns []int
	Bits    int // of the index
	Values  []float64
}

// Datapath is a pipeline that takes the codes of a row in every cycle, and gives its likelihood
// Depth cycles later.
type Datapath struct {
	Columns              []Column
	Marginals            bool
	MulStages, AddStages int
	Tables               []Table
	Ops                  []Op
	Out                  int32
	Depth                int
	Least, Largest       float64 // log2 of the values of operators, other than 0; Least is -Inf where a table or a weight lost one to underflow

	tables   map[string]int32
	known    map[opKey]int32
	distinct bool // equal multiplications and additions are not joined
	lost     bool // a table or a weight has a 0 for a number that the format does not hold
}

// opKey tells operators apart that have no Choose.
type opKey struct {
	kind        OpKind
	a, b, table int32
	value       uint64
}

func newDatapath(columns []Column, o *Options) *Datapath {
	return &Datapath{
		Columns: columns, Marginals: o.Marginals, MulStages: o.MulStages, AddStages: o.AddStages,
		tables: map[string]int32{}, known: map[opKey]int32{},
	}
}

// width is the number of index bits that a column takes in a table.
func (d *Datapath) width(column int) int {
	w := d.Columns[column].Bits
	if d.Marginals {
		w++
	}
	return w
}

// RowBits is the width of the codes and valid bits of a row. Column 0 is lowest.
func (d *Datapath) RowBits() int {
	n := 0
	for v := range d.Columns {
		n += d.Width(v)
	}
	return n
}

// Width is the number of bits that a column takes in a row: its code and, above it, its valid
// bit if the datapath has valid bits. It is 0 if nothing depends on the column.
func (d *Datapath) Width(column int) int {
	if !d.Columns[column].read {
		return 0
	}
	return d.width(column)
}

// add returns the number of an operator that equals o, which it makes if there is none.
func (d *Datapath) add(o Op) int32 {
	key := opKey{o.Kind, o.A, o.B, o.Table, math.Float64bits(o.Value)}
	own := o.Choose != nil || d.distinct && o.Kind >= Mul
	if at, ok := d.known[key]; ok && !own {
		return at
	}
	o.Ready = d.latency(&o) + d.start(&o)
	d.Ops = append(d.Ops, o)
	at := int32(len(d.Ops) - 1)
	if !own {
		d.known[key] = at
	}
	return at
}

// start is the first cycle in which all operands of an operator are there.
func (d *Datapath) start(o *Op) int {
	switch o.Kind {
	case Mul, Sum, Select:
		return max(d.Ops[o.A].Ready, d.Ops[o.B].Ready)
	}
	return 0
}

// Start is the cycle in which operator i takes its operands and codes.
func (d *Datapath) Start(i int) int { return d.Ops[i].Ready - d.latency(&d.Ops[i]) }

// latency is the number of registers of an operator.
func (d *Datapath) latency(o *Op) int {
	switch o.Kind {
	case Constant:
		return 0
	case Mul:
		return d.MulStages
	case Sum:
		return d.AddStages
	}
	return 1
}

func (d *Datapath) constant(x float64) int32 {
	return d.add(Op{Kind: Constant, Value: flush(d.product(x, 1))})
}

// lookup adds the table, unless an equal one is there, and an operator that reads it.
func (d *Datapath) lookup(t *table) int32 {
	rom := Table{Columns: t.columns}
	for _, v := range t.columns {
		rom.Bits += d.width(v)
		d.Columns[v].read = true
	}
	rom.Values = make([]float64, 1<<rom.Bits)
	var key []byte
	for _, v := range t.columns {
		key = binary.LittleEndian.AppendUint32(key, uint32(v))
	}
	for i := range rom.Values {
		rom.Values[i] = flush(t.at(d, i))
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(rom.Values[i]))
	}
	at, ok := d.tables[string(key)]
	if !ok {
		at = int32(len(d.Tables))
		d.Tables = append(d.Tables, rom)
		d.tables[string(key)] = at
	}
	return d.add(Op{Kind: Lookup, Table: at})
}

// finish sets the output and the depth. An output without a register gets one.
func (d *Datapath) finish(out int32) {
	if o := d.Ops[out]; o.Kind == Constant {
		out = d.lookup(&table{values: []float64{o.Value}})
	}
	d.Out, d.Depth = out, d.Ops[out].Ready
	d.tables, d.known = nil, nil
}

// late moves look-ups to the cycle before their first reader: a delayed code is narrower than a
// delayed number.
func (d *Datapath) late() {
	first := make([]int, len(d.Ops))
	for i := range first {
		first[i] = d.Depth
	}
	for i := range d.Ops {
		if o := &d.Ops[i]; o.Kind >= Mul {
			first[o.A], first[o.B] = min(first[o.A], d.Start(i)), min(first[o.B], d.Start(i))
		}
	}
	for i := range d.Ops {
		if o := &d.Ops[i]; o.Kind == Lookup {
			o.Ready = first[i]
		}
	}
}

// Count returns how many operators of a kind there are.
func (d *Datapath) Count(k OpKind) int {
	n := 0
	for i := range d.Ops {
		if d.Ops[i].Kind == k {
			n++
		}
	}
	return n
}

// reduce joins operands by operators of two operands: the two that are ready first are joined
// first, which gives the least depth. Equal ones keep their order.
func (d *Datapath) reduce(kind OpKind, operands []int32) int32 {
	waiting := make(byReady, len(operands))
	for i, x := range operands {
		waiting[i] = operand{x, d.Ops[x].Ready, i}
	}
	heap.Init(&waiting)
	for order := len(operands); len(waiting) > 1; order++ {
		a, b := heap.Pop(&waiting).(operand).op, heap.Pop(&waiting).(operand).op
		x := d.add(Op{Kind: kind, A: a, B: b})
		heap.Push(&waiting, operand{x, d.Ops[x].Ready, order})
	}
	return waiting[0].op
}

// operand is an operator that waits to be joined, in the order in which they came.
type operand struct {
	op           int32
	ready, order int
}

// byReady is a heap of operands, the one that is ready first at its top.
type byReady []operand

func (q byReady) Len() int      { return len(q) }
func (q byReady) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q byReady) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].ready, q[j].ready), cmp.Compare(q[i].order, q[j].order)) < 0
}

// Push is that of package heap.
func (q *byReady) Push(x any) { *q = append(*q, x.(operand)) }

// Pop is that of package heap.
func (q *byReady) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// split joins operands as the paper does: the first half, rounded down, with the other.
func (d *Datapath) split(kind OpKind, operands []int32) int32 {
	if len(operands) == 1 {
		return operands[0]
	}
	half := len(operands) / 2
	return d.add(Op{Kind: kind, A: d.split(kind, operands[:half]), B: d.split(kind, operands[half:])})
}
