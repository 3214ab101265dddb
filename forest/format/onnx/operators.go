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
	weights, err := n.weights(f, at, "target")
	if err != nil {
		return err
	}
	if err := fill(f, weights); err != nil {
		return err
	}
	return n.finishScores(f)
}

// classifier reads scores of classes. Two classes may have the scores of one of them
// alone: then class 1 is above 0.5 if no weight is negative, and above 0 otherwise.
func (n *node) classifier(f *forest.Forest) error {
	at, err := n.nodes(f)
	if err != nil {
		return err
	}
	weights, err := n.weights(f, at, "class")
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
	one := len(names) == 2 && !slices.ContainsFunc(weights, func(w weight) bool { return w.output != weights[0].output })
	if !one {
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
	return n.oneClass(f, weights)
}

// oneClass makes a forest of one output.
func (n *node) oneClass(f *forest.Forest, weights []weight) error {
	f.Outputs = 1
	negative := false
	for i := range weights {
		weights[i].output = 0
		negative = negative || weights[i].value < 0
	}
	if err := fill(f, weights); err != nil {
		return err
	}
	if a := n.attributes["base_values"]; len(a.floats) == 2 { // that of class 1 counts
		a.floats = a.floats[1:]
		n.attributes["base_values"] = a
	}
	if err := n.finishScores(f); err != nil {
		return err
	}
	switch {
	case f.Link == forest.Probit: // one number
	case !negative:
		f.Link, f.Cut = forest.Complement, 0.5
	case f.Link == forest.Sigmoid:
		f.Link = forest.SigmoidPair
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
