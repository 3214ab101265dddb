package spflow

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// Limits of texts.
const (
	MaxBytes = 256 << 20
	MaxDepth = 10000
)

// Floor is the density of SPFlow's histograms outside their bins: the least step of float64
// from 1.
const Floor = 0x1p-52

// Format is the format of SPFlow's texts.
var Format = format.Format{Name: "spflow", Recognises: recognises, Decode: decode}

// recognises: the text starts with a definition or an expression. A reference graph starts with
// a name and the kind of its node, an equation with a leaf or with parentheses in front of a
// leaf or a weight.
func recognises(head []byte) bool {
	if isJSON(string(head)) {
		return true
	}
	l := newLexer(string(head))
	if l.next.kind == 'w' {
		first := l.take().text
		if l.next.kind == '(' {
			return families[first] != nil
		}
		kind := l.take().text
		return (kind == "SumNode" || kind == "ProductNode" || families[kind] != nil) && l.next.kind == '('
	}
	if l.next.kind != '(' {
		return false
	}
	for l.next.kind == '(' {
		l.take()
	}
	switch t := l.take(); t.kind {
	case 'n':
		return l.next.kind == '*'
	case 'w':
		return families[t.text] != nil && l.next.kind == '('
	}
	return false
}

func decode(r io.ReaderAt, size int64) (*format.Model, error) {
	if size > MaxBytes {
		return nil, fmt.Errorf("a text of %d bytes, at most %d are allowed", size, MaxBytes)
	}
	text := make([]byte, size)
	if n, err := r.ReadAt(text, 0); n < len(text) {
		return nil, err
	}
	return parse(string(text))
}

// Parse reads a text.
func Parse(text string) (*format.Model, error) {
	m, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", format.ErrModel, err)
	}
	return m, nil
}

func parse(text string) (*format.Model, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8")
	}
	if isJSON(text) {
		return parseJSON(text)
	}
	p := &parser{lexer: newLexer(text), byName: map[string]*node{}, variables: map[string]int{}}
	root, err := p.file()
	if err != nil {
		return nil, err
	}
	return p.model(root)
}

// node is a node as it is read.
type node struct {
	at       int // offset
	kind     circuit.Kind
	names    []ref     // children of a reference graph, which may be defined later
	children []*node   // of an equation, and of a reference graph once all are known
	weights  []float64 // of a sum
	variable string
	leaf     circuit.Leaf
	params   []float64
}

// same reports whether another node is the same but for its place in the text.
func (n *node) same(other *node) bool {
	return n.kind == other.kind && n.variable == other.variable &&
		slices.EqualFunc(n.names, other.names, func(a, b ref) bool { return a.name == b.name }) &&
		slices.Equal(n.children, other.children) && slices.Equal(n.weights, other.weights) &&
		circuit.SameLeaf(n.leaf, other.leaf) && slices.Equal(n.params, other.params)
}

// ref is the name of a child.
type ref struct {
	name string
	at   int
}

type parser struct {
	*lexer
	byName    map[string]*node
	order     []*node // definitions of a reference graph
	variables map[string]int
	names     []string // of the variables, in order
	declared  bool     // by a line of names, or the scope of JSON
	nested    bool     // the text is JSON, which has such a scope in place of the line
}

// file reads a text and returns the root.
func (p *parser) file() (*node, error) {
	var root *node
	var err error
	if p.next.kind == '(' || p.next.kind == 'w' && p.isCall() {
		root, err = p.factor(0)
	} else {
		for err == nil && p.next.kind == 'w' {
			err = p.definition()
		}
		if err == nil && len(p.order) == 0 {
			err = p.fail(p.next.at, "%v where a node should be", p.next)
		}
		if err == nil {
			root = p.order[0]
		}
	}
	if err != nil {
		return nil, err
	}
	if p.next.kind == '#' {
		if err := p.nameLine(); err != nil {
			return nil, err
		}
	}
	if p.next.kind != 0 {
		return nil, p.fail(p.next.at, "%v behind the network", p.next)
	}
	return root, nil
}

// isCall reports whether the next word is one in front of a parenthesis.
func (p *parser) isCall() bool {
	return strings.HasPrefix(strings.TrimLeft(p.text[p.next.at+len(p.next.text):], " \t\r\n"), "(")
}

