package learnspn

import (
	"fmt"
	"math"
	"runtime"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
)

// The tests of independence, by which the columns of a slice are told apart.
const (
	Auto  = "auto"
	GTest = "g-test"
	RDC   = "rdc"
)

// The ways to cluster the rows of a slice.
const (
	EM     = "em"
	KMeans = "k-means"
)

// The models of a slice that is not cut further.
const (
	ChowLiu = "chow-liu"
	Factors = "factors"
)

// Options are the settings of the learner. Start from Defaults.
type Options struct {
	// Columns is the test of independence: GTest over codes, RDC over ranks of numbers. Auto
	// is GTest where all columns are categories, and RDC otherwise.
	Columns string
	// Rows is how rows are clustered: EM, hard EM of mixtures of independent columns, or
	// KMeans, of the features that RDC computes.
	Rows string
	// Threshold is what the test's statistic must exceed for two columns to be dependent: the
	// G statistic over twice its degrees of freedom, or the largest canonical correlation. 0
	// is that of the test: 5 for GTest, 0.3 for RDC.
	Threshold float64
	MinRows   int // a slice of fewer rows is not cut further
	Clusters  int // of the rows of a slice, at most
	// Leaf is the model of a slice that is not cut further: ChowLiu, a Chow-Liu tree over its
	// columns of few codes, or Factors, independent columns.
	Leaf string
	// Smoothing is how many rows are added to those of a leaf, with cells spread over the
	// codes of a finite domain, or as all rows have them where the domain is not finite or the leaf is a discretised logistic.
	Smoothing float64
	// Components is how many circuits are learned, each from a bootstrap sample of the rows: with
	// more than one the circuit is their mixture.
	Components int
	// MaxMultipliers bounds the multipliers of the circuit as hardware: 0 sets none. With a
	// bound, the circuit is a mixture of at most as many Chow-Liu trees as it allows, and only
	// Smoothing counts of the other settings.
	MaxMultipliers int
	// Search chooses Threshold, MinRows, Clusters, Leaf and Smoothing, beginning with those
	// given, by the log-likelihood of the rows of Valid. The number of trees of a mixture is
	// chosen by these rows whenever there are any.
	Search bool
	Valid  dataset.Source

	Leaves  []circuit.Leaf // of each column
	Seed    uint64
	Workers int // goroutines; they do not change the result
}

// Defaults returns the usual settings.
func Defaults() Options {
	return Options{
		Columns: Auto, Rows: EM, MinRows: 300, Clusters: 2, Leaf: ChowLiu, Smoothing: 2, Components: 1,
		Workers: runtime.GOMAXPROCS(0),
	}
}

// Limits of the settings and of the rows.
const (
	maxColumns    = 1 << 12 // all pairs of columns are tested
	maxClusters   = 1 << 8
	maxComponents = 1 << 8
	maxCells      = 1 << 30
	maxPoints     = 1 << 24 // cells whose features k-means keeps
	maxParams     = 1 << 28 // of leaves that there may be
)

// trees returns how many trees a mixture within MaxMultipliers has at most: one of d columns takes d - 1, and one for its weight.
func (o *Options) trees() int { return max(1, min(o.MaxMultipliers/len(o.Leaves), maxClusters)) }

// checkDomains reports columns of domains so large that the leaves of the parts that the rows
// can be cut into, or of the trees of a mixture, would fill the memory.
func (o *Options) checkDomains(rows int) error {
	total, widest := 0, 0
	for v, l := range o.Leaves {
		if total += l.NumParams(); l.NumParams() > o.Leaves[widest].NumParams() {
			widest = v
		}
	}
	of, parts, cure := fmt.Sprintf("min_rows %d", o.MinRows), (rows/o.MinRows+1)*o.Components, "raise min_rows"
	if o.MaxMultipliers > 0 {
		of, parts, cure = fmt.Sprintf("max_multipliers %d", o.MaxMultipliers), o.trees(), "lower max_multipliers"
	}
	if total > maxParams/parts {
		return fmt.Errorf("%w: learnspn with %s makes up to %d parts whose leaves have %d parameters, %d of them of column %d; %s, or give that column a histogram",
			structures.ErrOptions, of, parts, total, o.Leaves[widest].NumParams(), widest+1, cure)
	}
	return nil
}

