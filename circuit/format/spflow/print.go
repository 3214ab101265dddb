package spflow

import (
	"bufio"
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

// Print writes a model as a reference graph, with numbers in the shortest form that reads back
// as the same float64. Each unit of a node is a node of the text. What the text cannot hold is
// an error that matches format.ErrModel: other families of leaves, a floor other than Floor,
// names with ; or |. lost says what else is not kept: the strings of the model.
func Print(w io.Writer, m *format.Model) (lost []string, err error) {
	p, err := newPrinter(w, m)
	if err != nil {
		return nil, err
	}
	p.reference()
	return p.end(m)
}

// PrintEquation is Print of an equation. As an equation has no names for nodes, a sum or
// product with two parents is an error.
func PrintEquation(w io.Writer, m *format.Model) (lost []string, err error) {
	p, err := newPrinter(w, m)
	if err != nil {
		return nil, err
	}
	p.equation()
	return p.end(m)
}

// printer writes units, each a node of the text.
type printer struct {
	*bufio.Writer
	*units.Circuit
	names []string
	made  int // of the names, for variables without one beside others that have one
	err   error
}

func newPrinter(w io.Writer, m *format.Model) (*printer, error) {
	c, err := units.Of(m)
	if err != nil {
		return nil, err
	}
	p := &printer{Writer: bufio.NewWriter(w), Circuit: c}
	given := map[string]bool{}
	for _, name := range m.Names {
		given[name] = true
	}
	for v := range p.Graph.NumVars {
		name := "V" + strconv.Itoa(v)
		switch {
		case m.Names == nil:
		case m.Names[v] == "":
			p.made++
			for given[name] { // to another variable
				name += "_"
			}
		default:
			name = m.Names[v]
		}
		p.names = append(p.names, name)
	}
	seen := map[string]bool{}
	for _, name := range p.names {
		if name == "" || seen[name] || strings.TrimSpace(name) != name || strings.ContainsAny(name, ";|)\r\n") {
			return nil, fmt.Errorf("%w: the variable %.40q cannot be written; name each variable once, without ; | and )", format.ErrModel, name)
		}
		seen[name] = true
	}
	for i, used := range circuit.Reachable(p.Graph) {
		for u := range p.Graph.Nodes[i].Units {
			if used && p.Graph.Nodes[i].Kind == circuit.Input {
				if _, err := p.leaf(units.Unit{Node: circuit.NodeID(i), U: u}); err != nil {
					return nil, fmt.Errorf("%w: node %d: %w", format.ErrModel, i, err)
				}
			}
		}
	}
	return p, nil
}

// end writes the line of names, and returns what is not kept of a model.
func (p *printer) end(m *format.Model) (lost []string, err error) {
	p.WriteString("\n# " + strings.Join(p.names, ";") + "\n")
	if p.err != nil {
		return nil, fmt.Errorf("%w: %w", format.ErrModel, p.err)
	}
	if p.made > 0 {
		lost = append(lost, fmt.Sprintf("that %d of the variables have no name, in place of which it has V and their number", p.made))
	}
	for key := range m.Meta {
		lost = append(lost, "the string "+strconv.Quote(key))
	}
	slices.Sort(lost)
	return lost, p.Flush()
}

func (p *printer) name(x units.Unit) string {
	kind := "Leaf"
	switch p.Graph.Nodes[x.Node].Kind {
	case circuit.Sum:
		kind = "SumNode"
	case circuit.Product:
		kind = "ProductNode"
	}
	return fmt.Sprintf("%s_%d", kind, p.Number(x))
}

// reference writes units from the root down, each below the first that has it as a child.
func (p *printer) reference() {
	written := map[units.Unit]bool{}
	type visit struct {
		children []units.Unit
		next     int
	}
	var stack []visit
	begin := func(x units.Unit) {
		written[x] = true
		indent := indentOf(len(stack))
		n := &p.Graph.Nodes[x.Node]
		if n.Kind == circuit.Input {
			text, _ := p.leaf(x)
			fmt.Fprintf(p, "%s%s %s\n", indent, p.name(x), text)
			return
		}
		list, weights := p.Children(x)
		kind := "ProductNode"
		if n.Kind == circuit.Sum {
			kind = "SumNode"
		}
		fmt.Fprintf(p, "%s%s %s(", indent, p.name(x), kind)
		for i, c := range list {
			if i > 0 {
				p.WriteString(", ")
			}
			if weights != nil {
				p.WriteString(number(weights[i]) + "*")
			}
			p.WriteString(p.name(c))
		}
		p.WriteString("){\n")
		stack = append(stack, visit{children: list})
	}
	for begin(p.Root()); len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.next == len(top.children) {
			p.WriteString(indentOf(len(stack)) + "}\n")
			stack = stack[:len(stack)-1]
			continue
		}
		c := top.children[top.next]
		top.next++
		if !written[c] {
			begin(c)
		}
		if len(stack) > MaxDepth && p.err == nil {
			p.err = fmt.Errorf("nested more than %d deep", MaxDepth)
			return
		}
	}
}

