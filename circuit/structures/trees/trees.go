package trees

import (
	"errors"
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
)

// ErrTrees means that a forest has no circuit.
var ErrTrees = errors.New("trees: no circuit for this forest")

// maxParams bounds the parameters of a circuit.
const maxParams = 1 << 26

// Circuit is a forest as a circuit, with its parameters.
type Circuit struct {
	Graph  *circuit.Graph
	Schema *dataset.Schema
	params [][]float64 // of each node
}

// New makes the circuit of a forest that has passed Check and of rows, one at least. smoothing, which is positive, is how many rows are
// spread over the leaves of a tree in addition to those that reach them, and over the bins of each leaf.
func New(f *forest.Forest, rows []float64, smoothing float64) (*Circuit, error) {
	switch {
	case f.Linear != nil || len(f.Trees) == 0:
		return nil, fmt.Errorf("%w: it has no trees", ErrTrees)
	case f.Features < 1:
		return nil, fmt.Errorf("%w: it has no features that a density could be over", ErrTrees)
	case len(rows) == 0 || len(rows)%f.Features != 0:
		return nil, fmt.Errorf("%w: %d cells for rows of %d; give one row at least", ErrTrees, len(rows), f.Features)
	case !(smoothing > 0 && smoothing <= math.MaxFloat32):
		return nil, fmt.Errorf("%w: smoothing %v; want a positive number", ErrTrees, smoothing)
	}
	f, err := onFloat32(f)
	if err != nil {
		return nil, err
	}
	b := &builder{f: f, rows: make([]float64, len(rows)), smoothing: smoothing}
	for i, x := range rows { // as circuits have cells
		b.rows[i] = float64(float32(x))
	}
	if b.edges, err = edges(f, b.rows); err != nil {
		return nil, err
	}
	if f.Has(forest.Class) == nil {
		b.class = make([]float64, len(rows)/f.Features)
		if err := forest.Evaluate(f, forest.Class, b.rows, b.class); err != nil {
			return nil, err
		}
	}
	b.schema()
	b.out.Graph = &circuit.Graph{NumVars: len(b.out.Schema.Columns)}
	var roots []circuit.NodeID
	for i := range f.Trees {
		root, err := b.tree(&f.Trees[i])
		if err != nil {
			return nil, fmt.Errorf("%w: tree %d", err, i)
		}
		roots = append(roots, root)
	}
	b.out.Graph.Root = roots[0]
	if len(roots) > 1 {
		weights := make([]float64, len(roots))
		for i := range weights {
			weights[i] = 1 / float64(len(roots))
		}
		b.out.Graph.Root = b.add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: roots}, weights)
	}
	return &b.out, nil
}

// Params fills dst with the parameters of a node.
func (c *Circuit) Params(id circuit.NodeID, dst []float64) error {
	if len(dst) != len(c.params[id]) {
		return fmt.Errorf("%w: node %d has %d parameters, want %d", ErrTrees, id, len(c.params[id]), len(dst))
	}
	copy(dst, c.params[id])
	return nil
}

type builder struct {
	f         *forest.Forest
	rows      []float64
	class     []float64 // of each row, nil without classes
	edges     [][]float64
	smoothing float64
	total     int // parameters
	out       Circuit
}

