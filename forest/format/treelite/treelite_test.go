package treelite

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/formattest"
)

// writer writes a checkpoint; its fields are what tests change.
type writer struct {
	major           int32
	thresholdType   byte
	leafType        byte
	trees           uint64
	post            string
	average         byte
	targets         int32
	classes         int32
	target          []int32
	class           []int32
	left            []int32
	feature         []int32
	op              []byte
	vectors         []float64
	vectorEnd       []uint64
	categories      []uint32
	categoriesEnd   []uint64
	base            []float64
	task            byte
	leafVectorWidth int32
}

// example is a tree of three outputs with a comparison, categories that go right and
// vectors, and a tree that is one leaf of output 1.
func example() writer {
	return writer{
		major: 4, thresholdType: 3, leafType: 3, trees: 2, post: "softmax", targets: 1, classes: 3, target: []int32{0, 0}, class: []int32{-1, 1}, left: []int32{1, -1, 3, -1, -1}, feature: []int32{0, 0, 2, 0, 0},
		op: []byte{3, 0, 0, 0, 0}, vectors: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, vectorEnd: []uint64{0, 3, 3, 6, 9}, categories: []uint32{5, 1}, categoriesEnd: []uint64{0, 0, 2, 2, 2},
		base: []float64{0.5, 0, -0.5}, task: 2, leafVectorWidth: 3,
	}
}

func (w writer) bytes() []byte {
	var b bytes.Buffer
	put := func(xs ...any) {
		for _, x := range xs {
			binary.Write(&b, binary.LittleEndian, x)
		}
	}
	array := func(n int, x any) { put(uint64(n), x) }
	put(w.major, int32(2), int32(0), w.thresholdType, w.leafType, w.trees, int32(3), w.task, w.average, w.targets)
	array(int(w.targets), slices.Repeat([]int32{w.classes}, int(w.targets)))
	array(2, []int32{w.targets, w.leafVectorWidth})
	array(2, w.target)
	array(len(w.class), w.class)
	array(len(w.post), []byte(w.post))
	put(float32(1), float32(8))
	array(len(w.base), w.base)
	array(2, []byte("{}"))
	put(int32(0))
	begins := func(ends []uint64) []uint64 { return append([]uint64{0}, ends[:4]...) }
	end := func() {
		for range 6 {
			put(uint64(0))
		}
		put(int32(0), int32(0))
	}
	put(int32(5), byte(1))
	array(5, []byte{1, 0, 2, 0, 0})
	array(5, w.left)
	array(5, []int32{2, -1, 4, -1, -1})
	array(5, w.feature)
	array(5, []byte{1, 0, 0, 0, 0})
	array(5, make([]float64, 5))
	array(5, []float64{0.5, 0, 0, 0, 0})
	array(5, w.op)
	array(5, []byte{0, 0, 1, 0, 0})
	array(len(w.vectors), w.vectors)
	array(5, begins(w.vectorEnd))
	array(len(w.vectorEnd), w.vectorEnd)
	array(len(w.categories), w.categories)
	array(5, begins(w.categoriesEnd))
	array(5, w.categoriesEnd)
	end()
	put(int32(1), byte(0))
	array(1, byte(0))
	array(1, int32(-1))
	array(1, int32(-1))
	array(1, int32(0))
	array(1, byte(0))
	array(1, 0.25)
	array(1, 0.0)
	array(1, byte(0))
	array(1, byte(0))
	for range 6 {
		put(uint64(0))
	}
	end()
	return b.Bytes()
}

func TestRead(t *testing.T) {
	formattest.Run(t, Format, example().bytes())
	w := example()
	f, err := Format.Decode(w.bytes())
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for _, tt := range []struct {
		row  [3]float64
		leaf float64
	}{
		{[3]float64{0.5, 0, 0}, 1}, {[3]float64{nan, 0, 0}, 1}, {[3]float64{0.75, 0, 5}, 4}, {[3]float64{0.75, 0, 1}, 4}, {[3]float64{0.75, 0, 2}, 3},
		{[3]float64{0.75, 0, nan}, 4}, {[3]float64{0.75, 0, -0.5}, 3},
	} {
		var leaves [2]float64
		var margins [3]float64
		if err := forest.Evaluate(f, forest.Leaves, tt.row[:], leaves[:]); err != nil || leaves[0] != tt.leaf {
			t.Errorf("row %v reaches leaf %v, want %v: %v", tt.row, leaves[0], tt.leaf, err)
		}
		first := map[float64]float64{1: 1, 3: 4, 4: 7}[tt.leaf]
		want := [3]float64{first + 0.5, first + 1 + 0.25, first + 2 - 0.5}
		if err := forest.Evaluate(f, forest.Margin, tt.row[:], margins[:]); err != nil || margins != want {
			t.Errorf("row %v has margins %v, want %v: %v", tt.row, margins, want, err)
		}
	}
	w.average, w.post = 1, "identity_multiclass"
	if f, err = Format.Decode(w.bytes()); err != nil {
		t.Fatal(err)
	}
	var margins [3]float64
	want := [3]float64{1 + 0.5, (2+0.25)/2 + 0, 3 - 0.5}
	if err := forest.Evaluate(f, forest.Margin, []float64{0, 0, 0}, margins[:]); err != nil || margins != want {
		t.Errorf("averaged margins %v, want %v: %v", margins, want, err)
	}
}

