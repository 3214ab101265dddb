package text

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// maxTextBytes bounds a text model.
const maxTextBytes = 64 << 20

// maxColumns bounds the units of a sum's children, so that sizes stay far from
// overflow before the graph is validated.
const maxColumns = 1 << 31

// Format is the format of texts.
var Format = format.Format{Name: "text", Recognises: recognises, Decode: decode}

// recognises: the first statement starts with the word circuit.
func recognises(head []byte) bool {
	l := newLexer(string(head))
	return l.next.kind == 'w' && l.next.text == "circuit"
}

func decode(r io.ReaderAt, size int64) (*format.Model, error) {
	if size > maxTextBytes {
		return nil, fmt.Errorf("a text model of %d bytes, at most %d are allowed; convert it where it was made", size, maxTextBytes)
	}
	text := make([]byte, size)
	if n, err := r.ReadAt(text, 0); n < len(text) {
		return nil, err
	}
	return parseText(string(text))
}

// Parse reads a text model.
func Parse(text string) (*format.Model, error) {
	m, err := parseText(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", format.ErrModel, err)
	}
	return m, nil
}

// parseText reads a whole text. The graph is validated and parameters are checked against their
// leaves; the error has the line and column of the statement at fault.
func parseText(text string) (*format.Model, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8")
	}
	p := &parser{lexer: newLexer(text), names: map[string]circuit.NodeID{}, g: &circuit.Graph{}, root: circuit.None}
	if err := p.file(); err != nil {
		return nil, err
	}
	p.g.Root = p.root
	if p.root == circuit.None {
		p.g.Root = circuit.NodeID(len(p.g.Nodes) - 1)
	}
	if err := circuit.Validate(p.g); err != nil {
		return nil, p.fail(p.culprit(), "%w", err)
	}
	for i, v := range p.params {
		if v == nil {
			continue
		}
		err := circuit.CheckParams(p.g, circuit.NodeID(i), v.wide)
		if err == nil {
			err = circuit.CheckParams(p.g, circuit.NodeID(i), v.narrow)
		}
		if err != nil {
			return nil, p.fail(p.starts[i], "%w", err)
		}
	}
	g, params := p.g, p.params
	left := func(id circuit.NodeID) error {
		return fmt.Errorf("%w: %v node %d; initialise it or write its parameters in the text", format.ErrNoParams, g.Nodes[id].Kind, id)
	}
	return format.NewModel(g, p.meta, format.Params{
		Float32: func(id circuit.NodeID, dst []float32) error {
			if params[id] == nil {
				return left(id)
			}
			copy(dst, params[id].narrow)
			return nil
		},
		Float64: func(id circuit.NodeID, dst []float64) error {
			if params[id] == nil {
				return left(id)
			}
			copy(dst, params[id].wide)
			return nil
		},
	}), nil
}

// parser builds a graph statement by statement.
type parser struct {
	*lexer
	names  map[string]circuit.NodeID
	g      *circuit.Graph
	root   circuit.NodeID
	meta   map[string]string
	params []*values // of each node; nil: left open
	starts []int     // offset of each node's statement
}

// values are the parameters of a node: decimals, rounded once to either precision.
type values struct {
	narrow []float32
	wide   []float64
}

// culprit is the offset of the first statement that makes the graph invalid,
// or of the last one if only the whole is.
func (p *parser) culprit() int {
	n := len(p.g.Nodes)
	first := sort.Search(n, func(i int) bool {
		// A one-unit input as root, so that nothing but the nodes can be at fault.
		nodes := append([]circuit.Node(nil), p.g.Nodes[:i+1]...)
		root := nodes[0]
		root.Units = 1
		nodes = append(nodes, root)
		return circuit.Validate(&circuit.Graph{NumVars: p.g.NumVars, Nodes: nodes, Root: circuit.NodeID(i + 1)}) != nil
	})
	if first == n {
		first = int(p.g.Root)
	}
	return p.starts[first]
}

