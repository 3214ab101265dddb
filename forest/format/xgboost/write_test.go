package xgboost

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/formattest"
)

// scattered is a forest of random tests that XGBoost has or can be converted, whose nodes have random numbers.
func scattered(rng *rand.Rand) *forest.Forest {
	f := plain()
	f.Target, f.Link, f.Classes, f.Trees = "reg:squarederror", forest.Identity, 0, nil
	for range 1 + rng.IntN(5) {
		tree := forest.Tree{Weight: 1, Nodes: make([]forest.Node, 2*rng.IntN(12)+1)}
		free := rng.Perm(len(tree.Nodes) - 1) // numbers from 1 on that no node has yet, less 1
		leaves := []int32{0}
		for len(free) > 0 {
			at := rng.IntN(len(leaves))
			node := &tree.Nodes[leaves[at]]
			*node = forest.Node{
				Test: forest.Less + forest.Test(rng.IntN(4)), Feature: int32(rng.IntN(3)), MissingYes: rng.IntN(2) > 0,
				Yes: int32(free[0]) + 1, No: int32(free[1]) + 1, Threshold: []float64{0.25, 2, 7, -0.5}[rng.IntN(4)],
			}
			if rng.IntN(4) == 0 {
				node.Test, node.First = forest.In, int32(len(tree.Categories))
				tree.Categories = append(tree.Categories, 2, 40)
				node.Last = int32(len(tree.Categories))
			}
			leaves[at] = node.Yes
			leaves, free = append(leaves, node.No), free[2:]
		}
		for _, leaf := range leaves {
			tree.Nodes[leaf].First = int32(len(tree.Values))
			tree.Values = append(tree.Values, forest.Value{Value: float64(float32(rng.NormFloat64()))})
			tree.Nodes[leaf].Last = int32(len(tree.Values))
		}
		f.Trees = append(f.Trees, tree)
	}
	return f
}

// TestWriteSiblings: the right child comes right behind the left one in every tree that is written, whatever
// the numbers of the nodes were, and the scores stay. Readers of pce look up both children.
func TestWriteSiblings(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		f := scattered(rng)
		doc := written(t, f)
		var model struct {
			Learner struct {
				Booster struct {
					Model struct {
						Trees []struct {
							Left    []int32 `json:"left_children"`
							Right   []int32 `json:"right_children"`
							Parents []int32 `json:"parents"`
						} `json:"trees"`
					} `json:"model"`
				} `json:"gradient_booster"`
			} `json:"learner"`
		}
		if err := json.Unmarshal(doc, &model); err != nil {
			t.Fatal(err)
		}
		trees := model.Learner.Booster.Model.Trees
		if len(trees) != len(f.Trees) {
			t.Fatalf("forest %d: %d trees, want %d", i, len(trees), len(f.Trees))
		}
		for k, tree := range trees {
			if len(tree.Left) != len(f.Trees[k].Nodes) {
				t.Errorf("forest %d: tree %d has %d nodes, want %d", i, k, len(tree.Left), len(f.Trees[k].Nodes))
			}
			for id, left := range tree.Left {
				if left < 0 {
					continue
				}
				if tree.Right[id] != left+1 {
					t.Errorf("forest %d: node %d of tree %d has the children %d and %d", i, id, k, left, tree.Right[id])
				} else if tree.Parents[left] != int32(id) || tree.Parents[left+1] != int32(id) {
					t.Errorf("forest %d: the children of node %d of tree %d have the parents %v", i, id, k, tree.Parents[left:left+2])
				}
			}
		}
		got, err := JSON.Decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint("forest ", i), f, got, forest.Margin)
	}
}

// remainder is a forest of three outputs with four trees, the last of that weight, and sums of -0.
func remainder(weight float64) *forest.Forest {
	f := formattest.Example()
	zero := math.Copysign(0, -1)
	f.Outputs, f.Classes, f.Base = 3, 3, []float64{zero, zero, zero}
	f.Trees[0].Values[0].Value = zero
	f.Trees = append(f.Trees, f.Trees...)
	f.Trees[3].Weight = weight
	return f
}

