package onnx

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/formattest"
)

// Encoders of protocol buffers.
func block(id int, parts ...[]byte) []byte {
	var body []byte
	for _, p := range parts {
		body = append(body, p...)
	}
	out := binary.AppendUvarint(nil, uint64(id)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(body))), body...)
}

func varint(id int, x int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(id)<<3), uint64(x))
}

func text(id int, s string) []byte { return block(id, []byte(s)) }

// attributes by name: ints, floats, strings, a string, an int, and tensors.
type (
	ints     []int64
	floats   []float64
	strs     []string
	float32s []float32 // a tensor
	doubles  []float64 // a tensor
	bytes8   []byte    // a tensor
)

func attr(name string, v any) []byte {
	parts := [][]byte{text(1, name)}
	tensor := func(kind int64, raw []byte) { parts = append(parts, block(5, varint(2, kind), block(9, raw))) }
	switch v := v.(type) {
	case ints:
		for _, x := range v {
			parts = append(parts, varint(8, x))
		}
	case floats:
		for _, x := range v {
			parts = append(parts, binary.LittleEndian.AppendUint32(binary.AppendUvarint(nil, 7<<3|5), math.Float32bits(float32(x))))
		}
	case strs:
		for _, s := range v {
			parts = append(parts, text(9, s))
		}
	case string:
		parts = append(parts, text(4, v))
	case int:
		parts = append(parts, varint(3, int64(v)))
	case float32s:
		var raw []byte
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		tensor(tensorFloat32, raw)
	case doubles:
		var raw []byte
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(x))
		}
		tensor(tensorFloat64, raw)
	case bytes8:
		tensor(tensorUint8, v)
	}
	return block(5, parts...)
}

// model is an operator with attributes, and others after it; columns is the width of
// the input.
type model struct {
	op      string
	attrs   map[string]any
	after   []string // of one value each, the last result of the one before; Cast/N has the attribute to
	before  []string // of X, likewise
	columns int64
	unread  int64    // the width of an input in front that nothing reads; 0: there is none
	kind    int64    // of the elements of the input; 0: float32
	input   string   // of the operator; empty: the last one before it
	results []string // of the operator; empty: Y
	taken   string   // the result that the first of after has; empty: the last
}

func (m model) bytes() []byte {
	if m.kind == 0 {
		m.kind = tensorFloat32
	}
	var graph [][]byte
	chain := func(list []string, at string) string {
		for i, op := range list {
			op, to, _ := strings.Cut(op, "/")
			parts := [][]byte{text(1, at), text(2, at+strconv.Itoa(i)), text(4, op)}
			if kind, err := strconv.Atoi(to); err == nil {
				parts = append(parts, attr("to", kind))
			}
			at += strconv.Itoa(i)
			graph = append(graph, block(1, parts...))
		}
		return at
	}
	if at := chain(m.before, "X"); m.input == "" {
		m.input = at
	}
	if m.results == nil {
		m.results = []string{"Y"}
	}
	parts := [][]byte{text(1, m.input), text(4, m.op)}
	for _, name := range m.results {
		parts = append(parts, text(2, name))
	}
	for _, name := range names(m.attrs) {
		parts = append(parts, attr(name, m.attrs[name]))
	}
	graph = append(graph, block(1, parts...))
	if m.taken == "" {
		m.taken = m.results[len(m.results)-1]
	}
	chain(m.after, m.taken)
	input := func(name string, columns int64) {
		graph = append(graph, block(11, text(1, name), block(2, block(1, varint(1, m.kind), block(2, block(1), block(1, varint(1, columns)))))))
	}
	if m.unread > 0 {
		input("W", m.unread)
	}
	input("X", m.columns)
	return append(append(varint(1, 7), text(2, "test")...), block(7, graph...)...)
}

func names(m map[string]any) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	for i := range out { // few: in order, so that files are the same each time
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out
}

