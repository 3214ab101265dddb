package xgboost

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pce-engine/pce/forest"
)

// Write writes a forest as XGBoost's JSON. What is written gives the same margins to
// the bit, in XGBoost too; the leaves of a forest that comes from another library get new
// numbers, those of their nodes in the file, and trees are added that fill up the last
// round. A forest that XGBoost cannot express is refused, with the reason, before anything
// is written: sums in float64, zeros that count as missing, tests of equality, base scores
// added last, control characters and bytes other than UTF-8 in names, and others. The error then matches forest.ErrRequest.
func Write(w io.Writer, f *forest.Forest) error {
	o, bases, err := expressible(f)
	if err != nil {
		return fmt.Errorf("%w: XGBoost's JSON cannot hold it: %w", forest.ErrRequest, err)
	}
	vector := leafVector(f)
	if vector == 0 {
		f = wholeRounds(f)
	}
	trees := make([]tree, len(f.Trees))
	for i := range trees {
		if trees[i], err = express(&f.Trees[i], vector); err != nil {
			return fmt.Errorf("%w: XGBoost's JSON cannot hold it: tree %d: %w", forest.ErrRequest, i, err)
		}
	}
	out := bufio.NewWriter(w)
	p := &printer{w: out}
	p.model(f, o, bases, trees)
	return out.Flush()
}