// TestWriteRounds: trees are added until rounds are whole, and change no bit of the scores.
func TestWriteRounds(t *testing.T) {
	for _, weight := range []float64{1, 0.5} {
		f := remainder(weight)
		got, err := JSON.Decode(written(t, f))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Trees) != 6 || len(f.Trees) != 4 {
			t.Errorf("%d trees are written and %d left, want 6 and 4", len(got.Trees), len(f.Trees))
		}
		equal(t, "remainder", f, got, forest.Margin)
	}
	if got, err := JSON.Decode(written(t, vectors())); err != nil || len(got.Trees) != 1 {
		t.Errorf("%v: %d trees of vectors are written, want 1", err, len(got.Trees))
	}
}

// TestWriteBest: the trees that early stopping found to be best are those of what is written, whose rounds have a tree for each output,
// or one for all. Those of no whole round are not said.
func TestWriteBest(t *testing.T) {
	six := formattest.Example() // of two outputs
	for len(six.Trees) < 6 {
		six.Trees = append(six.Trees, six.Trees[0])
	}
	three := vectors()
	three.Trees = append(three.Trees, three.Trees[0], three.Trees[0])
	for _, tt := range []struct {
		f          *forest.Forest
		best, want int
	}{{six, 4, 4}, {six, 6, 6}, {six, 3, 0}, {six, 0, 0}, {three, 1, 1}, {three, 2, 2}, {linear(), 0, 0}} {
		tt.f.BestTrees = tt.best
		doc := written(t, tt.f)
		for name, read := range map[string]func() (*forest.Forest, error){
			"JSON":   func() (*forest.Forest, error) { return JSON.Decode(doc) },
			"UBJSON": func() (*forest.Forest, error) { return UBJSON.Decode(ubjson(t, doc)) },
		} {
			if got, err := read(); err != nil || got.BestTrees != tt.want {
				t.Errorf("%s: best after %d of %d trees, read as %d, %v; want %d", name, tt.best, len(tt.f.Trees), got.BestTrees, err, tt.want)
			}
		}
	}
}

// TestWriteMixed: a forest in which some leaves have one number and others all is refused, whichever come first.
func TestWriteMixed(t *testing.T) {
	f := vectors()
	f.Trees = append(f.Trees, formattest.Example().Trees[1])
	for range 2 {
		var b bytes.Buffer
		if err := Write(&b, f); err == nil || !strings.Contains(err.Error(), "leaf 0 has values of 1 of 2 outputs") || b.Len() > 0 {
			t.Errorf("error %v after %d bytes", err, b.Len())
		}
		slices.Reverse(f.Trees)
	}
}

// nevers are forests whose first test no number passes; missing cells pass or not.
func nevers() []*forest.Forest {
	var forests []*forest.Forest
	for _, missing := range []bool{false, true} {
		for _, test := range []forest.Test{forest.In, forest.Less, forest.LessEqual, forest.Greater, forest.GreaterEqual} {
			node := forest.Node{Test: test, Yes: 1, No: 2, MissingYes: missing, Threshold: math.NaN()}
			f := plain()
			f.Trees[0].Nodes[0] = node
			forests = append(forests, f)
		}
	}
	return forests
}

// TestWriteNever: a test that no number passes stays one, and missing cells take the same way as before.
func TestWriteNever(t *testing.T) {
	for i, f := range nevers() {
		doc := written(t, f)
		if !bytes.Contains(doc, []byte(`"split_conditions":[-Infinity,`)) || !bytes.Contains(doc, []byte(`"categories_nodes":[]`)) {
			t.Errorf("forest %d: the first test is not one with -Infinity: %s", i, doc)
		}
		got, err := JSON.Decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint("forest ", i), f, got)
	}
}

