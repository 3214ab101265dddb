package spflow

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// jsonReader reads the nested objects of SPFlow's JSON. What an object has beside what its kind
// needs is skipped.
type jsonReader struct {
	*parser
	d     *json.Decoder
	byID  map[string]*node
	scope []string // of the root
}

// isJSON reports whether a text is an object whose first key is a kind of node.
func isJSON(head string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimPrefix(head, "\ufeff"), " \t\r\n"), "{")
	if !ok {
		return false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), `"`)
	key, _, closed := strings.Cut(rest, `"`)
	return ok && closed && (key == "Sum" || key == "Product" || jsonLeaves[key] != nil)
}

func parseJSON(text string) (*format.Model, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	r := &jsonReader{
		parser: &parser{lexer: &lexer{text: text}, byName: map[string]*node{}, variables: map[string]int{}, nested: true},
		d:      json.NewDecoder(strings.NewReader(text)), byID: map[string]*node{},
	}
	r.d.UseNumber()
	root, err := r.node(0)
	if err != nil {
		return nil, err
	}
	switch t, err := r.d.Token(); { // More is false for a bracket that closes too, as within an array
	case err == io.EOF:
	case err != nil:
		return nil, r.failHere("%v behind the network", err)
	default:
		return nil, r.failHere("%.40q behind the network; give one network", fmt.Sprint(t))
	}
	r.declare()
	return r.model(root)
}

// declare takes the order of the variables from the scope of the root, if that has names and not
// numbers.
func (r *jsonReader) declare() {
	numbered := func(name string) bool { _, ok := ordinal(name); return ok }
	if len(r.scope) == 0 || !slices.ContainsFunc(r.scope, func(name string) bool { return !numbered(name) }) {
		return
	}
	for _, name := range r.scope {
		if _, twice := r.variables[name]; !twice {
			r.variables[name] = len(r.names)
			r.names = append(r.names, name)
		}
	}
	r.declared = true
}

// failHere is an error at what was read last.
func (r *jsonReader) failHere(text string, args ...any) error {
	return r.fail(min(int(r.d.InputOffset()), len(r.text)), text, args...)
}

// token reads a token, which must be that one if want is not nil.
func (r *jsonReader) token(want json.Token, what string) (json.Token, error) {
	t, err := r.d.Token()
	if err != nil {
		return nil, r.failHere("%v where %s should be", err, what)
	}
	if want != nil && t != want {
		return nil, r.failHere("%.40q where %s should be", fmt.Sprint(t), what)
	}
	return t, nil
}

// object calls field with each key of an object, which reads the value.
func (r *jsonReader) object(field func(key string) error) error {
	if _, err := r.token(json.Delim('{'), "an object"); err != nil {
		return err
	}
	for r.d.More() {
		key, err := r.token(nil, "a key")
		if err != nil {
			return err
		}
		if err := field(key.(string)); err != nil { // keys of objects are strings, which Token checks
			return err
		}
	}
	_, err := r.token(json.Delim('}'), "the end of an object")
	return err
}

// array calls item for each element of an array, which reads it.
func (r *jsonReader) array(item func() error) error {
	if _, err := r.token(json.Delim('['), "an array"); err != nil {
		return err
	}
	for r.d.More() {
		if err := item(); err != nil {
			return err
		}
	}
	_, err := r.token(json.Delim(']'), "the end of an array")
	return err
}

// word reads a text, or a number as its text.
func (r *jsonReader) word(what string) (string, error) {
	t, err := r.token(nil, what)
	if err != nil {
		return "", err
	}
	switch t := t.(type) {
	case string:
		return t, nil
	case json.Number:
		return t.String(), nil
	}
	return "", r.failHere("%.40q where %s should be", fmt.Sprint(t), what)
}

// body is what an object says of a node.
type body struct {
	id       string
	children []*node
	scope    []string
	lists    map[string][]float64 // numbers and arrays of numbers, by key
}

// node reads an object with a key, the kind of the node.
func (r *jsonReader) node(depth int) (n *node, err error) {
	if depth > MaxDepth {
		return nil, r.failHere("nested more than %d deep", MaxDepth)
	}
	at := min(int(r.d.InputOffset()), len(r.text))
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:[", r.text[at]) >= 0 {
		at++
	}
	err = r.object(func(kind string) error {
		if n != nil {
			return r.failHere("a second kind %.40q of one node", kind)
		}
		b := body{lists: map[string][]float64{}}
		if err := r.object(func(key string) error { return r.field(&b, key, depth) }); err != nil {
			return err
		}
		if depth == 0 {
			r.scope = b.scope
		}
		n, err = r.kind(&node{at: at, children: b.children, variable: strings.Join(b.scope, ";")}, kind, &b)
		return err
	})
	if err == nil && n == nil {
		err = r.failHere("an object without a kind of node")
	}
	return n, err
}

