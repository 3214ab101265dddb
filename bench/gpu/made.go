package main

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
)

// maxMadeRows are the rows of a file of made-up rows, which pce bench walks through again
// and again.
const maxMadeRows = 8192

// madeRows says what made-up rows are.
type madeRows struct {
	columns int
	missing float64 // share of the cells
	cell    func(*rand.Rand) float64
}

// normalCell is a cell like those that thresholds of the made-up forests cut.
func normalCell(rng *rand.Rand) float64 { return rng.NormFloat64() }

// wideCell is a cell for networks of normal leaves.
func wideCell(rng *rand.Rand) float64 { return 3 * rng.NormFloat64() }

// countCell is a count of 0 to 12. Four of five are 0, as counts of words in NIPS papers
// are: nearly all rows with as many of each count are too unlikely for float32, and what
// is measured then is how rows are computed again.
func countCell(rng *rand.Rand) float64 {
	n := 0
	for n < 12 && rng.IntN(5) == 0 {
		n++
	}
	return float64(n)
}

// write writes some of the rows as CSV, the same ones each time.
func (m madeRows) write(path string, rows int) error {
	rng := rand.New(rand.NewPCG(2, uint64(m.columns)))
	return writeFile(path, func(w *bufio.Writer) error {
		var line []byte
		for range rows {
			line = line[:0]
			for c := range m.columns {
				if c > 0 {
					line = append(line, ',')
				}
				if rng.Float64() >= m.missing {
					line = strconv.AppendFloat(line, m.cell(rng), 'g', 6, 64)
				}
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

// madeTree is a tree in XGBoost's JSON, with what predictions need of it.
type madeTree struct {
	Left        []int     `json:"left_children"`
	Right       []int     `json:"right_children"`
	Feature     []int     `json:"split_indices"`
	Condition   []float32 `json:"split_conditions"` // the value of a leaf
	DefaultLeft []int     `json:"default_left"`
}

// newTree makes a complete tree with normal thresholds and leaves. The children of node i
// are 2i+1 and 2i+2.
func newTree(rng *rand.Rand, depth, features int) madeTree {
	inner := 1<<depth - 1
	n := 2*inner + 1
	t := madeTree{make([]int, n), make([]int, n), make([]int, n), make([]float32, n), make([]int, n)}
	for i := range n {
		t.Condition[i] = float32(rng.NormFloat64())
		t.Left[i], t.Right[i] = -1, -1
		if i < inner {
			t.Left[i], t.Right[i], t.Feature[i] = 2*i+1, 2*i+2, rng.IntN(features)
		}
	}
	return t
}

// writeForest writes a forest of complete trees as XGBoost's JSON, the same one each time.
func writeForest(path string, depth, trees, features int) error {
	rng := rand.New(rand.NewPCG(uint64(depth), uint64(trees)))
	type object = map[string]any
	made, outputs := make([]madeTree, trees), make([]int, trees)
	for i := range made {
		made[i] = newTree(rng, depth, features)
	}
	model := object{"gbtree_model_param": object{"num_trees": strconv.Itoa(trees)}, "tree_info": outputs, "trees": made}
	learner := object{
		"gradient_booster":    object{"model": model, "name": "gbtree"},
		"learner_model_param": object{"base_score": "0", "num_class": "0", "num_feature": strconv.Itoa(features), "num_target": "1"},
		"objective":           object{"name": "reg:squarederror"},
	}
	return writeFile(path, func(w *bufio.Writer) error {
		return json.NewEncoder(w).Encode(object{"learner": learner, "version": []int{1, 7, 4}})
	})
}

// writeFile makes a file of what write writes.
func writeFile(path string, write func(w *bufio.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
