package juice

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/units"
)

// MaxBytes is the size of the largest text that is read.
const MaxBytes = 256 << 20

// Format is the format of Juice's texts.
var Format = format.Format{Name: "juice", Recognises: func(head []byte) bool { return kindOf(string(head)) != nil }, Decode: decode}

// mark is the byte order mark, which some editors put in front of a text.
const mark = "\ufeff"

// skips reports whether a line of those words is empty or a comment.
func skips(words []string) bool { return len(words) == 0 || words[0] == "c" || words[0] == "cc" }

// kindOf returns what reads the lines of a text, told by the first that is not a comment; nil
// for other texts.
func kindOf(text string) func(*reader, []string) error {
	for line := range strings.Lines(strings.TrimPrefix(text, mark)) {
		words := strings.Fields(line)
		switch {
		case skips(words):
			continue
		case words[0] == "jpc" && len(words) == 2:
			return (*reader).jpc
		case words[0] == "psdd" && len(words) <= 2:
			return (*reader).psdd
		case strings.HasPrefix(words[0], "(") && strings.HasSuffix(words[len(words)-1], ")") && strings.Trim(line, "()0123456789 \r\n") == "":
			return (*reader).spn
		}
		return nil
	}
	return nil
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

// reader collects the nodes of a text.
type reader struct {
	nodes  []units.Node
	lines  []int       // of the nodes
	byID   map[int]int // place of a node, for kinds with numbers
	values []int       // by variable: how many values it has, as far as is known
	fixed  bool        // values are given by the text
	loose  bool        // the text is a PSDD, which may have literals that no node refers to
	count  int         // of nodes, as the first line of a jpc text has it; -1 before that and in the other kinds
	ended  bool
	line   int
}

// indicator is the leaf of a value of a variable, until the variable's number of values is known.
type indicator struct {
	circuit.Indicator
}

func parse(text string) (*format.Model, error) {
	read := kindOf(text)
	if read == nil {
		return nil, errors.New("the first line is not that of a jpc, psdd or spn text")
	}
	r := &reader{byID: map[int]int{}, count: -1}
	for line := range strings.Lines(strings.TrimPrefix(text, mark)) {
		r.line++
		words := strings.Fields(line)
		if skips(words) {
			continue
		}
		if err := read(r, words); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
	}
	return r.model()
}

// model makes the model once all lines are read.
func (r *reader) model() (*format.Model, error) {
	switch {
	case len(r.nodes) == 0:
		return nil, errors.New("no nodes; the text is cut short")
	case r.fixed && !r.ended:
		return nil, errors.New("no EOF at the end; the text is cut short")
	case r.count >= 0 && r.count != len(r.byID):
		return nil, fmt.Errorf("%d nodes, where the first line says %d; the text is cut short or has some twice", len(r.byID), r.count)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		l, ok := n.Leaf.(indicator)
		if !ok {
			continue
		}
		l.Domain = r.values[n.Var]
		if l.Value >= l.Domain {
			return nil, fmt.Errorf("line %d: value %d of a variable that has %d", r.lines[i], l.Value, l.Domain)
		}
		n.Leaf = l.Indicator
	}
	if r.loose {
		r.dropLiterals()
	}
	m, err := units.Assemble(r.nodes, len(r.nodes)-1, len(r.values))
	if fault := (*units.NodeError)(nil); errors.As(err, &fault) {
		return nil, fmt.Errorf("line %d: %w", r.lines[fault.Node], fault.Err)
	}
	return m, err
}

// dropLiterals takes out the literals that no node refers to, which Juice and others write below
// each T. Other nodes that nothing refers to stay, and are refused: the text is cut short then.
func (r *reader) dropLiterals() {
	needed := make([]bool, len(r.nodes))
	needed[len(r.nodes)-1] = true // the root
	for _, n := range r.nodes {
		for _, child := range n.Children {
			needed[child] = true
		}
	}
	place, kept := make([]int, len(r.nodes)), 0
	for i, n := range r.nodes {
		if _, literal := n.Leaf.(circuit.Indicator); literal && !needed[i] {
			continue
		}
		for k, child := range n.Children { // children come before parents
			n.Children[k] = place[child]
		}
		r.nodes[kept], r.lines[kept], place[i] = n, r.lines[i], kept
		kept++
	}
	r.nodes, r.lines = r.nodes[:kept], r.lines[:kept]
}

// add appends a node and returns its place.
func (r *reader) add(n units.Node) int {
	r.nodes, r.lines = append(r.nodes, n), append(r.lines, r.line)
	return len(r.nodes) - 1
}

// named adds the node of a number.
func (r *reader) named(id int, n units.Node) error {
	if _, twice := r.byID[id]; twice {
		return fmt.Errorf("node %d is there twice", id)
	}
	r.byID[id] = r.add(n)
	return nil
}

// integers reads the words from, as many as want, as numbers of 0 or more.
func integers(words []string, want ...*int) error {
	if len(words) < len(want) {
		return errors.New("the line is cut short")
	}
	for i, to := range want {
		x, err := strconv.Atoi(words[i])
		if err != nil {
			return fmt.Errorf("%.40q where a whole number should be", words[i])
		}
		*to = x
	}
	return nil
}

// exactly is integers of words that are the last of their line: what is behind them would be lost, such as the next node where
// the end of a line is.
func exactly(words []string, want ...*int) error {
	if len(words) > len(want) {
		return fmt.Errorf("%.40q where the line should end; give each node a line of its own", words[len(want)])
	}
	return integers(words, want...)
}

// maxVars bounds the variables that a text may ask for by a number, as the graph has no fewer.
const maxVars = 1 << 20

// variable notes that a variable, from 0, has at least that many values.
func (r *reader) variable(v, values int) error {
	most := maxVars
	if r.fixed {
		most = len(r.values)
	}
	switch {
	case v < 0 || v >= most:
		return fmt.Errorf("the variable is out of range: the text may have %d", most)
	case values < 1 || values > circuit.MaxCodes:
		return fmt.Errorf("a variable of %d values; want 1 to %d", values, circuit.MaxCodes)
	case r.fixed:
		return nil
	}
	for v >= len(r.values) {
		r.values = append(r.values, 0)
	}
	r.values[v] = max(r.values[v], values)
	return nil
}

// value is the leaf of a value of a variable.
func (r *reader) value(v, value, values int) (units.Node, error) {
	if value < 0 {
		return units.Node{}, fmt.Errorf("the value %d; want 0 or more", value)
	}
	return units.Node{Leaf: indicator{circuit.Indicator{Value: value}}, Var: v}, r.variable(v, values)
}

// literal is the leaf of a variable, from 1, that holds or, with -, does not.
func (r *reader) literal(x int) (units.Node, error) {
	if x == 0 || x < -maxVars {
		return units.Node{}, errors.New("the literal 0; variables are counted from 1")
	}
	if x < 0 {
		return r.value(-x-1, 0, 2)
	}
	return r.value(x-1, 1, 2)
}

// child returns the place of a node that was read.
func (r *reader) child(word string) (int, error) {
	var id int
	if err := integers([]string{word}, &id); err != nil {
		return 0, err
	}
	at, ok := r.byID[id]
	if !ok {
		return 0, fmt.Errorf("node %d is not there; children come before parents", id)
	}
	return at, nil
}

// leastLog is the logarithm of the least normal number. Below it an exponential keeps few digits of a logarithm, or none.
var leastLog = circuit.Log(0x1p-1022)

// probability reads a logarithm.
func probability(word string) (float64, error) {
	x, err := strconv.ParseFloat(word, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || !(x <= 1e-3): // NaN too
		return 0, fmt.Errorf("%.40q where the logarithm of a probability should be", word)
	case err == nil && math.IsInf(x, -1):
		return 0, nil
	case x < leastLog:
		return 0, fmt.Errorf("the logarithm %.40s is below %.2f: float64 has no such probability; write -Inf for 0", word, leastLog)
	}
	return math.Exp(x), nil
}

// complement is 1 less the probability whose logarithm a word is, which probability has read. Where the logarithm is near
// 0, 1 less its exponential has few digits of that, or none.
func complement(word string) float64 {
	x, _ := strconv.ParseFloat(word, 64)
	return max(0, -math.Expm1(x))
}

// jpc reads a line of Juice's own text.
func (r *reader) jpc(words []string) (err error) {
	if r.count < 0 {
		if err := integers(words[1:], &r.count); err != nil || r.count >= 0 {
			return err
		}
		return fmt.Errorf("%d nodes; want 1 or more", r.count)
	}
	if !slices.Contains([]string{"L", "I", "C", "B", "G", "P", "S"}, words[0]) {
		return fmt.Errorf("%.40q where a kind of node should be: L, I, C, B, G, P or S", words[0])
	}
	var id, vtree, third int
	if err := integers(words[1:], &id, &vtree, &third); err != nil {
		return err
	}
	var n units.Node
	switch rest := words[4:]; words[0] {
	case "L":
		if err = exactly(rest); err == nil {
			n, err = r.literal(third)
		}
	case "I":
		var value int
		if err = exactly(rest, &value); err == nil {
			n, err = r.value(third-1, value, value+1)
		}
	case "C":
		n, err = r.categorical(third-1, rest)
	case "B":
		n, err = r.binomial(third-1, rest)
	case "G":
		n, err = r.gaussian(third-1, rest)
	case "P":
		n.Kind = circuit.Product
		err = r.inner(&n, rest, third, 1)
	case "S":
		n.Kind = circuit.Sum
		err = r.inner(&n, rest, third, 2)
	}
	if err != nil {
		return err
	}
	return r.named(id, n)
}

// inner reads the children of a node, each with a logarithm behind it where a child has two words.
func (r *reader) inner(n *units.Node, words []string, count, each int) error {
	if count < 1 || len(words) != count*each {
		return fmt.Errorf("%d words for %d children; want %d per child", len(words), count, each)
	}
	for ; len(words) > 0; words = words[each:] {
		c, err := r.child(words[0])
		if err != nil {
			return err
		}
		n.Children = append(n.Children, c)
		if each == 2 {
			w, err := probability(words[1])
			if err != nil {
				return err
			}
			n.Weights = append(n.Weights, w)
		}
	}
	return nil
}

func (r *reader) categorical(v int, words []string) (units.Node, error) {
	n := units.Node{Leaf: circuit.Categorical{Categories: len(words)}, Var: v}
	for _, word := range words {
		p, err := probability(word)
		if err != nil {
			return n, err
		}
		n.Params = append(n.Params, p)
	}
	return n, r.variable(v, len(words))
}

func (r *reader) binomial(v int, words []string) (n units.Node, err error) {
	var trials int
	if err := integers(words, &trials); err != nil {
		return n, err
	}
	if len(words) != 2 {
		return n, fmt.Errorf("%d words for a binomial; want the number of trials and a logarithm", len(words))
	}
	p, err := probability(words[1])
	if err != nil {
		return n, err
	}
	n = units.Node{Leaf: circuit.Binomial{Trials: trials}, Var: v, Params: []float64{min(p, 1)}}
	return n, r.variable(v, min(trials, circuit.MaxCodes)+1)
}

func (r *reader) gaussian(v int, words []string) (units.Node, error) {
	n := units.Node{Leaf: circuit.Gaussian{}, Var: v}
	if len(words) != 2 {
		return n, fmt.Errorf("%d words for a Gaussian; want mean and standard deviation", len(words))
	}
	for _, word := range words {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return n, fmt.Errorf("%.40q where a number should be", word)
		}
		n.Params = append(n.Params, x)
	}
	return n, r.variable(v, 1)
}

