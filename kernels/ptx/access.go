package ptx

import "fmt"

// sharedAccesses checks the addresses of which the variable is known: those that
// name it, and those whose register has one write in the whole body, the variable's
// address.
func (v *verifier) sharedAccesses() error {
	bases := v.bases()
	k := v.kernel
	for i := range k.Body {
		in := k.Body[i].Inst
		if in == nil {
			continue
		}
		for j := range in.Args {
			o := &in.Args[j]
			if o.Kind != AddrOperand {
				continue
			}
			s := v.vars[o.Symbol]
			if o.Reg.Class != NoClass {
				s = bases[o.Reg]
			}
			if s == nil {
				continue
			}
			if err := sharedAccess(in, o, s); err != nil {
				return fmt.Errorf("%s: %w", place(k, i), err)
			}
		}
	}
	return nil
}

// bases finds the registers that hold the address of a variable and nothing else.
func (v *verifier) bases() map[Reg]*Var {
	bases := map[Reg]*Var{}
	if len(v.vars) == 0 {
		return bases
	}
	written := make([]bool, v.kernel.Regs[R])
	write := func(r Reg, s *Var) {
		switch {
		case r.Class != R:
		case written[r.ID]:
			delete(bases, r)
		default:
			written[r.ID] = true
			if s != nil {
				bases[r] = s
			}
		}
	}
	for i := range v.kernel.Body {
		if v.outs[i] == 0 {
			continue
		}
		args := v.kernel.Body[i].Inst.Args
		var s *Var
		if len(args) == 2 && args[1].Kind == SymOperand {
			s = v.vars[args[1].Symbol]
		}
		for j := range args[:v.outs[i]] {
			write(args[j].Reg, s)
			for _, r := range args[j].Vec {
				write(r, nil)
			}
		}
	}
	return bases
}

// sharedAccess checks an access to a variable for bounds and alignment.
func sharedAccess(in *Inst, o *Operand, s *Var) error {
	size := int64(accessBytes(in))
	switch {
	case o.Int < 0 || s.Bytes > 0 && o.Int > int64(s.Bytes)-size:
		return fmt.Errorf("bytes %d to %d of shared variable %s, which has %d", o.Int, o.Int+size-1, s.Name, s.Bytes)
	case o.Int >= maxOffset:
		return fmt.Errorf("offset %d; want one of 32 bits", o.Int)
	case o.Int%size != 0 || int64(s.Align)%size != 0:
		return fmt.Errorf("%d bytes at offset %d of shared variable %s, which is aligned to %d; want multiples of %d", size, o.Int, s.Name, s.Align, size)
	}
	return nil
}

// accessBytes is how much an instruction that fits its form reads or writes at an
// address.
func accessBytes(in *Inst) int {
	switch in.Op {
	case "cp.async":
		return int(in.Args[2].Int)
	case "ldmatrix":
		return 16 // a row of eight elements
	}
	size := in.Types[0].Bytes()
	for i := range in.Args {
		size *= max(len(in.Args[i].Vec), 1)
	}
	return size
}