// chain has every mode of the old operators, one below the other: node i asks whether
// the cell is ... 1, and a yes is leaf 10+i.
func chain() model {
	m := model{op: "TreeEnsembleRegressor", columns: 6, after: []string{"Cast/1", "ZipMap"}}
	kinds := []string{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}
	var trees, nodes, features, yes, no, missing ints
	var modes strs
	var values, weights floats
	for i, kind := range kinds {
		trees, nodes, features = append(trees, 3), append(nodes, int64(i)), append(features, int64(i))
		yes, no, modes, values = append(yes, int64(10+i)), append(no, int64(i+1)), append(modes, kind), append(values, 1)
		missing = append(missing, int64(i%2))
	}
	var targetTrees, targetNodes, ids ints
	for i := range 7 {
		id := int64(10 + i)
		if i == 6 {
			id = 6
		}
		trees, nodes, features, yes, no = append(trees, 3), append(nodes, id), append(features, 0), append(yes, 0), append(no, 0)
		modes, values, missing = append(modes, "LEAF"), append(values, 0), append(missing, 0)
		for o := range 2 {
			targetTrees, targetNodes, ids, weights = append(targetTrees, 3), append(targetNodes, id), append(ids, int64(o)), append(weights, float64(i)*float64(1-3*o))
		}
	}
	m.attrs = map[string]any{
		"nodes_treeids": trees, "nodes_nodeids": nodes, "nodes_featureids": features, "nodes_truenodeids": yes, "nodes_falsenodeids": no, "nodes_modes": modes,
		"nodes_values": values, "nodes_missing_value_tracks_true": missing, "target_treeids": targetTrees, "target_nodeids": targetNodes, "target_ids": ids,
		"target_weights": weights, "n_targets": 2, "base_values": floats{0.5, 0}, "aggregate_function": "SUM", "post_transform": "NONE",
	}
	return m
}

func TestNodeModes(t *testing.T) {
	formattest.Run(t, Format, chain().bytes())
	f, err := Format.Decode(chain().bytes())
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	no := [6]float64{2, 1, 0, 1, 0, 1} // the cell that answers no to each
	for i, tt := range []struct{ yes, missing float64 }{{1, 0}, {0.5, 1}, {1, 0}, {1.5, 1}, {1, 0}, {0, 1}} {
		for _, cell := range []float64{tt.yes, no[i], nan} {
			row := no
			row[i] = cell
			want := 6.0
			if cell == tt.yes || cell != cell && tt.missing == 1 {
				want = float64(10 + i)
			}
			var leaf [1]float64
			if err := forest.Evaluate(f, forest.Leaves, row[:], leaf[:]); err != nil || leaf[0] != want {
				t.Errorf("node %d, cell %v: leaf %v, want %v: %v", i, cell, leaf[0], want, err)
			}
		}
	}
	var out [2]float64
	if err := forest.Evaluate(f, forest.Margin, no[:], out[:]); err != nil || out != [2]float64{6.5, -12} {
		t.Errorf("margins %v, want 6.5 and -12: %v", out, err)
	}
	m := chain()
	delete(m.attrs, "nodes_missing_value_tracks_true")
	if f, err = Format.Decode(m.bytes()); err != nil {
		t.Fatal(err)
	}
	var leaf [1]float64
	row := [6]float64{nan, nan, nan, nan, nan, nan} // no comparison holds for NaN, except that it is not 1
	if err := forest.Evaluate(f, forest.Leaves, row[:], leaf[:]); err != nil || leaf[0] != 15 {
		t.Errorf("missing cells without tracks: leaf %v, want 15: %v", leaf[0], err)
	}
}

