package forest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/forest/format/lightgbm"
	"github.com/pce-engine/pce/forest/format/treelite"
	"github.com/pce-engine/pce/forest/format/xgboost"
)

// TestSharedForests lowers models that libraries trained and compares leaves and bits on
// rows of their own thresholds, a float32 below them, and missing cells.
func TestSharedForests(t *testing.T) {
	for _, f := range []format.Format{xgboost.JSON, lightgbm.Format, treelite.Format} {
		format.Register(f)
	}
	root := filepath.Join("..", "..", "..", "shared", "data", "forest")
	for _, name := range []string{
		"xgb-airline/airline_xgb_model_save.json.gz", "xgbs-missing/model.json", "xgbs-cat-partition/model.json", "xgbs-dart/model.json", "xgbs-extreme-values/model.json",
		"xgbs-softprob/model.json", "lgb-mixed_categorical/model.txt", "lgb-airline/model.txt.gz", "skl-extratrees-multioutput/model.treelite.bin.gz",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Stat(path); err != nil {
			t.Skipf("SKIPPED: needs %s, a model that is not part of the repository: place the folder shared beside it", path)
		}
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "lgb-airline/model.txt.gz" {
				t.Skip("a large forest; run without -short")
			}
			f, err := format.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, f, thresholds(f, 600))
		})
	}
}

// thresholds returns rows of a forest's own thresholds and categories, and of numbers
// around them.
func thresholds(f *forest.Forest, n int) []float64 {
	rng := rand.New(rand.NewPCG(5, 6))
	own := make([][]float64, f.Features)
	for i := range f.Trees {
		t := &f.Trees[i]
		for j := range t.Nodes {
			if node := &t.Nodes[j]; node.Test.Categorical() {
				own[node.Feature] = append(own[node.Feature], t.Categories[node.First:node.Last]...)
			} else if node.Test != forest.Leaf {
				own[node.Feature] = append(own[node.Feature], node.Threshold)
			}
		}
	}
	out := cells(rng, f, n)
	for i := range out {
		if list := own[i%f.Features]; len(list) > 0 && rng.IntN(5) > 0 {
			x := list[rng.IntN(len(list))]
			if rng.IntN(2) == 0 {
				x -= 1e-7 * x
			}
			if f.Input == forest.Float32 {
				x = float64(float32(x))
			}
			out[i] = x
		}
	}
	return out
}
