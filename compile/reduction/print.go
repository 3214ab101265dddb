package reduction

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// String returns the program as source that Parse reads to an equal program, in
// one layout; comments are lost.
func (p *Program) String() string {
	var b strings.Builder
	if len(p.Params) > 0 {
		names := make([]string, len(p.Params))
		for i, q := range p.Params {
			names[i] = q.Name
		}
		fmt.Fprintf(&b, "param %s", strings.Join(names, ", "))
		if len(p.Context) > 0 {
			fmt.Fprintf(&b, " : %s", chainsText(p.Context))
		}
		b.WriteString(";\n")
	}
	var sizes []string
	for _, q := range p.Params {
		if n, ok := p.Sizes[q.Name]; ok {
			sizes = append(sizes, fmt.Sprintf("%s = %d", q.Name, n))
		}
	}
	if len(sizes) > 0 {
		fmt.Fprintf(&b, "size %s;\n", strings.Join(sizes, ", "))
	}
	for _, a := range p.Arrays {
		what := "array"
		if a.Input {
			what = "input"
		}
		fmt.Fprintf(&b, "%s %v %s;\n", what, a.Type, a)
	}
	if len(p.Outputs) > 0 {
		fmt.Fprintf(&b, "output %s;\n", strings.Join(p.Outputs, ", "))
	}
	for _, s := range p.Statements {
		fmt.Fprintf(&b, "%s;\n", s)
	}
	return b.String()
}

// String returns the array as it is declared, without its type.
func (a *Array) String() string {
	s := a.Name
	if !a.Scalar {
		var parts []string
		for k := range a.Extents {
			part := a.Extents[k].String()
			if a.Fold != nil && a.Fold.Index == k {
				part += " " + a.Fold.String()
			}
			parts = append(parts, part)
		}
		s += "[" + strings.Join(parts, ",") + "]"
	}
	if a.Range != nil {
		s += fmt.Sprintf(" in [%s,%s)", &a.Range.Low, &a.Range.High)
	}
	return s
}

// String returns the statement as source, without the semicolon.
func (s *Statement) String() string {
	op := s.Op.String()
	if s.Op.Draws() {
		op += "(" + Text(s.Uniform) + ")="
	}
	var domain string
	if len(s.Domain) > 0 {
		domain = " " + chainsText(s.Domain)
	}
	text := fmt.Sprintf("%s[%s] %s %s : { [%s] :%s }", s.Array, affinesText(s.Index), op, Text(s.Body), strings.Join(s.Dims, ","), domain)
	for i, g := range s.Guards {
		text += [...]string{" if ", " and "}[min(i, 1)] + Text(g)
	}
	return text
}

func chainsText(list []Chain) string {
	parts := make([]string, len(list))
	for i, c := range list {
		var b strings.Builder
		for k := range c.Terms {
			if k > 0 {
				fmt.Fprintf(&b, " %v ", c.Relations[k-1])
			}
			b.WriteString(c.Terms[k].String())
		}
		parts[i] = b.String()
	}
	return strings.Join(parts, ", ")
}

func affinesText(list []Affine) string {
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = list[i].String()
	}
	return strings.Join(parts, ",")
}

// String returns a as source.
func (a *Affine) String() string {
	var b strings.Builder
	for i, t := range a.Terms {
		c := t.Coefficient
		switch {
		case c < 0:
			b.WriteByte('-')
			c = -c
		case i > 0:
			b.WriteByte('+')
		}
		if c != 1 {
			fmt.Fprintf(&b, "%d*", c)
		}
		b.WriteString(t.Name)
	}
	switch {
	case a.constant():
		fmt.Fprint(&b, a.Constant)
	case a.Constant != 0:
		fmt.Fprintf(&b, "%+d", a.Constant)
	}
	return b.String()
}

// Text returns an expression as source, with the parentheses that it needs.
func Text(e Expr) string {
	var b strings.Builder
	write(&b, e, 0)
	return b.String()
}

// strength says how closely an operator binds; a comparison is 1.
func strength(op string) int {
	switch op {
	case "+", "-":
		return 2
	case "*", "/":
		return 3
	}
	return 1
}

// write appends e, in parentheses if it binds less closely than outer wants.
func write(b *strings.Builder, e Expr, outer int) {
	switch e := e.(type) {
	case *Number:
		b.WriteString(number(e))
	case *Name:
		b.WriteString(e.Name)
	case *Read:
		b.WriteString(e.Array + "[")
		writeList(b, e.Index, 2, ",")
		b.WriteByte(']')
	case *Call:
		b.WriteString(e.Function + "(")
		writeList(b, e.Args, 0, ", ")
		b.WriteByte(')')
	case *Negate:
		enclosed(b, outer > 4, func() {
			b.WriteByte('-')
			write(b, e.X, 4)
		})
	case *Binary:
		s := strength(e.Op)
		enclosed(b, s < outer, func() {
			write(b, e.X, s+(1-min(s-1, 1))) // comparisons do not chain
			if s == 3 {
				b.WriteString(e.Op)
			} else {
				b.WriteString(" " + e.Op + " ")
			}
			write(b, e.Y, s+1)
		})
	}
}

func writeList(b *strings.Builder, list []Expr, outer int, separator string) {
	for i, x := range list {
		if i > 0 {
			b.WriteString(separator)
		}
		write(b, x, outer)
	}
}

func enclosed(b *strings.Builder, parentheses bool, inner func()) {
	if parentheses {
		b.WriteByte('(')
	}
	inner()
	if parentheses {
		b.WriteByte(')')
	}
}

// number writes a literal so that Parse reads the same number and type.
func number(n *Number) string {
	if n.Integer {
		return strconv.FormatInt(n.I, 10)
	}
	s := strconv.FormatFloat(n.F, 'g', -1, 64)
	if n.F == math.Trunc(n.F) && !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
