package forest_test

import (
	"fmt"

	"github.com/pce-engine/pce/forest"
)

// A forest of one tree that asks whether the first cell is below 1.
func Example() {
	f := &forest.Forest{
		Features: 2, Outputs: 1, Base: []float64{0.5},
		Trees: []forest.Tree{{
			Weight: 1,
			Nodes:  []forest.Node{{Test: forest.Less, Feature: 0, Threshold: 1, Yes: 1, No: 2}, {First: 0, Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}},
			Values: []forest.Value{{Value: 3}, {Value: 4}},
		}},
	}
	if err := f.Check(); err != nil {
		fmt.Println(err)
		return
	}
	out := make([]float64, 2)
	rows := []float32{0.25, 9, 1, 9} // two rows
	if err := forest.Evaluate(f, forest.Margin, rows, out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out)
	// Output: [3.5 4.5]
}