// TestClasses: a forest with one score per row is a classifier of two classes, whose score is that of the second; one with several
// has a class for each score; any other forest does not classify. A sum of trees that no link changes is a logit, and an average a probability.
func TestClasses(t *testing.T) {
	for _, tt := range []struct {
		task    byte
		outputs int32
		classes int
		cut     float64
		post    string
		average byte
	}{
		{binaryClassifier, 1, 2, 0.5, "sigmoid", 0}, {binaryClassifier, 3, 3, 0, "sigmoid", 0}, {multiClassifier, 3, 3, 0, "sigmoid", 0}, {multiClassifier, 1, 0, 0, "sigmoid", 0},
		{1, 1, 0, 0, "sigmoid", 0}, {1, 3, 0, 0, "sigmoid", 0}, {binaryClassifier, 1, 2, 0, "identity", 0}, {binaryClassifier, 1, 2, 0.5, "identity", 1}, {binaryClassifier, 1, 2, 0.5, "hinge", 0},
	} {
		w := example()
		w.task, w.post, w.average = tt.task, tt.post, tt.average
		if tt.outputs == 1 {
			w.classes, w.class, w.leafVectorWidth, w.vectors, w.vectorEnd, w.base = 1, []int32{0, 0}, 1, []float64{1, 2, 3}, []uint64{0, 1, 1, 2, 3}, []float64{0.5}
		}
		f, err := Format.Decode(w.bytes())
		if err != nil || f.Outputs != int(tt.outputs) || f.Classes != tt.classes || f.Cut != tt.cut {
			t.Errorf("task %d of %d outputs has %d classes and the cut %v, want %d and %v: %v", tt.task, tt.outputs, f.Classes, f.Cut, tt.classes, tt.cut, err)
		}
	}
}

// TestTargets: the outputs of a model of several targets are the classes of the first, then those of the next.
func TestTargets(t *testing.T) {
	w := example()
	w.task, w.post, w.targets, w.classes, w.leafVectorWidth = 1, "identity", 2, 2, 2
	w.target, w.class, w.base = []int32{-1, 1}, []int32{-1, 1}, []float64{1, 2, 3, 4}
	w.vectors, w.vectorEnd = []float64{10, 20, 30, 40, 0, 0, 0, 0, 0, 0, 0, 0}, []uint64{0, 4, 4, 8, 12}
	f, err := Format.Decode(w.bytes())
	if err != nil {
		t.Fatal(err)
	}
	var margins [4]float64
	if err := forest.Evaluate(f, forest.Margin, []float64{0, 0, 0}, margins[:]); err != nil || margins != [4]float64{11, 22, 33, 44.25} {
		t.Errorf("margins %v, want 11, 22, 33 and 44.25: %v", margins, err)
	}
}

func TestHostile(t *testing.T) {
	for want, change := range map[string]func(*writer){
		"treelite 3.2.0":              func(w *writer) { w.major = 3 },
		"types 2 and 3":               func(w *writer) { w.thresholdType = 2 },
		"trees, 2 targets":            func(w *writer) { w.trees = 1 << 40 },
		`postprocessor "magic"`:       func(w *writer) { w.post = "magic" },
		"target 0 has -1 classes":     func(w *writer) { w.classes = -1 },
		"leaves of shape [1 2]":       func(w *writer) { w.leafVectorWidth = 2 },
		"target 0 and class 3":        func(w *writer) { w.class[1] = 3 },
		"has a parent already":        func(w *writer) { w.left[0] = 2 },
		"child 0 is out of range":     func(w *writer) { w.left[0] = 0 },
		"child 7 is out of range":     func(w *writer) { w.left[0] = 7 },
		"feature 3 is out of range":   func(w *writer) { w.feature[0] = 3 },
		"operator 6 is unknown":       func(w *writer) { w.op[0] = 6 },
		"list 0..99 is out of range":  func(w *writer) { w.vectorEnd[1] = 99 },
		"node 4: no list for it":      func(w *writer) { w.vectorEnd = w.vectorEnd[:4] },
		"a leaf of 2 numbers":         func(w *writer) { w.vectorEnd[1] = 2 },
		"2 base scores for 3 outputs": func(w *writer) { w.base = w.base[:2] },
		"a leaf of 0 numbers":         func(w *writer) { w.class[1] = -1 },
		"out of range; want 0..2":     func(w *writer) { w.categoriesEnd[2] = 1 << 60 },
	} {
		w := example()
		change(&w)
		got := formattest.Decode(t, Format, w.bytes())
		_, err := Format.Decode(w.bytes())
		if got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	if _, err := Format.Decode(append(example().bytes(), 0)); err == nil || !strings.Contains(err.Error(), "follow the last tree") {
		t.Errorf("a byte after the end: %v", err)
	}
}

func FuzzDecode(f *testing.F) { formattest.Fuzz(f, Format, example().bytes()) }
