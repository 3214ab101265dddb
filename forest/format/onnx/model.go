package onnx

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
)

// Format is that of ONNX models.
var Format = format.Format{Name: "onnx", Recognises: recognises, Decode: read}

// recognises: ir_version comes first, and the head speaks of a tree ensemble or of a
// producer. A model of any other kind is recognised too and refused by name later.
func recognises(head []byte) bool {
	return len(head) > 4 && head[0] == 0x08 && head[1] > 0 && head[1] < 32 &&
		(bytes.Contains(head, []byte("TreeEnsemble")) || bytes.Contains(head, []byte("ai.onnx")) || bytes.Contains(head, []byte("onnx")))
}

// node is a node of the graph.
type node struct {
	op         string
	input      string // the first one's name
	results    []string
	attributes map[string]attribute
}

// result returns the name of an output, empty if there are fewer.
func (n *node) result(i int) string {
	if i < len(n.results) {
		return n.results[i]
	}
	return ""
}

// graph is what is read of a model.
type graph struct {
	producer string
	nodes    []node
	columns  map[string]int64  // of the inputs of the graph, 0 if unknown, and of what operators before the trees pass along
	kinds    map[string]uint64 // types of the inputs of the graph, and then of what casts makes of them
}

func parse(file []byte) (*graph, error) {
	g := &graph{producer: "onnx", columns: map[string]int64{}, kinds: map[string]uint64{}}
	found := false
	err := fields(file, func(f field) error {
		switch {
		case f.id == 2 && f.wire == 2:
			g.producer = "onnx of " + string(f.bytes)
		case f.id == 7 && f.wire == 2:
			found = true
			return g.parse(f.bytes)
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("no graph; the file is not a whole model")
	}
	return g, err
}

func (g *graph) parse(b []byte) error {
	return fields(b, func(f field) error {
		switch {
		case f.id == 1 && f.wire == 2:
			n := node{attributes: map[string]attribute{}}
			err := fields(f.bytes, func(f field) error {
				switch {
				case f.id == 1 && n.input == "":
					n.input = string(f.bytes)
				case f.id == 2:
					n.results = append(n.results, string(f.bytes))
				case f.id == 4:
					n.op = string(f.bytes)
				case f.id == 5:
					a, err := parseAttribute(f.bytes)
					n.attributes[a.name] = a
					return err
				}
				return nil
			})
			g.nodes = append(g.nodes, n)
			return err
		case f.id == 11 && f.wire == 2:
			name, columns, kind := input(f.bytes)
			g.columns[name], g.kinds[name] = columns, kind
		}
		return nil
	})
}

// input returns the name of an input of the graph, the last fixed axis of [rows, columns], 0 if it has none, and the type
// of its elements.
func input(b []byte) (name string, columns int64, kind uint64) {
	axes := 0
	inner := func(id int, next func([]byte) error) func(field) error {
		return func(f field) error {
			if f.id == id && f.wire == 2 {
				return next(f.bytes)
			}
			return nil
		}
	}
	axis := func(b []byte) error {
		axes++
		columns = 0
		return fields(b, func(f field) error {
			if f.id == 1 && f.wire == 0 {
				columns = int64(f.num)
			}
			return nil
		})
	}
	shape := inner(2, func(b []byte) error { return fields(b, inner(1, axis)) })
	tensor := inner(1, func(b []byte) error {
		return fields(b, func(f field) error {
			if f.id == 1 && f.wire == 0 {
				kind = f.num
			}
			return shape(f)
		})
	})
	kinds := inner(2, func(b []byte) error { return fields(b, tensor) })
	err := fields(b, func(f field) error { // ValueInfo: name, type.tensor_type with elem_type and shape.dim
		if f.id == 1 {
			name = string(f.bytes)
		}
		return kinds(f)
	})
	if err != nil || axes != 2 || columns < 0 || columns > forest.MaxFeatures {
		columns = 0
	}
	return name, columns, kind
}

// passing are operators that pass cells or results of a forest along.
var passing = []string{"Identity", "Cast", "ZipMap"}

func read(file []byte) (*forest.Forest, error) {
	g, err := parse(file)
	if err != nil {
		return nil, err
	}
	var tree *node
	for i := range g.nodes {
		n := &g.nodes[i]
		switch {
		case strings.HasPrefix(n.op, "TreeEnsemble"):
			if tree != nil {
				return nil, fmt.Errorf("two operators %.40q and %.40q; want one", tree.op, n.op)
			}
			tree = n
		case !slices.Contains(passing, n.op):
			return nil, fmt.Errorf("operator %.60q is not supported; want one TreeEnsemble alone", n.op)
		}
	}
	if tree == nil {
		return nil, fmt.Errorf("no TreeEnsemble in a graph of %d operators", len(g.nodes))
	}
	f := &forest.Forest{Source: g.producer, Target: tree.op, BaseLast: true, Alpha: 1, Sum: forest.Float64}
	switch tree.op {
	case "TreeEnsembleRegressor":
		err = tree.regressor(f)
	case "TreeEnsembleClassifier":
		err = tree.classifier(f)
	case "TreeEnsemble":
		err = tree.ensemble(f)
	default:
		err = fmt.Errorf("operator %.60q is unknown", tree.op)
	}
	if err != nil {
		return nil, fmt.Errorf("%.40q: %w", tree.op, err)
	}
	if err := g.casts(f, tree); err != nil {
		return nil, err
	}
	return f, finish(f, g.columns[tree.input])
}

// finish sets the number of features, of the input or else of the trees.
func finish(f *forest.Forest, columns int64) error {
	f.Features = int(columns)
	for i := range f.Trees {
		for j := range f.Trees[i].Nodes {
			n := &f.Trees[i].Nodes[j]
			if n.Test != forest.Leaf && columns == 0 && n.Feature < forest.MaxFeatures {
				f.Features = max(f.Features, int(n.Feature)+1)
			}
		}
	}
	return f.Check()
}

// transforms are the links by name, and by number in TreeEnsemble.
var transforms = []struct {
	name string
	link forest.Link
}{
	{"NONE", forest.Identity}, {"SOFTMAX", forest.Softmax}, {"LOGISTIC", forest.Sigmoid}, {"SOFTMAX_ZERO", forest.SoftmaxZero}, {"PROBIT", forest.Probit},
}

// aggregates are the combinations by name, and by number in TreeEnsemble.
var aggregates = []string{"AVERAGE", "SUM", "MIN", "MAX"}

// aggregate sets how the scores of trees are combined, by the number of the aggregate.
func aggregate(f *forest.Forest, k int64) error {
	switch k {
	case 0:
		f.Divisor = make([]float64, f.Outputs)
		for i := range f.Divisor {
			f.Divisor[i] = float64(max(1, len(f.Trees)))
		}
	case 1:
	case 2:
		f.Combine = forest.Min
	case 3:
		f.Combine = forest.Max
	default:
		return fmt.Errorf("aggregate_function %d is unknown", k)
	}
	return nil
}
