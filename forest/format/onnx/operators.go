package onnx

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/forest"
)

// finishScores sets the base values, the aggregate by name and the link by name.
func (n *node) finishScores(f *forest.Forest) error {
	bases, _ := n.floats("base_values")
	f.Base = make([]float64, f.Outputs)
	switch len(bases) {
	case 0:
	case f.Outputs:
		copy(f.Base, bases)
	default:
		return fmt.Errorf("%d base_values for %d outputs", len(bases), f.Outputs)
	}
	if name := n.attributes["aggregate_function"].text; name != "" {
		if err := aggregate(f, int64(slices.Index(aggregates, name))); err != nil {
			return fmt.Errorf("aggregate_function %.40q is unknown", name)
		}
	}
	name := n.attributes["post_transform"].text
	if name == "" {
		name = "NONE"
	}
	for _, t := range transforms {
		if t.name == name {
			f.Link = t.link
			return nil
		}
	}
	return fmt.Errorf("post_transform %.40q is unknown", name)
}

// one returns an integer attribute; def if it is not there.
func (n *node) one(name string, def int64) (int64, error) {
	xs := n.attributes[name].ints
	if len(xs) == 0 {
		return def, nil
	}
	if len(xs) != 1 {
		return 0, fmt.Errorf("%s has %d numbers; want 1", name, len(xs))
	}
	return xs[0], nil
}

// outputs reads the number of outputs.
func (n *node) outputs(f *forest.Forest) error {
	k, err := n.one("n_targets", 1)
	if err == nil && (k < 1 || k > forest.MaxOutputs) {
		err = fmt.Errorf("n_targets is %d; want 1..%d", k, forest.MaxOutputs)
	}
	f.Outputs = int(k)
	return err
}

func (n *node) regressor(f *forest.Forest) error {
	if err := n.outputs(f); err != nil {
		return err
	}
	at, err := n.nodes(f)
	if err != nil {
		return err
	}
	weights, err := n.weights(at, "target")
	if err != nil {
		return err
	}
	if err := fill(f, weights); err != nil {
		return err
	}
	return n.finishScores(f)
}

// classifier reads scores of classes. Two classes may have the scores of one of them alone.
func (n *node) classifier(f *forest.Forest) error {
	at, err := n.nodes(f)
	if err != nil {
		return err
	}
	weights, err := n.weights(at, "class")
	if err != nil {
		return err
	}
	numbers, names := n.attributes["classlabels_int64s"].ints, n.attributes["classlabels_strings"].strings
	if len(numbers) > 0 == (len(names) > 0) {
		return fmt.Errorf("%d numbers and %d names of classes; want one of them", len(numbers), len(names))
	}
	for _, x := range numbers {
		names = append(names, strconv.FormatInt(x, 10))
	}
	if len(names) > forest.MaxOutputs {
		return fmt.Errorf("%d classes; want at most %d", len(names), forest.MaxOutputs)
	}
	f.Outputs, f.Classes, f.Labels = len(names), len(names), names
	only := func(class int64) bool {
		return len(names) == 2 && !slices.ContainsFunc(weights, func(w weight) bool { return w.output != class })
	}
	switch bases, _ := n.floats("base_values"); {
	case only(0):
		return n.oneClass(f, weights)
	case only(1) && !negative(weights): // the runtime's class 1 begins at 0.5, with the score 0 for class 0
		return fmt.Errorf("the weights are all of class 1, and none is negative; give class 0 weights too")
	case only(1) && len(bases) > 0: // which the runtime passes over, or puts in place of the scores
		return fmt.Errorf("base_values, and weights of class 1 alone; give class 0 weights too")
	}
	if err := fill(f, weights); err != nil {
		return err
	}
	if err := n.finishScores(f); err != nil {
		return err
	}
	if f.Classes == 1 {
		f.Classes, f.Labels = 0, nil
	}
	return nil
}

// negative reports whether a weight is.
func negative(weights []weight) bool {
	return slices.ContainsFunc(weights, func(w weight) bool { return w.value < 0 })
}

// oneClass makes a forest of one output of weights of class 0 alone. They speak for class 1: it is where the score is above 0.5 if
// none is negative, and above 0 otherwise, whatever the transform makes of the score.
func (n *node) oneClass(f *forest.Forest, weights []weight) error {
	f.Outputs = 1
	if bases, _ := n.floats("base_values"); len(bases) > 1 {
		return fmt.Errorf("%d base_values, and weights of class 0 alone; give one, or class 1 weights too", len(bases))
	}
	if err := fill(f, weights); err != nil {
		return err
	}
	if err := n.finishScores(f); err != nil {
		return err
	}
	if !negative(weights) {
		f.Cut = 0.5
	}
	switch {
	case f.Link == forest.Probit:
		return fmt.Errorf("post_transform PROBIT, and weights of class 0 alone; give class 1 weights too")
	case f.Link == forest.Sigmoid:
		f.Link = forest.SigmoidPair
	case f.Cut > 0:
		f.Link = forest.Complement
	default:
		f.Link = forest.Negation
	}
	return nil
}

// ensemble reads the operator TreeEnsemble. Inner nodes and leaves are numbered apart;
// a leaf of forest has the number that it has there.
func (n *node) ensemble(f *forest.Forest) error {
	if err := n.outputs(f); err != nil {
		return err
	}
	b, err := n.builder(f)
	if err != nil {
		return err
	}
	for i, root := range n.attributes["tree_roots"].ints {
		if err := b.tree(f, root); err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
	}
	f.Base = make([]float64, f.Outputs)
	k, err := n.one("aggregate_function", 1)
	if err != nil {
		return err
	}
	if err := aggregate(f, k); err != nil {
		return err
	}
	if k, err = n.one("post_transform", 0); err != nil {
		return err
	}
	if k < 0 || int(k) >= len(transforms) {
		return fmt.Errorf("post_transform %d is unknown", k)
	}
	f.Link = transforms[k].link
	return nil
}