// TestWideCells: cells of a graph whose input is float64 are compared as they are, with float32 thresholds too; those that
// another operator casts first are float32.
func TestWideCells(t *testing.T) {
	row := []float64{1 + 0x1p-40, 1, 0, 1, 0, 1} // above the threshold 1 of node 0, but not as a float32
	for _, tt := range []struct {
		kind  int64
		input string
		want  float64
	}{{tensorFloat32, "X", 10}, {tensorFloat64, "X", 6}, {tensorFloat64, "cast", 10}} {
		m := chain()
		m.kind, m.input = tt.kind, tt.input
		f, err := Format.Decode(m.bytes())
		if err != nil {
			t.Fatal(err)
		}
		var leaf [1]float64
		if err := forest.Evaluate(f, forest.Leaves, row, leaf[:]); err != nil || leaf[0] != tt.want {
			t.Errorf("type %d of %s: leaf %v, want %v: %v", tt.kind, tt.input, leaf[0], tt.want, err)
		}
	}
}

// TestCasts: a Cast of cells says how they are compared, one of scores how they are rounded, and one of labels does nothing; others,
// which change numbers, are refused by name.
func TestCasts(t *testing.T) {
	const float, double, i32, i64, boolean, str = "Cast/1", "Cast/11", "Cast/6", "Cast/7", "Cast/9", "Cast/8"
	row := []float64{1 + 0x1p-40, 1, 0, 1, 0, 1} // above the threshold 1 of node 0, but not as a float32
	for _, tt := range []struct {
		kind   int64
		before []string
		want   float64 // leaf; 0: refused
	}{
		{tensorFloat64, []string{float}, 10}, {tensorFloat64, []string{double}, 6}, {tensorFloat64, []string{float, double}, 10}, {tensorFloat64, []string{"Identity"}, 6},
		{tensorFloat32, []string{double}, 10}, {tensorFloat32, []string{"Identity", float}, 10}, {castInt64, []string{float}, 10}, {castInt64, []string{double}, 6},
		{tensorFloat32, []string{i64}, 0}, {tensorFloat32, []string{i32, float}, 0}, {tensorFloat32, []string{boolean}, 0}, {tensorFloat32, []string{"Cast"}, 0},
	} {
		for _, wide := range []bool{false, true} { // thresholds
			m := chain()
			m.kind, m.before = tt.kind, tt.before
			if wide {
				m.attrs["nodes_values_as_tensor"] = doubles(m.attrs["nodes_values"].(floats))
				delete(m.attrs, "nodes_values")
			}
			f, err := Format.Decode(m.bytes())
			if tt.want == 0 {
				if err == nil || !strings.Contains(err.Error(), `operator "Cast" to type`) {
					t.Errorf("%v of type %d: %v, want a refusal", tt.before, tt.kind, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%v of type %d: %v", tt.before, tt.kind, err)
			}
			var leaf [1]float64
			if err := forest.Evaluate(f, forest.Leaves, row, leaf[:]); err != nil || leaf[0] != tt.want {
				t.Errorf("%v of type %d, doubles %v: leaf %v, want %v: %v", tt.before, tt.kind, wide, leaf[0], tt.want, err)
			}
		}
	}
	for _, tt := range []struct {
		op, taken, cast string
		good            bool
	}{
		{"TreeEnsembleRegressor", "Y", float, true}, {"TreeEnsembleRegressor", "Y", double, true}, {"TreeEnsembleRegressor", "Y", i64, false}, {"TreeEnsembleRegressor", "Y", boolean, false},
		{"TreeEnsembleClassifier", "L", i32, true}, {"TreeEnsembleClassifier", "L", i64, true}, {"TreeEnsembleClassifier", "L", str, true}, {"TreeEnsembleClassifier", "L", float, true},
		{"TreeEnsembleClassifier", "L", boolean, false}, {"TreeEnsembleClassifier", "Y", i64, false}, {"TreeEnsembleClassifier", "Y", str, false}, {"TreeEnsembleClassifier", "Y", double, true},
	} {
		attrs := map[string]any{}
		if tt.op == "TreeEnsembleClassifier" {
			attrs["classlabels_int64s"] = ints{0, 1}
		}
		m := two(tt.op, attrs)
		if m.taken, m.after = tt.taken, []string{"Identity", tt.cast}; tt.op == "TreeEnsembleClassifier" {
			m.results = []string{"L", "Y"}
		}
		if _, err := Format.Decode(m.bytes()); (err == nil) != tt.good || err != nil && !strings.Contains(err.Error(), `operator "Cast" to type`) {
			t.Errorf("%v of %s of %s: %v", tt.cast, tt.taken, tt.op, err)
		}
	}
	m := two("TreeEnsembleRegressor", nil)
	m.attrs["target_weights_as_tensor"] = doubles{0.1, 0.2}
	delete(m.attrs, "target_weights")
	for _, after := range [][]string{nil, {float}, {double}} { // the operator gives float32, also of doubles
		m.after = after
		f, err := Format.Decode(m.bytes())
		if err != nil {
			t.Fatal(err)
		}
		want := float64(float32(0.1 + 0.2))
		var out [1]float64
		if err := forest.Evaluate(f, forest.Prediction, []float64{0}, out[:]); err != nil || out[0] != want {
			t.Errorf("scores of doubles after %v: %v, want %v: %v", after, out[0], want, err)
		}
	}
}

// two are two trees of one leaf each, 2 and -6.
func two(op string, attrs map[string]any) model {
	prefix := "target"
	if op == "TreeEnsembleClassifier" {
		prefix = "class"
	}
	m := model{op: op, columns: 1, attrs: map[string]any{
		"nodes_treeids": ints{0, 1}, "nodes_nodeids": ints{0, 0}, "nodes_featureids": ints{0, 0}, "nodes_truenodeids": ints{0, 0}, "nodes_falsenodeids": ints{0, 0},
		"nodes_modes": strs{"LEAF", "LEAF"}, "nodes_values": floats{0, 0}, prefix + "_treeids": ints{0, 1}, prefix + "_nodeids": ints{0, 0},
		prefix + "_ids": ints{0, 0}, prefix + "_weights": floats{2, -6},
	}}
	for name, v := range attrs {
		m.attrs[name] = v
	}
	return m
}

func TestAggregatesAndTransforms(t *testing.T) {
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	labels := strs{"no", "yes"}
	for name, tt := range map[string]struct {
		m     model
		want  []float64
		class float64
	}{
		"sum":              {two("TreeEnsembleRegressor", map[string]any{"base_values": floats{1}}), []float64{-3}, -1},
		"average":          {two("TreeEnsembleRegressor", map[string]any{"aggregate_function": "AVERAGE", "base_values": floats{1}}), []float64{-1}, -1},
		"min":              {two("TreeEnsembleRegressor", map[string]any{"aggregate_function": "MIN", "base_values": floats{1}}), []float64{-5}, -1},
		"max":              {two("TreeEnsembleRegressor", map[string]any{"aggregate_function": "MAX"}), []float64{2}, -1},
		"logistic":         {two("TreeEnsembleRegressor", map[string]any{"post_transform": "LOGISTIC"}), []float64{logistic(-4)}, -1},
		"probit":           {two("TreeEnsembleRegressor", map[string]any{"post_transform": "PROBIT", "target_weights": floats{0.5, 0.25}}), []float64{0.6745}, -1},
		"two, none":        {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels}), []float64{4, -4}, 0},
		"two, logit":       {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "post_transform": "LOGISTIC"}), []float64{logistic(4), logistic(-4)}, 0},
		"two, softmax":     {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "post_transform": "SOFTMAX"}), []float64{4, -4}, 0},
		"two, probability": {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "class_weights": floats{0.5, 0.25}}), []float64{0.25, 0.75}, 1},
		"two, none negative": {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "class_weights": floats{3, 1}, "post_transform": "LOGISTIC"}),
			[]float64{logistic(-4), logistic(4)}, 1},
		"two, at most a half": {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "class_weights": floats{0.25, 0.25}, "post_transform": "LOGISTIC"}),
			[]float64{logistic(-0.5), logistic(0.5)}, 0},
		"two, base": {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "class_weights": floats{0.25, 0.25}, "base_values": floats{0.125}, "post_transform": "LOGISTIC"}),
			[]float64{logistic(-0.625), logistic(0.625)}, 1},
		"second":          {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "class_ids": ints{1, 1}}), []float64{0, -4}, 0},
		"second, logit":   {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "class_ids": ints{1, 1}, "class_weights": floats{3, -1}, "post_transform": "LOGISTIC"}), []float64{0.5, logistic(2)}, 1},
		"second, softmax": {two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": labels, "class_ids": ints{1, 1}, "post_transform": "SOFTMAX"}), []float64{logistic(4), logistic(-4)}, 0},
		"three": {two("TreeEnsembleClassifier", map[string]any{"classlabels_int64s": ints{4, 5, 6}, "class_ids": ints{2, 1}, "post_transform": "SOFTMAX"}),
			[]float64{math.Exp(-2) / (1 + math.Exp(-2) + math.Exp(-8)), math.Exp(-8) / (1 + math.Exp(-2) + math.Exp(-8)), 1 / (1 + math.Exp(-2) + math.Exp(-8))}, 2},
		"three, softmax zero": {two("TreeEnsembleClassifier", map[string]any{"classlabels_int64s": ints{4, 5, 6}, "class_ids": ints{2, 1}, "post_transform": "SOFTMAX_ZERO"}),
			[]float64{0, math.Exp(-8) / (1 + math.Exp(-8)), 1 / (1 + math.Exp(-8))}, 2},
	} {
		f, err := Format.Decode(tt.m.bytes())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out := make([]float64, f.Width(forest.Prediction))
		if err := forest.Evaluate(f, forest.Prediction, []float64{0}, out); err != nil || len(out) != len(tt.want) {
			t.Errorf("%s: %v, want %v: %v", name, out, tt.want, err)
			continue
		}
		for i, want := range tt.want {
			tol := 1e-7
			if strings.HasPrefix(name, "probit") {
				tol = 0.005 // the formula's own error
			}
			if !(math.Abs(out[i]-want) <= tol) {
				t.Errorf("%s: %v, want %v", name, out, tt.want)
			}
		}
		var class [1]float64
		if tt.class >= 0 {
			if err := forest.Evaluate(f, forest.Class, []float64{0}, class[:]); err != nil || class[0] != tt.class {
				t.Errorf("%s: class %v, want %v: %v", name, class[0], tt.class, err)
			}
		}
	}
}

