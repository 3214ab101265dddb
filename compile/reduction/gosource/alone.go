package gosource

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pce-engine/pce/compile/reduction"
)

// alone puts what write writes for s into a function of its own if it has a loop. Go keeps the variables of a small function in
// registers; in Compute, which has all arrays, it keeps the counters of innermost loops in memory.
func (e *emitter) alone(s *reduction.Statement, write func() error) error {
	whole := e.b
	e.b = bytes.Buffer{}
	err := write()
	text := e.b.String()
	e.b = whole
	if !strings.Contains(text, "for ") {
		e.b.WriteString(text)
		return err
	}
	var names, parameters []string
	for k, code := range strings.Split(text, `"`) {
		if k%2 == 1 { // the name of an array for a message, which may be that of a variable
			continue
		}
		for _, n := range strings.FieldsFunc(code, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if kind := e.outer(n); kind != "" && !slices.Contains(names, n) {
				names, parameters = append(names, n), append(parameters, n+" "+kind)
			}
		}
	}
	function := e.fresh("add_" + s.Array + "_")
	fmt.Fprintf(&e.functions, "\n//go:noinline\nfunc %s(%s) {\n%s}\n", function, strings.Join(parameters, ", "), text)
	e.line("%s(%s)", function, strings.Join(names, ", "))
	return err
}

// outer returns the type of a variable of Compute that is declared outside of the loops of statements, and "" for other names.
func (e *emitter) outer(name string) string {
	if slices.Contains(e.times, name) {
		return "int64"
	}
	if kind, ok := e.buckets[name]; ok {
		return kind
	}
	kind, rest, _ := strings.Cut(name, "_")
	switch kind {
	case "p":
		if e.params[rest] {
			return "int64"
		}
	case "n":
		for _, a := range e.prog.Arrays {
			for k := range a.Extents {
				if name == extent(a.Name, k) {
					return "int64"
				}
			}
		}
	case "a":
		if a := e.prog.Array(rest); a != nil {
			return "[]" + goType(a.Type)
		}
	case "w":
		if e.prog.Array(rest) != nil {
			return "[]bool"
		}
	case "s":
		if e.prog.Array(rest) != nil {
			return "[]float64"
		}
	}
	return ""
}
