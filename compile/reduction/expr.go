package reduction

// Expr is an expression: *Number, *Name, *Read, *Call, *Negate or *Binary.
type Expr interface {
	Position() Pos
}

// Number is a literal.
type Number struct {
	Pos
	Integer bool
	I       int64   // of an integer
	F       float64 // of any other
}

// Name is a dimension, a parameter or a scalar input.
type Name struct {
	Pos
	Name string
}

// Read is an element of an array. An index may be any integer expression.
type Read struct {
	Pos
	Array string
	Index []Expr
}

// Call applies one of the functions of functions.go.
type Call struct {
	Pos
	Function string
	Args     []Expr
}

// Negate is -X.
type Negate struct {
	Pos
	X Expr
}

// Binary is X Op Y, with + - * / or a comparison.
type Binary struct {
	Pos
	Op   string
	X, Y Expr
}

// Position returns where the expression is.
func (p Pos) Position() Pos { return p }

// comparison reports whether op compares.
func comparison(op string) bool {
	switch op {
	case "<", "<=", ">", ">=", "==", "!=":
		return true
	}
	return false
}

// walk calls visit with e and everything in it, outer expressions first.
func walk(e Expr, visit func(Expr)) {
	visit(e)
	switch e := e.(type) {
	case *Read:
		for _, x := range e.Index {
			walk(x, visit)
		}
	case *Call:
		for _, x := range e.Args {
			walk(x, visit)
		}
	case *Negate:
		walk(e.X, visit)
	case *Binary:
		walk(e.X, visit)
		walk(e.Y, visit)
	}
}