// indentOf is the space in front of a line at a depth. It ends at 32 tabs: behind that no reader follows it, and the
// text of a chain would be as long as the square of the chain.
func indentOf(depth int) string { return strings.Repeat("\t", min(depth, 32)) }

// equation writes the expression of the root.
func (p *printer) equation() {
	seen := map[units.Unit]bool{}
	var write func(x units.Unit, depth int)
	write = func(x units.Unit, depth int) {
		n := &p.Graph.Nodes[x.Node]
		if n.Kind == circuit.Input {
			text, _ := p.leaf(x)
			p.WriteString(text)
			return
		}
		if seen[x] && p.err == nil {
			p.err = errors.New("a node has two parents, which an equation cannot say; write the reference graph")
		}
		if depth > MaxDepth && p.err == nil {
			p.err = fmt.Errorf("nested more than %d deep", MaxDepth)
		}
		if p.err != nil {
			return
		}
		seen[x] = true
		list, weights := p.Children(x)
		p.WriteByte('(')
		for i, c := range list {
			switch {
			case i > 0 && weights != nil:
				p.WriteString(" + ")
			case i > 0:
				p.WriteString(" * ")
			}
			if weights != nil {
				p.WriteString(number(weights[i]) + "*(")
			}
			write(c, depth+1)
			if weights != nil {
				p.WriteByte(')')
			}
		}
		p.WriteByte(')')
	}
	write(p.Root(), 0)
	p.WriteByte('\n')
}

// number is the shortest text of a number.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func numbers(list []float64) string {
	text := make([]string, len(list))
	for i, x := range list {
		text[i] = number(x)
	}
	return "[" + strings.Join(text, ",") + "]"
}

// leaf is the text of a unit of an input.
func (p *printer) leaf(x units.Unit) (string, error) {
	family, q, variable := p.Leaf(x)
	v := p.names[variable]
	switch l := family.(type) {
	case circuit.RealHistogram:
		if l.Floor != Floor {
			return "", fmt.Errorf("a histogram with the density %v outside its bins, where the text has %v; write another format", l.Floor, float64(Floor))
		}
		return fmt.Sprintf("Histogram(%s|%s;%s)", v, numbers(l.Breaks), numbers(q)), nil
	case circuit.Categorical:
		return fmt.Sprintf("Categorical(%s|p=%s)", v, numbers(q)), nil
	case circuit.Bernoulli:
		if q[0] != 1-q[1] || math.Signbit(q[0]) != math.Signbit(1-q[1]) {
			return fmt.Sprintf("Categorical(%s|p=%s)", v, numbers(q)), nil
		}
		return fmt.Sprintf("Bernoulli(%s|p=%s)", v, number(q[1])), nil
	case circuit.Gaussian:
		return fmt.Sprintf("Gaussian(%s|mean=%s;stdev=%s)", v, number(q[0]), number(q[1])), nil
	case circuit.LogNormal:
		return fmt.Sprintf("LogNormal(%s|mean=%s;stdev=%s)", v, number(q[0]), number(q[1])), nil
	case circuit.Poisson:
		return fmt.Sprintf("Poisson(%s|mean=%s)", v, number(q[0])), nil
	}
	return "", fmt.Errorf("a leaf of the family %s, which the text does not have; write another format", family.Name())
}
