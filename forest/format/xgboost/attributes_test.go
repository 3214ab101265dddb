package xgboost

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/formattest"
)

// TestBestTrees: best_iteration counts rounds, of trees for every output and of several at a time. What is not a round of the
// file is passed over.
func TestBestTrees(t *testing.T) {
	f := formattest.Example() // of two outputs
	for len(f.Trees) < 24 {
		f.Trees = append(f.Trees, f.Trees[0])
	}
	doc := string(written(t, f))
	for _, tt := range []struct {
		best, parallel string
		want           int
	}{
		{`{"best_iteration":"2","best_score":"0.5"}`, "1", 6}, {`{"best_iteration":"2"}`, "3", 18}, {`{"best_iteration":"3"}`, "3", 24},
		{`{"best_iteration":"2","best_ntree_limit":"9"}`, "1", 18}, {`{"best_ntree_limit":"9","best_iteration":"2"}`, "3", 18}, {`{"best_iteration":"2","best_ntree_limit":"13"}`, "1", 0},
		{`{"best_iteration":"4"}`, "3", 0}, {`{"best_iteration":"0"}`, "9223372036854775807", 0}, {`{"best_iteration":"0"}`, "-1", 2},
		{`{"best_iteration":"-1"}`, "1", 0}, {`{"best_iteration":"9223372036854775807"}`, "1", 0}, {`{"best_iteration":"x"}`, "1", 0}, {`{"a":{"best_iteration":"0"}}`, "1", 0}, {`{"best_ntree_limit":"9"}`, "3", 0}, {`{}`, "1", 0},
	} {
		changed := strings.Replace(strings.Replace(doc, `"attributes":{}`, `"attributes":`+tt.best, 1), `"num_parallel_tree":"1"`, `"num_parallel_tree":"`+tt.parallel+`"`, 1)
		for name, read := range map[string]func() (*forest.Forest, error){
			"JSON":   func() (*forest.Forest, error) { return JSON.Decode([]byte(changed)) },
			"UBJSON": func() (*forest.Forest, error) { return UBJSON.Decode(ubjson(t, []byte(changed))) },
		} {
			if got, err := read(); err != nil || got.BestTrees != tt.want {
				t.Errorf("%s: %s of %s trees at a time: %d, %v; want %d", name, tt.best, tt.parallel, got.BestTrees, err, tt.want)
			}
		}
	}
	one := strings.Replace(string(written(t, vectors())), `"attributes":{}`, `"attributes":{"best_iteration":"0"}`, 1)
	if got, err := JSON.Decode([]byte(one)); err != nil || got.BestTrees != 1 {
		t.Errorf("trees of vectors: %d, %v; want 1", got.BestTrees, err)
	}
}

// TestTypes: the types of features are in the copies, and say nothing of the model's identity. A file without a list of them is read.
func TestTypes(t *testing.T) {
	f := plain()
	bare := f.Digest()
	f.Types = []string{"c", "q", "\""}
	if f.Digest() != bare {
		t.Error("types change the digest")
	}
	text := written(t, f)
	for name, read := range map[string]func() (*forest.Forest, error){
		"JSON":   func() (*forest.Forest, error) { return JSON.Decode(text) },
		"UBJSON": func() (*forest.Forest, error) { return UBJSON.Decode(ubjson(t, text)) },
	} {
		if got, err := read(); err != nil || !slices.Equal(got.Types, f.Types) {
			t.Errorf("%s: %q, %v; want %q", name, got.Types, err, f.Types)
		}
	}
	types := []byte(`["c","q","\""]`)
	for _, other := range []string{"null", `["c",{"q":[1]}]`, "{}"} {
		if got, err := JSON.Decode(bytes.Replace(text, types, []byte(other), 1)); err != nil || got.Types != nil {
			t.Errorf("%s: %v; want a forest without types", other, err)
		}
	}
	for version, kept := range map[string]bool{"[1,7,4]": true, "[3,0,9]": true, "[3,1,0]": false, "[4,0,0]": false} {
		got, err := JSON.Decode(bytes.Replace(text, []byte(`"version":[1,7,4]`), []byte(`"version":`+version), 1))
		if err != nil || (got.Types != nil) != kept {
			t.Errorf("version %s: %q, %v; want types: %v", version, got.Types, err, kept)
		}
	}
	f.Types[0] = "\a"
	if err := Write(io.Discard, f); err == nil || !strings.Contains(err.Error(), `feature 0 has the type "\a"`) {
		t.Errorf("a control character: %v", err)
	}
}

