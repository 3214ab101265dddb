package equations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile/reduction"
)

// Limits of a circuit, so that a slip in a size does not fill the memory.
const (
	maxNodes    = 1 << 22
	maxChildren = 1 << 24 // of all nodes
	maxPoints   = 1 << 20 // of one element
	maxChain    = 1 << 17 // elements each of which needs the next; they are in hand at one time
)

// one is the constant 1, the empty product.
const one = circuit.None

// pending marks an element that is being built.
const pending circuit.NodeID = -2

// lowering builds the graph of a model, element by element.
type lowering struct {
	*model
	opts     *Options
	graph    *circuit.Graph
	written  map[string][]*source // the statements of an array
	elements map[string]circuit.NodeID
	nodes    map[string]circuit.NodeID // by kind, parameters and children, so that equal ones are one
	owners   map[string]circuit.NodeID // by parameters
	origins  []origin                  // of nodes
	children int
	depth    int
}

// source is a statement and its points.
type source struct {
	*rule
	shapes []shape
	scan   *scan
}

// origin is where a node comes from.
type origin struct {
	rule  *source
	point []int64
}

func newLowering(m *model, o *Options) *lowering {
	return &lowering{
		model: m, opts: o, graph: &circuit.Graph{NumVars: o.Vars},
		written: map[string][]*source{}, elements: map[string]circuit.NodeID{},
		nodes: map[string]circuit.NodeID{}, owners: map[string]circuit.NodeID{},
	}
}

// run builds the output and what it needs.
func (w *lowering) run() (*circuit.Graph, error) {
	for _, r := range w.rules {
		shapes, ok := w.shapes(r)
		if !ok {
			panic("BUG: equations: units were chosen that a statement does not allow")
		}
		s, err := w.scanOf(r)
		if err != nil {
			return nil, err
		}
		w.written[r.Array] = append(w.written[r.Array], &source{r, shapes, s})
	}
	out := w.prog.Array(w.prog.Outputs[0])
	root, err := w.element(out, nil, out.Pos)
	if err != nil {
		return nil, err
	}
	read := make([]bool, w.opts.Vars)
	for i := range w.graph.Nodes {
		if n := &w.graph.Nodes[i]; n.Kind == circuit.Input {
			read[n.Var] = true
		}
	}
	if v := slices.Index(read, false); v >= 0 {
		return nil, refuse(out.Pos, "%s does not depend on %s[%d]; every element of the row is read by an input", out.Name, w.row.Name, v)
	}
	w.graph.Root = root
	return w.graph, w.checkScopes()
}

// checkScopes says of a circuit that is not valid which statement is to blame.
func (w *lowering) checkScopes() error {
	err := circuit.Validate(w.graph)
	if err == nil {
		return nil
	}
	scopes, failed := circuit.ScopesOf(w.graph)
	if failed != nil {
		return err
	}
	for i := range w.graph.Nodes {
		n := &w.graph.Nodes[i]
		for k, c := range n.Children {
			first := scopes.Of(n.Children[0])
			if n.Kind == circuit.Sum {
				if s := scopes.Of(c); !slices.Equal(first.Vars(), s.Vars()) {
					return w.blame(circuit.NodeID(i), "is not smooth: one term of the sum has the variables %v and another %v; all have the same", first, s)
				}
				continue
			}
			for _, d := range n.Children[:k] {
				if s, t := scopes.Of(d), scopes.Of(c); s.Overlaps(t) {
					return w.blame(circuit.NodeID(i), "is not decomposable: one factor has the variables %v and another %v; no two share one", s, t)
				}
			}
		}
	}
	return err
}

func (w *lowering) blame(id circuit.NodeID, format string, args ...any) error {
	o := w.origins[id]
	return o.rule.refuse(o.point, format, args...)
}

// refuse returns an error about a statement at a point.
func (r *source) refuse(point []int64, format string, args ...any) error {
	return refuse(r.Pos, "%s%s %s", r.Array, at(r, point), fmt.Sprintf(format, args...))
}

// at says at which point of a statement.
func at(r *source, point []int64) string {
	if len(r.Dims) == 0 {
		return "[]"
	}
	return fmt.Sprintf(" at [%s] = %s", strings.Join(r.Dims, ","), strings.ReplaceAll(fmt.Sprint(point), " ", ","))
}

// element returns the node of an element, whose index is without that of the units.
func (w *lowering) element(a *reduction.Array, index []int64, from reduction.Pos) (circuit.NodeID, error) {
	key := fmt.Sprint(a.Name, index)
	if id, ok := w.elements[key]; ok {
		if id == pending {
			return 0, refuse(from, "%s%v needs itself", a.Name, index)
		}
		return id, nil
	}
	if w.depth == maxChain {
		return 0, refuse(from, "%s%v is at the end of a chain of %d elements that each need the next; choose smaller sizes", a.Name, index, maxChain)
	}
	if len(w.elements) == maxNodes {
		return 0, refuse(from, "%s%v is one of more than %d elements; choose smaller sizes", a.Name, index, maxNodes)
	}
	w.elements[key] = pending
	w.depth++
	id, err := w.build(a, index, from)
	w.depth--
	if err != nil {
		return 0, err
	}
	w.elements[key] = id
	return id, nil
}

