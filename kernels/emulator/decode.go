package emulator

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// kernel is an entry point, decoded.
type kernel struct {
	name    string
	ops     []op
	slots32 int // of the file of 16 and 32 bits
	slots64 int
	preds   int
	consts  []constant
	places  []place
	params  []ptx.Param
	text    []byte // of its instructions, one after another
	set     *lanes.Set
	layout  layout
	threads int // the most of a block; 0 says nothing
	static  int // bytes of shared memory that the kernel declares
	dynamic bool
	talks   bool     // blocks can wait for each other or update the same words
	idle    []*block // places of earlier launches
}

// textOf is the instruction of an operation as it is printed; empty for one that the
// decoder has added.
func (k *kernel) textOf(o *op) string { return string(k.text[o.from:o.to]) }

// place is a slot that holds the number of the block on an axis.
type place struct {
	slot int32
	axis int
}

// constant is a slot that is filled once a launch: with a value in lane 0, and more by step in each lane after it.
type constant struct {
	slot  int32
	wide  bool
	value uint64
	from  func(w *warp) uint64 // nil: value
	step  uint64
}

// holds says what a constant is: a number or something with a name.
type holds struct {
	name  string
	wide  bool
	value uint64
}

// fill writes the constant to the slot in all lanes.
func (c *constant) fill(w *warp) {
	v := c.value
	if c.from != nil {
		v = c.from(w)
	}
	if c.wide {
		for lane := range w.d[c.slot] {
			w.d[c.slot][lane] = v
			v += c.step
		}
		return
	}
	for lane := range w.r[c.slot] {
		w.r[c.slot][lane] = uint32(v)
		v += c.step
	}
}

// decoder turns a kernel's statements into operations.
type decoder struct {
	options *Options
	module  *ptx.Module
	source  *ptx.Kernel
	k       *kernel
	in      *ptx.Inst
	op      *op
	known   map[holds]int32    // slots of constants
	symbols map[string]int     // addresses in shared memory
	labels  map[string]int     // operations
	aliases map[ptx.Reg]int32  // slots of constants that registers hold
	folded  map[*ptx.Inst]bool // instructions that write such a register
	err     error
}

// decode makes a kernel ready to run.
func decode(o *Options, set *lanes.Set, m *ptx.Module, source *ptx.Kernel) (*kernel, error) {
	d := &decoder{
		options: o, module: m, source: source,
		aliases: map[ptx.Reg]int32{},
		folded:  map[*ptx.Inst]bool{},
		known:   map[holds]int32{},
		symbols: map[string]int{},
		labels:  map[string]int{},
		k: &kernel{
			name: source.Name, params: source.Params, threads: source.Threads,
			slots32: int(source.Regs[ptx.R] + source.Regs[ptx.H]),
			slots64: int(source.Regs[ptx.D]),
			preds:   int(source.Regs[ptx.P]),
			dynamic: m.Dynamic != nil,
			set:     set,
		},
	}
	d.share()
	if err := d.fold(); err != nil {
		return nil, err
	}
	joins := meetings(source)
	// A meeting point gets an operation of its own, before the label's first.
	starts := make([]int, len(source.Body)+1)
	n := 0
	for i := range source.Body {
		starts[i] = n
		if joins.at[i] {
			n++
		}
		if source.Body[i].Inst != nil {
			n++
		}
	}
	starts[len(source.Body)] = n
	first := 0
	for i, s := range source.Body {
		if s.Inst != nil {
			continue
		}
		// Lanes meet at the first of several labels in a row.
		if i == 0 || source.Body[i-1].Inst != nil {
			first = starts[i]
		}
		d.labels[s.Label] = first
	}
	d.k.ops = make([]op, 0, n+1)
	for i, s := range source.Body {
		if joins.at[i] {
			d.k.ops = append(d.k.ops, op{step: meet, guard: -1, line: d.lineOf(i), kind: kindNone})
		}
		if s.Inst == nil {
			continue
		}
		join := -1
		if to, ok := joins.of[i]; ok {
			join = starts[to]
		}
		if err := d.inst(s.Inst, join); err != nil {
			return nil, err
		}
	}
	d.k.ops = append(d.k.ops, op{step: exit, guard: -1, kind: kindNone})
	d.k.join(d.labels)
	return d.k, nil
}

// lineOf is the line of the first instruction from statement i on.
func (d *decoder) lineOf(i int) int {
	for _, s := range d.source.Body[i:] {
		if s.Inst != nil {
			return s.Inst.Line
		}
	}
	return 0
}