func (p *parser) file() error {
	if t := p.take(); t.text != "circuit" {
		return p.fail(t.at, "%v where \"circuit\" and the number of variables should be", t)
	}
	vars, err := p.integer("the number of variables", 1, circuit.MaxVars)
	if err != nil {
		return err
	}
	p.g.NumVars = vars
	for {
		switch t := p.take(); t.kind {
		case 0:
			if len(p.g.Nodes) == 0 {
				return p.fail(t.at, "no nodes; a circuit has at least one input")
			}
			return nil
		case '\n':
			if err := p.statement(); err != nil {
				return err
			}
		default:
			return p.fail(t.at, "%v where a new line should be", t)
		}
	}
}

func (p *parser) statement() error {
	t := p.take()
	switch {
	case t.kind != 'w':
		return p.fail(t.at, "%v where a name should be; start a statement with the name of a node, root or meta", t)
	case t.text == "meta":
		return p.metaStatement()
	case t.text == "root":
		if p.root != circuit.None {
			return p.fail(t.at, "a second root; name one")
		}
		id, err := p.node()
		p.root = id
		return err
	case !isName(t.text):
		return p.fail(t.at, "%v cannot name a node; use letters, digits, _ and . and no keyword", t)
	}
	if first, ok := p.names[t.text]; ok {
		return p.fail(t.at, "a second node %v; the first is number %d, rename one", t, first)
	}
	if eq := p.take(); eq.kind != '=' {
		return p.fail(eq.at, "%v where = should be", eq)
	}
	kind := p.take()
	p.g.Nodes = append(p.g.Nodes, circuit.Node{})
	p.params = append(p.params, nil)
	p.starts = append(p.starts, t.at)
	id := circuit.NodeID(len(p.g.Nodes) - 1)
	var err error
	switch kind.text {
	case "input":
		err = p.input(id)
	case "product":
		err = p.product(id)
	case "sum":
		err = p.sum(id)
	default:
		err = p.fail(kind.at, "%v where input, product or sum should be", kind)
	}
	p.names[t.text] = id // after its children: a node is not defined above itself
	return err
}

func (p *parser) metaStatement() error {
	var pair [2]string
	at := p.next.at
	for i := range pair {
		t := p.take()
		s, err := strconv.Unquote(t.text)
		if t.kind != '"' || err != nil {
			return p.fail(t.at, "%v where a string in double quotes should be", t)
		}
		pair[i] = s
	}
	if p.meta == nil {
		p.meta = map[string]string{}
	}
	if _, ok := p.meta[pair[0]]; ok {
		return p.fail(at, "a second string %q; keep one", pair[0])
	}
	p.meta[pair[0]] = pair[1]
	return nil
}

func (p *parser) product(id circuit.NodeID) error {
	children, err := p.children()
	if err != nil {
		return err
	}
	n := &p.g.Nodes[id]
	n.Kind, n.Children, n.Units = circuit.Product, children, p.g.Nodes[children[0]].Units
	return nil
}

func (p *parser) sum(id circuit.NodeID) error {
	n := &p.g.Nodes[id]
	n.Kind = circuit.Sum
	units, err := p.units()
	if err != nil {
		return err
	}
	at := p.next.at
	children, err := p.children()
	if err != nil {
		return err
	}
	n.Units, n.Children = units, children
	columns := p.g.Columns(id)
	if columns > maxColumns {
		return p.fail(at, "children of %d units, at most %d are allowed", columns, maxColumns)
	}
	row := columns
	if p.word("edges") {
		if err := p.edges(n, columns); err != nil {
			return err
		}
		row = n.Edges.Rows * n.Edges.Cols
	}
	if p.word("tied") {
		return p.tie(n)
	}
	if p.next.kind == ':' {
		p.take()
		return p.rows(id, row)
	}
	return nil
}