// build builds an element from the points that write it: one point of =, the points of one
// +=, or all points of *=.
func (w *lowering) build(a *reduction.Array, index []int64, from reduction.Pos) (circuit.NodeID, error) {
	var factors []circuit.NodeID
	var writer *source
	var points [][]int64
	for _, r := range slices.Backward(w.written[a.Name]) {
		found := r.scan.of(index, maxPoints)
		switch {
		case len(found) > maxPoints:
			return 0, r.refuse(found[0], "is one of more than %d terms; choose smaller sizes", maxPoints)
		case len(found) == 0:
			continue
		case r.Op == reduction.Assign && len(found) > 1:
			return 0, r.refuse(found[1], "writes an element twice")
		case writer != nil && r.Op != reduction.Multiply:
			return 0, r.refuse(found[0], "writes an element that %d:%d writes as well; write it with one statement", writer.Line, writer.Column)
		}
		writer, points = r, found
		if r.Op == reduction.Add {
			continue
		}
		for _, p := range slices.Backward(found) {
			list, err := w.factors(r, p)
			if err != nil {
				return 0, err
			}
			factors = append(factors, list...)
		}
	}
	switch op := w.written[a.Name][0].Op; {
	case writer != nil && op == reduction.Add:
		return w.sum(writer, 0, points)
	case writer == nil && op != reduction.Multiply:
		return 0, refuse(from, "%s%v is 0, as no point of a statement writes it; a circuit adds up distributions", a.Name, index)
	case writer == nil:
		return one, nil
	}
	slices.Reverse(factors)
	return w.product(writer, points[0], factors)
}

// factors builds the values that are multiplied at a point. The last one is built first: it
// is where recursions are written, so a chain is laid down from its end, as package
// structures does, and equal circuits are equal graphs. They are returned in that order.
func (w *lowering) factors(r *source, point []int64) (list []circuit.NodeID, err error) {
	for k := range slices.Backward(r.values) {
		f := &r.values[k]
		index, err := w.indices(&r.values[k], r, point)
		if err != nil {
			return nil, err
		}
		var id circuit.NodeID
		if f.code >= 0 {
			id, err = w.input(r, point, f, index)
		} else {
			id, err = w.element(f.array, index, f.Pos)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, nil
}

// indices evaluates the indices of a read, without that of the units. That of a category
// is the variable.
func (w *lowering) indices(f *factor, r *source, point []int64) ([]int64, error) {
	index := make([]int64, 0, len(f.index))
	for k := range f.index {
		if u, ok := w.units[f.Array]; ok && u == k {
			continue
		}
		x, err := w.indexAt(f, k, r, point)
		if err != nil {
			return nil, err
		}
		index = append(index, x)
	}
	return index, nil
}

// indexAt evaluates index k of a read at a point. What package reduction leaves to the run is found here: an index that is outside of
// its array at some sizes alone.
func (w *lowering) indexAt(f *factor, k int, r *source, point []int64) (int64, error) {
	x, err := w.eval(&f.index[k], r.lookup(point))
	if err != nil {
		return 0, err
	}
	name, number, extent := w.row.Name, 1, w.opts.Vars
	if k != f.code {
		name, number, extent = f.Array, k+1, w.extent(f.array, k)
	}
	if x < 0 || x >= int64(extent) {
		return 0, r.refuse(point, "reads %s at index %d, which is %d; want 0 to %d", name, number, x, extent-1)
	}
	return x, nil
}

// width is the number of units of an array's nodes.
func (w *lowering) width(a *reduction.Array) int {
	if k, ok := w.units[a.Name]; ok {
		return w.extent(a, k)
	}
	return 1
}

// input builds a leaf: the units of a table over a variable. Tables are tied over the variables.
func (w *lowering) input(r *source, point []int64, f *factor, index []int64) (circuit.NodeID, error) {
	code := f.code
	if u, ok := w.units[f.Array]; ok && u < code {
		code--
	}
	v := int(index[code])
	given := slices.Delete(slices.Clone(index), code, code+1)
	n := circuit.Node{Kind: circuit.Input, Units: w.width(f.array), Var: v, Leaf: w.opts.Leaf(v)}
	return w.add(r, point, n, fmt.Sprint(f.Array, given))
}

// product builds a product; 1 is left out of it.
func (w *lowering) product(r *source, point []int64, factors []circuit.NodeID) (circuit.NodeID, error) {
	factors = slices.DeleteFunc(factors, func(id circuit.NodeID) bool { return id == one })
	switch len(factors) {
	case 0:
		return one, nil
	case 1:
		return factors[0], nil
	}
	return w.add(r, point, circuit.Node{Kind: circuit.Product, Units: w.graph.Nodes[factors[0]].Units, Children: factors}, "")
}

// add adds a node unless an equal one is there. Params names the parameters of an input or
// sum: nodes of the same ones are tied.
func (w *lowering) add(r *source, point []int64, n circuit.Node, params string) (circuit.NodeID, error) {
	key := fmt.Sprint(n.Kind, n.Var, params, n.Children)
	if id, ok := w.nodes[key]; ok {
		return id, nil
	}
	if w.children += len(n.Children); len(w.graph.Nodes) == maxNodes || w.children > maxChildren {
		return 0, r.refuse(point, "makes the circuit larger than %d nodes and %d children of nodes; choose smaller sizes", maxNodes, maxChildren)
	}
	id := circuit.NodeID(len(w.graph.Nodes))
	if n.Kind != circuit.Product {
		if owner, ok := w.owners[params]; ok {
			n.Tie, n.Edges = circuit.TieTo(owner), w.graph.Nodes[owner].Edges
		} else {
			w.owners[params] = id
		}
	}
	w.graph.Nodes = append(w.graph.Nodes, n)
	w.origins = append(w.origins, origin{r, point})
	w.nodes[key] = id
	return id, nil
}
