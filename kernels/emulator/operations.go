package emulator

import (
	"math"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// step32 makes a step of a function of all lanes.
func step32(f lanes.Func32) step {
	return func(w *warp, o *op, m uint32) signal {
		if m == all {
			f(&w.r[o.d], &w.r[o.a], &w.r[o.b], &w.r[o.c])
			return next
		}
		f(&w.spare, &w.r[o.a], &w.r[o.b], &w.r[o.c])
		blend(&w.r[o.d], &w.spare, m)
		return next
	}
}

func step64(f lanes.Func64) step {
	return func(w *warp, o *op, m uint32) signal {
		if m == all {
			f(&w.d[o.d], &w.d[o.a], &w.d[o.b], &w.d[o.c])
			return next
		}
		f(&w.spareWide, &w.d[o.a], &w.d[o.b], &w.d[o.c])
		blend(&w.d[o.d], &w.spareWide, m)
		return next
	}
}

// stepEach makes a step of a function of one lane, for functions so slow that other
// lanes than those of the mask count.
func stepEach(f func(uint32) uint32) step {
	return func(w *warp, o *op, m uint32) signal {
		d, a := &w.r[o.d], &w.r[o.a]
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			d[lane] = f(a[lane])
		}
		return next
	}
}

func stepWiden(f lanes.Widen) step {
	return func(w *warp, o *op, m uint32) signal {
		if m == all {
			f(&w.d[o.d], &w.r[o.a], &w.r[o.b], &w.d[o.c])
			return next
		}
		f(&w.spareWide, &w.r[o.a], &w.r[o.b], &w.d[o.c])
		blend(&w.d[o.d], &w.spareWide, m)
		return next
	}
}

// blend takes the lanes of a mask from t.
func blend[T uint32 | uint64](d, t *[32]T, m uint32) {
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = t[i]
	}
}

// cvt decodes conversions.
func (d *decoder) cvt() {
	d.op.kind = kindConvert
	to, from := d.typ(-2), d.typ(-1)
	switch {
	case to == ptx.F16x2 || to == ptx.BF16x2:
		d.op.d, d.op.a, d.op.b = d.reg(0, ptx.R), d.narrow(1), d.narrow(2)
		if from != ptx.F32 || !slices.Equal(d.in.Mods, []string{"rn"}) {
			return
		}
		if to == ptx.F16x2 {
			d.op.step = step32(lanes.PackHalves)
		} else {
			d.op.step = step32(lanes.PackBrains)
		}
		return
	case to == ptx.TF32:
		d.op.d, d.op.a = d.reg(0, ptx.R), d.narrow(1)
		if from == ptx.F32 && slices.Equal(d.in.Mods, []string{"rna"}) {
			d.op.step = step32(lanes.RoundTensors)
			d.computes("cvt.rna.tf32", from)
		}
		return
	}
	f := lanes.Conversion(to, from, d.in.Mods)
	if f == nil {
		return
	}
	keep := uint64(math.MaxUint64)
	if d.arg(0).Reg.Class == ptx.H {
		keep = math.MaxUint16
	}
	d.op.a = d.value(1, from)
	fromWide, toWide := from.Bytes() == 8, to.Bytes() == 8
	if toWide {
		d.op.d = d.reg(0, ptx.D)
	} else {
		d.op.d = d.reg(0, ptx.R)
	}
	d.computes(d.opcode()+"."+to.String(), from)
	if to == ptx.U64 && from == ptx.U32 { // addresses: the conversion that kernels use most
		d.op.step = stepWiden(func(d *wide, a, _ *narrow, _ *wide) {
			for i := range d {
				d[i] = uint64(a[i])
			}
		})
		return
	}
	d.op.step = func(w *warp, o *op, m uint32) signal {
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			var x uint64
			if fromWide {
				x = w.d[o.a][i]
			} else {
				x = uint64(w.r[o.a][i])
			}
			x = f(x) & keep
			if toWide {
				w.d[o.d][i] = x
			} else {
				w.r[o.d][i] = uint32(x)
			}
		}
		return next
	}
}

