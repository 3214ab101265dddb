package ptx

import (
	"fmt"
)

// Bounds of the language and of the cards.
const (
	maxThreads      = 1024     // of a block
	maxParams       = 512      // slots of 8 bytes
	maxStaticShared = 48 << 10 // bytes that a kernel may declare
	maxOffset       = 1 << 31
)

// targets are the targets that there are, with the version that each needs.
var targets = map[string]struct{ sm, since int }{
	"sm_80":  {80, 70},
	"sm_90":  {90, 78},
	"sm_90a": {90, 80},
}

// Verify reports the first breach of the language's rules: instructions that are
// not in the table of forms or that the version or the target lacks, operands that
// do not fit, names that mean nothing, addresses of variables out of bounds
// or not aligned, barriers and instructions of whole warps under a guard, bodies
// that end without end, and registers that are read on some way before they are
// written. A guarded write counts where the same guard, or the same branch, holds
// at the read. Errors match ErrInvalid and name kernel, line and instruction.
func (m *Module) Verify() error {
	target, ok := targets[m.Target]
	if !ok {
		return fmt.Errorf("%w: target %q; want sm_80, sm_90 or sm_90a", ErrInvalid, m.Target)
	}
	version := 10*m.Major + m.Minor
	if m.Major < 0 || m.Minor < 0 || m.Minor > 9 || version < target.since {
		return fmt.Errorf("%w: version %d.%d; %s wants %d.%d", ErrInvalid, m.Major, m.Minor, m.Target, target.since/10, target.since%10)
	}
	if d := m.Dynamic; d != nil {
		if err := d.verify(); err != nil {
			return fmt.Errorf("%w: dynamic %w", ErrInvalid, err)
		}
		if d.Bytes != 0 {
			return fmt.Errorf("%w: dynamic shared variable %s has %d bytes; want 0, the launch says how many", ErrInvalid, d.Name, d.Bytes)
		}
	}
	names := map[string]bool{}
	for _, k := range m.Kernels {
		if !isName(k.Name) || names[k.Name] || m.Dynamic != nil && k.Name == m.Dynamic.Name {
			return fmt.Errorf("%w: kernel %q; want a name of letters, digits, _ and $ that nothing else has", ErrInvalid, k.Name)
		}
		names[k.Name] = true
	}
	for _, k := range m.Kernels {
		v := verifier{module: m, kernel: k, kernels: names, version: version, sm: target.sm, opcodes: opcodes(),
			params: map[string]Type{}, vars: map[string]*Var{}, labels: map[string]bool{}}
		if err := v.verify(); err != nil {
			return fmt.Errorf("%w: kernel %s: %w", ErrInvalid, k.Name, err)
		}
	}
	return nil
}

func (v *Var) verify() error {
	switch {
	case !isName(v.Name):
		return fmt.Errorf("shared variable %q; want a name of letters, digits, _ and $", v.Name)
	case v.Align < 1 || v.Align > maxAlign || v.Align&(v.Align-1) != 0:
		return fmt.Errorf("shared variable %s is aligned to %d bytes; want a power of two, at most %d", v.Name, v.Align, maxAlign)
	}
	return nil
}

// verifier checks one kernel.
type verifier struct {
	module  *Module
	kernel  *Kernel
	kernels map[string]bool // the names of all
	version int             // 74 for 7.4
	sm      int
	opcodes map[string]*opcode
	params  map[string]Type
	vars    map[string]*Var // in shared memory
	labels  map[string]bool
	text    []byte  // the opcode at hand
	outs    []uint8 // of each statement: the operands that it writes
}

func (v *verifier) verify() error {
	if err := v.declarations(); err != nil {
		return err
	}
	k := v.kernel
	for i := range k.Body {
		if s := &k.Body[i]; s.Inst == nil {
			if err := v.claim("label", s.Label); err != nil {
				return err
			}
			v.labels[s.Label] = true
		} else if s.Label != "" {
			return fmt.Errorf("statement %d is both label %s and %s; want one of them", i+1, s.Label, s.Inst)
		}
	}
	v.outs = make([]uint8, len(k.Body))
	for i := range k.Body {
		in := k.Body[i].Inst
		if in == nil {
			continue
		}
		outs, err := v.inst(in)
		if err != nil {
			return fmt.Errorf("%s: %w", place(k, i), err)
		}
		v.outs[i] = uint8(outs)
	}
	if n := len(k.Body); n == 0 || k.Body[n-1].Inst == nil || !k.Body[n-1].Inst.ends() || k.Body[n-1].Inst.Guard.Class != NoClass {
		return fmt.Errorf("its body has no end; want ret, exit, bra or trap as the last statement, without a guard")
	}
	if err := v.sharedAccesses(); err != nil {
		return err
	}
	return v.flow()
}

// place names a statement for an error.
func place(k *Kernel, i int) string {
	in := k.Body[i].Inst
	if in.Line > 0 {
		return fmt.Sprintf("line %d: %s", in.Line, in)
	}
	return fmt.Sprintf("statement %d: %s", i+1, in)
}

// claim takes a name for one thing in a kernel. The language lets it hide a kernel's name,
// but the assembler of CUDA 13, that of drivers too, crashes on it.
func (v *verifier) claim(what, name string) error {
	_, isParam := v.params[name]
	if !isName(name) || isParam || v.vars[name] != nil || v.labels[name] || v.kernels[name] {
		return fmt.Errorf("%s %q; want a name of letters, digits, _ and $ that no kernel and nothing else in the kernel has", what, name)
	}
	return nil
}