// expressible returns the objective and the base scores that f is written with.
func expressible(f *forest.Forest) (objective, []float32, error) {
	zeroBase := !slices.ContainsFunc(f.Base, func(b float64) bool { return b != 0 })
	switch {
	case f.Input != forest.Float32 || f.Sum != forest.Float32:
		return objective{}, nil, fmt.Errorf("it compares in %s and adds in %s; XGBoost does both in float32", f.Input, f.Sum)
	case f.Combine != forest.Sum || f.Divisor != nil:
		return objective{}, nil, fmt.Errorf("its scores are not plain sums of the trees")
	case f.BaseLast && !zeroBase:
		return objective{}, nil, fmt.Errorf("it adds base scores after the trees; XGBoost starts with them")
	}
	if w, ok := tooFine(f); ok {
		return objective{}, nil, fmt.Errorf("it has the weight %v, which float32 cannot hold", w)
	}
	for i, name := range f.Names {
		if !quotable(name) {
			return objective{}, nil, fmt.Errorf("feature %d is named %q, with a control character or bytes that are not UTF-8; rename it", i, name)
		}
	}
	for i, kind := range f.Types {
		if !quotable(kind) {
			return objective{}, nil, fmt.Errorf("feature %d has the type %.60q, with a control character or bytes that are not UTF-8; leave it out", i, kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
		if !quotable(name) || !quotable(f.Attributes[name]) {
			return objective{}, nil, fmt.Errorf("attribute %.60q has a control character or bytes that are not UTF-8; leave it out", name)
		}
	}
	o, err := objectiveOf(f)
	if err != nil {
		return objective{}, nil, err
	}
	bases := make([]float32, f.Outputs)
	for i, m := range f.Base {
		ok := false
		if bases[i], ok = o.base.base(float32(m)); !ok || float64(float32(m)) != m {
			return objective{}, nil, fmt.Errorf("no base_score gives the margin %v under %s", m, o.name)
		}
	}
	if !slices.ContainsFunc(bases, func(b float32) bool { return b != bases[0] }) {
		bases = bases[:1]
	}
	return o, bases, nil
}

// tooFine returns a weight of a tree or of the linear model that float32 does not have.
func tooFine(f *forest.Forest) (weight float64, ok bool) {
	var weights []float64
	for i := range f.Trees {
		weights = append(weights, f.Trees[i].Weight)
	}
	if l := f.Linear; l != nil {
		weights = slices.Concat(l.Weights, l.Bias)
	}
	i := slices.IndexFunc(weights, func(w float64) bool { return float64(float32(w)) != w && !math.IsNaN(w) })
	if i < 0 {
		return 0, false
	}
	return weights[i], true
}

// objectiveOf returns the objective with the link and classes of f: that of its name
// or else the first.
func objectiveOf(f *forest.Forest) (objective, error) {
	fits := func(o objective) bool {
		alpha := o.link == forest.Sigmoid && f.Alpha != 1
		classes := o.classes == 0 && f.Classes == 0 || o.classes < 0 && f.Outputs > 1 && f.Classes == f.Outputs ||
			o.classes > 0 && (f.Outputs == 1 && f.Classes == 2 && f.Cut == o.cut || f.Outputs > 1 && f.Classes == 0)
		return o.link == f.Link && !alpha && classes
	}
	if o, err := find(f.Target); err == nil && fits(o) {
		return o, nil
	}
	if i := slices.IndexFunc(objectives, fits); i >= 0 {
		return objectives[i], nil
	}
	return objective{}, fmt.Errorf("no objective has the link %s with %d classes", f.Link, f.Classes)
}

// leafVector returns how many numbers the leaves have, which is the same in the whole forest:
// one for each output where a leaf has several, and 0 where all are scalars.
func leafVector(f *forest.Forest) int {
	for i := range f.Trees {
		if slices.ContainsFunc(f.Trees[i].Nodes, func(n forest.Node) bool { return n.Test == forest.Leaf && n.Last-n.First > 1 }) {
			return f.Outputs
		}
	}
	return 0
}

// wholeRounds returns f with as many trees of scalars as make whole rounds, each of a tree for every
// output: XGBoost passes over the trees of a round that is not whole. What is added is
// a leaf of -0, which changes no sum.
func wholeRounds(f *forest.Forest) *forest.Forest {
	whole := *f
	whole.Trees = slices.Clip(f.Trees)
	for len(whole.Trees)%f.Outputs > 0 {
		zero := forest.Value{Value: math.Copysign(0, -1)}
		whole.Trees = append(whole.Trees, forest.Tree{Nodes: []forest.Node{{Last: 1}}, Values: []forest.Value{zero}, Weight: 1})
	}
	return &whole
}

// tree is a tree in the words of XGBoost.
type tree struct {
	left, right, parent, feature, kind, missingLeft []int32
	condition, weights                              []float32
	categories, catNodes, catSegments, catSizes     []int32
	vector                                          int
	info                                            int32 // the output of scalars; -1 before the first one
}

const noParent = math.MaxInt32

// express turns a tree, whose leaves have vector numbers or one if that is 0, into the words of XGBoost.
func express(src *forest.Tree, vector int) (tree, error) {
	nodes := order(src)
	n := len(nodes)
	number := make([]int32, len(src.Nodes))
	for id, from := range nodes {
		number[from] = int32(id)
	}
	t := tree{condition: make([]float32, n), vector: vector, info: -1}
	if vector > 0 {
		t.weights = make([]float32, n*vector)
	}
	for _, column := range []*[]int32{&t.left, &t.right, &t.parent, &t.feature, &t.kind, &t.missingLeft} {
		*column = make([]int32, n)
	}
	t.parent[0] = noParent
	for id, from := range nodes {
		node := &src.Nodes[from]
		t.left[id], t.right[id] = -1, -1
		if node.Test == forest.Leaf {
			if err := t.leaf(id, src.Values[node.First:node.Last]); err != nil {
				return t, fmt.Errorf("leaf %d %w", from, err)
			}
			continue
		}
		if err := t.split(id, node, src); err != nil {
			return t, fmt.Errorf("node %d %w", from, err)
		}
		left, right, missingLeft := sides(node)
		t.left[id], t.right[id] = number[left], number[right]
		if missingLeft {
			t.missingLeft[id] = 1
		}
		t.parent[number[left]], t.parent[number[right]] = int32(id), int32(id)
	}
	t.info = max(t.info, 0)
	return t, nil
}

// order returns the nodes of a tree in the order in which they are written. XGBoost looks
// up where the left child is and takes the node behind it for the right one. So the
// nodes keep their order only where siblings are neighbours, left before right; otherwise
// they come level by level, without those that the root does not reach.
func order(t *forest.Tree) []int32 {
	levels, neighbours := []int32{0}, true
	for i := 0; i < len(levels); i++ {
		if node := &t.Nodes[levels[i]]; node.Test != forest.Leaf {
			left, right, _ := sides(node)
			levels = append(levels, left, right)
			neighbours = neighbours && right == left+1
		}
	}
	if !neighbours {
		return levels
	}
	same := make([]int32, len(t.Nodes))
	for i := range same {
		same[i] = int32(i)
	}
	return same
}

// sides returns the children of a node as XGBoost has them, and whether missing cells go
// left: it asks "left if x < t" or "right if x is listed", so a test for larger or listed
// cells swaps the children.
func sides(node *forest.Node) (left, right int32, missingLeft bool) {
	switch {
	case never(node): // written as x < -Infinity
	case node.Test == forest.Greater || node.Test == forest.GreaterEqual || node.Test == forest.In:
		return node.No, node.Yes, !node.MissingYes
	}
	return node.Yes, node.No, node.MissingYes
}

// never reports whether no number passes a node's test: XGBoost refuses an empty list of
// categories, and swapped children would have every number pass a comparison with NaN.
func never(node *forest.Node) bool {
	switch node.Test {
	case forest.In:
		return node.First == node.Last
	case forest.Less, forest.LessEqual, forest.Greater, forest.GreaterEqual:
		return math.IsNaN(node.Threshold)
	}
	return false
}

// leaf writes the values of a leaf; those that pruning leaves behind have none.
func (t *tree) leaf(id int, values []forest.Value) error {
	if t.vector > 0 && len(values) > 0 && len(values) != t.vector {
		return fmt.Errorf("has values of %d of %d outputs; XGBoost's leaves have one each, or all", len(values), t.vector)
	}
	for k, v := range values {
		want, at := int32(k), &t.condition[id]
		if t.vector > 0 {
			at = &t.weights[id*t.vector+k]
		} else {
			if t.info < 0 {
				t.info = v.Output
			}
			want = t.info
		}
		if v.Output != want {
			return errors.New("has other outputs than the leaves before it")
		}
		*at = float32(v.Value)
		if float64(*at) != v.Value && !math.IsNaN(v.Value) {
			return fmt.Errorf("has the value %v, which float32 cannot hold", v.Value)
		}
	}
	return nil
}

// split writes the test of a node. For float32 cells x <= t is the same as x < u for the
// next float32 u above t.
func (t *tree) split(id int, node *forest.Node, src *forest.Tree) error {
	if node.ZeroMissing {
		return errors.New("counts zeros as missing")
	}
	t.feature[id] = node.Feature
	if never(node) {
		t.condition[id] = float32(math.Inf(-1))
		return nil
	}
	switch node.Test {
	case forest.Less, forest.GreaterEqual:
		t.condition[id] = ceil32(node.Threshold)
	case forest.LessEqual, forest.Greater:
		if math.IsInf(node.Threshold, 1) {
			return errors.New("compares with infinity")
		}
		t.condition[id] = above32(node.Threshold)
	case forest.In:
		t.kind[id] = 1
		t.catNodes = append(t.catNodes, int32(id))
		t.catSegments = append(t.catSegments, int32(len(t.categories)))
		t.catSizes = append(t.catSizes, node.Last-node.First)
		for _, c := range src.Categories[node.First:node.Last] {
			if c < 0 || c >= maxCategory || c != math.Trunc(c) {
				return fmt.Errorf("lists the category %v", c)
			}
			t.categories = append(t.categories, int32(c))
		}
	default:
		return errors.New("has a test that XGBoost lacks")
	}
	return nil
}

// ceil32 returns the least float32 that is not below x: for float32 cells, cell < x
// is cell < ceil32(x).
func ceil32(x float64) float32 {
	y := float32(x)
	if float64(y) < x {
		return math.Nextafter32(y, float32(math.Inf(1)))
	}
	return y
}

// above32 returns the least float32 above x.
func above32(x float64) float32 {
	y := ceil32(x)
	if float64(y) == x {
		return math.Nextafter32(y, float32(math.Inf(1)))
	}
	return y
}

// printer writes JSON with the keys in XGBoost's order, which is the alphabet's. The
// errors are kept by the bufio.Writer.
type printer struct{ w *bufio.Writer }

func (p *printer) text(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// escapes are all that the reader of XGBoost 1.7 decodes; it takes \u0026 for six characters.
var escapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// quote writes a string that is quotable.
func quote(s string) string { return `"` + escapes.Replace(s) + `"` }

// quotable reports whether quote can write s: UTF-8, as JSON is, without other control characters than escapes has.
func quotable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\n\r\t", r) })
}

func number(x float32) string {
	switch {
	case math.IsNaN(float64(x)):
		return "NaN"
	case math.IsInf(float64(x), 0):
		return strings.TrimPrefix(strconv.FormatFloat(float64(x), 'g', -1, 32), "+") + "inity"
	}
	s := strconv.FormatFloat(float64(x), 'E', -1, 32)
	mantissa, exponent, _ := strings.Cut(s, "E")
	e, _ := strconv.Atoi(exponent) // FormatFloat wrote it
	return mantissa + "E" + strconv.Itoa(e)
}

func list[T any](p *printer, key string, xs []T, text func(T) string) {
	p.text("%q:[", key)
	for i, x := range xs {
		if i > 0 {
			p.w.WriteByte(',')
		}
		p.w.WriteString(text(x))
	}
	p.w.WriteByte(']')
}

func integerText(x int32) string { return strconv.Itoa(int(x)) }

func (p *printer) model(f *forest.Forest, o objective, bases []float32, trees []tree) {
	vector := slices.ContainsFunc(trees, func(t tree) bool { return t.vector > 0 })
	round := f.Outputs // trees of a round, as is written
	if vector {
		round = 1
	}
	var attributes []string
	if f.BestTrees > 0 && f.BestTrees%round == 0 { // XGBoost's interface for scikit-learn predicts with no more trees
		attributes = append(attributes, fmt.Sprintf(`"best_iteration":"%d"`, f.BestTrees/round-1))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
		attributes = append(attributes, quote(name)+":"+quote(f.Attributes[name]))
	}
	p.text(`{"learner":{"attributes":{%s},`, strings.Join(attributes, ","))
	list(p, "feature_names", f.Names, quote)
	p.text(`,`)
	list(p, "feature_types", f.Types, quote)
	p.text(`,"gradient_booster":`)
	p.booster(f, trees)
	base, version := number(bases[0]), []int32{1, 7, 4}
	classes, targets := 0, f.Outputs
	if o.classes < 0 {
		classes, targets = f.Outputs, 1
	}
	if vector {
		version = []int32{2, 1, 0}
	}
	if len(bases) > 1 {
		parts := make([]string, len(bases))
		for i, b := range bases {
			parts[i] = number(b)
		}
		base, version = "["+strings.Join(parts, ",")+"]", []int32{3, 1, 0}
	}
	p.text(`,"learner_model_param":{"base_score":%q,"boost_from_average":"1","num_class":"%d","num_feature":"%d","num_target":"%d"},"objective":{"name":%q`,
		base, classes, f.Features, targets, o.name)
	values := o.values
	if o.classes < 0 {
		values = fmt.Sprintf(`{"num_class":"%d"}`, classes)
	}
	if o.params != "" {
		p.text(`,%q:%s`, o.params, values)
	}
	p.text(`}},`)
	list(p, "version", version, integerText)
	p.text("}")
}

func (p *printer) booster(f *forest.Forest, trees []tree) {
	if l := f.Linear; l != nil {
		p.text(`{"model":{"boosted_rounds":1,`)
		list(p, "weights", slices.Concat(l.Weights, l.Bias), func(x float64) string { return number(float32(x)) })
		p.text(`},"name":"gblinear"}`)
		return
	}
	dart := f.Dropout || slices.ContainsFunc(f.Trees, func(t forest.Tree) bool { return t.Weight != 1 })
	if dart {
		p.text(`{"gbtree":`)
	}
	vector := 0
	for i := range trees {
		vector = max(vector, trees[i].vector)
	}
	p.text(`{"model":{"gbtree_model_param":{"num_parallel_tree":"1","num_trees":"%d","size_leaf_vector":"%d"},`, len(trees), vector)
	list(p, "tree_info", trees, func(t tree) string { return integerText(t.info) })
	p.text(`,"trees":[`)
	for i := range trees {
		if i > 0 {
			p.text(",")
		}
		p.tree(&trees[i], i, f.Features)
	}
	p.text(`]},"name":"gbtree"}`)
	if dart {
		p.text(`,"name":"dart",`)
		list(p, "weight_drop", f.Trees, func(t forest.Tree) string { return number(float32(t.Weight)) })
		p.text("}")
	}
}

func (p *printer) tree(t *tree, id, features int) {
	n := len(t.left)
	weights := t.weights
	if weights == nil {
		weights = make([]float32, n)
	}
	zeros := make([]float32, n)
	p.w.WriteByte('{')
	list(p, "base_weights", weights, number)
	for _, c := range []struct {
		key string
		xs  []int32
	}{
		{"categories", t.categories}, {"categories_nodes", t.catNodes}, {"categories_segments", t.catSegments}, {"categories_sizes", t.catSizes},
		{"default_left", t.missingLeft},
	} {
		p.w.WriteByte(',')
		list(p, c.key, c.xs, integerText)
	}
	p.text(`,"id":%d,`, id)
	list(p, "left_children", t.left, integerText)
	p.w.WriteByte(',')
	list(p, "loss_changes", zeros, number)
	p.w.WriteByte(',')
	list(p, "parents", t.parent, integerText)
	p.w.WriteByte(',')
	list(p, "right_children", t.right, integerText)
	p.w.WriteByte(',')
	list(p, "split_conditions", t.condition, number)
	p.w.WriteByte(',')
	list(p, "split_indices", t.feature, integerText)
	p.w.WriteByte(',')
	list(p, "split_type", t.kind, integerText)
	p.w.WriteByte(',')
	list(p, "sum_hessian", zeros, number)
	p.text(`,"tree_param":{"num_deleted":"0","num_feature":"%d","num_nodes":"%d","size_leaf_vector":"%d"}}`, features, n, t.vector)
}
