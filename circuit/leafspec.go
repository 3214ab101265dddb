package circuit

import (
	"fmt"
	"reflect"
	"strings"
)

// LeafSpec describes a leaf in configs and files: the family's name, one of LeafTypes, and its
// settings. Categories is of categorical leaves; Trials of binomial ones; Codes, the size of
// the domain, of discretised-logistic and indicator; Value, the certain code, of indicator;
// MinSigma of gaussian and log-normal; MinScale of discretised-logistic; Edges of histogram.
// Settings of other families are zero.
type LeafSpec struct {
	Type       string  `json:"type" yaml:"type" mapstructure:"type"`
	Categories int     `json:"categories,omitempty" yaml:"categories,omitempty" mapstructure:"categories"`
	Trials     int     `json:"trials,omitempty" yaml:"trials,omitempty" mapstructure:"trials"`
	Codes      int     `json:"codes,omitempty" yaml:"codes,omitempty" mapstructure:"codes"`
	Value      int     `json:"value,omitempty" yaml:"value,omitempty" mapstructure:"value"`
	MinSigma   float64 `json:"min_sigma,omitempty" yaml:"min_sigma,omitempty" mapstructure:"min_sigma"`
	MinScale   float64 `json:"min_scale,omitempty" yaml:"min_scale,omitempty" mapstructure:"min_scale"`
	Edges      []int   `json:"edges,omitempty" yaml:"edges,omitempty" mapstructure:"edges"`

	// Of RealHistogram.
	Breaks []float64 `json:"breaks,omitempty" yaml:"breaks,omitempty" mapstructure:"breaks"`
	Floor  float64   `json:"floor,omitempty" yaml:"floor,omitempty" mapstructure:"floor"`
}

// LeafTypes lists the names of the families that circuits are built with. Imported circuits
// may also have RealHistogram, which ParseLeaf knows as well.
func LeafTypes() []string {
	return []string{
		"bernoulli", "binomial", "categorical", "discretised-logistic",
		"gaussian", "histogram", "indicator", "log-normal", "poisson",
	}
}

// ParseLeaf returns the leaf that a spec describes. A setting that the family
// does not have is an error that matches ErrLeaf.
func ParseLeaf(s LeafSpec) (Leaf, error) {
	var l Leaf
	switch s.Type {
	case "bernoulli":
		l = Bernoulli{}
	case "binomial":
		l = Binomial{Trials: s.Trials}
	case "categorical":
		l = Categorical{Categories: s.Categories}
	case "discretised-logistic":
		l = DiscretisedLogistic{Domain: s.Codes, MinScale: s.MinScale}
	case "gaussian":
		l = Gaussian{MinSigma: s.MinSigma}
	case "histogram":
		l = Histogram{Edges: s.Edges}
	case "indicator":
		l = Indicator{Domain: s.Codes, Value: s.Value}
	case "log-normal":
		l = LogNormal{MinSigma: s.MinSigma}
	case "poisson":
		l = Poisson{}
	case "real-histogram":
		l = RealHistogram{Breaks: s.Breaks, Floor: s.Floor}
	default:
		return nil, fmt.Errorf("%w: unknown type %.40q; want one of %s", ErrLeaf, s.Type, strings.Join(LeafTypes(), ", "))
	}
	if err := l.CheckSettings(); err != nil {
		return nil, err
	}
	if err := s.checkForeign(l); err != nil {
		return nil, err
	}
	return l, nil
}

// checkForeign returns an error if the spec has a setting that l does not take.
func (s LeafSpec) checkForeign(l Leaf) error {
	own, err := SpecOf(l)
	if err != nil {
		return err
	}
	given, taken := reflect.ValueOf(s), reflect.ValueOf(own)
	for i := range given.NumField() {
		if !given.Field(i).IsZero() && taken.Field(i).IsZero() {
			key := given.Type().Field(i).Tag.Get("yaml")
			return fmt.Errorf("%w: %s has no setting %q; remove it", ErrLeaf, s.Type, strings.TrimSuffix(key, ",omitempty"))
		}
	}
	return nil
}

// SpecOf returns the spec of a leaf, from which ParseLeaf makes an equal leaf; model files
// keep it. A leaf of another package gives an error that matches ErrLeaf.
func SpecOf(l Leaf) (LeafSpec, error) {
	s := LeafSpec{}
	switch l := l.(type) {
	case Bernoulli, Poisson:
	case Binomial:
		s.Trials = l.Trials
	case Categorical:
		s.Categories = l.Categories
	case DiscretisedLogistic:
		s.Codes, s.MinScale = l.Domain, l.MinScale
	case Gaussian:
		s.MinSigma = l.MinSigma
	case Histogram:
		s.Edges = l.Edges
	case RealHistogram:
		s.Breaks, s.Floor = l.Breaks, l.Floor
	case LogNormal:
		s.MinSigma = l.MinSigma
	case Indicator:
		s.Codes, s.Value = l.Domain, l.Value
	default:
		if t := reflect.TypeOf(l); t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == reflect.TypeFor[Bernoulli]().PkgPath() {
			return LeafSpec{}, fmt.Errorf("%w: %T is a pointer to a leaf, and has no spec; use the leaf itself, a %v", ErrLeaf, l, t.Elem())
		}
		return LeafSpec{}, fmt.Errorf("%w: %T has no spec; use one of the families of package circuit", ErrLeaf, l)
	}
	s.Type = l.Name()
	return s, nil
}
