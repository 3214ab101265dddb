package simt

import (
	"errors"
	"fmt"
)

// ErrModule means that a module breaks a rule of the language.
var ErrModule = errors.New("simt: bad module")

// Kind is the kind of a Module among the modules that devices load.
const Kind = "simt"

// Type is the type of a value.
type Type uint8

// The types.
const (
	F32 Type = iota
	F64
	I32
	I64
	U8
	U16
	Pred // true or false
	numTypes
)

var typeNames = [numTypes]string{"f32", "f64", "i32", "i64", "u8", "u16", "pred"}

// String returns the type's name in texts.
func (t Type) String() string {
	if t >= numTypes {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return typeNames[t]
}

// Float reports whether the type is f32 or f64.
func (t Type) Float() bool { return t == F32 || t == F64 }

// Integer reports whether the type is i32 or i64, the integers of arithmetic.
func (t Type) Integer() bool { return t == I32 || t == I64 }

// Bits returns the size of a value, 1 for Pred.
func (t Type) Bits() int { return [numTypes]int{32, 64, 32, 64, 8, 16, 1}[t] }

// Layout is the order of the elements of an input or output.
type Layout uint8

// The layouts.
const (
	Rows    Layout = iota // [row][column]
	Columns               // [column][row]
)

// String returns "rows" or "columns".
func (l Layout) String() string {
	if l == Rows {
		return "rows"
	}
	return "columns"
}

// Param is an input or an output: Width elements of one type for each row.
type Param struct {
	Name   string
	Type   Type // not Pred
	Layout Layout
	Width  int
}

// Table is a constant list of elements, each as the bits of its type.
type Table struct {
	Name string
	Type Type // not Pred
	Bits []uint64
}

// Value is the number of a value in Module.Types.
type Value int32

// None is the absence of a value.
const None Value = -1

// Block is a list of instructions that run one after the other.
type Block []Instr

// Instr is an instruction.
type Instr struct {
	Op   Op
	Out  Value    // the result; None of Store, StoreAt, If and Loop
	Args [3]Value // None where the operation has fewer
	// Imm is the bits of a Const, the column of a Load or Store, the distance of a shift.
	Imm uint64
	// Ref is the number of the input of a Load or LoadAt, the output of a Store or StoreAt, the table of a Gather.
	Ref  int
	If   *Branch
	Loop *Repeat
}

// Branch is what an If has beside its condition, which is its argument: lanes where it
// holds take the values that Then yields, the others those of Else.
type Branch struct {
	Then, Else           Block
	ThenYield, ElseYield []Value
	Results              []Value
}

// Repeat is what a Loop has. The carried values of a lane start as Init; each turn of Body
// computes Next of them and whether the lane continues. After Most turns it ends in any
// case. Results are the carried values of the end.
type Repeat struct {
	Most          int
	Init, Carried []Value
	Body          Block
	Next          []Value
	Continue      Value
	Results       []Value
}

// Module is a program for the rows of its inputs. It is read-only once it is verified.
type Module struct {
	Name    string
	Inputs  []Param
	Outputs []Param
	Tables  []Table
	Types   []Type // of every value
	Body    Block
}

// ModuleKind returns Kind: devices that have a loader for it load the module as a program
// that runs rows.
func (*Module) ModuleKind() string { return Kind }

// Limits of modules.
const (
	MaxValues = 1 << 26
	MaxDepth  = 32      // of blocks within blocks
	MaxTurns  = 1 << 16 // of a loop
	MaxWidth  = 1 << 20
	maxTable  = 1 << 28 // elements of all tables
)
