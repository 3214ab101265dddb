package simt

import "fmt"

// Op is an operation.
type Op uint8

// The operations. The comment gives operands and result.
const (
	Const   Op = iota // () any
	Load              // () the input's type: the lane's element of a column
	Store             // (the output's type): the lane's element of a column
	Gather            // (i32) the table's type: the element at an index, clamped to the table
	LoadAt            // (i32) the input's type: the lane's element of the column at an index, clamped to the columns; f32, f64, i32, i64 by rows
	StoreAt           // (i32, the output's type): the lane's element of the column at an index, likewise
	Add               // (T, T) T: f32, f64, i32, i64
	Sub               // likewise
	Mul               // likewise
	Div               // (T, T) T: f32, f64
	FMA               // (T, T, T) T: a·b + c, rounded once; f32, f64
	Neg               // (T) T: f32, f64
	Abs               // (T) T: f32, f64
	Floor             // (T) T: f32, f64
	Min               // (T, T) T: f32, f64, i32, i64
	Max               // likewise
	And               // (T, T) T: i32, i64, pred
	Or                // likewise
	Xor               // likewise
	Not               // (T) T: likewise
	Shl               // (T) T: i32, i64, by a constant distance
	Shr               // likewise, with zeros from above
	Sar               // likewise, with copies of the sign
	Eq                // (T, T) pred: any but pred; false with a NaN
	Ne                // likewise; true with a NaN
	Lt                // likewise; false with a NaN
	Le                // likewise; false with a NaN
	Select            // (pred, T, T) T: the second where the first holds, else the third
	Convert           // (T) U: any but pred, to another type
	Bitcast           // (T) U: f32 and i32, f64 and i64
	If                // (pred)
	Loop              // ()
	numOps
)

// class is a set of types that an operation takes.
type class uint8

const (
	anyType   class = iota
	floats          // f32, f64
	numbers         // f32, f64, i32, i64
	integers        // i32, i64
	logical         // i32, i64, pred
	unlogical       // all but pred
)

func (c class) has(t Type) bool {
	switch c {
	case floats:
		return t.Float()
	case numbers:
		return t.Float() || t.Integer()
	case integers:
		return t.Integer()
	case logical:
		return t.Integer() || t == Pred
	case unlogical:
		return t != Pred
	}
	return t < numTypes
}

// form is what an operation takes.
type form struct {
	name  string
	args  int
	class class
	shift bool // has a constant distance
}

var forms = [numOps]form{
	Const: {"const", 0, anyType, false}, Load: {"load", 0, unlogical, false}, Store: {"store", 1, unlogical, false},
	Gather: {"gather", 1, integers, false}, LoadAt: {"loadat", 1, integers, false}, StoreAt: {"storeat", 2, unlogical, false},
	Add: {"add", 2, numbers, false}, Sub: {"sub", 2, numbers, false}, Mul: {"mul", 2, numbers, false},
	Div: {"div", 2, floats, false}, FMA: {"fma", 3, floats, false},
	Neg: {"neg", 1, floats, false}, Abs: {"abs", 1, floats, false}, Floor: {"floor", 1, floats, false},
	Min: {"min", 2, numbers, false}, Max: {"max", 2, numbers, false},
	And: {"and", 2, logical, false}, Or: {"or", 2, logical, false}, Xor: {"xor", 2, logical, false}, Not: {"not", 1, logical, false},
	Shl: {"shl", 1, integers, true}, Shr: {"shr", 1, integers, true}, Sar: {"sar", 1, integers, true},
	Eq: {"eq", 2, unlogical, false}, Ne: {"ne", 2, unlogical, false}, Lt: {"lt", 2, unlogical, false}, Le: {"le", 2, unlogical, false},
	Select: {"select", 3, anyType, false}, Convert: {"convert", 1, unlogical, false}, Bitcast: {"bitcast", 1, numbers, false},
	If: {"if", 1, anyType, false}, Loop: {"loop", 0, anyType, false},
}

// String returns the operation's name in texts.
func (o Op) String() string {
	if o >= numOps {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return forms[o].name
}

// Args returns how many operands the operation has.
func (o Op) Args() int { return forms[o].args }

// compares reports whether the operation compares two operands.
func (o Op) compares() bool { return o >= Eq && o <= Le }

// bitcasts reports whether values of one type can be read as those of another.
func bitcasts(from, to Type) bool {
	return from == F32 && to == I32 || from == I32 && to == F32 || from == F64 && to == I64 || from == I64 && to == F64
}

// check returns what is wrong with the types of an operation's operands and result, "" if
// nothing is. It is for operations without a Ref and without blocks.
func (o Op) check(args []Type, out Type) string {
	f := &forms[o]
	if len(args) != f.args {
		return fmt.Sprintf("has %d operands, want %d", len(args), f.args)
	}
	if o == Const {
		return ""
	}
	first, same := args[0], args
	if o == Select {
		if args[0] != Pred {
			return fmt.Sprintf("has a condition of type %v, want pred", args[0])
		}
		first, same = args[1], args[1:]
	}
	for _, t := range same {
		if t != first {
			return fmt.Sprintf("has operands of types %v and %v, want one type", first, t)
		}
	}
	if !f.class.has(first) {
		return fmt.Sprintf("does not take operands of type %v", first)
	}
	want := first
	switch {
	case o.compares():
		want = Pred
	case o == Convert:
		if out == first || out == Pred {
			return fmt.Sprintf("makes %v of %v, want another type but pred", out, first)
		}
		want = out
	case o == Bitcast:
		if !bitcasts(first, out) {
			return fmt.Sprintf("reads %v as %v, want f32 and i32 or f64 and i64", first, out)
		}
		want = out
	}
	if out != want {
		return fmt.Sprintf("has a result of type %v, want %v", out, want)
	}
	return ""
}
