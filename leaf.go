package pce

import (
	"fmt"

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
	MinSigma   float64 // floor of a Gaussian's standard deviation; 0: the family's own
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

// spec returns the leaf of one column.
func (l *Leaf) spec(c *dataset.Column) (circuit.LeafSpec, error) {
	spec := circuit.LeafSpec{Type: l.Type}
	discrete := c.Kind == dataset.Discrete
	if l.Type == "" || l.Type == "auto" {
		spec.Type = "gaussian"
		if discrete {
			spec.Type = "categorical"
		}
	}
	switch spec.Type {
	case "gaussian", "poisson":
		if c.Labels != nil {
			return spec, fmt.Errorf("holds texts, which a %s leaf cannot describe; choose leaf type auto or categorical", spec.Type)
		}
		if spec.Type == "gaussian" {
			spec.MinSigma = l.MinSigma
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
