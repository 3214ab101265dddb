package emulator

import (
	"slices"
	"strings"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// arithmetic decodes operations on registers of one type.
func (d *decoder) arithmetic() {
	t := d.typ(-1)
	name := d.in.Op
	for _, kind := range []string{"lo", "hi", "wide", "sat"} {
		if d.mod(kind) {
			name += "." + kind
		}
	}
	switch t {
	case ptx.Pred:
		d.logic()
		return
	case ptx.F32, ptx.F64, ptx.F16x2:
		d.floats(name, t)
		return
	}
	d.op.kind = kindInteger
	switch {
	case name == "mul.wide" || name == "mad.wide":
		d.widening(t)
		name = "mad.wide"
	case name == "bfi" && t == ptx.B32:
		d.op.d, d.op.a, d.op.b, d.op.c, d.op.e = d.reg(0, ptx.R), d.narrow(1), d.narrow(2), d.narrow(3), d.narrow(4)
		d.op.step = func(w *warp, o *op, m uint32) signal {
			for i := range 32 {
				if m>>i&1 != 0 {
					w.r[o.d][i] = lanes.InsertBits(w.r[o.a][i], w.r[o.b][i], w.r[o.c][i], w.r[o.e][i])
				}
			}
			return next
		}
	case t.Bytes() == 8 && (name == "shl" || name == "shr"):
		d.op.d, d.op.a, d.op.b = d.reg(0, ptx.D), d.wide(1), d.narrow(2)
		if f := lanes.Shift64(name, t); f != nil {
			d.op.step = func(w *warp, o *op, m uint32) signal {
				f(&w.spareWide, &w.d[o.a], &w.r[o.b])
				blend(&w.d[o.d], &w.spareWide, m)
				return next
			}
		}
	case t.Bytes() == 8 && (name == "popc" || name == "clz"):
		d.refuse("the emulator knows %s of 32 bits alone", name)
	case t.Bytes() == 8:
		d.operands(ptx.D)
		if f := lanes.Whole64(name, t); f != nil {
			d.op.step = step64(f)
		}
	case t.Bytes() == 4:
		d.operands(ptx.R)
		if f := lanes.Whole32(name, t); f != nil {
			d.op.step = step32(f)
		}
	}
	d.computes(name, t)
}

// operands decodes a destination and up to three operands of a class.
func (d *decoder) operands(class ptx.Class) {
	d.op.d = d.reg(0, class)
	for i, slot := range []*int32{&d.op.a, &d.op.b, &d.op.c} {
		switch {
		case i+1 >= len(d.in.Args):
			return
		case class == ptx.D:
			*slot = d.wide(i + 1)
		default:
			*slot = d.narrow(i + 1)
		}
	}
}

// logic decodes operations on predicates: masks of lanes.
func (d *decoder) logic() {
	d.op.d, d.op.a = d.reg(0, ptx.P), d.reg(1, ptx.P)
	if d.in.Op != "not" {
		d.op.b = d.reg(2, ptx.P)
	}
	f := connective(d.in.Op)
	if f == nil {
		return
	}
	d.op.step = func(w *warp, o *op, m uint32) signal {
		w.p[o.d] = w.p[o.d]&^m | f(w.p[o.a], w.p[o.b])&m
		return next
	}
	d.computes(d.in.Op, ptx.Pred)
}

// floats decodes operations on f32, f64 and f16x2.
func (d *decoder) floats(name string, t ptx.Type) {
	d.op.kind = kindFloat
	if name == "fma" {
		d.op.kind = kindFMA
	}
	if t == ptx.F64 {
		d.operands(ptx.D)
		if f := lanes.Float64(name); f != nil {
			d.op.step = step64(f)
		}
		d.computes(d.opcode(), t)
		return
	}
	d.operands(ptx.R)
	if d.mod("approx") {
		d.op.kind = kindSpecial
		if f := lanes.Approximation(name, d.mod("ftz"), d.options.Approx); f != nil {
			d.op.step = stepEach(f)
		}
	} else if f := lanes.Float(name, t); f != nil {
		d.op.step = step32(f)
	}
	d.computes(d.opcode(), t)
}

// opcode is the name of the instruction without its types.
func (d *decoder) opcode() string { return strings.Join(append([]string{d.in.Op}, d.in.Mods...), ".") }

// widening decodes products of 64 bits.
func (d *decoder) widening(t ptx.Type) {
	d.op.d, d.op.a, d.op.b = d.reg(0, ptx.D), d.narrow(1), d.narrow(2)
	d.op.c = d.constant(true, 0)
	if d.in.Op == "mad" {
		d.op.c = d.wide(3)
	}
	if f := lanes.MultiplyAddWide(t); f != nil {
		d.op.step = stepWiden(f)
	}
}

// mov decodes moves, also those that split and join registers.
func (d *decoder) mov() {
	t := d.typ(-1)
	dst, src := d.arg(0), d.arg(1)
	switch {
	case t == ptx.Pred && src.Kind == ptx.IntOperand:
		d.op.d = d.reg(0, ptx.P)
		value := uint32(0)
		if src.Int != 0 {
			value = all
		}
		d.op.step = func(w *warp, o *op, m uint32) signal {
			w.p[o.d] = w.p[o.d]&^m | value&m
			return next
		}
	case t == ptx.Pred:
		d.op.d, d.op.a = d.reg(0, ptx.P), d.reg(1, ptx.P)
		d.op.step = func(w *warp, o *op, m uint32) signal {
			w.p[o.d] = w.p[o.d]&^m | w.p[o.a]&m
			return next
		}
		d.computes("mov", t)
	case src.Kind == ptx.SpecOperand && src.Symbol == "%clock64":
		d.op.d = d.reg(0, ptx.D)
		d.op.step = clock64
	case dst.Kind == ptx.VecOperand || src.Kind == ptx.VecOperand:
		d.splits(t)
	case t.Bytes() == 8:
		d.op.d, d.op.a = d.reg(0, ptx.D), d.wide(1)
		d.op.step = step64(copy64)
		d.computes("mov", ptx.B64)
	case t.Bytes() == 4:
		d.op.d, d.op.a = d.reg(0, ptx.R), d.narrow(1)
		d.op.step = step32(copy32)
		d.computes("mov", ptx.B32)
	case t.Bytes() == 2:
		d.op.d, d.op.a = d.reg(0, ptx.R), d.narrow(1)
		d.op.step = step32(func(d, a, _, _ *narrow) {
			for i := range d {
				d[i] = a[i] & 0xffff
			}
		})
		d.computes("cvt.u32", ptx.U16)
	}
}

func copy32(d, a, _, _ *narrow) { *d = *a }

func copy64(d, a, _, _ *wide) { *d = *a }

// splits decodes mov between a register and the two halves of one.
func (d *decoder) splits(t ptx.Type) {
	class := map[int]ptx.Class{4: ptx.H, 8: ptx.R}[t.Bytes()]
	if class == ptx.NoClass {
		return
	}
	if d.arg(0).Kind == ptx.VecOperand {
		d.op.vec = d.registers(0, 2, class)
		d.op.a = d.value(1, t)
		d.op.step = split64
		if class == ptx.H {
			d.op.step = split32
		} else if len(d.op.vec) == 2 {
			d.computesOn("split", ptx.B64, d.op.vec[0], d.op.vec[1], d.op.a)
		}
		return
	}
	d.op.vec = d.registers(1, 2, class)
	if class == ptx.H {
		d.op.d, d.op.step = d.reg(0, ptx.R), join32
	} else {
		d.op.d, d.op.step = d.reg(0, ptx.D), join64
		if len(d.op.vec) == 2 {
			d.computesOn("join", ptx.B64, d.op.d, d.op.vec[0], d.op.vec[1])
		}
	}
}

func split32(w *warp, o *op, m uint32) signal {
	from := w.r[o.a]
	for i := range 32 {
		if m>>i&1 != 0 {
			w.r[o.vec[0]][i], w.r[o.vec[1]][i] = from[i]&0xffff, from[i]>>16
		}
	}
	return next
}

func join32(w *warp, o *op, m uint32) signal {
	for i := range 32 {
		if m>>i&1 != 0 {
			w.r[o.d][i] = w.r[o.vec[1]][i]<<16 | w.r[o.vec[0]][i]&0xffff
		}
	}
	return next
}

func split64(w *warp, o *op, m uint32) signal {
	for i := range 32 {
		if m>>i&1 != 0 {
			x := w.d[o.a][i]
			w.r[o.vec[0]][i], w.r[o.vec[1]][i] = uint32(x), uint32(x>>32)
		}
	}
	return next
}

func join64(w *warp, o *op, m uint32) signal {
	for i := range 32 {
		if m>>i&1 != 0 {
			w.d[o.d][i] = uint64(w.r[o.vec[1]][i])<<32 | uint64(w.r[o.vec[0]][i])
		}
	}
	return next
}

// clock64 counts the operations that the block's warps began.
func clock64(w *warp, o *op, m uint32) signal {
	var n uint64
	ops := w.blk.run.kernel.ops
	for i, c := range w.blk.count {
		ran := c.lanes
		if r := ops[i].run; r != nil {
			ran *= uint64(r.ops)
		}
		n += ran
	}
	for i := range 32 {
		if m>>i&1 != 0 {
			w.d[o.d][i] = n
		}
	}
	return next
}

// cvta decodes address conversions: generic addresses are global ones here.
func (d *decoder) cvta() {
	if !d.toGlobal() {
		return
	}
	d.op.d, d.op.a = d.reg(0, ptx.D), d.wide(1)
	d.op.step = step64(copy64)
	d.computes("mov", ptx.B64)
}

// toGlobal reports whether the instruction is the address conversion that there is.
func (d *decoder) toGlobal() bool {
	return d.in.Op == "cvta" && slices.Equal(d.in.Mods, []string{"to", "global"}) && d.typ(-1) == ptx.U64
}