// psdd reads a line of a PSDD.
func (r *reader) psdd(words []string) error {
	if words[0] == "psdd" && len(r.nodes) == 0 {
		r.loose = true
		if len(words) > 1 {
			var count int // of nodes, or of nodes and elements: tools differ
			return integers(words[1:], &count)
		}
		return nil
	}
	if !slices.Contains([]string{"L", "T", "D"}, words[0]) {
		return fmt.Errorf("%.40q where a kind of node should be: L, T or D", words[0])
	}
	var id, vtree, third int
	if err := integers(words[1:], &id, &vtree, &third); err != nil {
		return err
	}
	var n units.Node
	var err error
	switch rest := words[4:]; {
	case words[0] == "L" && len(rest) == 0:
		n, err = r.literal(third)
	case words[0] == "T" && (len(rest) == 1 || len(rest) == 2):
		var p float64
		for _, word := range rest { // the last counts: of two, the first is that of the negation
			if p, err = probability(word); err != nil {
				return err
			}
		}
		n = units.Node{Leaf: circuit.Bernoulli{}, Var: third - 1, Params: []float64{complement(rest[len(rest)-1]), min(p, 1)}}
		err = r.variable(third-1, 2)
	case words[0] == "D":
		n, err = r.decision(rest, third)
	default:
		err = fmt.Errorf("%.40q where a node should be: L id vtree literal, T id vtree variable log, or D id vtree count and elements", strings.Join(words, " "))
	}
	if err != nil {
		return err
	}
	return r.named(id, n)
}

