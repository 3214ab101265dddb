package lightgbm

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/formattest"
)

// example is a model of three features with every kind of decision: by number with
// missing cells as 0, NaN and neither, and by category.
const example = `tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=binary sigmoid:2
feature_names=a b c
feature_infos=[0:1] [0:1] 0:1:2
tree_sizes=100 90

Tree=0
num_leaves=5
num_cat=1
split_feature=0 1 2 0
split_gain=4 3 2 1
threshold=0.5 -1.5 0 2
decision_type=10 6 1 2
left_child=1 -1 -3 -4
right_child=2 -2 3 -5
leaf_value=0.1 -0.2 0.3 -0.4 0.5
leaf_weight=1 1 1 1 1
cat_boundaries=0 2
cat_threshold=5 1
is_linear=0
shrinkage=1


Tree=1
num_leaves=1
num_cat=0
leaf_value=0.0625
shrinkage=1


end of trees

feature_importances:
a=2

parameters:
[boosting: gbdt]
end of parameters
`

func TestRead(t *testing.T) {
	formattest.Run(t, Format, []byte(strings.Split(example, "\nfeature_imp")[0]))
	f, err := Format.Decode([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for _, tt := range []struct {
		row  [3]float64
		leaf float64
	}{
		// node 0: missing NaN, default left
		{[3]float64{0.5, -1.5, 0}, 0}, {[3]float64{nan, -1.5, 0}, 0}, {[3]float64{math.Nextafter(0.5, 1), 0, 0}, 2},
		// node 1: missing zero, default left; beyond 1e-35 a cell is not zero
		{[3]float64{0, 0, 0}, 0}, {[3]float64{0, nan, 0}, 0}, {[3]float64{0, 1e-36, 0}, 0}, {[3]float64{0, -1e-34, 0}, 1}, {[3]float64{0, -2, 0}, 0}, {[3]float64{0, 1, 0}, 1},
		// node 2: categories 0, 2 and 32; -0.5 is 0
		{[3]float64{1, 0, 2.9}, 2}, {[3]float64{1, 0, 32}, 2}, {[3]float64{1, 0, -0.5}, 2}, {[3]float64{1, 0, -1}, 3}, {[3]float64{1, 0, 1}, 3}, {[3]float64{1, 0, 33}, 3},
		{[3]float64{1, 0, nan}, 3}, {[3]float64{1, 0, 1e9}, 3}, {[3]float64{1, 0, math.Inf(1)}, 3},
		// node 3: no missing cells in training; a cell is above 2
		{[3]float64{3, 0, 1}, 4}, {[3]float64{2, 0, 1}, 3},
	} {
		var leaves [2]float64
		if err := forest.Evaluate(f, forest.Leaves, tt.row[:], leaves[:]); err != nil || leaves[0] != tt.leaf || leaves[1] != 0 {
			t.Errorf("row %v reaches leaves %v, want %v and 0: %v", tt.row, leaves, tt.leaf, err)
		}
	}
	var p [1]float64
	row := []float64{0.5, -1.5, 0}
	want := 1 / (1 + math.Exp(-2*(0.1+0.0625)))
	if err := forest.Evaluate(f, forest.Prediction, row, p[:]); err != nil || !(math.Abs(p[0]-want) <= 1e-15) {
		t.Errorf("prediction %v, want %v: %v", p, want, err)
	}
}

// TestAveraged: LightGBM 2.2.3 and later apply the link to the average of the trees; files of version v2 are of those
// before, whose leaves are predictions.
func TestAveraged(t *testing.T) {
	row := []float64{0.5, -1.5, 0}
	const mean = (0.1 + 0.0625) / 2
	for version, want := range map[string]float64{"v2": mean, "v3": 1 / (1 + math.Exp(-2*mean)), "v4": 1 / (1 + math.Exp(-2*mean))} {
		text := strings.Replace(strings.Replace(example, "version=v4", "version="+version, 1), "feature_names=", "average_output\nfeature_names=", 1)
		if version == "v2" {
			text = strings.Replace(text, "end of trees\n\nfeature_importances", "\nfeature importances", 1)
		}
		f, err := Format.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var p, margin [1]float64
		if err := errors.Join(forest.Evaluate(f, forest.Prediction, row, p[:]), forest.Evaluate(f, forest.Margin, row, margin[:])); err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(p[0]-want) <= 1e-15) || !(math.Abs(margin[0]-mean) <= 1e-15) {
			t.Errorf("version %s: prediction %v and margin %v, want %v and %v", version, p[0], margin[0], want, mean)
		}
	}
}

// TestMissingNone: where no cell was missing in training, a missing one counts as 0.
func TestMissingNone(t *testing.T) {
	for threshold, want := range map[string]float64{"-0.25": 1, "0": 0, "0.25": 0} {
		text := strings.Replace(strings.Replace(example, "threshold=0.5 ", "threshold="+threshold+" ", 1), "decision_type=10", "decision_type=2", 1)
		text = strings.Replace(strings.Replace(text, "left_child=1 -1", "left_child=1 -1", 1), "right_child=2", "right_child=2", 1)
		f, err := Format.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var leaves [2]float64
		if err := forest.Evaluate(f, forest.Leaves, []float64{math.NaN(), -2, 2}, leaves[:]); err != nil || leaves[0] != 2*want {
			t.Errorf("threshold %s: leaf %v, want %v: %v", threshold, leaves[0], 2*want, err)
		}
	}
}

func TestObjectives(t *testing.T) {
	for text, want := range map[string]forest.Link{
		"regression": forest.Identity, "regression sqrt": forest.SignedSquare, "poisson": forest.Exp, "cross_entropy": forest.Sigmoid,
		"cross_entropy_lambda": forest.Softplus, "lambdarank": forest.Identity, "binary sigmoid:1": forest.Sigmoid,
		"multiclass": forest.Softmax, "softmax": forest.Softmax, "multiclassova": forest.Sigmoid, "xentlambda": forest.Softplus, "gamma": forest.Exp, "mae": forest.Identity, "": forest.Identity,
	} {
		f, err := Format.Decode([]byte(strings.Replace(example, "objective=binary sigmoid:2", "objective="+text, 1)))
		if err != nil || f.Link != want {
			t.Errorf("objective %q: %v", text, err)
		}
	}
}

// TestClasses: a model of several scores for classes has one for each, also of two.
func TestClasses(t *testing.T) {
	for objective, want := range map[string][2]int{"multiclass": {0, 2}, "multiclassova": {0, 2}, "softmax": {0, 2}, "binary": {2, 0}, "regression": {0, 0}} {
		for i, per := range []string{"1", "2"} {
			text := strings.Replace(strings.Replace(example, "per_iteration=1", "per_iteration="+per, 1), "objective=binary", "objective="+objective, 1)
			f, err := Format.Decode([]byte(text))
			if err != nil || f.Classes != want[i] {
				t.Errorf("%s of %s scores has %d classes, want %d: %v", objective, per, f.Classes, want[i], err)
			}
		}
	}
}

// TestMark: a file may begin with the byte order mark that some editors put in front of a text.
func TestMark(t *testing.T) {
	marked := []byte("\ufeff" + example)
	if !Format.Recognises(marked) {
		t.Error("a file with a mark is not recognised")
	}
	if f, err := Format.Decode(marked); err != nil || len(f.Trees) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestNames: spaces alone end a name, and names that are not one for each feature are refused, as columns would be matched by their order.
func TestNames(t *testing.T) {
	for text, want := range map[string]int{"a b c": 3, " a  b c ": 3, "a b\u3000b c\td": 3, "": 0} {
		f, err := Format.Decode([]byte(strings.Replace(example, "feature_names=a b c", "feature_names="+text, 1)))
		if err != nil || len(f.Names) != want {
			t.Errorf("feature_names %q: want %d: %v", text, want, err)
		}
	}
	for _, text := range []string{"a b", "a b c d", "a\u3000b c"} {
		_, err := Format.Decode([]byte(strings.Replace(example, "feature_names=a b c", "feature_names="+text, 1)))
		if err == nil || !strings.Contains(err.Error(), "names for 3 features") {
			t.Errorf("feature_names %q: %v", text, err)
		}
	}
}

func TestHostile(t *testing.T) {
	for want, change := range map[string][2]string{
		"line 12: tree 0: left_child has 3 numbers": {"left_child=1 -1 -3 -4", "left_child=1 -1 -3"},
		"has a parent already":                      {"right_child=2 -2", "right_child=1 -2"},
		"child 12 is out of range":                  {"right_child=2 -2", "right_child=2 -9"},
		"feature 3 is out of range":                 {"split_feature=0 1", "split_feature=3 1"},
		"num_leaves is":                             {"num_leaves=5", "num_leaves=-5"},
		"fewer than 1000000 numbers":                {"num_leaves=5", "num_leaves=1000000"},
		"max_feature_idx is":                        {"max_feature_idx=2", "max_feature_idx=99999999999"},
		"num_tree_per_iteration is":                 {"num_tree_per_iteration=1", "num_tree_per_iteration=0"},
		"an average over 2 trees of 3 outputs":      {"num_tree_per_iteration=1", "num_tree_per_iteration=3\naverage_output"},
		"cat_boundaries[0]":                         {"cat_boundaries=0 2", "cat_boundaries=0 3"},
		"list 1 of categories":                      {"threshold=0.5 -1.5 0 2", "threshold=0.5 -1.5 1 2"},
		"is another node's":                         {"decision_type=10 6 1 2\n", "decision_type=10 6 1 1\n"},
		"linear":                                    {"is_linear=0", "is_linear=1"},
		`objective "magic" is unknown`:              {"objective=binary", "objective=magic"},
		"cut short":                                 {"end of trees", ""},
		"where a tree should start":                 {"\n\nTree=1", "\n\nBush=1"},
		"sigmoid:0 is out of range":                 {"sigmoid:2", "sigmoid:0"},
		`threshold[1] is "x"`:                       {"threshold=0.5 -1.5", "threshold=0.5 x"},
	} {
		text := strings.Replace(strings.Split(example, "\nfeature_imp")[0], change[0], change[1], 1)
		if want == "is another node's" {
			text = strings.Replace(text, "threshold=0.5 -1.5 0 2", "threshold=0.5 -1.5 0 0", 1)
		}
		got := formattest.Decode(t, Format, []byte(text))
		_, err := Format.Decode([]byte(text))
		if got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestFirstFault: of several faults the first one of the file is named, whichever goroutine is faster.
func TestFirstFault(t *testing.T) {
	head, rest, _ := strings.Cut(example, "Tree=0")
	tree := "Tree=0" + strings.Split(rest, "Tree=1")[0]
	text := head + strings.Repeat(tree, 40) + strings.Replace(tree, "threshold=0.5", "threshold=y", 1) + strings.Repeat(strings.Replace(tree, "threshold=0.5", "threshold=z", 1), 40) + "Bush=0"
	if _, err := Format.Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), `tree 40: threshold[0] is "y"`) {
		t.Errorf("error is %v, want that of tree 40", err)
	}
}

// TestFaultStops: what follows a faulty tree is not kept, since a small compressed file can hold a hundred million of them.
func TestFaultStops(t *testing.T) {
	head, _, _ := strings.Cut(example, "Tree=0")
	few, many := head+strings.Repeat("Tree=\n", 1000), head+strings.Repeat("Tree=\n", 100_000)
	allocs := func(text string) float64 {
		return testing.AllocsPerRun(1, func() {
			if _, err := Format.Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), "tree 0: num_leaves") {
				t.Errorf("error is %v, want that of tree 0", err)
			}
		})
	}
	if a, b := allocs(few), allocs(many); b > a+20_000 {
		t.Errorf("%v allocations for 1,000 faulty trees and %v for 100,000", a, b)
	}
}

// TestInteger: words are read as strconv reads them.
func TestInteger(t *testing.T) {
	for _, word := range []string{"0", "-0", "7", "-7", "+7", "999999999", "-999999999", "1000000000", "2147483647", "2147483648", "-2147483648", "-2147483649", "", "-", "--1", "1-", "1x", "x", "0x1", "1_0", "007", "1:", "1/"} {
		want, wrong := strconv.ParseInt(word, 10, 32)
		if got, err := integer([]byte(word)); (err == nil) != (wrong == nil) || wrong == nil && int64(got) != want {
			t.Errorf("%q is %d: %v, want %d: %v", word, got, err, want, wrong)
		}
	}
}

func FuzzDecode(f *testing.F) { formattest.Fuzz(f, Format, []byte(example)) }
