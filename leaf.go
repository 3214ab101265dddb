package pce

import (
	"context"
	"fmt"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// Leaf says which distributions the inputs of a circuit are.
type Leaf struct {
	// Type is a family of circuit.LeafTypes, or auto: categorical for discrete
	// columns, Gaussian for continuous ones.
	Type       string
	Categories int     // of discrete columns without labels; 0: as many as the data has
	Bins       int     // bins of equal width of a histogram
	MinSigma   float64 // floor of a Gaussian's standard deviation, as numbers of the column; 0: 0.01 of the column's scale
	MinScale   float64 // floor of a discretised logistic's scale; 0: the family's own
}

// leaves returns the leaf of each column of a schema; oneDomain gives all
// discrete columns without labels the categories of the largest.
func (l *Leaf) leaves(s *dataset.Schema, oneDomain bool) ([]circuit.Leaf, error) {
	largest := 0
	for i := range s.Columns {
		if c := &s.Columns[i]; oneDomain && c.Kind == dataset.Discrete && c.Labels == nil {
			largest = max(largest, c.Categories)
		}
	}
	out := make([]circuit.Leaf, len(s.Columns))
	for i := range out {
		c := s.Columns[i]
		if c.Kind == dataset.Discrete && c.Labels == nil {
			c.Categories = max(c.Categories, largest)
			if n := l.Categories; n > 0 && n < c.Categories {
				return nil, fmt.Errorf("%w: %s has the category %d, and leaves have %d categories; give them at least %d",
					ErrOptions, s.ColumnName(i), c.Categories-1, n, c.Categories)
			}
			c.Categories = max(c.Categories, l.Categories)
		}
		spec, err := l.spec(&c)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %w", ErrOptions, s.ColumnName(i), err)
		}
		if out[i], err = circuit.ParseLeaf(spec); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrOptions, s.ColumnName(i), err)
		}
	}
	return out, nil
}

// typeOf returns the family for a column.
func (l *Leaf) typeOf(c *dataset.Column) string {
	switch {
	case l.Type != "" && l.Type != "auto":
		return l.Type
	case c.Kind == dataset.Discrete:
		return "categorical"
	}
	return "gaussian"
}

// spec returns the leaf of one column.
func (l *Leaf) spec(c *dataset.Column) (circuit.LeafSpec, error) {
	spec := circuit.LeafSpec{Type: l.typeOf(c)}
	discrete := c.Kind == dataset.Discrete
	switch spec.Type {
	case "gaussian", "poisson":
		if c.Labels != nil {
			return spec, fmt.Errorf("holds texts, which a %s leaf cannot describe; choose leaf type auto or categorical", spec.Type)
		}
		if spec.Type == "gaussian" {
			spec.MinSigma = l.MinSigma
			if c.Scale > 0 {
				spec.MinSigma /= c.Scale
			}
		}
		return spec, nil
	}
	if !discrete {
		return spec, fmt.Errorf("is continuous, which a %s leaf cannot describe; choose leaf type auto or gaussian, or make the column discrete", spec.Type)
	}
	n := c.Categories
	switch spec.Type {
	case "categorical":
		spec.Categories = n
	case "bernoulli":
		if n != 2 {
			return spec, fmt.Errorf("has %d categories, a bernoulli leaf 2; choose leaf type categorical", n)
		}
	case "binomial":
		spec.Trials = n - 1
	case "discretised-logistic":
		spec.Codes, spec.MinScale = n, l.MinScale
	case "histogram":
		if l.Bins < 1 {
			return spec, fmt.Errorf("would have a histogram of %d bins; choose at least 1", l.Bins)
		}
		bins := min(l.Bins, n)
		for i := range bins + 1 {
			spec.Edges = append(spec.Edges, i*n/bins)
		}
	}
	return spec, nil
}

// stored returns the schema under which the rows of src have to be stored for the
// structure's leaves: that of src, but for counts of Poisson leaves, which stay as
// they are, and for tied steps of a hidden Markov model, which share one scale as
// they share their leaves.
func (s *Structure) stored(ctx context.Context, src dataset.Source) (*dataset.Schema, error) {
	out := *src.Schema()
	out.Columns = slices.Clone(out.Columns)
	if s.Kind == "hmm" && s.HMM.Tied {
		if err := shareScale(ctx, src, out.Columns); err != nil {
			return nil, err
		}
	}
	for i := range out.Columns {
		if c := &out.Columns[i]; s.Leaf.typeOf(c) == "poisson" {
			c.Offset, c.Scale = 0, 0
		}
	}
	return &out, nil
}

// shareScale gives the continuous columns of a source one offset and one scale.
func shareScale(ctx context.Context, src dataset.Source, columns []dataset.Column) error {
	var scaled []int
	for i, c := range columns {
		if c.Kind == dataset.Continuous && c.Scale != 0 {
			scaled = append(scaled, i)
		}
	}
	if scaled == nil {
		return nil
	}
	offset, scale, err := dataset.Scale(ctx, src, scaled)
	for _, i := range scaled {
		columns[i].Offset, columns[i].Scale = offset, scale
	}
	return err
}
