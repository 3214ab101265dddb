// Package ptx holds PTX, the virtual assembly language of NVIDIA GPUs, as data:
// a module, a builder with types, a printer, a parser and a verifier. It knows
// the instructions that pce's kernels use and refuses others.
//
// # Shapes and units
//
// Printing a module, parsing the text and printing again gives the same text.
// Registers have no type but a size: .b16, .b32, .b64 or .pred; instructions
// say what is in them.
//
// # Errors
//
// Parse and Verify return errors that match ErrSyntax and ErrInvalid and name the
// line. The builder panics on operands of the wrong kind: that is a mistake of a
// kernel's author.
//
// # Source
//
// NVIDIA, "Parallel Thread Execution ISA", versions 7.0 to 8.0.
package ptx

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrSyntax means text that is not a module.
	ErrSyntax = errors.New("ptx: syntax")
	// ErrInvalid means a module that breaks a rule of the language.
	ErrInvalid = errors.New("ptx: invalid")
)

// Type is a type of the language, as instructions and declarations name it.
type Type uint8

// The types.
const (
	NoType Type = iota
	Pred
	B8
	B16
	B32
	B64
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	BF16
	F16x2
	BF16x2
	TF32
	F32
	F64
)

// Class is a register file: what a register can hold.
type Class uint8

// The classes, with the prefixes of their names.
const (
	NoClass Class = iota
	P             // %p: a predicate
	H             // %h: 16 bits
	R             // %r: 32 bits
	D             // %d: 64 bits
)

// Reg is a register of a kernel: %p0, %h0, %r0, %d0 and so on.
type Reg struct {
	Class Class
	ID    int32
}

// OperandKind says which fields of an operand count.
type OperandKind uint8

// The kinds of operands.
const (
	NoOperand   OperandKind = iota
	RegOperand              // Reg
	IntOperand              // Int, a decimal literal
	F32Operand              // Int holds the bits, printed as 0f%08X
	F64Operand              // Int holds the bits, printed as 0d%016X
	AddrOperand             // [Reg+Int], or [Symbol+Int] where Reg has no class
	VecOperand              // {Vec...}, registers
	SymOperand              // Symbol: the address of a shared variable, or a label
	SpecOperand             // Symbol: a special register, "%tid.x"
)

// Operand is an argument of an instruction.
type Operand struct {
	Kind   OperandKind
	Reg    Reg
	Int    int64
	Symbol string
	Vec    []Reg
}

// Inst is one instruction. Printed, it reads
//
//	[@[!]Guard] Op[.Mods...][.Types...] Args...;
//
// Mods are the parts of the opcode without their dots, in the order of the
// language, and Types those parts that are types; types stand last. Args start with
// the destination, if there is one.
type Inst struct {
	Line    int // of the text it was parsed from, from 1; 0 for one that was built
	Guard   Reg // no class: not guarded
	Negated bool
	Op      string   // "add", "ld", "cp.async", "mma", "bar", ... : the first part, with "cp.async" as one
	Mods    []string // "rn", "ftz", "global", "nc", "L1::no_allocate", "v4", "sync", "aligned", "m16n8k16", "row", "col", "lt", ...
	Types   []Type
	Args    []Operand
}

// Stmt is a label or an instruction.
type Stmt struct {
	Label string // "" for an instruction
	Inst  *Inst
}

// Param is a parameter of a kernel. Every parameter takes a slot of eight bytes in
// the arguments of a launch.
type Param struct {
	Name string
	Type Type // U32, S32, F32, B32 or a type of 64 bits
}

// Var is a variable in shared memory. Bytes 0 declares the dynamic part
// (.extern), whose size the launch says.
type Var struct {
	Name  string
	Align int
	Bytes int
}

// Kernel is an entry point.
type Kernel struct {
	Name    string
	Params  []Param
	Threads int          // .maxntid: the most threads of a block
	Blocks  int          // .minnctapersm: blocks that must fit on a multiprocessor; 0 says nothing
	Regs    [D + 1]int32 // registers declared, by class
	Shared  []Var        // of this kernel, declared in its body; the dynamic part stands in Module.Dynamic
	Body    []Stmt
}

// Module is a unit of text.
type Module struct {
	Major, Minor int    // .version
	Target       string // "sm_80", "sm_90", "sm_90a"
	Dynamic      *Var   // the dynamic shared memory, one for all kernels
	Kernels      []*Kernel
}