// children reads the names of nodes, at least one.
func (p *parser) children() ([]circuit.NodeID, error) {
	var list []circuit.NodeID
	for len(list) == 0 || p.next.kind == 'w' && !keywords[p.next.text] {
		id, err := p.node()
		if err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, nil
}

// node reads the name of a node that is defined above.
func (p *parser) node() (circuit.NodeID, error) {
	t := p.take()
	if t.kind != 'w' {
		return 0, p.fail(t.at, "%v where the name of a node should be", t)
	}
	id, ok := p.names[t.text]
	if !ok {
		return 0, p.fail(t.at, "there is no node %v above; define children before parents", t)
	}
	return id, nil
}

func (p *parser) tie(n *circuit.Node) error {
	id, err := p.node()
	n.Tie = circuit.TieTo(id)
	return err
}

// units reads the optional number of units in brackets.
func (p *parser) units() (int, error) {
	if p.next.kind != '[' {
		return 1, nil
	}
	p.take()
	n, err := p.integer("the number of units", 1, circuit.MaxUnits)
	if err != nil {
		return 0, err
	}
	return n, p.expect(']')
}

// rows reads the parameters of a node; a slash may be between rows.
func (p *parser) rows(id circuit.NodeID, row int) error {
	want := p.g.NumParams(id)
	v := new(values)
	var slashes []token
	var before []int // values in front of each slash
	for {
		if p.next.kind == '/' {
			slashes, before = append(slashes, p.take()), append(before, len(v.wide))
		} else if p.next.kind != 'w' {
			break
		}
		if p.next.kind == 'w' && len(v.wide) == want {
			return p.fail(p.next.at, "more than the %d parameters of the node", want)
		}
		decimal := p.next.text
		narrow, err := p.number(32)
		if err != nil {
			return err
		}
		wide, err := strconv.ParseFloat(decimal, 64)
		if err != nil {
			return err // BUG: it is a number of 32 bits
		}
		v.narrow, v.wide = append(v.narrow, float32(narrow)), append(v.wide, wide)
	}
	if n := &p.g.Nodes[id]; isCoin(n) && len(v.wide) == n.Units {
		v.narrow, v.wide, row = pairCoins(v.narrow, v.wide), pairCoins(v.wide, v.wide), 1
	}
	if len(v.wide) != want {
		return p.fail(p.next.at, "%d parameters, want %d in rows of %d", len(v.wide), want, row)
	}
	for i, slash := range slashes {
		if before[i] == 0 || before[i]%row != 0 {
			return p.fail(slash.at, "a slash after %d parameters; rows have %d", before[i], row)
		}
	}
	p.params[id] = v
	return nil
}

// number reads a finite number.
func (p *parser) number(bits int) (float64, error) {
	t := p.take()
	if t.kind != 'w' || !isNumeric(t.text) {
		return 0, p.fail(t.at, "%v where a number should be", t)
	}
	v, err := strconv.ParseFloat(t.text, bits)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, p.fail(t.at, "%v is not a finite number of %d bits", t, bits)
	}
	return v, nil
}

func (p *parser) integer(what string, least, most int) (int, error) {
	t := p.take()
	if t.kind != 'w' {
		return 0, p.fail(t.at, "%v where %s should be", t, what)
	}
	return p.toInteger(t.at, t.text, what, least, most)
}

func (p *parser) toInteger(at int, text, what string, least, most int) (int, error) {
	v, err := strconv.Atoi(text)
	if err != nil || v < least || v > most {
		return 0, p.fail(at, "%.20q where %s should be, %d to %d", text, what, least, most)
	}
	return v, nil
}

func (p *parser) expect(kind byte) error {
	if t := p.take(); t.kind != kind {
		return p.fail(t.at, "%v where %q should be", t, string(rune(kind)))
	}
	return nil
}

// word takes the next token if it is the given keyword.
func (p *parser) word(keyword string) bool {
	if p.next.kind != 'w' || p.next.text != keyword {
		return false
	}
	p.take()
	return true
}

// variable reads x0, x1, ...
func (p *parser) variable() (int, error) {
	t := p.take()
	digits, ok := strings.CutPrefix(t.text, "x")
	if !ok {
		return 0, p.fail(t.at, "%v where a variable should be: x0 to x%d", t, p.g.NumVars-1)
	}
	return p.toInteger(t.at, digits, "the number of a variable", 0, p.g.NumVars-1)
}