// declarations checks all that comes before the body.
func (v *verifier) declarations() error {
	k := v.kernel
	switch {
	case k.Threads < 0 || k.Threads > maxThreads:
		return fmt.Errorf("%d threads; want at most %d", k.Threads, maxThreads)
	case k.Blocks < 0 || k.Blocks > 0 && k.Threads == 0:
		return fmt.Errorf("%d blocks on a multiprocessor with %d threads; want both", k.Blocks, k.Threads)
	case len(k.Params) > maxParams:
		return fmt.Errorf("%d parameters; want at most %d", len(k.Params), maxParams)
	}
	for c, n := range k.Regs {
		if n < 0 || n > maxRegisters || n > 0 && Class(c) == NoClass {
			return fmt.Errorf("%d registers %v; want 0 to %d of a class", n, Class(c), maxRegisters)
		}
	}
	if d := v.module.Dynamic; d != nil {
		v.vars[d.Name] = d
	}
	for _, p := range k.Params {
		if err := v.claim("parameter", p.Name); err != nil {
			return err
		}
		switch p.Type {
		case B32, U32, S32, F32, B64, U64, S64, F64:
		default:
			return fmt.Errorf("parameter %s has type .%v; want .b32, .u32, .s32, .f32 or one of 64 bits", p.Name, p.Type)
		}
		v.params[p.Name] = p.Type
	}
	used := 0
	for i := range k.Shared {
		s := &k.Shared[i]
		if err := v.claim("shared variable", s.Name); err != nil {
			return err
		}
		if err := s.verify(); err != nil {
			return err
		}
		if s.Bytes < 1 || s.Bytes > maxStaticShared {
			return fmt.Errorf("shared variable %s has %d bytes; want 1 to %d, or Module.Dynamic for more", s.Name, s.Bytes, maxStaticShared)
		}
		used = (used+s.Align-1)&-s.Align + s.Bytes
		if used > maxStaticShared {
			return fmt.Errorf("shared variables up to %s take %d bytes; want at most %d, or Module.Dynamic for more", s.Name, used, maxStaticShared)
		}
		v.vars[s.Name] = s
	}
	return nil
}

// inst checks an instruction and returns how many operands it writes.
func (v *verifier) inst(in *Inst) (int, error) {
	switch {
	case in.Guard.Class == NoClass && in.Negated:
		return 0, fmt.Errorf("it is negated without a guard; want a guard")
	case in.Guard.Class != NoClass && in.Guard.Class != P:
		return 0, fmt.Errorf("its guard is %v; want a register %%p", in.Guard)
	case in.Guard.Class == P:
		if err := v.declared(in.Guard); err != nil {
			return 0, err
		}
	}
	s, err := v.match(in)
	if err != nil {
		return 0, err
	}
	switch {
	case s.warp && in.Guard.Class != NoClass:
		return 0, fmt.Errorf("it is for all threads at once; want it without a guard")
	case v.version < s.since:
		return 0, fmt.Errorf("it needs version %d.%d; the module has %d.%d", s.since/10, s.since%10, v.version/10, v.version%10)
	case v.sm < s.sm:
		return 0, fmt.Errorf("it needs target sm_%d; the module has %s", s.sm, v.module.Target)
	}
	if in.Op == "cp.async" && len(in.Args) == 4 && in.Args[3].Kind == IntOperand && in.Args[3].Int > in.Args[2].Int {
		return 0, fmt.Errorf("it reads %d bytes of %d; want at most as many", in.Args[3].Int, in.Args[2].Int)
	}
	for i := range in.Args[:s.outs] {
		vec := in.Args[i].Vec
		for j := range vec {
			for _, r := range vec[:j] {
				if r == vec[j] {
					return 0, fmt.Errorf("it writes %v twice; want different registers", r)
				}
			}
		}
	}
	return s.outs, nil
}

// declared checks the number of a register.
func (v *verifier) declared(r Reg) error {
	if r.Class > D || r.ID < 0 || r.ID >= v.kernel.Regs[r.Class] {
		return fmt.Errorf("register %v is not declared; the kernel has %d", r, v.count(r.Class))
	}
	return nil
}

func (v *verifier) count(c Class) int32 {
	if c > D {
		return 0
	}
	return v.kernel.Regs[c]
}

// address checks [register+offset].
func (v *verifier) address(o *Operand) error {
	if o.Int < -maxOffset || o.Int >= maxOffset {
		return fmt.Errorf("offset %d; want one of 32 bits", o.Int)
	}
	return v.declared(o.Reg)
}

// param checks the access to a parameter.
func (v *verifier) param(in *Inst, o *Operand) error {
	t, ok := v.params[o.Symbol]
	switch have := in.Types[0]; {
	case !ok:
		return fmt.Errorf("the kernel has no parameter %s", o.Symbol)
	case o.Int != 0:
		return fmt.Errorf("offset %d in parameter %s; want 0", o.Int, o.Symbol)
	case !alike(t, have):
		return fmt.Errorf("parameter %s has type .%v; want a load of that type", o.Symbol, t)
	}
	return nil
}

// alike reports whether values of one type may be taken for the other: those of
// one size, but no floats for integers. Bits are both.
func alike(a, b Type) bool {
	bits := func(t Type) bool { return t >= B8 && t <= B64 }
	float := func(t Type) bool { return t >= F16 }
	return a.Bytes() == b.Bytes() && (bits(a) || bits(b) || float(a) == float(b))
}

func (v *verifier) label(name string) error {
	if !v.labels[name] {
		return fmt.Errorf("the kernel has no label %s", name)
	}
	return nil
}

func (v *verifier) shared(name string) error {
	if v.vars[name] == nil {
		return fmt.Errorf("there is no shared variable %s", name)
	}
	return nil
}
