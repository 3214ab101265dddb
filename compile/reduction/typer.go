package reduction

// typer finds the types of expressions and reports what has none.
type typer struct {
	prog  *Program
	known map[string]bool // parameters and dimensions
}

// of returns the type of e.
func (t *typer) of(e Expr) (Type, error) {
	switch e := e.(type) {
	case *Number:
		if e.Integer {
			return Int, nil
		}
		return Float, nil
	case *Name:
		return t.name(e)
	case *Read:
		return t.read(e)
	case *Call:
		return t.call(e)
	case *Negate:
		return t.number(e.X)
	}
	b := e.(*Binary)
	x, err := t.number(b.X)
	if err != nil {
		return 0, err
	}
	y, err := t.number(b.Y)
	switch {
	case err != nil:
		return 0, err
	case comparison(b.Op):
		return Condition, nil
	case b.Op == "/" || x == Float || y == Float:
		return Float, nil
	}
	return Int, nil
}

// number is of for an expression that must not be a condition.
func (t *typer) number(e Expr) (Type, error) {
	got, err := t.of(e)
	if err == nil && got == Condition {
		err = errorf(e.Position(), "%s is a condition, want a number", Text(e))
	}
	return got, err
}

func (t *typer) name(e *Name) (Type, error) {
	if t.known[e.Name] {
		return Int, nil
	}
	a := t.prog.byName[e.Name]
	switch {
	case a == nil:
		return 0, errorf(e.Pos, "%s is not declared", e.Name)
	case !a.Scalar:
		return 0, errorf(e.Pos, "%s is an array; want %s[...]", e.Name, e.Name)
	}
	return a.Type, nil
}

func (t *typer) read(e *Read) (Type, error) {
	a := t.prog.byName[e.Array]
	switch {
	case a == nil:
		return 0, errorf(e.Pos, "%s is not declared", e.Array)
	case a.Scalar:
		return 0, errorf(e.Pos, "%s is a scalar and has no index", e.Array)
	case len(e.Index) != len(a.Extents):
		return 0, errorf(e.Pos, "%s has %d indices here; want %d", e.Array, len(e.Index), len(a.Extents))
	}
	for _, x := range e.Index {
		got, err := t.number(x)
		if err != nil {
			return 0, err
		}
		if got != Int {
			return 0, errorf(x.Position(), "index %s is not an integer; want floor(...)", Text(x))
		}
	}
	return a.Type, nil
}

func (t *typer) call(e *Call) (Type, error) {
	f, ok := functions[e.Function]
	if !ok {
		return 0, errorf(e.Pos, "%s is not a function", e.Function)
	}
	if len(e.Args) != f.args {
		return 0, errorf(e.Pos, "%s has %d arguments here; want %d", e.Function, len(e.Args), f.args)
	}
	if e.Function == "select" {
		return t.choice(e)
	}
	for _, x := range e.Args {
		if _, err := t.number(x); err != nil {
			return 0, err
		}
	}
	return f.result, nil
}

// choice is the type of select(condition, a, b).
func (t *typer) choice(e *Call) (Type, error) {
	c, err := t.of(e.Args[0])
	if err != nil {
		return 0, err
	}
	if c != Condition {
		return 0, errorf(e.Args[0].Position(), "%s is not a condition; want a comparison such as x < y", Text(e.Args[0]))
	}
	a, err := t.number(e.Args[1])
	if err != nil {
		return 0, err
	}
	b, err := t.number(e.Args[2])
	return max(a, b), err
}
