package simt

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Builder makes a module instruction by instruction. Its methods append to the block that
// is open and return the new value. An operation that equals an earlier one of the same or
// an enclosing block is not repeated: its value is returned.
type Builder struct {
	m      *Module
	open   []opened // the innermost last
	spare  []opened // those that were open, whose memory the next ones take
	tables map[string]int
	key    []byte // memory of Table
}

// opened is a block on the way.
type opened struct {
	Block
	known memo
}

// NewBuilder starts a module.
func NewBuilder(name string) *Builder {
	b := &Builder{m: &Module{Name: name}, tables: map[string]int{}}
	b.enter()
	return b
}

func (b *Builder) enter() {
	o := opened{}
	if n := len(b.spare); n > 0 {
		o, b.spare = b.spare[n-1], b.spare[:n-1]
	}
	b.open = append(b.open, o)
}

// leave closes the innermost block and returns it.
func (b *Builder) leave() Block {
	n := len(b.open) - 1
	o := b.open[n]
	whole := slices.Clone(o.Block)
	clear(o.Block) // of what it points to
	o.Block = o.Block[:0]
	o.known.forget()
	b.open, b.spare = b.open[:n], append(b.spare, o)
	return whole
}

// append appends an instruction to the innermost block.
func (b *Builder) append(in Instr) {
	o := &b.open[len(b.open)-1]
	o.Block = append(o.Block, in)
}

// Grow makes room for that many more instructions in the body.
func (b *Builder) Grow(n int) {
	b.open[0].Block, b.m.Types = slices.Grow(b.open[0].Block, n), slices.Grow(b.m.Types, n)
}

// Forget makes operations that equal earlier ones come again, for values that are cheaper to compute where they are
// read than to keep until then.
func (b *Builder) Forget() { b.open[len(b.open)-1].known.forget() }

// Module returns the module, verified.
func (b *Builder) Module() (*Module, error) {
	if len(b.open) != 1 {
		panic("BUG: simt: a block is still open")
	}
	b.m.Body = b.open[0].Block
	return b.m, b.m.Verify()
}

// TypeOf returns the type of a value.
func (b *Builder) TypeOf(v Value) Type { return b.m.Types[v] }

// Values returns how many values there are so far: the number of the next one.
func (b *Builder) Values() Value { return Value(len(b.m.Types)) }

// Input adds an input and returns its number.
func (b *Builder) Input(name string, t Type, l Layout, width int) int {
	b.m.Inputs = append(b.m.Inputs, Param{name, t, l, width})
	return len(b.m.Inputs) - 1
}

// InputWidth returns how many columns an input has.
func (b *Builder) InputWidth(input int) int { return b.m.Inputs[input].Width }

// OutputRows reports whether an output lies by rows.
func (b *Builder) OutputRows(output int) bool { return b.m.Outputs[output].Layout == Rows }

// InputRows reports whether an input lies by rows.
func (b *Builder) InputRows(input int) bool { return b.m.Inputs[input].Layout == Rows }

// Output adds an output and returns its number.
func (b *Builder) Output(name string, t Type, l Layout, width int) int {
	b.m.Outputs = append(b.m.Outputs, Param{name, t, l, width})
	return len(b.m.Outputs) - 1
}

// Table adds a table of bits and returns its number; one that equals an earlier table is
// not repeated.
func (b *Builder) Table(t Type, bits []uint64) int {
	b.key = append(slices.Grow(b.key[:0], 1+8*len(bits)), byte(t))
	for _, x := range bits {
		b.key = binary.LittleEndian.AppendUint64(b.key, x)
	}
	if n, ok := b.tables[string(b.key)]; ok {
		return n
	}
	n := len(b.m.Tables)
	b.m.Tables = append(b.m.Tables, Table{"t" + strconv.Itoa(n), t, bits})
	b.tables[string(b.key)] = n
	return n
}

// FloatTable is Table of numbers rounded to t, which is f32 or f64.
func (b *Builder) FloatTable(t Type, numbers []float64) int {
	bits := make([]uint64, len(numbers))
	for i, x := range numbers {
		bits[i] = FloatBits(t, x)
	}
	return b.Table(t, bits)
}

// FloatBits returns the bits of x rounded to t, which is f32 or f64.
func FloatBits(t Type, x float64) uint64 {
	if t == F32 {
		return uint64(math.Float32bits(float32(x)))
	}
	return math.Float64bits(x)
}

func (b *Builder) value(t Type) Value {
	b.m.Types = append(b.m.Types, t)
	return Value(len(b.m.Types) - 1)
}

// emit appends an instruction with a result of type t.
func (b *Builder) emit(t Type, in Instr) Value {
	hash := hashOf(t, &in)
	for i := range b.open {
		o := &b.open[i]
		if at, ok := o.known.find(hash, func(at int32) bool { return b.computes(t, &in, &o.Block[at]) }); ok {
			return o.Block[at].Out
		}
	}
	in.Out = b.value(t)
	o := &b.open[len(b.open)-1]
	o.known.add(hash, int32(len(o.Block)))
	o.Block = append(o.Block, in)
	return in.Out
}