// named is a forest whose names have what JSON or HTML escapes, and a backslash before a u.
func named() *forest.Forest {
	f := plain()
	f.Names = []string{"a&b <c> \u2028\u2029\x7f", `"q" \u0041\`, "\t\r\n é \U0001f600"}
	return f
}

// TestWriteNames: of the names only what XGBoost decodes is escaped, and pce reads them as they were.
func TestWriteNames(t *testing.T) {
	doc, f := written(t, named()), named()
	if want := `"feature_names":["a&b <c> ` + "\u2028\u2029\x7f" + `","\"q\" \\u0041\\","\t\r\n é 😀"]`; !bytes.Contains(doc, []byte(want)) {
		t.Errorf("%s is not in %s", want, doc)
	}
	if got, err := JSON.Decode(doc); err != nil || !slices.Equal(got.Names, f.Names) {
		t.Errorf("%q are read as %q: %v", f.Names, got.Names, err)
	}
	f.Names[0] = "\xff"
	if err := Write(io.Discard, f); err == nil || !strings.Contains(err.Error(), `feature 0 is named "\xff", with a control character or bytes that are not UTF-8`) {
		t.Errorf("a byte that is not UTF-8: %v", err)
	}
}

// margins is a program that writes the raw scores that XGBoost gives for the rows of a file by models, and prints the names
// that the last model has. The alarm ends it
// where XGBoost walks in a circle.
const margins = `
import signal, sys, numpy, xgboost
signal.alarm(60)
xgboost.set_config(verbosity=0)
rows = xgboost.DMatrix(numpy.fromfile(sys.argv[1], "<f4").reshape(-1, 3))
for model in sys.argv[2:]:
    booster = xgboost.Booster(model_file=model)
    scores = booster.predict(rows, output_margin=True, validate_features=False)
    scores.astype("<f4").tofile(model + ".margins")
print(ascii(booster.feature_names))
`

// TestWriteXGBoost: XGBoost itself gives the raw scores of the forest for what is written, and the names.
func TestWriteXGBoost(t *testing.T) {
	if testing.Short() {
		t.Skip("Python takes more than a second to load XGBoost; run without -short")
	}
	python := xgboostPython(t)
	cells := slices.Clone(rows)
	for i, x := range cells {
		if math.IsInf(x, 0) { // which XGBoost refuses
			cells[i] = -3
		}
	}
	var file bytes.Buffer
	for _, x := range cells {
		binary.Write(&file, binary.LittleEndian, float32(x))
	}
	dir := t.TempDir()
	args := []string{"-c", margins, filepath.Join(dir, "rows")}
	if err := os.WriteFile(args[2], file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	forests := []*forest.Forest{plain(), dart(), remainder(1), remainder(0.5)}
	forests = append(forests, nevers()...)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		forests = append(forests, scattered(rng))
	}
	forests = append(forests, named())
	for i, f := range forests {
		args = append(args, filepath.Join(dir, fmt.Sprint(i, ".json")))
		if err := os.WriteFile(args[len(args)-1], written(t, f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", python, err, out)
	}
	if want := `['a&b <c> \u2028\u2029\x7f', '"q" \\u0041\\', '\t\r\n \xe9 \U0001f600']` + "\n"; !bytes.HasSuffix(out, []byte(want)) {
		t.Errorf("the names are %s, want %s", out, want)
	}
	for i, f := range forests {
		want := make([]float64, len(cells)/f.Features*f.Outputs)
		if err := forest.Evaluate(f, forest.Margin, cells, want); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(args[3+i] + ".margins")
		if err != nil || len(b) != 4*len(want) {
			t.Fatalf("forest %d: %d bytes of scores, want %d: %v", i, len(b), 4*len(want), err)
		}
		for k := range want {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:])); float64(got) != want[k] {
				t.Errorf("forest %d: score %d is %v, want %v", i, k, got, want[k])
				break
			}
		}
	}
}

// xgboostPython returns a Python interpreter that has XGBoost; it skips the test where none has. PCE_PYTHON names one.
func xgboostPython(t *testing.T) string {
	t.Helper()
	candidates := []string{"python3", "/usr/bin/python3"}
	if named := os.Getenv("PCE_PYTHON"); named != "" {
		candidates = []string{named}
	}
	for _, python := range candidates {
		if exec.CommandContext(t.Context(), python, "-c", "import xgboost").Run() == nil {
			return python
		}
	}
	t.Skipf("SKIPPED: none of %q has xgboost; install it (Debian's package is python3-xgboost), or name an interpreter in PCE_PYTHON", candidates)
	return ""
}