// setp decodes comparisons, alone or joined to a predicate.
func (d *decoder) setp() {
	d.op.kind = kindControl
	t := d.typ(-1)
	d.op.d, d.op.a, d.op.b = d.reg(0, ptx.P), d.value(1, t), d.value(2, t)
	if len(d.in.Mods) == 0 {
		return
	}
	var f func(w *warp, o *op) uint32
	if g := lanes.Compare32(d.in.Mods[0], t); g != nil {
		f = func(w *warp, o *op) uint32 { return g(&w.r[o.a], &w.r[o.b]) }
	} else if g := lanes.Compare64(d.in.Mods[0], t); g != nil {
		f = func(w *warp, o *op) uint32 { return g(&w.d[o.a], &w.d[o.b]) }
	} else {
		return
	}
	if len(d.in.Args) < 4 {
		d.compares(d.in.Mods[0], t)
		d.op.step = func(w *warp, o *op, m uint32) signal {
			w.p[o.d] = w.p[o.d]&^m | f(w, o)&m
			return next
		}
		return
	}
	d.op.c = d.reg(3, ptx.P)
	with := connective(d.in.Mods[len(d.in.Mods)-1])
	if with == nil {
		return
	}
	d.op.step = func(w *warp, o *op, m uint32) signal {
		w.p[o.d] = w.p[o.d]&^m | with(f(w, o), w.p[o.c])&m
		return next
	}
}

// compares lets a routine compare. Of those that ask for greater there is the one for
// less, whose operands change places; the sign of integers counts where their order
// does.
func (d *decoder) compares(name string, t ptx.Type) {
	if from, ok := unsignedOrders[name]; ok && (t == ptx.U32 || t == ptx.U64) {
		name = from
	}
	a, b := d.op.a, d.op.b
	if to, ok := exchanged[name]; ok {
		name, a, b = to, b, a
	}
	d.computesOn("setp."+name, t, d.op.d, a, b)
}

var (
	unsignedOrders = map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
	exchanged      = map[string]string{"gt": "lt", "ge": "le", "gtu": "ltu", "geu": "leu"}
)

// connective returns an operation on predicates, or nil.
func connective(name string) func(p, q uint32) uint32 {
	switch name {
	case "and":
		return func(p, q uint32) uint32 { return p & q }
	case "or":
		return func(p, q uint32) uint32 { return p | q }
	case "xor":
		return func(p, q uint32) uint32 { return p ^ q }
	case "not":
		return func(p, _ uint32) uint32 { return ^p }
	}
	return nil
}

// selp decodes choices by a predicate.
func (d *decoder) selp() {
	t := d.typ(-1)
	d.op.a, d.op.b, d.op.c = d.value(1, t), d.value(2, t), d.reg(3, ptx.P)
	if t.Bytes() == 8 {
		d.op.d = d.reg(0, ptx.D)
		d.op.step = func(w *warp, o *op, m uint32) signal {
			choose(&w.d[o.d], &w.d[o.a], &w.d[o.b], w.p[o.c], m)
			return next
		}
		d.computes("selp", ptx.B64)
		return
	}
	d.op.d = d.reg(0, ptx.R)
	d.op.step = func(w *warp, o *op, m uint32) signal {
		choose(&w.r[o.d], &w.r[o.a], &w.r[o.b], w.p[o.c], m)
		return next
	}
	if t.Bytes() == 4 {
		d.computes("selp", ptx.B32)
	}
}

// choose takes a where p is set and b elsewhere, in the lanes of m.
func choose[T uint32 | uint64](d, a, b *[32]T, p, m uint32) {
	if m == all {
		for i := range d {
			v := b[i]
			if p>>i&1 != 0 {
				v = a[i]
			}
			d[i] = v
		}
		return
	}
	for i := range d {
		switch {
		case m>>i&1 == 0:
		case p>>i&1 != 0:
			d[i] = a[i]
		default:
			d[i] = b[i]
		}
	}
}