// nameLine reads the names of the variables behind #.
func (p *parser) nameLine() error {
	at := p.next.at
	line, rest, _ := strings.Cut(p.text[at+1:], "\n")
	p.at = len(p.text) - len(rest)
	p.take()
	for name := range strings.SplitSeq(line, ";") {
		name = strings.TrimSpace(name)
		if _, ok := p.variables[name]; ok || name == "" {
			return p.fail(at, "the name %.40q is given twice, or is empty; give each variable one", name)
		}
		p.variables[name] = len(p.names)
		p.names = append(p.names, name)
	}
	p.declared = true
	return nil
}

// definition reads a node of a reference graph and those in its braces. It keeps its own stack,
// as texts may be nested deeper than a goroutine's should be.
func (p *parser) definition() error {
	for depth := 0; ; {
		if p.next.kind == '}' && depth > 0 {
			p.take()
			depth--
		} else {
			opened, err := p.define()
			if err != nil {
				return err
			}
			if opened {
				if depth++; depth > MaxDepth {
					return p.fail(p.next.at, "nested more than %d deep", MaxDepth)
				}
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

// define reads one node up to an opening brace, if it has one. SPFlow writes the definition of a
// node below each of its parents; those behind the first must say the same.
func (p *parser) define() (opened bool, err error) {
	name, err := p.expect('w')
	if err != nil {
		return false, err
	}
	n := &node{at: name.at}
	if opened, err = p.body(n); err != nil {
		return false, err
	}
	first, again := p.byName[name.text]
	switch {
	case !again:
		p.byName[name.text] = n
		p.order = append(p.order, n)
	case !first.same(n):
		return false, p.fail(name.at, "the node %v is another one than at %s; give each a name of its own", name, p.place(first.at))
	}
	return opened, nil
}

// body reads what a node is, up to an opening brace, if it has one.
func (p *parser) body(n *node) (opened bool, err error) {
	kind, err := p.expect('w')
	if err != nil {
		return false, err
	}
	switch kind.text {
	case "SumNode":
		n.kind = circuit.Sum
	case "ProductNode":
		n.kind = circuit.Product
	default:
		n.kind = circuit.Input
		return false, p.leaf(n, kind)
	}
	if _, err := p.expect('('); err != nil {
		return false, err
	}
	for {
		if n.kind == circuit.Sum {
			w, err := p.number()
			if err != nil {
				return false, err
			}
			n.weights = append(n.weights, w)
			if _, err := p.expect('*'); err != nil {
				return false, err
			}
		}
		child, err := p.expect('w')
		if err != nil {
			return false, err
		}
		n.names = append(n.names, ref{child.text, child.at})
		t := p.take()
		if t.kind == ')' {
			break
		}
		if t.kind != ',' {
			return false, p.fail(t.at, "%v where , or ) should be", t)
		}
	}
	if p.next.kind != '{' {
		return false, nil
	}
	p.take()
	return true, nil
}

// factor reads a leaf or an expression in parentheses.
func (p *parser) factor(depth int) (*node, error) {
	if depth > MaxDepth {
		return nil, p.fail(p.next.at, "nested more than %d deep", MaxDepth)
	}
	t := p.take()
	if t.kind == 'w' {
		n := &node{at: t.at, kind: circuit.Input}
		return n, p.leaf(n, t)
	}
	if t.kind != '(' {
		return nil, p.fail(t.at, "%v where a leaf or ( should be", t)
	}
	n := &node{at: t.at, kind: circuit.Product}
	joined := byte(0) // the sign between the terms
	for {
		if p.next.kind == 'n' {
			if len(n.children) > 0 && n.kind != circuit.Sum {
				return nil, p.fail(p.next.at, "%v where a factor without weight should be", p.next)
			}
			w, err := p.number()
			if err != nil {
				return nil, err
			}
			n.kind, n.weights = circuit.Sum, append(n.weights, w)
			if _, err := p.expect('*'); err != nil {
				return nil, err
			}
		} else if n.kind == circuit.Sum {
			return nil, p.fail(p.next.at, "%v where a weight should be", p.next)
		}
		child, err := p.factor(depth + 1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
		sign := p.take()
		if sign.kind == ')' {
			break
		}
		want := byte('*')
		if n.kind == circuit.Sum {
			want = '+'
		}
		if sign.kind != want || joined != 0 && joined != want {
			return nil, p.fail(sign.at, "%v where %q or ) should be", sign, string(rune(want)))
		}
		joined = want
	}
	if n.kind == circuit.Product && len(n.children) == 1 {
		return n.children[0], nil
	}
	return n, nil
}