// field reads the value of a key of a node.
func (r *jsonReader) field(b *body, key string, depth int) error {
	switch key {
	case "children":
		return r.array(func() error {
			child, err := r.node(depth + 1)
			b.children = append(b.children, child)
			return err
		})
	case "scope":
		return r.array(func() error {
			name, err := r.word("a variable")
			if _, isNumber := ordinal("V" + name); isNumber {
				name = "V" + name
			}
			b.scope = append(b.scope, name)
			return err
		})
	case "id":
		var err error
		b.id, err = r.word("the number of a node")
		return err
	}
	return r.numbers(b, key)
}

// numbers reads a number, an array of numbers, or the text of one as numpy prints it. Other values
// are skipped.
func (r *jsonReader) numbers(b *body, key string) error {
	var value any
	if err := r.d.Decode(&value); err != nil {
		return r.failHere("%w", err)
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var out []float64
	for _, x := range list {
		words := []string{fmt.Sprint(x)}
		if text, isText := x.(string); isText {
			inner, open := strings.CutPrefix(text, "[")
			inner, end := strings.CutSuffix(inner, "]")
			if !open || !end {
				return nil
			}
			words = strings.FieldsFunc(inner, func(c rune) bool { return strings.ContainsRune(" ,\n\r\t", c) })
		}
		for _, word := range words {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil
			}
			out = append(out, v)
		}
	}
	b.lists[key] = out
	return nil
}

// jsonLeaves make a leaf of what its object says.
var jsonLeaves = map[string]func(b *body) (circuit.Leaf, []float64, error){
	"Histogram": func(b *body) (circuit.Leaf, []float64, error) {
		breaks, densities := b.lists["breaks"], b.lists["densities"]
		if len(breaks) != len(densities)+1 {
			return nil, nil, fmt.Errorf("%d breaks and %d densities; want one break more", len(breaks), len(densities))
		}
		return circuit.RealHistogram{Breaks: breaks, Floor: Floor}, densities, nil
	},
	"Categorical": func(b *body) (circuit.Leaf, []float64, error) {
		return circuit.Categorical{Categories: len(b.lists["p"])}, b.lists["p"], nil
	},
	"Bernoulli": func(b *body) (circuit.Leaf, []float64, error) {
		p, err := b.settings("p")
		if err != nil {
			return nil, nil, err
		}
		return circuit.Bernoulli{}, []float64{1 - p[0], p[0]}, nil
	},
	"Gaussian":  settings(circuit.Gaussian{}, "mean", "stdev"),
	"LogNormal": settings(circuit.LogNormal{}, "mean", "stdev"),
	"Poisson":   settings(circuit.Poisson{}, "mean"),
}

func settings(l circuit.Leaf, keys ...string) func(b *body) (circuit.Leaf, []float64, error) {
	return func(b *body) (circuit.Leaf, []float64, error) {
		p, err := b.settings(keys...)
		return l, p, err
	}
}

// settings returns single numbers by their keys.
func (b *body) settings(keys ...string) (list []float64, err error) {
	for _, key := range keys {
		x := b.lists[key]
		if len(x) != 1 {
			return nil, fmt.Errorf("%d numbers for %q; want one", len(x), key)
		}
		list = append(list, x[0])
	}
	return list, nil
}

// kind completes a node, and returns it or, where another object has already had its number, the
// node of that: parents that share a child each have its object.
func (r *jsonReader) kind(n *node, kind string, b *body) (*node, error) {
	switch kind {
	case "Sum":
		n.kind, n.weights = circuit.Sum, b.lists["weights"]
	case "Product":
		n.kind = circuit.Product
	default:
		leaf := jsonLeaves[kind]
		if leaf == nil {
			return nil, r.fail(n.at, "%.40q where a kind of node should be: Sum, Product, Histogram, Categorical, Bernoulli, Gaussian, LogNormal or Poisson", kind)
		}
		if len(b.scope) != 1 {
			return nil, r.fail(n.at, "a leaf over %d variables; want one", len(b.scope))
		}
		var err error
		if n.leaf, n.params, err = leaf(b); err != nil {
			return nil, r.fail(n.at, "%w", err)
		}
	}
	if n.kind != circuit.Input && len(b.children) == 0 {
		return nil, r.fail(n.at, "a node without children")
	}
	if known := r.byID[b.id]; known != nil {
		if !known.same(n) {
			return nil, r.fail(n.at, "the node %.40q is not the one that had this number before", b.id)
		}
		return known, nil
	}
	if b.id != "" {
		r.byID[b.id] = n
	}
	r.order = append(r.order, n)
	return n, nil
}
