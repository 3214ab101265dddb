package format_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/forest/format/lightgbm"
	"github.com/pce-engine/pce/forest/format/onnx"
	"github.com/pce-engine/pce/forest/format/treelite"
	"github.com/pce-engine/pce/forest/format/xgboost"
)

func init() {
	for _, f := range []format.Format{xgboost.JSON, xgboost.UBJSON, xgboost.Binary, lightgbm.Format, onnx.Format, treelite.Format} {
		format.Register(f)
	}
}

// testCase is what case.json of a shared case says.
type testCase struct {
	dir, name string
	Objective string
	Files     map[string]string
}

// cases returns the shared cases, or skips the test.
func cases(t *testing.T) []testCase {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "data", "forest")
	names, _ := filepath.Glob(filepath.Join(root, "*", "case.json"))
	if len(names) == 0 {
		t.Skipf("SKIPPED: needs %s, models and predictions that are not part of the repository: place the folder shared beside it", root)
	}
	var out []testCase
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c := testCase{dir: filepath.Dir(name), name: filepath.Base(filepath.Dir(name))}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// read returns a file of a case, unpacked; nil if there is none.
func (c testCase) read(t *testing.T, key string) []byte {
	t.Helper()
	name := c.Files[key]
	if name == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// numbers reads a CSV file of a case, each number rounded once to a precision.
func (c testCase) numbers(t *testing.T, key string, p forest.Precision) []float64 {
	t.Helper()
	var out []float64
	bits := 64
	if p == forest.Float32 {
		bits = 32
	}
	for _, word := range strings.FieldsFunc(string(c.read(t, key)), func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		x, err := strconv.ParseFloat(word, bits)
		if err != nil {
			t.Fatalf("%s of %s: %v", key, c.name, err)
		}
		out = append(out, x)
	}
	return out
}

// tolerance is how far numbers may be from those of the source, relative to those
// above 1: nothing for margins of XGBoost.
func (c testCase) tolerance(what forest.What, f *forest.Forest) float64 {
	switch {
	case what == forest.Leaves || what == forest.Class:
		return 0
	case strings.HasPrefix(c.name, "xgb") && what == forest.Margin, strings.HasPrefix(c.name, "tiny-"):
		return 0
	case c.name == "lgb-multiclass" && what == forest.Prediction:
		return 1e-7 // its source, GTIL, rounds the link to float32; LightGBM does not
	case strings.HasPrefix(c.name, "lgb-"):
		return 1e-9
	case strings.HasPrefix(c.name, "onnx-"):
		return 1e-5
	}
	return 1e-6
}

// TestCases reads every model of every shared case and holds its results to those
// that its own library gave, and again after it was written as XGBoost's JSON.
func TestCases(t *testing.T) {
	for _, c := range cases(t) {
		for _, key := range []string{"model", "model_ubj", "model_binary", "model_onnx", "model_treelite"} {
			b := c.read(t, key)
			if b == nil {
				continue
			}
			t.Run(c.name+"/"+key, func(t *testing.T) {
				t.Parallel()
				f, err := format.Decode(b)
				if err != nil {
					t.Fatal(err)
				}
				if c.name == "xgbold-dart-agaricus" {
					f.Trees = f.Trees[:10] // its numbers were made with ntree_limit=10
				}
				c.compare(t, f)
				if testing.Short() || !strings.HasPrefix(c.name, "xgb") {
					return
				}
				var doc bytes.Buffer
				if err := xgboost.Write(&doc, f); err != nil {
					t.Fatal(err)
				}
				if f, err = format.Decode(doc.Bytes()); err != nil {
					t.Fatal(err)
				}
				c.compare(t, f)
			})
		}
	}
}

// compare holds a forest to the expected results of the case.
func (c testCase) compare(t *testing.T, f *forest.Forest) {
	t.Helper()
	input := c.numbers(t, "input", f.Input)
	compared := 0
	for key, what := range map[string]forest.What{
		"expected": forest.Prediction, "expected_margin": forest.Margin, "expected_leaf": forest.Leaves, "expected_leaf_first200": forest.Leaves, "expected_class": forest.Class,
	} {
		if c.Files[key] == "" {
			continue
		}
		want := c.numbers(t, key, f.Output)
		rows := input
		if key == "expected_leaf_first200" {
			rows = input[:200*f.Features]
		}
		got := make([]float64, len(rows)/f.Features*f.Width(what))
		if err := forest.Evaluate(f, what, rows, got); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d numbers, want %d: %d rows, width %d", key, len(got), len(want), len(rows)/f.Features, f.Width(what))
			continue
		}
		tol, worst := c.tolerance(what, f), 0.0
		for i := range got {
			d := math.Abs(got[i]-want[i]) / max(1, math.Abs(want[i]))
			if got[i] == want[i] {
				d = 0
			}
			if !(d <= tol) {
				t.Errorf("%s: number %d is %v, want %v within %v", key, i, got[i], want[i], tol)
				break
			}
			worst = max(worst, d)
		}
		compared += len(got)
		t.Logf("%s: %d numbers, worst difference %.3g", key, len(got), worst)
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