// checkThreshold reports a threshold that the test, which has been chosen, never exceeds.
func (o *Options) checkThreshold() error {
	if o.MaxMultipliers == 0 && o.Columns == RDC && o.Threshold > 1 {
		return fmt.Errorf("%w: learnspn with threshold %v of rdc, whose coefficient is at most 1, so no columns would be dependent; choose less, or g-test",
			structures.ErrOptions, o.Threshold)
	}
	return nil
}

// check reports settings that are out of range, and rows that cannot be learned from, before
// any row is read.
func (o *Options) check(src dataset.Source) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: learnspn %s", structures.ErrOptions, fmt.Sprintf(format, args...))
	}
	columns, rows := len(src.Schema().Columns), src.Rows()
	cut := o.MaxMultipliers == 0 // else what says how rows are cut has no effect
	switch {
	case o.Columns != Auto && o.Columns != GTest && o.Columns != RDC:
		return bad("with test %.40q; choose auto, g-test or rdc", o.Columns)
	case o.Rows != EM && o.Rows != KMeans:
		return bad("with clustering %.40q; choose em or k-means", o.Rows)
	case o.Leaf != ChowLiu && o.Leaf != Factors:
		return bad("with leaf %.40q; choose chow-liu or factors", o.Leaf)
	case !(o.Threshold >= 0 && o.Threshold <= math.MaxFloat32):
		return bad("with threshold %v; choose a positive number, or 0 for the test's own", o.Threshold)
	case !(o.Smoothing > 0 && o.Smoothing <= math.MaxFloat32):
		return bad("with smoothing %v; choose a positive number of rows", o.Smoothing)
	case o.MinRows < 2 || o.Clusters < 2 || o.Clusters > maxClusters:
		return bad("with min_rows %d and %d clusters; choose at least 2 rows and 2 to %d clusters", o.MinRows, o.Clusters, maxClusters)
	case o.Components < 1 || o.Components > maxComponents:
		return bad("with %d components; choose 1 to %d", o.Components, maxComponents)
	case o.MaxMultipliers < 0 || o.Workers < 1:
		return bad("with max_multipliers %d and %d workers; choose 0 or more, and at least 1", o.MaxMultipliers, o.Workers)
	case len(o.Leaves) != columns:
		return bad("with %d leaves for %d columns; give each column one", len(o.Leaves), columns)
	case cut && o.Search && (o.Valid == nil || o.Valid.Rows() == 0):
		return bad("with search and no validation rows to choose by; give some, or search nothing")
	case columns < 1 || columns > maxColumns:
		return fmt.Errorf("%w: learnspn over %d columns; it tests all pairs of 1 to %d; drop columns, or choose hclt", structures.ErrData, columns, maxColumns)
	case cut && rows < o.MinRows:
		return fmt.Errorf("%w: learnspn over %d rows, fewer than min_rows, which is %d; give more rows or lower it", structures.ErrData, rows, o.MinRows)
	case cut && o.Rows == KMeans && int64(rows)*int64(columns) > maxPoints:
		return bad("with k-means over %d rows of %d columns, which are more than %d cells; choose em, or give fewer rows", rows, columns, maxPoints)
	case int64(rows)*int64(columns) > maxCells:
		return fmt.Errorf("%w: learnspn over %d rows of %d columns, which are more than %d cells; give fewer rows", structures.ErrData, rows, columns, int64(maxCells))
	}
	if err := o.checkLeaves(src.Schema()); err != nil {
		return err
	}
	return o.checkDomains(rows)
}

// checkLeaves reports the first column whose leaf is none, or has codes where the column has numbers without bins.
func (o *Options) checkLeaves(s *dataset.Schema) error {
	for v, l := range o.Leaves {
		if l == nil {
			return fmt.Errorf("%w: learnspn without a leaf for %s; give each column one", structures.ErrOptions, s.ColumnName(v))
		}
		if err := l.CheckSettings(); err != nil {
			return fmt.Errorf("%w: learnspn with the leaf of %s: %w", structures.ErrOptions, s.ColumnName(v), err)
		}
		if c := &s.Columns[v]; l.Codes() > 0 && c.Kind == dataset.Continuous && c.Edges == nil {
			return fmt.Errorf("%w: learnspn with a %s leaf, which has codes, for %s, which is continuous; choose one of numbers, such as gaussian",
				structures.ErrOptions, l.Name(), s.ColumnName(v))
		}
	}
	return nil
}