// share places the variables in shared memory, the dynamic part last.
func (d *decoder) share() {
	at := 0
	room := func(v *ptx.Var) {
		align := max(v.Align, 1)
		at = (at + align - 1) / align * align
		d.symbols[v.Name] = at
		at += v.Bytes
	}
	for i := range d.source.Shared {
		room(&d.source.Shared[i])
	}
	if d.module.Dynamic != nil {
		room(d.module.Dynamic)
	}
	d.k.static = at
}

// inst decodes one instruction.
func (d *decoder) inst(in *ptx.Inst, join int) error {
	from := int32(len(d.k.text))
	d.k.text = append(d.k.text, in.String()...)
	d.k.ops = append(d.k.ops, op{guard: -1, line: in.Line, from: from, to: int32(len(d.k.text)), join: join, kind: kindInteger})
	d.in, d.op = in, &d.k.ops[len(d.k.ops)-1]
	if in.Guard.Class != ptx.NoClass {
		d.op.guard = in.Guard.ID
		if in.Negated {
			d.op.flip = all
		}
	}
	if f, ok := decoders[in.Op]; d.folded[in] {
		d.op.step, d.op.idle = nothing, true
	} else if ok {
		f(d)
	} else {
		d.refuse("the emulator does not know %s", in.Op)
	}
	if d.err == nil && d.op.step == nil {
		d.refuse("the emulator does not know this form")
	}
	return d.err
}

// refuse notes why an instruction cannot be decoded.
func (d *decoder) refuse(format string, args ...any) {
	if d.err == nil {
		d.err = refused("kernel %s, line %d %q: %s", d.source.Name, d.in.Line, d.in.String(), fmt.Sprintf(format, args...))
	}
}

// decoders know the instructions by their first part.
var decoders map[string]func(*decoder)

func init() {
	decoders = map[string]func(*decoder){
		"bra": (*decoder).bra, "ret": (*decoder).ret, "exit": (*decoder).ret, "trap": (*decoder).ret,
		"bar": (*decoder).bar, "membar": (*decoder).fence, "fence": (*decoder).fence,
		"griddepcontrol": (*decoder).griddepcontrol,
		"ld":             (*decoder).ld, "st": (*decoder).st, "mov": (*decoder).mov, "cvta": (*decoder).cvta,
		"cvt": (*decoder).cvt, "selp": (*decoder).selp, "setp": (*decoder).setp,
		"shfl": (*decoder).shfl, "vote": (*decoder).vote, "redux": (*decoder).redux,
		"atom": (*decoder).atom, "red": (*decoder).atom,
		"cp.async": (*decoder).cpAsync, "ldmatrix": (*decoder).ldmatrix, "mma": (*decoder).mma,
	}
	for _, name := range strings.Fields("add sub mul mad fma div rem min max abs neg and or xor not shl shr bfe bfi popc clz rcp sqrt ex2 lg2 prmt") {
		decoders[name] = (*decoder).arithmetic
	}
}

// mod reports whether the opcode has a part.
func (d *decoder) mod(name string) bool { return slices.Contains(d.in.Mods, name) }

// typ returns the i-th type, counted from the end if negative.
func (d *decoder) typ(i int) ptx.Type {
	if i < 0 {
		i += len(d.in.Types)
	}
	if i < 0 || i >= len(d.in.Types) {
		d.refuse("a type is missing")
		return ptx.NoType
	}
	return d.in.Types[i]
}

// arg returns the i-th operand.
func (d *decoder) arg(i int) ptx.Operand {
	if i >= len(d.in.Args) {
		d.refuse("operand %d is missing", i+1)
		return ptx.Operand{}
	}
	return d.in.Args[i]
}

// slot returns the slot of a register.
func (d *decoder) slot(r ptx.Reg) int32 {
	if r.Class == ptx.NoClass || r.ID >= d.source.Regs[r.Class] {
		d.refuse("register %s is not declared", r)
		return 0
	}
	if slot, ok := d.aliases[r]; ok {
		return slot
	}
	if r.Class == ptx.H {
		return d.source.Regs[ptx.R] + r.ID
	}
	return r.ID
}

// reg returns the slot of operand i, which must be a register of a class.
func (d *decoder) reg(i int, class ptx.Class) int32 {
	a := d.arg(i)
	if a.Kind != ptx.RegOperand || a.Reg.Class != class && !(class == ptx.R && a.Reg.Class == ptx.H) {
		d.refuse("operand %d must be a register %s", i+1, class)
		return 0
	}
	return d.slot(a.Reg)
}

