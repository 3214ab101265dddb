package ptx

// typeNames are the types as text names them, without the dot.
var typeNames = [...]string{
	NoType: "", Pred: "pred",
	B8: "b8", B16: "b16", B32: "b32", B64: "b64",
	U8: "u8", U16: "u16", U32: "u32", U64: "u64",
	S8: "s8", S16: "s16", S32: "s32", S64: "s64",
	F16: "f16", BF16: "bf16", F16x2: "f16x2", BF16x2: "bf16x2",
	TF32: "tf32", F32: "f32", F64: "f64",
}

// typesByName is the way back from typeNames.
var typesByName = func() map[string]Type {
	m := make(map[string]Type, len(typeNames))
	for t, name := range typeNames {
		if name != "" {
			m[name] = Type(t)
		}
	}
	return m
}()

// String returns the name of the type without its dot, "f32".
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return ""
}

// Bytes returns the size of a value in memory; 0 for predicates, which have no
// place there.
func (t Type) Bytes() int {
	switch t {
	case B8, U8, S8:
		return 1
	case B16, U16, S16, F16, BF16:
		return 2
	case B32, U32, S32, F16x2, BF16x2, TF32, F32:
		return 4
	case B64, U64, S64, F64:
		return 8
	}
	return 0
}

// Class returns the class of the registers that hold a value of the type. Those
// of 8 bits are in %h; loads, stores and cvt also know them in %r.
func (t Type) Class() Class {
	switch {
	case t == Pred:
		return P
	case t.Bytes() == 1 || t.Bytes() == 2:
		return H
	case t.Bytes() == 4:
		return R
	case t.Bytes() == 8:
		return D
	}
	return NoClass
}

// letters are the names of the classes in registers.
var letters = [...]string{NoClass: "?", P: "p", H: "h", R: "r", D: "d"}

// String returns the prefix of the class's registers, "%r".
func (c Class) String() string {
	if int(c) < len(letters) {
		return "%" + letters[c]
	}
	return "%?"
}

// Type returns the type that declares registers of the class, B32 for R.
func (c Class) Type() Type {
	switch c {
	case P:
		return Pred
	case H:
		return B16
	case R:
		return B32
	case D:
		return B64
	}
	return NoType
}
