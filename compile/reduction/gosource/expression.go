package gosource

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
)

// The names of a program become identifiers of Go with a prefix, so that no keyword or function is hit.

func param(name string) string { return "p_" + name }
func dim(name string) string   { return "d_" + name }
func array(name string) string { return "a_" + name }

func extent(name string, k int) string { return fmt.Sprintf("n_%s_%d", name, k) }

// affine writes a with int64 operations. Names are parameters or dimensions.
func (e *emitter) affine(a *reduction.Affine) string {
	var parts []string
	for _, t := range a.Terms {
		name := dim(t.Name)
		if e.params[t.Name] {
			name = param(t.Name)
		} else if other, ok := e.renamed[name]; ok {
			name = other
		}
		if t.Coefficient != 1 {
			name = fmt.Sprintf("%d*%s", t.Coefficient, name)
		}
		parts = append(parts, name)
	}
	if a.Constant != 0 || len(parts) == 0 {
		parts = append(parts, strconv.FormatInt(a.Constant, 10))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " + ") + ")"
}

// expression writes x of statement s. want is the type that its value is to have; an int may become a float.
func (e *emitter) expression(s *reduction.Statement, x reduction.Expr, want reduction.Type) string {
	got := e.prog.TypeOf(s, x)
	text := e.typed(s, x, got)
	if got == reduction.Int && want == reduction.Float {
		return "float64(" + text + ")"
	}
	return text
}

// typed writes x, whose type is got.
func (e *emitter) typed(s *reduction.Statement, x reduction.Expr, got reduction.Type) string {
	if n := constant(x); n != nil {
		return number(n)
	}
	switch x := x.(type) {
	case *reduction.Name:
		switch a := e.prog.Array(x.Name); {
		case a != nil:
			return e.slot(array(x.Name), x.Name, nil, false)
		case e.params[x.Name]:
			return param(x.Name)
		}
		return dim(x.Name)
	case *reduction.Read:
		return e.element(s, x)
	case *reduction.Negate:
		return "(-" + e.typed(s, x.X, got) + ")"
	case *reduction.Call:
		return e.call(s, x, got)
	}
	b := x.(*reduction.Binary)
	operand := got
	if got == reduction.Condition {
		operand = max(e.prog.TypeOf(s, b.X), e.prog.TypeOf(s, b.Y)) // Int < Float
	}
	l, r := e.expression(s, b.X, operand), e.expression(s, b.Y, operand)
	if got == reduction.Float { // the conversion keeps a product from being fused with a sum
		return fmt.Sprintf("float64(%s %s %s)", l, b.Op, r)
	}
	return fmt.Sprintf("(%s %s %s)", l, b.Op, r)
}

// number writes a number.
func number(n *reduction.Number) string {
	switch {
	case n.Integer:
		return fmt.Sprintf("int64(%d)", n.I)
	case math.IsInf(n.F, 0):
		return fmt.Sprintf("math.Inf(%+.0f)", math.Copysign(1, n.F))
	case math.IsNaN(n.F):
		return "math.NaN()"
	case n.F == 0 && math.Signbit(n.F):
		return "math.Copysign(0, -1)"
	}
	return fmt.Sprintf("float64(%s)", strconv.FormatFloat(n.F, 'g', -1, 64))
}

// constant returns the value of an expression of numbers alone, and nil for others. Go refuses constants that
// are infinite, as 1.0/0.0, or that do not fit, and has neither NaN nor -0 among them.
func constant(x reduction.Expr) *reduction.Number {
	switch x := x.(type) {
	case *reduction.Number:
		return x
	case *reduction.Negate:
		if n := constant(x.X); n != nil {
			return &reduction.Number{Integer: n.Integer, I: -n.I, F: -n.F}
		}
	case *reduction.Binary:
		a, b := constant(x.X), constant(x.Y)
		if a == nil || b == nil {
			return nil
		}
		if a.Integer && b.Integer && x.Op != "/" {
			switch x.Op {
			case "+":
				return &reduction.Number{Integer: true, I: a.I + b.I}
			case "-":
				return &reduction.Number{Integer: true, I: a.I - b.I}
			case "*":
				return &reduction.Number{Integer: true, I: a.I * b.I}
			}
			return nil
		}
		float := func(n *reduction.Number) float64 {
			if n.Integer {
				return float64(n.I)
			}
			return n.F
		}
		p, q := float(a), float(b)
		switch x.Op {
		case "+":
			return &reduction.Number{F: p + q}
		case "-":
			return &reduction.Number{F: p - q}
		case "*":
			return &reduction.Number{F: p * q}
		case "/":
			return &reduction.Number{F: p / q}
		}
	}
	return nil
}

func (e *emitter) call(s *reduction.Statement, x *reduction.Call, got reduction.Type) string {
	switch x.Function {
	case "select":
		test := e.expression(s, x.Args[0], reduction.Condition)
		if in := e.inner; in != nil { // what is not chosen may be outside of its array
			defer func(sure bool) { in.sure = sure }(in.sure)
			in.sure = false
		}
		a, b := e.expression(s, x.Args[1], got), e.expression(s, x.Args[2], got)
		return fmt.Sprintf("func() %s { if %s { return %s }; return %s }()", goType(got), test, a, b)
	case "floor":
		if e.prog.TypeOf(s, x.Args[0]) == reduction.Int {
			return e.expression(s, x.Args[0], reduction.Int)
		}
		return "floor(" + e.expression(s, x.Args[0], reduction.Float) + ")"
	}
	var args []string
	for _, a := range x.Args {
		args = append(args, e.expression(s, a, reduction.Float))
	}
	name := map[string]string{"log": "ln", "exp": "math.Exp", "sqrt": "math.Sqrt", "lgamma": "lgamma", "lognormal": "lognormal"}[x.Function]
	return name + "(" + strings.Join(args, ", ") + ")"
}

// element is an element of an array that s reads. An index that depends on data is checked.
func (e *emitter) element(s *reduction.Statement, r *reduction.Read) string {
	var at []coordinate
	for k, x := range r.Index {
		if a, err := reduction.AffineOf(x); err == nil && e.plain(&a) {
			at = append(at, coordinate{affine: &a})
			continue
		}
		at = append(at, coordinate{expr: x, text: fmt.Sprintf("at(%s, %s, %s)", e.expression(s, x, reduction.Int), extent(r.Array, k), strconv.Quote(r.Array))})
	}
	if text := e.there(s, r.Array, at); text != "" {
		return text
	}
	return e.slot(array(r.Array), r.Array, at, false)
}

// known reports whether an index is of parameters and dimensions alone.
func (e *emitter) known(x reduction.Expr) bool {
	a, err := reduction.AffineOf(x)
	return err == nil && e.plain(&a)
}

// offset is the place of an element in a row-major array.
func (e *emitter) offset(at []coordinate) string {
	text := ""
	for k, c := range at {
		index := c.text
		if c.affine != nil {
			index = e.affine(c.affine)
		}
		if k > 0 {
			index = fmt.Sprintf("%s*%s + %s", text, c.extent, index)
		}
		if text = index; k > 0 && k < len(at)-1 {
			text = "(" + text + ")"
		}
	}
	if text == "" {
		return "0"
	}
	return text
}

// plain reports whether a has no inputs.
func (e *emitter) plain(a *reduction.Affine) bool {
	for _, t := range a.Terms {
		if e.prog.Array(t.Name) != nil {
			return false
		}
	}
	return true
}

func goType(t reduction.Type) string {
	if t == reduction.Int {
		return "int64"
	}
	return "float64"
}