// decision reads the elements of a decision node, each a product of two and a logarithm.
func (r *reader) decision(words []string, count int) (units.Node, error) {
	if count < 1 || len(words) != 3*count {
		return units.Node{}, fmt.Errorf("%d words for %d elements; want 3 per element", len(words), count)
	}
	n := units.Node{Kind: circuit.Sum}
	for ; len(words) > 0; words = words[3:] {
		product := units.Node{Kind: circuit.Product}
		if err := r.inner(&product, words[:2], 2, 1); err != nil {
			return units.Node{}, err
		}
		w, err := probability(words[2])
		if err != nil {
			return units.Node{}, err
		}
		n.Children, n.Weights = append(n.Children, r.add(product)), append(n.Weights, w)
	}
	return n, nil
}

// spn reads a line of the text whose nodes have no numbers.
func (r *reader) spn(words []string) (err error) {
	if !r.fixed {
		r.fixed = true
		for _, word := range strings.Fields(strings.Trim(strings.Join(words, " "), "()")) {
			var n int
			if err := integers([]string{word}, &n); err != nil {
				return err
			}
			if n < 1 || n > circuit.MaxCodes || len(r.values) == maxVars {
				return fmt.Errorf("a variable of %d values, or more than %d variables", n, maxVars)
			}
			r.values = append(r.values, n)
		}
		return nil
	}
	if r.ended {
		return errors.New("a line behind EOF")
	}
	var n units.Node
	rest := words[1:]
	switch words[0] {
	case "EOF":
		r.ended = true
		return nil
	case "v":
		var v, value int
		if err = exactly(rest, &v, &value); err == nil {
			n, err = r.value(v, value, 1)
		}
	case "*":
		n.Kind = circuit.Product
		err = r.inner(&n, rest, len(rest), 1)
	case "+":
		n.Kind = circuit.Sum
		err = r.inner(&n, rest, len(rest)/2, 2)
	default:
		err = fmt.Errorf("%.40q where a kind of node should be: v, * or +", words[0])
	}
	if err != nil {
		return err
	}
	return r.named(len(r.nodes), n)
}
