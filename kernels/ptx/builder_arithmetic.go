package ptx

import "fmt"

// rounded is the rounding that arithmetic of a type must name.
func rounded(t Type) []string {
	switch t {
	case F32, F64, F16x2:
		return []string{"rn"}
	}
	return nil
}

// Add returns x + y.
func (b *Builder) Add(x, y any) Value {
	t := b.typeOf(x, y)
	return b.op("add", rounded(t), t, x, y)
}

// Sub returns x - y.
func (b *Builder) Sub(x, y any) Value {
	t := b.typeOf(x, y)
	return b.op("sub", rounded(t), t, x, y)
}

// AddSat returns x + y of S32, or the end of their range that the sum passes.
func (b *Builder) AddSat(x, y any) Value {
	return b.op("add", []string{"sat"}, b.typeOf(x, y), x, y)
}

// SubSat returns x - y of S32, or the end of their range that the difference passes.
func (b *Builder) SubSat(x, y any) Value {
	return b.op("sub", []string{"sat"}, b.typeOf(x, y), x, y)
}

// Mul returns x · y, of integers the low half.
func (b *Builder) Mul(x, y any) Value {
	t := b.typeOf(x, y)
	if m := rounded(t); m != nil {
		return b.op("mul", m, t, x, y)
	}
	return b.op("mul", []string{"lo"}, t, x, y)
}

// Mad returns x·y + z, of integers the low half.
func (b *Builder) Mad(x, y, z any) Value {
	return b.op("mad", []string{"lo"}, b.typeOf(x, y, z), x, y, z)
}

// FMA returns x·y + z with one rounding.
func (b *Builder) FMA(x, y, z any) Value {
	return b.op("fma", []string{"rn"}, b.typeOf(x, y, z), x, y, z)
}

// MulWide returns the 64 bits of x·y.
func (b *Builder) MulWide(x, y any) Value {
	t := b.typeOf(x, y)
	args := []Operand{b.operand(x, t), b.operand(y, t)}
	d := b.result(wide(t))
	b.emit("mul", []string{"wide"}, []Type{t}, append([]Operand{d.op}, args...)...)
	return d
}

// MadWide returns x·y + z with z and the result of 64 bits.
func (b *Builder) MadWide(x, y, z any) Value {
	t := b.typeOf(x, y)
	args := []Operand{b.operand(x, t), b.operand(y, t), b.operand(z, wide(t))}
	d := b.result(wide(t))
	b.emit("mad", []string{"wide"}, []Type{t}, append([]Operand{d.op}, args...)...)
	return d
}

func wide(t Type) Type {
	switch t {
	case U32, B32:
		return U64
	case S32:
		return S64
	}
	panic(fmt.Sprintf("ptx: wide product of type %d", t))
}

// Div returns x / y, of floats rounded to nearest. Assemblers divide by powers of two
// as by any number; so a shift does that where they are literals.
func (b *Builder) Div(x, y any) Value {
	t := b.typeOf(x, y)
	if n, ok := shift(t, x, y); ok {
		return b.Shr(x.(Value), n)
	}
	return b.op("div", rounded(t), t, x, y)
}

// Rem returns the rest of x / y, integers, by powers of two as Div does.
func (b *Builder) Rem(x, y any) Value {
	t := b.typeOf(x, y)
	if n, ok := shift(t, x, y); ok {
		return b.And(x, 1<<n-1)
	}
	return b.op("rem", nil, t, x, y)
}

// shift returns n if y is 2^n as a literal and x is unsigned.
func shift(t Type, x, y any) (n int, ok bool) {
	_, value := x.(Value)
	of, literal := y.(int)
	if !value || !literal || t != U32 && t != U64 || of < 1 || of&(of-1) != 0 {
		return 0, false
	}
	for of>>n > 1 {
		n++
	}
	return n, true
}

// Min returns the smaller of two, and the number where one is NaN.
func (b *Builder) Min(x, y any) Value { return b.op("min", nil, b.typeOf(x, y), x, y) }

// Max returns the larger of two, and the number where one is NaN.
func (b *Builder) Max(x, y any) Value { return b.op("max", nil, b.typeOf(x, y), x, y) }

// Neg returns -x.
func (b *Builder) Neg(x Value) Value { return b.op("neg", nil, x.Type, x) }

// Abs returns |x|.
func (b *Builder) Abs(x Value) Value { return b.op("abs", nil, x.Type, x) }

// bits is the type under which logic works on a type.
func bits(t Type) Type {
	switch t.Class() {
	case P:
		return Pred
	case R:
		return B32
	case D:
		return B64
	}
	panic(fmt.Sprintf("ptx: logic on type %d", t))
}

func (b *Builder) logic(name string, x, y any) Value {
	t := b.typeOf(x, y)
	return b.op(name, nil, bits(t), x, y).As(t)
}

// And returns x & y.
func (b *Builder) And(x, y any) Value { return b.logic("and", x, y) }

// Or returns x | y.
func (b *Builder) Or(x, y any) Value { return b.logic("or", x, y) }

// Xor returns x ^ y.
func (b *Builder) Xor(x, y any) Value { return b.logic("xor", x, y) }