// apply appends an operation on values.
func (b *Builder) apply(op Op, t Type, imm uint64, args ...Value) Value {
	in := Instr{Op: op, Imm: imm, Args: [3]Value{None, None, None}}
	var types [3]Type
	for i, a := range args {
		in.Args[i], types[i] = a, b.m.Types[a]
	}
	if wrong := op.check(types[:len(args)], t); wrong != "" {
		panic(fmt.Sprintf("BUG: simt: %v %s", op, wrong))
	}
	return b.emit(t, in)
}

// Bits returns a constant by its bits.
func (b *Builder) Bits(t Type, bits uint64) Value { return b.apply(Const, t, bits) }

// Float returns the constant x rounded to t, which is f32 or f64.
func (b *Builder) Float(t Type, x float64) Value { return b.Bits(t, FloatBits(t, x)) }

// Int returns an integer constant of type t.
func (b *Builder) Int(t Type, x int64) Value {
	if t.Bits() == 64 {
		return b.Bits(t, uint64(x))
	}
	return b.Bits(t, uint64(x)&(1<<t.Bits()-1))
}

// Load returns the lane's element of a column of an input.
func (b *Builder) Load(input, column int) Value {
	return b.emit(b.m.Inputs[input].Type, Instr{Op: Load, Ref: input, Imm: uint64(column), Args: [3]Value{None, None, None}})
}

// Store writes the lane's element of a column of an output.
func (b *Builder) Store(output, column int, v Value) {
	b.append(Instr{Op: Store, Out: None, Ref: output, Imm: uint64(column), Args: [3]Value{v, None, None}})
}

// Gather returns the element of a table at an index of type i32, clamped to the table.
func (b *Builder) Gather(table int, index Value) Value {
	return b.emit(b.m.Tables[table].Type, Instr{Op: Gather, Ref: table, Args: [3]Value{index, None, None}})
}

// LoadAt returns the lane's element of a column of an input that lies by rows, at an index of type i32 that is clamped
// to the columns.
func (b *Builder) LoadAt(input int, column Value) Value {
	return b.emit(b.m.Inputs[input].Type, Instr{Op: LoadAt, Ref: input, Args: [3]Value{column, None, None}})
}

// StoreAt writes the lane's element of a column of an output that lies by rows, at an index of type i32 that is
// clamped to the columns.
func (b *Builder) StoreAt(output int, column, v Value) {
	b.append(Instr{Op: StoreAt, Out: None, Ref: output, Args: [3]Value{column, v, None}})
}

// Unary appends an operation of one operand.
func (b *Builder) Unary(op Op, x Value) Value { return b.apply(op, b.m.Types[x], 0, x) }

// Binary appends an operation of two operands of one type.
func (b *Builder) Binary(op Op, x, y Value) Value {
	t := b.m.Types[x]
	if op.compares() {
		t = Pred
	}
	return b.apply(op, t, 0, x, y)
}

// Add returns x + y.
func (b *Builder) Add(x, y Value) Value { return b.Binary(Add, x, y) }

// Sub returns x - y.
func (b *Builder) Sub(x, y Value) Value { return b.Binary(Sub, x, y) }

// Mul returns x · y.
func (b *Builder) Mul(x, y Value) Value { return b.Binary(Mul, x, y) }

// FMA returns x · y + z, rounded once.
func (b *Builder) FMA(x, y, z Value) Value { return b.apply(FMA, b.m.Types[x], 0, x, y, z) }

// Shift appends a shift by a constant distance.
func (b *Builder) Shift(op Op, x Value, by int) Value {
	return b.apply(op, b.m.Types[x], uint64(by), x)
}

// Select returns yes where the condition holds, else no.
func (b *Builder) Select(condition, yes, no Value) Value {
	return b.apply(Select, b.m.Types[yes], 0, condition, yes, no)
}

// Convert returns x as another type; x itself where it has the type.
func (b *Builder) Convert(t Type, x Value) Value {
	if b.m.Types[x] == t {
		return x
	}
	return b.apply(Convert, t, 0, x)
}

// Bitcast returns the bits of x as those of another type.
func (b *Builder) Bitcast(t Type, x Value) Value { return b.apply(Bitcast, t, 0, x) }

// If appends a branch: lanes take the values that one of two functions returns, which
// append to blocks of their own and return equally many values of equal types.
func (b *Builder) If(condition Value, yes, no func() []Value) []Value {
	br := &Branch{}
	b.enter()
	br.ThenYield = yes()
	br.Then = b.leave()
	b.enter()
	br.ElseYield = no()
	br.Else = b.leave()
	for _, v := range br.ThenYield {
		br.Results = append(br.Results, b.value(b.m.Types[v]))
	}
	b.append(Instr{Op: If, Out: None, Args: [3]Value{condition, None, None}, If: br})
	return slices.Clone(br.Results)
}

// Loop appends a loop of at most that many turns. body appends a turn to a block of its own:
// it takes the carried values and returns the next ones and whether the lane continues.
func (b *Builder) Loop(most int, init []Value, body func(carried []Value) (next []Value, more Value)) []Value {
	l := &Repeat{Most: most, Init: init}
	for _, v := range init {
		l.Carried = append(l.Carried, b.value(b.m.Types[v]))
	}
	b.enter()
	l.Next, l.Continue = body(l.Carried)
	l.Body = b.leave()
	for _, v := range init {
		l.Results = append(l.Results, b.value(b.m.Types[v]))
	}
	b.append(Instr{Op: Loop, Out: None, Args: [3]Value{None, None, None}, Loop: l})
	return slices.Clone(l.Results)
}
