package main

import (
	"fmt"
	"strings"

	"github.com/pce-engine/pce/run"
)

// forestInfo is what info says of a decision forest.
type forestInfo struct {
	Kind        string   `json:"kind"` // "forest"
	Source      string   `json:"source"`
	Objective   string   `json:"objective,omitempty"`
	Trees       int      `json:"trees"`
	Nodes       int      `json:"nodes"`
	Leaves      int      `json:"leaves"`
	Depth       int      `json:"depth"`
	Features    int      `json:"features"`
	Names       []string `json:"feature_names,omitempty"`
	Outputs     int      `json:"outputs"`
	Classes     int      `json:"classes,omitempty"`
	Link        string   `json:"link"`
	Base        []string `json:"base"`
	Categorical int      `json:"categorical_nodes"`
	Compares    string   `json:"compares_in"`
	Adds        string   `json:"adds_in"`
	Linear      bool     `json:"linear,omitempty"`
	BestTrees   int      `json:"best_trees,omitempty"`
}

// describeForest describes the forest in the file at path. It is called before the file is
// opened as a circuit, and returns nil without an error if it is not a forest's. A forest's
// file that is damaged is an error.
func describeForest(path string) (*forestInfo, error) {
	if is, err := run.TellForest(path); err != nil || !is {
		return nil, err
	}
	f, err := run.OpenForest(path)
	if err != nil {
		return nil, err
	}
	i := &forestInfo{
		Kind: "forest", Source: f.Source, Objective: f.Target, Trees: len(f.Trees), Nodes: f.NumNodes(), Leaves: f.NumLeaves(), Depth: f.Depth(),
		Features: f.Features, Names: f.Names, Outputs: f.Outputs, Classes: f.Classes, Link: f.Link.String(),
		Categorical: f.NumCategorical(), Compares: f.Input.String(), Adds: f.Sum.String(), Linear: f.Linear != nil, BestTrees: f.BestTrees,
	}
	for _, b := range f.Base {
		i.Base = append(i.Base, fmt.Sprint(b)) // NaN and infinities are not JSON
	}
	return i, nil
}

// printForest prints the description of a forest for people. What a linear model does not have,
// trees, and what a regression does not have, classes, are left out.
func (a *app) printForest(i *forestInfo) error {
	var b strings.Builder
	fmt.Fprintf(&b, "kind         decision forest of %s\n", printable(i.Source))
	if i.Objective != "" {
		fmt.Fprintf(&b, "objective    %s\n", i.Objective)
	}
	if i.Linear {
		fmt.Fprintf(&b, "trees        none: it is a linear model\n")
	} else {
		fmt.Fprintf(&b, "trees        %d of depth up to %d\n", i.Trees, i.Depth)
		fmt.Fprintf(&b, "nodes        %d: %s, %s by categories\n", i.Nodes, leaves(i.Leaves), several(i.Categorical, "split"))
	}
	if i.BestTrees > 0 && i.BestTrees < i.Trees {
		fmt.Fprintf(&b, "best         up to tree %d of %d; XGBoost's predict for scikit-learn stops there, pce and Booster.predict take all\n", i.BestTrees, i.Trees)
	}
	fmt.Fprintf(&b, "features     %d\n", i.Features)
	fmt.Fprintf(&b, "outputs      %d through the link %s\n", i.Outputs, i.Link)
	if i.Classes > 0 {
		fmt.Fprintf(&b, "classes      %d\n", i.Classes)
	}
	fmt.Fprintf(&b, "base         %s\n", strings.Join(i.Base[:min(len(i.Base), 8)], ", "))
	fmt.Fprintf(&b, "arithmetic   compares in %s, adds in %s\n", i.Compares, i.Adds)
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}