// TestAttributes: what a file says beside its model is in its copies, whatever characters it has, and says nothing of the model's
// identity; a text that XGBoost could not read is refused.
func TestAttributes(t *testing.T) {
	f := plain()
	f.BestTrees = 1
	bare := f.Digest()
	f.Attributes = map[string]string{"scikit_learn": "{\"classes_\": [0, 1],\n\t\"missing\": NaN}", "best_score": "0.5", "é \\ \"": ""}
	if f.Digest() != bare {
		t.Error("attributes change the digest")
	}
	text := written(t, f)
	if again := written(t, f); !bytes.Equal(text, again) {
		t.Error("two copies differ")
	}
	for name, read := range map[string]func() (*forest.Forest, error){
		"JSON":   func() (*forest.Forest, error) { return JSON.Decode(text) },
		"UBJSON": func() (*forest.Forest, error) { return UBJSON.Decode(ubjson(t, text)) },
	} {
		if got, err := read(); err != nil || got.BestTrees != 1 || !maps.Equal(got.Attributes, f.Attributes) {
			t.Errorf("%s: %v; want %q", name, err, f.Attributes)
		}
	}
	f.Attributes["bell"] = "\a"
	if err := Write(io.Discard, f); err == nil || !strings.Contains(err.Error(), `attribute "bell" has a control character`) {
		t.Errorf("a control character: %v", err)
	}
}

// TestBestLinear: the best iteration of a linear model, which has no trees that could be counted, is in its copies.
func TestBestLinear(t *testing.T) {
	f := linear()
	f.Attributes = map[string]string{"best_iteration": "7"}
	text := written(t, f)
	if n := bytes.Count(text, []byte(`"best_iteration":"7"`)); n != 1 {
		t.Fatalf("a copy has best_iteration %d times", n)
	}
	got, err := JSON.Decode(text)
	if err != nil || got.BestTrees != 0 || !bytes.Equal(written(t, got), text) {
		t.Errorf("a copy of the copy differs: %v", err)
	}
}

// TestDropout: a copy has the booster of its file, also where no tree was dropped, which leaves the weight 1 to all. XGBoost's interface
// for scikit-learn, told otherwise by its settings, makes a new booster without trees.
func TestDropout(t *testing.T) {
	for _, dropout := range []bool{false, true} {
		f := plain()
		f.Dropout = dropout
		old := "gbtree"
		if dropout {
			old = "dart"
		}
		text := written(t, f)
		nameFirst := bytes.Replace(bytes.Replace(text, []byte(`,"name":"dart"`), nil, 1), []byte(`{"gbtree":`), []byte(`{"name":"dart","gbtree":`), 1)
		for name, read := range map[string]func() (*forest.Forest, error){
			"JSON":   func() (*forest.Forest, error) { return JSON.Decode(text) },
			"order":  func() (*forest.Forest, error) { return JSON.Decode(nameFirst) }, // of keys, which XGBoost sorts
			"UBJSON": func() (*forest.Forest, error) { return UBJSON.Decode(ubjson(t, text)) },
			"binary": func() (*forest.Forest, error) { return Binary.Decode(oldBinary(f, old, 0, 0)) },
		} {
			got, err := read()
			if err != nil || got.Dropout != dropout {
				t.Fatalf("%s of booster %s: dropout %t, %v", name, old, got.Dropout, err)
			}
			if again := written(t, got); bytes.Contains(again, []byte(`"name":"dart","weight_drop":[`)) != dropout {
				t.Errorf("%s: a copy of booster %s has another", name, old)
			}
		}
	}
}