// ensemble is TreeEnsemble with a membership node, a comparison and a tree of one
// leaf.
func ensemble() model {
	return model{op: "TreeEnsemble", columns: 2, attrs: map[string]any{
		"n_targets": 2, "tree_roots": ints{0, 2}, "aggregate_function": 1, "post_transform": 0,
		"nodes_featureids": ints{0, 1, 0}, "nodes_modes": bytes8{6, 0, 0}, "nodes_splits": float32s{0, 2.5, 0},
		"nodes_truenodeids": ints{1, 0, 3}, "nodes_trueleafs": ints{0, 1, 1}, "nodes_falsenodeids": ints{2, 1, 3}, "nodes_falseleafs": ints{1, 1, 1},
		"nodes_missing_value_tracks_true": ints{1, 0, 0}, "membership_values": float32s{1.5, -3, float32(math.NaN())},
		"leaf_targetids": ints{0, 0, 1, 1}, "leaf_weights": float32s{1, 2, 4, 8},
	}}
}

func TestTreeEnsemble(t *testing.T) {
	formattest.Run(t, Format, ensemble().bytes())
	f, err := Format.Decode(ensemble().bytes())
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for row, want := range map[[2]float64][3]float64{ // leaf of tree 0, margins
		{1.5, 2.5}: {0, 1, 8}, {-3, 2.75}: {1, 2, 8}, {1, 0}: {2, 0, 12}, {1.25, nan}: {2, 0, 12},
	} {
		var leaves, margins [2]float64
		if err := forest.Evaluate(f, forest.Leaves, row[:], leaves[:]); err != nil || leaves != [2]float64{want[0], 3} {
			t.Errorf("row %v: leaves %v, want %v and 3: %v", row, leaves, want[0], err)
		}
		if err := forest.Evaluate(f, forest.Margin, row[:], margins[:]); err != nil || margins != [2]float64{want[1], want[2]} {
			t.Errorf("row %v: margins %v, want %v: %v", row, margins, want[1:], err)
		}
	}
	var leaves [2]float64
	if err := forest.Evaluate(f, forest.Leaves, []float64{nan, 3}, leaves[:]); err != nil || leaves[0] != 1 {
		t.Errorf("a missing cell that tracks true: leaf %v, want 1: %v", leaves[0], err)
	}
	m := ensemble()
	m.attrs["nodes_modes"], m.attrs["membership_values"] = bytes8{6, 6, 0}, float32s{1.5, -3, float32(math.NaN()), 7, 2}
	if f, err = Format.Decode(m.bytes()); err != nil {
		t.Fatal(err)
	}
	for row, want := range map[[2]float64]float64{{1.5, 2}: 0, {-3, 7}: 0, {1.5, -3}: 1, {-3, 1.5}: 1, {7, 2}: 2} {
		if err := forest.Evaluate(f, forest.Leaves, row[:], leaves[:]); err != nil || leaves[0] != want {
			t.Errorf("two lists, row %v: leaf %v, want %v: %v", row, leaves[0], want, err)
		}
	}
	m = ensemble()
	m.attrs["nodes_splits"], m.attrs["leaf_weights"] = doubles{0, 2.5, 0}, doubles{0.1, 0.2, 0.3, 0.4}
	m.attrs["membership_values"] = doubles{0.1, nan}
	if f, err = Format.Decode(m.bytes()); err != nil || f.Input != forest.Float64 || f.Output != forest.Float64 {
		t.Fatalf("doubles: %v", err)
	}
	var margins [2]float64
	if err := forest.Evaluate(f, forest.Margin, []float64{0.1, 0}, margins[:]); err != nil || margins != [2]float64{0.1, 0.4} {
		t.Errorf("doubles: margins %v: %v", margins, err)
	}
}

