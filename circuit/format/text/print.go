package text

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// lineParams is how many parameters Print writes on the line of their node; more
// of them get a line for each row.
const lineParams = 16

// Print writes a valid graph as a text model that reads back as the same graph,
// strings and float32 parameters. Node i is called ni. Without params, or where
// they give format.ErrNoParams, parameters are left open.
func Print(w io.Writer, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc) error {
	return write(w, g, meta, params)
}

// Print64 is Print with float64 parameters: what is read back as float64 has the
// same bits, if the numbers are within the range of float32.
func Print64(w io.Writer, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc64) error {
	return write(w, g, meta, params)
}

func write[F float32 | float64](w io.Writer, g *circuit.Graph, meta map[string]string, params func(circuit.NodeID, []F) error) error {
	if err := circuit.Validate(g); err != nil {
		return fmt.Errorf("%w: %w", format.ErrModel, err)
	}
	b := bufio.NewWriter(w) // keeps its first error until Flush
	fmt.Fprintf(b, "circuit %d\n", g.NumVars)
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		fmt.Fprintf(b, "meta %s %s\n", strconv.Quote(k), strconv.Quote(meta[k]))
	}
	var buf []F
	for i := range g.Nodes {
		id := circuit.NodeID(i)
		line, err := formatNode(g, id)
		if err != nil {
			return fmt.Errorf("%w: node %d: %w", format.ErrModel, i, err)
		}
		b.WriteString(line)
		if params != nil && g.OwnsParams(id) {
			buf = slices.Grow(buf[:0], g.NumParams(id))[:g.NumParams(id)]
			err := params(id, buf)
			if err == nil {
				err = circuit.CheckParams(g, id, buf)
			}
			if err == nil {
				printRows(b, &g.Nodes[i], buf)
			} else if !errors.Is(err, format.ErrNoParams) {
				return fmt.Errorf("%w: %w", format.ErrModel, err)
			}
		}
		b.WriteByte('\n')
	}
	if int(g.Root) != len(g.Nodes)-1 {
		fmt.Fprintf(b, "root n%d\n", g.Root)
	}
	return b.Flush()
}

// formatNode is the statement of a node without its parameters.
func formatNode(g *circuit.Graph, id circuit.NodeID) (string, error) {
	n := &g.Nodes[id]
	var b strings.Builder
	fmt.Fprintf(&b, "n%d = %v", id, n.Kind)
	if n.Units > 1 && n.Kind != circuit.Product {
		fmt.Fprintf(&b, "[%d]", n.Units)
	}
	if n.Kind == circuit.Input {
		leaf, err := formatLeaf(n.Leaf)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, " x%d %s", n.Var, leaf)
	}
	for _, c := range n.Children {
		fmt.Fprintf(&b, " n%d", c)
	}
	if e := n.Edges; e != nil {
		fmt.Fprintf(&b, " edges %dx%d", e.Rows, e.Cols)
		for _, p := range e.Pairs {
			fmt.Fprintf(&b, " (%d,%d)", p[0], p[1])
		}
		if e.Mask != nil {
			b.WriteString(" mask")
			for i := range len(e.Pairs) * e.Rows * e.Cols {
				if i%(e.Rows*e.Cols) == 0 {
					b.WriteByte(' ')
				}
				b.WriteByte('0' + byte(e.Mask[i>>6]>>(i&63)&1))
			}
		}
	}
	if to := n.Tie.Node(); to != circuit.None {
		fmt.Fprintf(&b, " tied n%d", to)
	}
	return b.String(), nil
}

// printRows writes parameters, with a slash between rows.
func printRows[F float32 | float64](b *bufio.Writer, n *circuit.Node, p []F) {
	if isCoin(n) {
		if ones, ok := singleCoins(p); ok {
			p = ones
		}
	}
	row := len(p) / n.Units
	if n.Kind == circuit.Sum {
		b.WriteString(" :")
		if n.Edges != nil {
			row = n.Edges.Rows * n.Edges.Cols
		}
	}
	start := " "
	if len(p) > lineParams {
		start = "\n  "
	}
	for i, v := range p {
		switch {
		case i == 0:
			b.WriteString(start)
		case i%row == 0:
			b.WriteString(start + "/ ")
		default:
			b.WriteByte(' ')
		}
		b.WriteString(formatFloat(v))
	}
}
