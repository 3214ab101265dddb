package treelite

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
)

// Format is that of checkpoints.
var Format = format.Format{Name: "treelite", Recognises: recognises, Decode: read}

// Types of thresholds and leaves.
const (
	typeFloat32 = 2
	typeFloat64 = 3
)

// recognises: the version 3 or 4, a small minor and patch number, and two types.
func recognises(head []byte) bool {
	if len(head) < 22 {
		return false
	}
	major, minor, patch := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	return (major == 3 || major == 4) && minor < 100 && patch < 1000 && head[12] >= 1 && head[12] <= 3 && head[13] >= 1 && head[13] <= 3
}

// reader reads scalars and arrays and remembers the first fault.
type reader struct {
	b    []byte
	at   int
	wide bool // thresholds and leaves are float64
	err  error
}

// take returns the next n elements of size bytes, nil if the file has fewer.
func (r *reader) take(n, size uint64, what string) []byte {
	if r.err == nil && n > uint64(len(r.b)-r.at)/size {
		r.err = fmt.Errorf("byte %d: the file ends within %d elements of %s; it is cut short", r.at, n, what)
	}
	if r.err != nil {
		return nil
	}
	b := r.b[r.at : r.at+int(n*size)]
	r.at += len(b)
	return b
}

func (r *reader) uint64(what string) uint64 {
	if b := r.take(1, 8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) int32(what string) int32 {
	if b := r.take(1, 4, what); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (r *reader) byte(what string) byte {
	if b := r.take(1, 1, what); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) float32(what string) float64 {
	return float64(math.Float32frombits(uint32(r.int32(what))))
}

// array returns the bytes of an array with its length.
func (r *reader) array(size uint64, what string) []byte {
	return r.take(r.uint64(what), size, what)
}

// int32s is an array of int32 or uint32, seen without a copy.
type int32s []byte

func (a int32s) len() int        { return len(a) / 4 }
func (a int32s) at(i int) int32  { return int32(binary.LittleEndian.Uint32(a[4*i:])) }
func (a int32s) u(i int) uint32  { return binary.LittleEndian.Uint32(a[4*i:]) }
func offset(b []byte, i int) int { return int(min(binary.LittleEndian.Uint64(b[8*i:]), math.MaxInt32)) }

// floats is an array of the type of thresholds.
type floats struct {
	b    []byte
	wide bool
}

func (r *reader) floats(what string) floats {
	if r.wide {
		return floats{r.array(8, what), true}
	}
	return floats{r.array(4, what), false}
}

func (a floats) len() int {
	if a.wide {
		return len(a.b) / 8
	}
	return len(a.b) / 4
}

func (a floats) at(i int) float64 {
	if a.wide {
		return math.Float64frombits(binary.LittleEndian.Uint64(a.b[8*i:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(a.b[4*i:])))
}

// header is what comes before the trees.
type header struct {
	trees            uint64
	task             byte
	average          bool
	targets, classes int
	shape            [2]int // of a leaf: targets or 1, classes or 1
	target, class    int32s // of each tree; -1: all
	post             string
	alpha, ratio     float64
}

func read(file []byte) (*forest.Forest, error) {
	r := &reader{b: file}
	major, minor, patch := r.int32("the version"), r.int32("the version"), r.int32("the version")
	thresholds, leaves := r.byte("types"), r.byte("types")
	if r.err != nil {
		return nil, r.err
	}
	if major != 4 {
		return nil, fmt.Errorf("a checkpoint of treelite %d.%d.%d; load it with treelite 4 and serialize it again", major, minor, patch)
	}
	if thresholds != leaves || thresholds != typeFloat32 && thresholds != typeFloat64 {
		return nil, fmt.Errorf("types %d and %d of thresholds and leaves; want both float32 (2) or both float64 (3)", thresholds, leaves)
	}
	r.wide = thresholds == typeFloat64
	f := &forest.Forest{Source: fmt.Sprintf("treelite %d.%d.%d", major, minor, patch), BaseLast: true}
	if r.wide {
		f.Sum, f.Output = forest.Float64, forest.Float64
	}
	h, err := r.header(f)
	if err != nil {
		return nil, err
	}
	counts := make([]float64, f.Outputs)
	for i := range int(h.trees) {
		outputs, err := h.outputs(i)
		if err == nil {
			var t *forest.Tree
			if t, err = r.tree(outputs); err == nil {
				f.Trees = append(f.Trees, *t)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
		for _, o := range outputs {
			counts[o]++
		}
	}
	if r.at != len(file) {
		return nil, fmt.Errorf("byte %d: %d bytes follow the last tree", r.at, len(file)-r.at)
	}
	if h.average {
		for i := range counts {
			counts[i] = max(1, counts[i])
		}
		f.Divisor = counts
	}
	return f, f.Check()
}

// header reads what comes before the trees into h and f.
func (r *reader) header(f *forest.Forest) (*header, error) {
	h := &header{trees: r.uint64("the number of trees")}
	f.Features = int(r.int32("the number of features"))
	h.task, h.average = r.byte("the task"), r.byte("the average") != 0
	h.targets = int(r.int32("the number of targets"))
	classes := int32s(r.array(4, "classes"))
	shape := int32s(r.array(4, "the shape of leaves"))
	h.target, h.class = int32s(r.array(4, "targets of trees")), int32s(r.array(4, "classes of trees"))
	h.post = string(r.array(1, "the postprocessor"))
	h.alpha, h.ratio = r.float32("sigmoid_alpha"), r.float32("ratio_c")
	bases := floats{r.array(8, "base scores"), true}
	r.array(1, "attributes")
	if n := r.int32("optional fields"); r.err == nil && n != 0 {
		return nil, fmt.Errorf("%d optional fields of the model, which no treelite up to 4.4 writes", n)
	}
	if r.err != nil {
		return nil, r.err
	}
	if h.targets < 1 || h.targets != classes.len() || shape.len() != 2 {
		return nil, fmt.Errorf("%d targets with %d numbers of classes and leaves of %d axes; want one for each target, and 2", h.targets, classes.len(), shape.len())
	}
	for i := range h.targets {
		if c := int(classes.at(i)); c < 1 || c > forest.MaxOutputs || i > 0 && c != h.classes {
			return nil, fmt.Errorf("target %d has %d classes; want 1..%d and equally many for all", i, c, forest.MaxOutputs)
		}
		h.classes = int(classes.at(0))
	}
	if h.targets > forest.MaxOutputs/h.classes {
		return nil, fmt.Errorf("%d targets of %d classes; want at most %d outputs", h.targets, h.classes, forest.MaxOutputs)
	}
	f.Outputs = h.targets * h.classes
	h.shape = [2]int{int(shape.at(0)), int(shape.at(1))}
	if h.shape[0] != 1 && h.shape[0] != h.targets || h.shape[1] != 1 && h.shape[1] != h.classes {
		return nil, fmt.Errorf("leaves of shape %v for %d targets of %d classes", h.shape, h.targets, h.classes)
	}
	if n := uint64(h.target.len()); n != h.trees || uint64(h.class.len()) != h.trees {
		return nil, fmt.Errorf("%d trees, %d targets and %d classes of trees; want equally many", h.trees, n, h.class.len())
	}
	f.Base = make([]float64, f.Outputs)
	if n := bases.len(); n != 1 && n != f.Outputs {
		return nil, fmt.Errorf("%d base scores for %d outputs", n, f.Outputs)
	}
	for i := range f.Base {
		f.Base[i] = bases.at(min(i, bases.len()-1))
		if !r.wide {
			f.Base[i] = float64(float32(f.Base[i]))
		}
	}
	return h, h.link(f)
}

// Tasks.
const (
	binaryClassifier = 0
	multiClassifier  = 2
)

// link sets what becomes of the scores.
func (h *header) link(f *forest.Forest) error {
	links := map[string]forest.Link{
		"identity": forest.Identity, "identity_multiclass": forest.Identity, "signed_square": forest.SignedSquare, "hinge": forest.Step,
		"sigmoid": forest.Sigmoid, "multiclass_ova": forest.Sigmoid, "exponential": forest.Exp, "softmax": forest.Softmax,
		"exponential_standard_ratio": forest.Anomaly, "logarithm_one_plus_exp": forest.Softplus,
	}
	link, ok := links[h.post]
	if !ok {
		return fmt.Errorf("postprocessor %.40q is unknown", h.post)
	}
	if link == forest.Softmax && h.targets > 1 {
		return fmt.Errorf("softmax over %d targets is not supported; split the model by target", h.targets)
	}
	f.Link, f.Target, f.Alpha = link, h.post, h.alpha
	if link == forest.Anomaly {
		f.Alpha = h.ratio
	}
	switch {
	case h.task == binaryClassifier && f.Outputs == 1:
		f.Classes, f.Cut = 2, 0.5
		if link == forest.Identity && !h.average { // the sum is a logit, as that of XGBoost under binary:logitraw
			f.Cut = 0
		}
	case (h.task == binaryClassifier || h.task == multiClassifier) && h.targets == 1 && f.Outputs > 1:
		f.Classes = f.Outputs
	}
	return nil
}

// outputs lists the outputs of tree i, in the order of the numbers of a leaf.
func (h *header) outputs(i int) ([]int32, error) {
	target, class := int(h.target.at(i)), int(h.class.at(i))
	if target < -1 || target >= h.targets || class < -1 || class >= h.classes {
		return nil, fmt.Errorf("target %d and class %d are out of range; want -1..%d and -1..%d", target, class, h.targets-1, h.classes-1)
	}
	span := func(one, all int) (int, int) {
		if one < 0 {
			return 0, all
		}
		return one, one + 1
	}
	t0, t1 := span(target, h.targets)
	c0, c1 := span(class, h.classes)
	if t1-t0 > h.shape[0] || c1-c0 > h.shape[1] {
		return nil, fmt.Errorf("target %d and class %d with leaves of shape %v", target, class, h.shape)
	}
	var out []int32
	for t := t0; t < t1; t++ {
		for c := c0; c < c1; c++ {
			out = append(out, int32(t*h.classes+c))
		}
	}
	return out, nil
}
