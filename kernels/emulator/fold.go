package emulator

import (
	"github.com/pce-engine/pce/kernels/ptx"
)

// fold finds registers that hold one constant of a launch all the time: parameters,
// addresses made of them, numbers, places. Their reads take the constant's slot, so
// that the instruction which writes them has nothing left to do. Such a register has
// one write, which no guard holds back; ptx.Verify has seen that it comes before
// every read.
func (d *decoder) fold() error {
	writes := map[ptx.Reg]int{}
	for _, s := range d.source.Body {
		if s.Inst == nil || len(s.Inst.Args) == 0 {
			continue
		}
		switch to := s.Inst.Args[0]; to.Kind {
		case ptx.RegOperand:
			writes[to.Reg]++
		case ptx.VecOperand:
			for _, r := range to.Vec {
				writes[r]++
			}
		}
	}
	for _, s := range d.source.Body {
		in := s.Inst
		if in == nil || in.Guard.Class != ptx.NoClass || len(in.Args) != 2 || in.Args[0].Kind != ptx.RegOperand {
			continue
		}
		if to := in.Args[0].Reg; writes[to] == 1 && (to.Class == ptx.R || to.Class == ptx.D) {
			d.in, d.op = in, &op{}
			if slot, ok := d.constantOf(to.Class); ok {
				d.aliases[to], d.folded[in] = slot, true
			}
			if d.err != nil {
				return d.err
			}
		}
	}
	return nil
}

// constantOf returns the slot of the constant that an instruction copies to a
// register of a class, if it does so.
func (d *decoder) constantOf(class ptx.Class) (int32, bool) {
	t := d.typ(-1)
	if size := map[ptx.Class]int{ptx.R: 4, ptx.D: 8}[class]; t == ptx.NoType || t.Bytes() != size {
		return 0, false
	}
	from := d.arg(1)
	switch {
	case d.in.Op == "ld" && d.mod("param"):
		return d.parameter(t), true
	case d.in.Op != "mov" && !d.toGlobal():
		return 0, false
	case from.Kind == ptx.VecOperand || from.Symbol == "%clock64":
		return 0, false
	case from.Kind == ptx.RegOperand:
		slot, ok := d.aliases[from.Reg]
		return slot, ok && from.Reg.Class == class
	}
	return d.value(1, t), true
}