// Not returns ^x, of predicates the opposite.
func (b *Builder) Not(x Value) Value { return b.op("not", nil, bits(x.Type), x).As(x.Type) }

// Shl returns x << n.
func (b *Builder) Shl(x Value, n any) Value {
	t := bits(x.Type)
	args := []Operand{b.operand(x, t), b.operand(n, U32)}
	d := b.result(t)
	b.emit("shl", nil, []Type{t}, d.op, args[0], args[1])
	return d.As(x.Type)
}

// Shr returns x >> n, with the sign where x has one.
func (b *Builder) Shr(x Value, n any) Value {
	args := []Operand{b.operand(x, x.Type), b.operand(n, U32)}
	d := b.result(x.Type)
	b.emit("shr", nil, []Type{x.Type}, d.op, args[0], args[1])
	return d
}

// Bfe returns the n bits of x from bit at on.
func (b *Builder) Bfe(x Value, at, n any) Value {
	args := []Operand{b.operand(x, x.Type), b.operand(at, U32), b.operand(n, U32)}
	d := b.result(x.Type)
	b.emit("bfe", nil, []Type{x.Type}, append([]Operand{d.op}, args...)...)
	return d
}

// Select returns x where p holds and y elsewhere.
func (b *Builder) Select(p Value, x, y any) Value {
	t := b.typeOf(x, y)
	args := []Operand{b.operand(x, t), b.operand(y, t), p.op}
	d := b.result(t)
	b.emit("selp", nil, []Type{movType(t)}, append([]Operand{d.op}, args...)...)
	return d
}

func (b *Builder) compare(cmp string, x, y any) Value {
	t := b.typeOf(x, y)
	args := []Operand{b.operand(x, t), b.operand(y, t)}
	d := b.result(Pred)
	b.emit("setp", []string{cmp}, []Type{t}, append([]Operand{d.op}, args...)...)
	return d
}

// Lt returns x < y.
func (b *Builder) Lt(x, y any) Value { return b.compare("lt", x, y) }

// Le returns x <= y.
func (b *Builder) Le(x, y any) Value { return b.compare("le", x, y) }

// Gt returns x > y.
func (b *Builder) Gt(x, y any) Value { return b.compare("gt", x, y) }

// Ge returns x >= y.
func (b *Builder) Ge(x, y any) Value { return b.compare("ge", x, y) }

// Eq returns x == y.
func (b *Builder) Eq(x, y any) Value { return b.compare("eq", x, y) }

// Ne returns x != y.
func (b *Builder) Ne(x, y any) Value { return b.compare("ne", x, y) }

// NotEq returns !(x == y) of floats, which holds where one is NaN.
func (b *Builder) NotEq(x, y any) Value { return b.compare("neu", x, y) }

// IsNaN reports whether x is NaN.
func (b *Builder) IsNaN(x Value) Value { return b.compare("nan", x, x) }

// NotGe returns !(x >= y), which holds where one is NaN.
func (b *Builder) NotGe(x, y any) Value { return b.compare("ltu", x, y) }

// Cvt converts x to type t, with the modifiers that the language asks for: "rn"
// from wide floats to narrow and from integers, "rni" and such to integers.
func (b *Builder) Cvt(t Type, x Value, mods ...string) Value {
	arg := b.operand(x, x.Type)
	d := b.result(t)
	b.emit("cvt", mods, []Type{t, x.Type}, d.op, arg)
	return d
}

// Split returns the halves of a register of 64 bits, B32.
func (b *Builder) Split(x Value) (low, high Value) {
	low, high = b.Var(B32), b.Var(B32)
	b.emit("mov", nil, []Type{B64}, vec([]Value{low, high}), x.op)
	return low, high
}

// Join returns the number of type t, of 64 bits, whose halves are given.
func (b *Builder) Join(t Type, low, high Value) Value {
	d := b.result(t)
	b.emit("mov", nil, []Type{B64}, d.op, vec([]Value{low, high}))
	return d
}

// TF32 rounds a float to the precision of TF32.
func (b *Builder) TF32(x Value) Value {
	d := b.result(B32)
	b.emit("cvt", []string{"rna"}, []Type{TF32, F32}, d.op, x.op)
	return d
}

// Rcp returns 1/x rounded to nearest.
func (b *Builder) Rcp(x Value) Value { return b.op("rcp", []string{"rn"}, x.Type, x) }

// Sqrt returns the square root of x rounded to nearest.
func (b *Builder) Sqrt(x Value) Value { return b.op("sqrt", []string{"rn"}, x.Type, x) }

// Ex2 returns about 2^x.
func (b *Builder) Ex2(x Value) Value { return b.op("ex2", []string{"approx", "ftz"}, F32, x) }

// Lg2 returns about log2(x).
func (b *Builder) Lg2(x Value) Value { return b.op("lg2", []string{"approx"}, F32, x) }

// Clz returns how many of the highest bits of x, of 32 bits, are 0.
func (b *Builder) Clz(x Value) Value { return b.op("clz", nil, B32, x.As(B32)).As(U32) }

// Popc returns the number of bits of x, of 32 bits, that are 1.
func (b *Builder) Popc(x Value) Value { return b.op("popc", nil, B32, x.As(B32)).As(U32) }
