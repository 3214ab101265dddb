package gosource

import (
	"bytes"
	"fmt"

	"github.com/pce-engine/pce/compile/reduction"
)

// inner is the innermost loop while its body is written. What does not change in the loop is read before it, an
// element that it adds to is written after it, and elements that follow each other are a slice, whose indices Go does
// not check. What the body reads is complete before the loop starts, so none of this changes a value.
type inner struct {
	variable      string          // of the loop
	low, count    string          // variables: its first value, and how many there are
	place         string          // variable: from 0 to below count
	late          map[string]bool // variables that the body computes
	sure          bool            // every pass evaluates all of what is written
	names         map[string]string
	before, after bytes.Buffer
}

// coordinate is an index of an element: affine, or an expression with the text that computes and checks it.
type coordinate struct {
	affine *reduction.Affine
	expr   reduction.Expr
	text   string
	extent string // of the array in this index
}

// coordinates is an affine index list.
func coordinates(index []reduction.Affine) (out []coordinate) {
	for k := range index {
		out = append(out, coordinate{affine: &index[k]})
	}
	return out
}

// How an index list changes in the innermost loop.
const (
	fixed     = iota
	following // the last index by 1, the others not at all
	anyhow
)

// innermost writes the innermost loop, whose body inside writes.
func (e *emitter) innermost(variable, low, high string, late map[string]bool, sure bool, inside func()) {
	in := &inner{variable: variable, low: e.fresh("low"), count: e.fresh("count"), place: e.fresh("at"), late: late, sure: sure, names: map[string]string{}}
	whole := e.b
	e.b, e.inner = bytes.Buffer{}, in
	inside()
	body := e.b
	e.b, e.inner = whole, nil
	last := e.fresh("last")
	e.line("if %s, %s := %s, %s; %s <= %s {", in.low, last, low, high, in.low, last)
	e.line("%s := %s - %s + 1", in.count, last, in.low)
	e.b.Write(in.before.Bytes())
	e.line("for %s := int64(0); %s < %s; %s++ {", in.place, in.place, in.count, in.place)
	e.line("%s := %s + %s\n_ = %s", variable, in.low, in.place, variable)
	e.b.Write(body.Bytes())
	e.line("}")
	e.b.Write(in.after.Bytes())
	e.line("}")
}

// inMemory returns the indices of an element that have memory, in the order in which they are there.
func (e *emitter) inMemory(name string, at []coordinate) (kept []coordinate) {
	for _, k := range e.layout(name)[:len(at)] {
		c := at[k]
		if e.stored(e.prog.Array(name), k) {
			c.extent = extent(name, k)
			kept = append(kept, c)
		}
	}
	return kept
}

// slot writes an element of an array, of which variable is the slice. With write it is one that is written.
func (e *emitter) slot(variable, name string, at []coordinate, write bool) string {
	at = e.inMemory(name, at)
	in := e.inner
	if in == nil {
		return fmt.Sprintf("%s[%s]", variable, e.offset(at))
	}
	switch how := in.change(at); {
	case how == following:
		e.renamed = map[string]string{in.variable: in.low}
		start := e.offset(at)
		e.renamed = nil
		return in.hoist("row", fmt.Sprintf("%s[%s:][:%s]", variable, start, in.count), false, e) + "[" + in.place + "]"
	case how == fixed:
		return in.hoist("x", fmt.Sprintf("%s[%s]", variable, e.offset(at)), write, e)
	}
	return fmt.Sprintf("%s[%s]", variable, e.offset(at))
}

// hoist reads a value, or takes a slice, before the loop, and writes it back after it if back.
func (in *inner) hoist(kind, text string, back bool, e *emitter) string {
	if name, ok := in.names[text]; ok {
		return name
	}
	name := e.fresh(kind)
	in.names[text] = name
	fmt.Fprintf(&in.before, "%s := %s\n", name, text)
	if back {
		fmt.Fprintf(&in.after, "%s = %s\n", text, name)
	}
	return name
}

// change says how an index list changes in the loop.
func (in *inner) change(at []coordinate) int {
	how := fixed
	for k, c := range at {
		if c.affine == nil {
			if !in.sure || in.mentions(c.expr) {
				return anyhow
			}
			continue
		}
		for _, t := range c.affine.Terms {
			switch name := dim(t.Name); {
			case in.late[name]:
				return anyhow
			case name != in.variable:
			case k == len(at)-1 && t.Coefficient == 1 && how == fixed:
				how = following
			default:
				return anyhow
			}
		}
	}
	return how
}

// mentions reports whether an expression has a variable that changes in the loop.
func (in *inner) mentions(x reduction.Expr) bool {
	found := false
	reduction.Walk(x, func(x reduction.Expr) {
		if n, ok := x.(*reduction.Name); ok && (in.late[dim(n.Name)] || dim(n.Name) == in.variable) {
			found = true
		}
	})
	return found
}