// schema makes the columns: bins of the features, and the class.
func (b *builder) schema() {
	s := &dataset.Schema{Columns: make([]dataset.Column, b.f.Features)}
	n := float64(len(b.rows) / b.f.Features)
	for k := range s.Columns {
		c := &s.Columns[k]
		e := b.edges[k]
		// Beyond the edges lies what smoothing would give to one more range as wide as theirs.
		*c = dataset.Column{Kind: dataset.Continuous, Edges: e, Outside: b.smoothing / (n + b.smoothing) / (e[len(e)-1] - e[0])}
		if b.f.Names != nil {
			c.Name = b.f.Names[k]
		}
	}
	if b.class != nil {
		c := dataset.Column{Kind: dataset.Discrete, Categories: b.f.Classes, Labels: b.f.Labels}
		if b.f.Names != nil {
			for c.Name = "class"; contains(b.f.Names, c.Name); {
				c.Name = "predicted " + c.Name
			}
		}
		s.Columns = append(s.Columns, c)
	}
	b.out.Schema = s
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func (b *builder) add(n circuit.Node, params []float64) circuit.NodeID {
	g := b.out.Graph
	g.Nodes = append(g.Nodes, n)
	b.out.params = append(b.out.params, params)
	return circuit.NodeID(len(g.Nodes) - 1)
}

// tree adds the nodes of a tree, and returns its sum.
func (b *builder) tree(t *forest.Tree) (circuit.NodeID, error) {
	masses := 0 // of a leaf
	for k := range b.edges {
		masses += len(b.edges[k]) - 1
	}
	if b.class != nil {
		masses += b.f.Classes
	}
	all, ok := boxes(b.f, t, b.edges, (maxParams-b.total)/masses)
	if !ok {
		return 0, fmt.Errorf("%w: more than %d masses of bins and classes; give a forest with fewer leaves, features, thresholds or classes", ErrTrees, maxParams)
	}
	unit := make([]int, len(t.Nodes)) // of the leaf
	var leaves []box
	for i, x := range all {
		if unit[i] = -1; x != nil {
			unit[i] = len(leaves)
			leaves = append(leaves, x)
		}
	}
	b.total += masses * len(leaves)
	n := len(b.rows) / b.f.Features
	counts := make([]float64, len(leaves))
	of := make([]int, n) // the leaf of each row
	for r := range n {
		last := int32(0)
		t.Visit(b.rows[r*b.f.Features:(r+1)*b.f.Features], func(node int32) { last = node })
		if of[r] = unit[last]; of[r] >= 0 { // else missing cells take a way that no number takes
			counts[of[r]]++
		}
	}
	var inputs []circuit.NodeID
	for k := range b.f.Features {
		inputs = append(inputs, b.feature(k, leaves, of))
	}
	if b.class != nil {
		inputs = append(inputs, b.classes(len(leaves), of))
	}
	product := b.add(circuit.Node{Kind: circuit.Product, Units: len(leaves), Children: inputs}, nil)
	weights, sum := make([]float64, len(leaves)), 0.0
	for i, c := range counts {
		weights[i] = c + b.smoothing/float64(len(leaves))
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
	return b.add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{product}}, weights), nil
}

// feature adds the histograms of a feature, one for each leaf: shares of the leaf's rows, and of smoothing by the widths of the bins in its box.
func (b *builder) feature(k int, leaves []box, of []int) circuit.NodeID {
	e := b.edges[k]
	bins := len(e) - 1
	masses := make([]float64, len(leaves)*bins)
	for r, leaf := range of {
		if x := b.rows[r*b.f.Features+k]; leaf >= 0 && !math.IsNaN(x) {
			masses[leaf*bins+bin(e, x)]++
		}
	}
	for i, leaf := range leaves {
		m, first, last := masses[i*bins:(i+1)*bins], leaf[k][0], leaf[k][1]
		sum := 0.0
		for j := range m {
			if j < first || j >= last { // of rows that come here by a missing cell of another test of the feature there are none
				m[j] = 0
				continue
			}
			m[j] += b.smoothing * (e[j+1] - e[j]) / (e[last] - e[first])
			sum += m[j]
		}
		for j := range m {
			m[j] /= sum
		}
	}
	codes := make([]int, bins+1)
	for i := range codes {
		codes[i] = i
	}
	return b.add(circuit.Node{Kind: circuit.Input, Units: len(leaves), Var: k, Leaf: circuit.Histogram{Edges: codes}}, masses)
}

// bin returns the bin of a number within the edges.
func bin(e []float64, x float64) int {
	lo, hi := 0, len(e)-1
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; e[mid] <= x {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// classes adds the shares of the classes that the forest predicts for the rows of each leaf.
func (b *builder) classes(leaves int, of []int) circuit.NodeID {
	n := b.f.Classes
	masses := make([]float64, leaves*n)
	for i := range masses {
		masses[i] = b.smoothing / float64(n)
	}
	for r, leaf := range of {
		if leaf >= 0 {
			masses[leaf*n+int(b.class[r])]++
		}
	}
	for i := range leaves {
		m, sum := masses[i*n:(i+1)*n], 0.0
		for _, x := range m {
			sum += x
		}
		for j := range m {
			m[j] /= sum
		}
	}
	return b.add(circuit.Node{Kind: circuit.Input, Units: leaves, Var: b.f.Features, Leaf: circuit.Categorical{Categories: n}}, masses)
}