func TestHostile(t *testing.T) {
	for want, change := range map[string]func(old, now *model){
		"child 99 or":                            func(o, n *model) { o.attrs["nodes_truenodeids"].(ints)[0] = 99 },
		"first node is the child":                func(o, n *model) { o.attrs["nodes_truenodeids"].(ints)[2] = 0 },
		"has a parent already":                   func(o, n *model) { o.attrs["nodes_falsenodeids"].(ints)[2] = 11 },
		"feature 7 is out of range":              func(o, n *model) { o.attrs["nodes_featureids"].(ints)[0] = 7 },
		"comes twice":                            func(o, n *model) { o.attrs["nodes_nodeids"].(ints)[1] = 0 },
		`mode "WHAT" is unknown`:                 func(o, n *model) { o.attrs["nodes_modes"].(strs)[0] = "WHAT" },
		"nodes_values has 1 elements":            func(o, n *model) { o.attrs["nodes_values"] = floats{1} },
		"n_targets is 99999999":                  func(o, n *model) { o.attrs["n_targets"] = 99999999 },
		"adds to output 2":                       func(o, n *model) { o.attrs["target_ids"].(ints)[0] = 2 },
		"which is not a leaf":                    func(o, n *model) { o.attrs["target_nodeids"].(ints)[0] = 1 },
		"3 base_values for 2 outputs":            func(o, n *model) { o.attrs["base_values"] = floats{1, 2, 3} },
		`post_transform "CUBE" is unknown`:       func(o, n *model) { o.attrs["post_transform"] = "CUBE" },
		`aggregate_function "MEAN" is unknown`:   func(o, n *model) { o.attrs["aggregate_function"] = "MEAN" },
		`operator "Normalizer" is not supported`: func(o, n *model) { o.after = []string{"Normalizer"} },
		"two operators":                          func(o, n *model) { o.after = []string{"TreeEnsembleRegressor"} },
		"node 0 is reached twice":                func(o, n *model) { n.attrs["tree_roots"] = ints{0, 0} },
		"node 9 is out of range":                 func(o, n *model) { n.attrs["nodes_truenodeids"].(ints)[0] = 9 },
		"leaf 9 is out of range":                 func(o, n *model) { n.attrs["nodes_falsenodeids"].(ints)[0] = 9 },
		"node 1 is reached twice":                func(o, n *model) { n.attrs["nodes_trueleafs"].(ints)[1], n.attrs["nodes_truenodeids"].(ints)[1] = 0, 1 },
		"is of target 2":                         func(o, n *model) { n.attrs["leaf_targetids"].(ints)[2] = 2 },
		"mode 7 is unknown":                      func(o, n *model) { n.attrs["nodes_modes"].(bytes8)[0] = 7 },
		"fewer than there are membership":        func(o, n *model) { n.attrs["membership_values"] = float32s{} },
		"post_transform 5 is unknown":            func(o, n *model) { n.attrs["post_transform"] = 5 },
	} {
		old, now := chain(), ensemble()
		change(&old, &now)
		found := false
		var all []error
		for _, m := range []model{old, now} {
			got := formattest.Decode(t, Format, m.bytes())
			_, err := Format.Decode(m.bytes())
			found = found || got == nil && err != nil && strings.Contains(err.Error(), want)
			all = append(all, err)
		}
		if !found {
			t.Errorf("errors are %v, want %q", all, want)
		}
	}
}

