package reduction

import "maps"

// Limits of a program. Beyond them Parse refuses it, so that every analysis ends.
const (
	MaxDims       = 13
	MaxParams     = 6
	MaxRows       = 64 // constraints of a domain
	MaxStatements = 4096
	maxNesting    = 500 // of an expression
	maxSource     = 16 << 20
)

// Program is a checked program; Parse makes it, and nothing changes it afterwards.
type Program struct {
	Params     []Param
	Context    []Chain          // what is known of the parameters
	Sizes      map[string]int64 // the parameters' values to run with, where given
	Arrays     []*Array         // inputs and computed ones, in the order of their declaration
	Outputs    []string
	Statements []*Statement

	byName map[string]*Array
}

// Array returns the array of a name, or nil.
func (p *Program) Array(name string) *Array { return p.byName[name] }

// DefaultSizes returns a copy of the sizes of the source.
func (p *Program) DefaultSizes() map[string]int64 { return maps.Clone(p.Sizes) }

// Sized returns the program with other sizes of its own, as if its source gave these.
func (p *Program) Sized(sizes map[string]int64) *Program {
	q := *p
	q.Sizes = maps.Clone(sizes)
	return &q
}

// Param is a parameter: an integer that is fixed when the program is run.
type Param struct {
	Pos
	Name string
}

// Type is the type of a value.
type Type int

// The types. Conditions are what comparisons give; no array holds them.
const (
	Int Type = iota
	Float
	Condition
)

// String returns the word for the type in the source.
func (t Type) String() string {
	return [...]string{"int", "float", "condition"}[t]
}

// Array is a declared array, or a scalar input.
type Array struct {
	Pos
	Name    string
	Type    Type
	Input   bool
	Scalar  bool     // declared, and read, without brackets
	Extents []Affine // in the parameters
	Range   *Range   // of an Int; nil: any
	Fold    *Fold    // kept in place along an index; nil: not
}

// Range has the bounds of an array's values: Low <= value < High.
type Range struct {
	Low, High Affine
}

// Operator says how the points of a statement make an element.
type Operator int

// The operators.
const (
	Assign Operator = iota
	Add
	Multiply
	Max
	Min
	LogSumExp
	Draw
	DrawLog
)

// operatorText is how the operators are written; those that draw have an argument.
var operatorText = [...]string{"=", "+=", "*=", "max=", "min=", "lse=", "draw", "drawlog"}

// String returns the operator as it is written, without the argument of a draw.
func (o Operator) String() string { return operatorText[o] }

// Draws reports whether o draws the place of a weight.
func (o Operator) Draws() bool { return o == Draw || o == DrawLog }

// Statement defines elements of an array.
type Statement struct {
	Pos
	Array   string
	Index   []Affine // in dimensions and parameters
	Op      Operator
	Uniform Expr // the argument of draw and drawlog, else nil
	Body    Expr
	Dims    []string
	Domain  []Chain
	Guards  []Expr

	drawn int // which dimension a draw is over
}

// Relation compares two affine expressions.
type Relation int

// The relations of a domain.
const (
	Less Relation = iota
	LessEqual
	Greater
	GreaterEqual
	Equal
	NotEqual
)

// String returns the relation as it is written.
func (r Relation) String() string {
	return [...]string{"<", "<=", ">", ">=", "=", "!="}[r]
}

// Chain is a constraint such as 0 <= i < N: Relations[k] holds between Terms[k]
// and Terms[k+1].
type Chain struct {
	Pos
	Terms     []Affine
	Relations []Relation
}
