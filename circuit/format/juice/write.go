package juice

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/units"
)

// Write writes a circuit as a jpc text, a node per unit. Logarithms have the shortest form that
// reads back as the same float64, -Inf for 0; probabilities come back within a rounding of them. What
// the text cannot hold is an error that matches format.ErrModel: leaves of other families than
// categories, binomials and Gaussians. lost says what else is not kept.
func Write(w io.Writer, m *format.Model) (lost []string, err error) {
	c, err := units.Of(m)
	if err != nil {
		return nil, err
	}
	if m.Names != nil {
		lost = append(lost, "the names of the variables, in place of which it has numbers")
	}
	if len(m.Meta) > 0 {
		lost = append(lost, "the strings of the model")
	}
	order := c.Order()
	lost = append(lost, unsaid(c, order)...)
	number := make(map[units.Unit]int, len(order))
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "jpc %d\n", len(order))
	for i, x := range order {
		number[x] = i
		if err := line(b, c, x, number); err != nil {
			return nil, fmt.Errorf("%w: node %d: %w", format.ErrModel, x.Node, err)
		}
	}
	return lost, b.Flush()
}

// unsaid says what the leaves of a text do not tell of the variables: the last ones, if no leaf reads them, and
// categories behind the last one that a leaf has.
func unsaid(c *units.Circuit, order []units.Unit) (lost []string) {
	told, domains := make([]int, c.Graph.NumVars), circuit.Domains(c.Graph)
	vars := 0
	for _, x := range order {
		if c.Graph.Nodes[x.Node].Kind != circuit.Input {
			continue
		}
		leaf, _, v := c.Leaf(x)
		codes := leaf.Codes()
		if l, ok := leaf.(circuit.Indicator); ok && l.Domain != 2 {
			codes = l.Value + 1
		}
		told[v], vars = max(told[v], codes), max(vars, v+1)
	}
	if vars < c.Graph.NumVars {
		lost = append(lost, fmt.Sprintf("the variables from number %d on, which no leaf reads", vars+1))
	}
	fewer := 0
	for v := range vars {
		if domains[v] > told[v] {
			fewer++
		}
	}
	if fewer > 0 {
		lost = append(lost, fmt.Sprintf("how many categories %d of the variables have, as no leaf has their last ones", fewer))
	}
	return lost
}

// line writes the line of a unit.
func line(b *bufio.Writer, c *units.Circuit, x units.Unit, number map[units.Unit]int) error {
	id := number[x]
	logarithm := func(p float64) string { return strconv.FormatFloat(circuit.Log(p), 'g', -1, 64) }
	if kind := c.Graph.Nodes[x.Node].Kind; kind != circuit.Input {
		children, weights := c.Children(x)
		if kind == circuit.Product {
			fmt.Fprintf(b, "P %d 0 %d", id, len(children))
			for _, child := range children {
				fmt.Fprintf(b, " %d", number[child])
			}
			b.WriteByte('\n')
			return nil
		}
		fmt.Fprintf(b, "S %d 0 %d", id, len(children))
		for i, child := range children {
			fmt.Fprintf(b, " %d %s", number[child], logarithm(weights[i]))
		}
		b.WriteByte('\n')
		return nil
	}
	leaf, params, v := c.Leaf(x)
	switch l := leaf.(type) {
	case circuit.Indicator:
		if l.Domain == 2 {
			fmt.Fprintf(b, "L %d 0 %d\n", id, (2*l.Value-1)*(v+1))
			return nil
		}
		fmt.Fprintf(b, "I %d 0 %d %d\n", id, v+1, l.Value)
	case circuit.Bernoulli, circuit.Categorical:
		fmt.Fprintf(b, "C %d 0 %d", id, v+1)
		for _, p := range params {
			b.WriteString(" " + logarithm(p))
		}
		b.WriteByte('\n')
	case circuit.Binomial:
		fmt.Fprintf(b, "B %d 0 %d %d %s\n", id, v+1, l.Trials, logarithm(params[0]))
	case circuit.Gaussian:
		fmt.Fprintf(b, "G %d 0 %d %v %v\n", id, v+1, params[0], params[1])
	default:
		return fmt.Errorf("a leaf of the family %s, which the text does not have; write another format", leaf.Name())
	}
	return nil
}
