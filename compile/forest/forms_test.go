package forest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/internal/golden"
)

// pair is a forest of a tree of depth 2 and one of depth 1, by the predicate that it asks for: "<", "<=", or "classes" for
// trees of two outputs.
func pair(predicate string) *forest.Forest {
	test := forest.Less
	if predicate == "<=" {
		test = forest.LessEqual
	}
	f := &forest.Forest{Features: 2, Outputs: 1, Base: []float64{0.5}, Trees: []forest.Tree{
		{Weight: 1, Values: []forest.Value{{Value: 1}, {Value: 2}, {Value: 3}}, Nodes: []forest.Node{
			{Test: test, Feature: 0, Threshold: 0.5, Yes: 1, No: 2}, {Last: 1, ID: 1},
			{Test: test, Feature: 1, Threshold: 2.5, Yes: 3, No: 4, MissingYes: true}, {First: 1, Last: 2, ID: 3}, {First: 2, Last: 3, ID: 4}}},
		{Weight: 0.5, Values: []forest.Value{{Value: -1}, {Value: -2}}, Nodes: []forest.Node{
			{Test: test, Feature: 1, Threshold: 1.5, Yes: 1, No: 2}, {Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}}},
	}}
	if predicate == "classes" {
		f.Outputs, f.Base = 2, []float64{0, 0}
		for i := range f.Trees[1].Values {
			f.Trees[1].Values[i].Output = 1
		}
	}
	return f
}

// TestForms prints a form of a small forest under a schedule, for each operation in a file of its name.
func TestForms(t *testing.T) {
	files, err := filepath.Glob("testdata/operations/*.txt")
	if err != nil || len(files) != 14 {
		t.Fatalf("%d files (%v), want one for each operation and one for the HIR", len(files), err)
	}
	for _, file := range files {
		op := strings.TrimSuffix(filepath.Base(file), ".txt")
		golden.Run(t, file, func(form string, args []string, input string) string {
			s, err := schedule.Parse(input)
			if err != nil {
				return err.Error()
			}
			f := pair(args[0])
			c, err := Compile(f, s, hir.Profile(f, []float64{0, 0, 1, 1, 1, 3, 2, 4, 2, 4}))
			text, ok := c.Text(form)
			if !ok {
				return err.Error()
			}
			if form == "mir" && !strings.Contains(text, op) {
				t.Errorf("%s: the MIR has no %s", file, op)
			}
			if err != nil {
				text += err.Error() + "\n"
			}
			return text
		})
	}
}

// TestShipped prints the MIR of a small forest under every shipped schedule.
func TestShipped(t *testing.T) {
	var names []string
	golden.Run(t, "testdata/shipped.txt", func(_ string, args []string, _ string) string {
		names = append(names, args[0])
		text, err := schedule.ShippedText(args[0])
		if err != nil {
			return err.Error()
		}
		s, err := schedule.Parse(text)
		if err != nil {
			return err.Error()
		}
		c, err := Compile(pair("<"), s, nil)
		mir, _ := c.Text("mir")
		if err != nil {
			mir += err.Error() + "\n"
		}
		return mir
	})
	if all := schedule.Shipped(); !slices.Equal(names, all) {
		t.Errorf("shipped.txt has %v, want %v", names, all)
	}
}