// TestOneClass: what ONNX Runtime answers with labels that contradict the scores, or without base values, is refused. Base values of a
// tensor are as those of numbers.
func TestOneClass(t *testing.T) {
	tensor := two("TreeEnsembleClassifier", map[string]any{"classlabels_int64s": ints{0, 1}, "base_values_as_tensor": doubles{0.5}})
	if f, err := Format.Decode(tensor.bytes()); err != nil || len(f.Base) != 1 || f.Base[0] != 0.5 {
		t.Errorf("a base value in a tensor: %v", err)
	}
	for want, attrs := range map[string]map[string]any{
		"all of class 1, and none is negative": {"class_ids": ints{1, 1}, "class_weights": floats{0.5, 0.25}},
		"base_values, and weights of class 1":  {"class_ids": ints{1, 1}, "base_values": floats{1}},
		"2 base_values, and weights of":        {"base_values": floats{0.1, 0.2}},
		"3 base_values, and weights of":        {"base_values": floats{0.1, 0.2, 0.3}},
		"2 base_values, and weights":           {"base_values_as_tensor": float32s{0.1, 0.2}},
		"2 base_values, and":                   {"base_values_as_tensor": doubles{0.1, 0.2}},
		"PROBIT, and weights of class 0":       {"post_transform": "PROBIT"},
		"adds to output 2":                     {"class_ids": ints{2, 2}},
	} {
		attrs["classlabels_int64s"] = ints{0, 1}
		if _, err := Format.Decode(two("TreeEnsembleClassifier", attrs).bytes()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", attrs, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	formattest.Fuzz(f, Format, chain().bytes(), ensemble().bytes(), two("TreeEnsembleClassifier", map[string]any{"classlabels_strings": strs{"a", "b"}}).bytes())
}

// TestInputs: a forest has the features of the input that it reads, straight or behind a Cast, wherever that is among the inputs.
func TestInputs(t *testing.T) {
	for _, unread := range []int64{0, 2, 9} {
		for _, before := range [][]string{nil, {"Identity", "Cast/1"}} {
			m := chain()
			m.unread, m.before = unread, before
			if f, err := Format.Decode(m.bytes()); err != nil || f.Features != 6 {
				t.Errorf("behind an input of %d columns and %v: %+v, %v", unread, before, f, err)
			}
		}
	}
}
