package ptx

import "strconv"

// Text returns the module as text, one statement per line. It prints what the
// module holds and checks nothing; Verify does.
func (m *Module) Text() []byte {
	size := 256
	for _, k := range m.Kernels {
		size += 512 + 40*len(k.Body)
	}
	b := make([]byte, 0, size)
	b = append(b, ".version "...)
	b = strconv.AppendInt(b, int64(m.Major), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(m.Minor), 10)
	b = append(b, "\n.target "...)
	b = append(b, m.Target...)
	b = append(b, "\n.address_size 64\n"...)
	if m.Dynamic != nil {
		b = append(b, "\n.extern "...)
		b = appendVar(b, m.Dynamic)
	}
	for _, k := range m.Kernels {
		b = appendKernel(append(b, '\n'), k)
	}
	return b
}

func appendKernel(b []byte, k *Kernel) []byte {
	b = append(b, ".visible .entry "...)
	b = append(b, k.Name...)
	b = append(b, '(')
	for i, p := range k.Params {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n\t.param ."...)
		b = append(b, p.Type.String()...)
		b = append(b, ' ')
		b = append(b, p.Name...)
	}
	if len(k.Params) > 0 {
		b = append(b, '\n')
	}
	b = append(b, ")\n"...)
	if k.Threads != 0 {
		b = append(b, ".maxntid "...)
		b = strconv.AppendInt(b, int64(k.Threads), 10)
		b = append(b, ", 1, 1\n"...)
	}
	if k.Blocks != 0 {
		b = append(b, ".minnctapersm "...)
		b = strconv.AppendInt(b, int64(k.Blocks), 10)
		b = append(b, '\n')
	}
	b = append(b, "{\n"...)
	for c := P; c <= D; c++ {
		if k.Regs[c] == 0 {
			continue
		}
		b = append(b, "\t.reg ."...)
		b = append(b, c.Type().String()...)
		b = append(b, ' ')
		b = append(b, c.String()...)
		b = append(b, '<')
		b = strconv.AppendInt(b, int64(k.Regs[c]), 10)
		b = append(b, ">;\n"...)
	}
	for i := range k.Shared {
		b = appendVar(append(b, '\t'), &k.Shared[i])
	}
	for i := range k.Body {
		if s := &k.Body[i]; s.Inst == nil {
			b = append(b, s.Label...)
			b = append(b, ":\n"...)
		} else {
			b = s.Inst.append(append(b, '\t'))
			b = append(b, '\n')
		}
	}
	return append(b, "}\n"...)
}

func appendVar(b []byte, v *Var) []byte {
	b = append(b, ".shared .align "...)
	b = strconv.AppendInt(b, int64(v.Align), 10)
	b = append(b, " .b8 "...)
	b = append(b, v.Name...)
	b = append(b, '[')
	if v.Bytes != 0 {
		b = strconv.AppendInt(b, int64(v.Bytes), 10)
	}
	return append(b, "];\n"...)
}

func (in *Inst) append(b []byte) []byte {
	if in.Guard.Class != NoClass {
		b = append(b, '@')
		if in.Negated {
			b = append(b, '!')
		}
		b = append(in.Guard.append(b), ' ')
	}
	b = in.appendOpcode(b)
	for i := range in.Args {
		if i > 0 {
			b = append(b, ',')
		}
		b = in.Args[i].append(append(b, ' '))
	}
	return append(b, ';')
}

// appendOpcode appends the dotted parts, "ld.global.v4.f32".
func (in *Inst) appendOpcode(b []byte) []byte {
	b = append(b, in.Op...)
	for _, mod := range in.Mods {
		b = append(append(b, '.'), mod...)
	}
	for _, t := range in.Types {
		b = append(append(b, '.'), t.String()...)
	}
	return b
}

func (r Reg) append(b []byte) []byte {
	b = append(b, r.Class.String()...)
	return strconv.AppendInt(b, int64(r.ID), 10)
}

func (o *Operand) append(b []byte) []byte {
	switch o.Kind {
	case RegOperand:
		return o.Reg.append(b)
	case IntOperand:
		return strconv.AppendInt(b, o.Int, 10)
	case F32Operand:
		return appendHex(append(b, "0f"...), uint64(o.Int), 8)
	case F64Operand:
		return appendHex(append(b, "0d"...), uint64(o.Int), 16)
	case AddrOperand:
		b = append(b, '[')
		if o.Reg.Class != NoClass {
			b = o.Reg.append(b)
		} else {
			b = append(b, o.Symbol...)
		}
		if o.Int != 0 {
			b = strconv.AppendInt(append(b, '+'), o.Int, 10)
		}
		return append(b, ']')
	case VecOperand:
		b = append(b, '{')
		for i, r := range o.Vec {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = r.append(b)
		}
		return append(b, '}')
	case SymOperand, SpecOperand:
		return append(b, o.Symbol...)
	}
	return append(b, '?')
}

// appendHex appends the low digits of v, in capitals.
func appendHex(b []byte, v uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, "0123456789ABCDEF"[v>>(4*i)&15])
	}
	return b
}

// String returns the register as text names it, "%r5".
func (r Reg) String() string { return string(r.append(nil)) }

// String returns the operand as text has it.
func (o Operand) String() string { return string(o.append(nil)) }

// String returns the instruction as text has it, with its semicolon.
func (in *Inst) String() string { return string(in.append(nil)) }

// Opcode returns the instruction's dotted parts, "ld.global.v4.f32".
func (in *Inst) Opcode() string { return string(in.appendOpcode(nil)) }