// narrow is the slot of a register of 32 bits or fewer, or of a constant.
func (d *decoder) narrow(i int) int32 {
	a := d.arg(i)
	switch a.Kind {
	case ptx.RegOperand:
		return d.reg(i, ptx.R)
	case ptx.IntOperand:
		return d.constant(false, uint64(uint32(a.Int)))
	case ptx.F32Operand:
		return d.constant(false, uint64(uint32(a.Int)))
	case ptx.F64Operand:
		return d.constant(false, uint64(math.Float32bits(float32(math.Float64frombits(uint64(a.Int))))))
	case ptx.SymOperand:
		return d.constant(false, d.symbol(a.Symbol))
	case ptx.SpecOperand:
		return d.special(a.Symbol)
	}
	d.refuse("operand %d is of the wrong kind", i+1)
	return 0
}

// wide is the slot of a register of 64 bits, or of a constant.
func (d *decoder) wide(i int) int32 {
	a := d.arg(i)
	switch a.Kind {
	case ptx.RegOperand:
		return d.reg(i, ptx.D)
	case ptx.IntOperand, ptx.F64Operand:
		return d.constant(true, uint64(a.Int))
	case ptx.F32Operand:
		return d.constant(true, math.Float64bits(float64(math.Float32frombits(uint32(a.Int)))))
	case ptx.SymOperand:
		return d.constant(true, d.symbol(a.Symbol))
	}
	d.refuse("operand %d is of the wrong kind", i+1)
	return 0
}

// value returns the slot of operand i, in the file of a type.
func (d *decoder) value(i int, t ptx.Type) int32 {
	if t.Bytes() == 8 {
		return d.wide(i)
	}
	return d.narrow(i)
}

// symbol is the address of a variable in shared memory.
func (d *decoder) symbol(name string) uint64 {
	at, ok := d.symbols[name]
	if !ok {
		d.refuse("no variable %s in shared memory", name)
	}
	return uint64(at)
}

// add gives a constant a slot, once for all that hold the same.
func (d *decoder) add(name string, c constant) int32 {
	key := holds{name, c.wide, c.value}
	if slot, ok := d.known[key]; ok {
		return slot
	}
	n := &d.k.slots32
	if c.wide {
		n = &d.k.slots64
	}
	c.slot = int32(*n)
	*n++
	d.known[key] = c.slot
	d.k.consts = append(d.k.consts, c)
	return c.slot
}

// constant is the slot of a number.
func (d *decoder) constant(wide bool, v uint64) int32 {
	return d.add("", constant{wide: wide, value: v})
}

// special is the slot of a special register of 32 bits.
func (d *decoder) special(name string) int32 {
	c := constant{}
	switch name {
	case "%tid.x":
		c.from, c.step = func(w *warp) uint64 { return uint64(w.index * 32) }, 1
	case "%ntid.x":
		c.from = func(w *warp) uint64 { return uint64(w.blk.run.threads) }
	case "%laneid":
		c.step = 1
	case "%tid.y", "%tid.z":
	case "%ntid.y", "%ntid.z":
		c.value = 1
	case "%nctaid.x", "%nctaid.y", "%nctaid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z":
		axis := int(name[len(name)-1] - 'x')
		c.from = func(w *warp) uint64 { return uint64(w.blk.run.grid[axis]) }
		if name[1] == 'c' {
			n := len(d.k.consts)
			if slot := d.add(name, c); len(d.k.consts) > n {
				d.k.places = append(d.k.places, place{slot, axis})
			}
		}
	default:
		d.refuse("the emulator does not know %s", name)
	}
	return d.add(name, c)
}

// registers returns the slots of a vector operand, or of a register as one of one.
func (d *decoder) registers(i int, want int, class ptx.Class) []int32 {
	a := d.arg(i)
	regs := a.Vec
	if a.Kind == ptx.RegOperand {
		regs = []ptx.Reg{a.Reg}
	}
	if len(regs) != want {
		d.refuse("operand %d has %d registers, want %d", i+1, len(regs), want)
		return nil
	}
	slots := make([]int32, want)
	for j, r := range regs {
		if r.Class != class && !(class == ptx.R && r.Class == ptx.H) {
			d.refuse("operand %d must have registers %s", i+1, class)
			return nil
		}
		slots[j] = d.slot(r)
	}
	return slots
}
