package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// Leaf says which distributions the inputs of a circuit are.
type Leaf struct {
	// Type is a family of circuit.LeafTypes, or auto: categorical for discrete
	// columns, Gaussian for continuous ones.
	Type       string
	Categories int // of discrete columns without labels; 0: as many as the data has
	Bins       int // bins of equal width of a histogram; 0: 32
	// Edges are those of a histogram over a continuous column, instead of Bins from
	// its least to its largest number; Outside is the density beyond them.
	Edges    []float64
	Outside  float64
	MinSigma float64 // floor of a Gaussian's standard deviation, as numbers of the column; 0: 0.01 of the column's scale
	MinScale float64 // floor of a discretised logistic's scale; 0: the family's own
}

// defaultBins is how many bins a histogram has.
const defaultBins = 32

// over returns l with the settings of base where l says nothing.
func (l Leaf) over(base Leaf) Leaf {
	if l.Type == "" {
		l.Type = base.Type
	}
	l.Categories = cmp.Or(l.Categories, base.Categories)
	if len(l.Edges) == 0 && l.Bins == 0 { // bins of its own are in place of edges
		l.Edges = base.Edges
	}
	l.Bins = cmp.Or(l.Bins, base.Bins)
	l.Outside = cmp.Or(l.Outside, base.Outside)
	l.MinSigma = cmp.Or(l.MinSigma, base.MinSigma)
	l.MinScale = cmp.Or(l.MinScale, base.MinScale)
	return l
}

// leavesOf says what the leaf of each column of a schema is. The class has none, and no setting is of it.
func (s *Structure) leavesOf(columns []dataset.Column) []Leaf {
	leaves := make([]Leaf, len(columns))
	for i, key := range dataset.Keys(s.Leaves, columns) {
		switch leaves[i] = s.Leaf; {
		case s.class == i+1:
			leaves[i] = Leaf{Type: "auto"}
		case key != "":
			leaves[i] = s.Leaves[key].over(s.Leaf)
		}
	}
	return leaves
}

// check finds the class. It reports one that the structure has no roots for, and a class or a leaf that is set for a column
// that there is not.
func (s *Structure) check(schema *dataset.Schema) error {
	keys := dataset.Keys(s.Leaves, schema.Columns)
	if s.Class != "" {
		if !slices.Contains([]string{"hclt", "pd", "rat-spn"}, s.Kind) {
			return fmt.Errorf("%w: a class for %s; structures with a root for each class are hclt, pd and rat-spn", ErrOptions, s.Kind)
		}
		class, err := findClass(schema, s.Class)
		if err != nil {
			return err
		}
		if key := keys[class]; key != "" && key != "*" {
			return fmt.Errorf("%w: a leaf is set for %s, which is the class and has roots in place of leaves; leave it out", ErrOptions, schema.ColumnName(class))
		}
		s.class = class + 1
	}
	for _, l := range s.leavesOf(schema.Columns) { // edges and tables are allocated by these numbers
		if l.Bins < 0 || l.Bins > circuit.MaxCodes || l.Categories < 0 || l.Categories > circuit.MaxCodes {
			return fmt.Errorf("%w: leaves of %d bins and %d categories; want 0 to %d of each", ErrOptions, l.Bins, l.Categories, circuit.MaxCodes)
		}
	}
	used := append(keys, "*")
	for _, key := range slices.Sorted(maps.Keys(s.Leaves)) {
		if !slices.Contains(used, key) {
			return fmt.Errorf("%w: a leaf is set for column %q, and there is none; write a name of the header, the number of a column that has none, or *", ErrOptions, key)
		}
	}
	return nil
}

// leaves returns the leaf of each column of a schema, which stored has returned for the rows of src.
func (s *Structure) leaves(ctx context.Context, src dataset.Source, schema *dataset.Schema) ([]circuit.Leaf, error) {
	out := make([]circuit.Leaf, len(schema.Columns))
	firsts, err := s.firstCodes(ctx, src, schema)
	if err != nil {
		return nil, err
	}
	for i, l := range s.leavesOf(schema.Columns) {
		c := schema.Columns[i]
		spec, err := l.spec(&c, firsts[i])
		if err != nil {
			return nil, fmt.Errorf("%w: %s %w", ErrOptions, schema.ColumnName(i), err)
		}
		if out[i], err = circuit.ParseLeaf(spec); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrOptions, schema.ColumnName(i), err)
		}
	}
	return out, nil
}

// numberLeaves are the families that describe numbers and not codes.
var numberLeaves = []string{"gaussian", "log-normal", "poisson"}

// tied reports whether columns share leaves.
func (s *Structure) tied() bool { return s.Kind == "hmm" && s.HMM.Tied || s.Kind == "equations" }

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

// spec returns the leaf of one column, in units of the cells as they are stored: the floor of
// a Gaussian is divided by the column's scale. It is called after the column's edges were set.
// A column that the family cannot describe gives an error without its name, which the caller
// puts in front. The bins of a discrete column's histogram divide the codes from first on; those before it, if any, are a bin of their own.
func (l *Leaf) spec(c *dataset.Column, first int) (circuit.LeafSpec, error) {
	spec := circuit.LeafSpec{Type: l.typeOf(c)}
	discrete := c.Kind == dataset.Discrete
	switch spec.Type {
	case "gaussian", "log-normal", "poisson":
		if c.Labels != nil {
			return spec, fmt.Errorf("holds texts, which a %s leaf cannot describe; choose leaf type auto or categorical", spec.Type)
		}
		if spec.Type != "poisson" {
			spec.MinSigma = l.MinSigma
		}
		if spec.Type == "gaussian" && c.Scale > 0 {
			spec.MinSigma /= c.Scale
		}
		return spec, nil
	case "histogram":
		if !discrete {
			for i := range c.Edges {
				spec.Edges = append(spec.Edges, i)
			}
			return spec, nil
		}
		if len(l.Edges) > 0 {
			return spec, fmt.Errorf("is discrete, and its histogram has edges between numbers; set its type to continuous, or give its own leaf bins (in data.columns)")
		}
	}
	if !discrete {
		return spec, fmt.Errorf("is continuous, which a %s leaf cannot describe; choose leaf type auto, gaussian, log-normal or histogram, or make the column discrete", spec.Type)
	}
	n := c.Categories
	if n < 2 && (spec.Type == "binomial" || spec.Type == "discretised-logistic") {
		return spec, fmt.Errorf("has %d category, a %s leaf 2 or more; choose leaf type categorical", n, spec.Type)
	}
	if problem := l.unordered(c, spec.Type); problem != "" {
		return spec, errors.New(problem)
	}
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
		bins := min(cmp.Or(l.Bins, defaultBins), n-first)
		if bins < 1 {
			return spec, fmt.Errorf("would have a histogram of %d bins; choose at least 1", l.Bins)
		}
		if first > 0 {
			spec.Edges = append(spec.Edges, 0)
		}
		for i := range bins + 1 {
			spec.Edges = append(spec.Edges, first+i*(n-first)/bins)
		}
	}
	return spec, nil
}

// firstCodes returns from which code on the histogram of each discrete column has its bins: from the least that rows have where that is
// beyond the middle, as of years, of which bins from 0 on would tell hardly any apart; else 0. Columns that share leaves have the same.
func (s *Structure) firstCodes(ctx context.Context, src dataset.Source, schema *dataset.Schema) ([]int, error) {
	firsts, joined := make([]int, len(schema.Columns)), make([]bool, len(schema.Columns))
	for i, l := range s.leavesOf(schema.Columns) {
		c := &schema.Columns[i]
		joined[i] = c.Kind == dataset.Discrete && c.Labels == nil && l.typeOf(c) == "histogram" && cmp.Or(l.Bins, defaultBins) < c.Categories
	}
	if !slices.Contains(joined, true) {
		return firsts, nil
	}
	sums, err := dataset.Summarize(ctx, src)
	if err != nil {
		return nil, err
	}
	least := math.MaxInt
	for i := range firsts {
		if joined[i] && sums[i].Observed > 0 { // of a column without cells all codes may be
			firsts[i] = int(sums[i].Min)
			least = min(least, firsts[i])
		}
	}
	for i := range firsts {
		if s.tied() && joined[i] && least < math.MaxInt {
			firsts[i] = least
		}
		if 2*firsts[i] <= schema.Columns[i].Categories {
			firsts[i] = 0
		}
	}
	return firsts, nil
}

// unordered says why a family that takes codes for numbers, or joins neighbouring ones, cannot describe the texts of a column: these
// have the order of the alphabet, in which 10 comes before 2. Texts that are numbers in their order are fine, and so are two.
func (l *Leaf) unordered(c *dataset.Column, family string) string {
	joins := family == "binomial" || family == "discretised-logistic" || family == "histogram" && cmp.Or(l.Bins, defaultBins) < c.Categories
	if !joins || c.Labels == nil || c.Categories <= 2 {
		return ""
	}
	numbers := c.LabelNumbers()
	switch {
	case numbers == nil:
		return fmt.Sprintf("holds texts, such as %.40q and %.40q, which have no order that a %s leaf could describe; choose leaf type categorical, or write numbers in their place",
			c.Labels[0], c.Labels[1], family)
	case !slices.IsSorted(numbers):
		return fmt.Sprintf("holds numbers as texts, in the order of the alphabet, and a %s leaf describes numbers in theirs; set the column's type to discrete, or choose leaf type categorical", family)
	}
	return ""
}

// stored returns the schema under which the rows of src have to be stored for the
// structure's leaves: that of src, but for counts of Poisson leaves, which stay as
// they are, numbers of log-normal leaves, which stay positive, and tied steps of a
// hidden Markov model, which share one scale and one list of labels as they share their leaves. Discrete columns
// have the categories of their leaves, or are continuous where their leaves describe numbers:
// a run that is resumed reads its rows as its circuit says, and has to find the same ones.
// Columns of histograms have their edges.
func (s *Structure) stored(ctx context.Context, src dataset.Source) (*dataset.Schema, error) {
	out := *src.Schema()
	out.Columns = slices.Clone(out.Columns)
	if s.tied() {
		if err := likeOthers(ctx, src, out.Columns); err != nil {
			return nil, err
		}
		if err := s.shareLabels(&out); err != nil {
			return nil, err
		}
	}
	leaves := s.leavesOf(out.Columns)
	for i, l := range leaves { // before categories are shared, of which numbers have none
		c := &out.Columns[i]
		if c.Kind == dataset.Discrete && c.Labels == nil && slices.Contains(numberLeaves, l.Type) {
			c.Kind, c.Categories = dataset.Continuous, 0
		}
	}
	if err := s.shareCategories(&out); err != nil {
		return nil, err
	}
	if s.tied() { // with whole numbers that leaves take as they take others
		if err := shareScale(ctx, src, out.Columns); err != nil {
			return nil, err
		}
	}
	var ends [][2]float64 // of the numbers of columns, once they are needed
	for i, l := range leaves {
		c := &out.Columns[i]
		kind := l.typeOf(c)
		if ends == nil && kind == "histogram" {
			var err error
			if ends, err = s.ends(ctx, src); err != nil {
				return nil, err
			}
		}
		switch {
		case kind == "poisson":
			c.Offset, c.Scale, c.Counts = 0, 0, c.Kind == dataset.Continuous
		case kind == "log-normal":
			if c.Kind == dataset.Continuous && c.Scale > 0 {
				if c.Offset > 0 {
					c.Scale = c.Offset // numbers near the median are stored as numbers near 1
				}
				c.Offset = 0
			}
		case kind == "histogram" && c.Kind == dataset.Continuous:
			c.Edges, c.Outside = l.edges(ends[i][0], ends[i][1]), l.Outside
		}
	}
	return &out, out.Validate()
}

// ends returns the least and the largest number of each column: those of all continuous columns where these share leaves, and with them
// the probabilities of bins, so that a bin has to be of the same numbers in all of them.
func (s *Structure) ends(ctx context.Context, src dataset.Source) ([][2]float64, error) {
	sums, err := dataset.Summarize(ctx, src)
	if err != nil {
		return nil, err
	}
	ends, all := make([][2]float64, len(sums)), [2]float64{math.Inf(1), math.Inf(-1)}
	for i := range sums {
		c := &src.Schema().Columns[i]
		n := sums[i].Numbers(c)
		if ends[i] = [2]float64{n.Min, n.Max}; c.Kind == dataset.Continuous && n.Observed > 0 {
			all = [2]float64{min(all[0], n.Min), max(all[1], n.Max)}
		}
	}
	if s.tied() && all[0] <= all[1] {
		for i := range ends {
			ends[i] = all
		}
	}
	return ends, nil
}

// likeOthers gives columns without any cell, whose type is a guess, that of the first one with cells, if types differ: where columns
// share leaves, a sequence may be shorter in all rows than the columns allow.
func likeOthers(ctx context.Context, src dataset.Source, columns []dataset.Column) error {
	alike := func(c, d *dataset.Column) bool { return c.Kind == d.Kind && (c.Labels == nil) == (d.Labels == nil) }
	if !slices.ContainsFunc(columns, func(c dataset.Column) bool { return !alike(&c, &columns[0]) }) {
		return nil
	}
	sums, err := dataset.Summarize(ctx, src)
	if err != nil {
		return err
	}
	first := slices.IndexFunc(sums, func(s dataset.Summary) bool { return s.Observed > 0 })
	if first < 0 {
		return nil
	}
	for i := range columns {
		if c, f := &columns[i], &columns[first]; sums[i].Observed == 0 && !alike(c, f) {
			c.Kind, c.Categories, c.Labels, c.Offset, c.Scale = f.Kind, f.Categories, f.Labels, f.Offset, f.Scale
		}
	}
	return nil
}

// shareLabels gives the columns of texts the texts of all of them where columns share leaves: a code is then the same text in each. It
// refuses columns of texts beside columns of numbers, whose codes have nothing in common.
func (s *Structure) shareLabels(schema *dataset.Schema) error {
	first, all, differ := -1, map[string]bool{}, false
	for i := range schema.Columns {
		c := &schema.Columns[i]
		if c.Kind != dataset.Discrete {
			continue
		}
		if first < 0 {
			first = i
		}
		f := &schema.Columns[first]
		if (c.Labels == nil) != (f.Labels == nil) {
			return fmt.Errorf("%w: %s and %s share a leaf of %s, and one of them holds texts, the other numbers; give both one type (label in data.columns)",
				ErrOptions, schema.ColumnName(first), schema.ColumnName(i), s.Kind)
		}
		if i > first && len(c.Labels) > 0 && len(f.Labels) > 0 && &c.Labels[0] == &f.Labels[0] {
			continue // one list, as tokens of text have
		}
		differ = differ || !slices.Equal(c.Labels, f.Labels)
		for _, label := range c.Labels {
			all[label] = true
		}
	}
	if !differ {
		return nil
	}
	labels := slices.Sorted(maps.Keys(all))
	for i := range schema.Columns {
		if c := &schema.Columns[i]; c.Kind == dataset.Discrete {
			c.Labels, c.Categories = labels, len(labels)
		}
	}
	return nil
}

// shareCategories gives the discrete columns of a schema without labels the categories that
// their leaves are set to, and all the largest where leaves are tied.
func (s *Structure) shareCategories(schema *dataset.Schema) error {
	largest := 0
	for i := range schema.Columns {
		if c := &schema.Columns[i]; s.tied() && c.Kind == dataset.Discrete && c.Labels == nil {
			largest = max(largest, c.Categories)
		}
	}
	keys := dataset.Keys(s.Leaves, schema.Columns)
	for i, l := range s.leavesOf(schema.Columns) {
		c := &schema.Columns[i]
		if n := s.Leaves[keys[i]].Categories; n > 0 && keys[i] != "*" {
			switch {
			case c.Labels != nil:
				return fmt.Errorf("%w: %s holds texts, of which rows have %d, and its own leaf %d categories; leave these out",
					ErrOptions, schema.ColumnName(i), c.Categories, n)
			case c.Kind == dataset.Continuous && (l.Type == "" || l.Type == "auto"):
				return fmt.Errorf("%w: %s is continuous, and its own leaf has %d categories; leave these out, or make the column discrete",
					ErrOptions, schema.ColumnName(i), n)
			}
		}
		if c.Kind != dataset.Discrete || c.Labels != nil {
			continue
		}
		c.Categories = max(c.Categories, largest)
		if n := l.Categories; n > 0 && n < c.Categories {
			return fmt.Errorf("%w: %s has the category %d, and leaves have %d categories; give them at least %d",
				ErrOptions, schema.ColumnName(i), c.Categories-1, n, c.Categories)
		} else if n > 0 {
			c.Categories = n
		}
	}
	return nil
}

// checkPositive reports a column of rows with a number that its log-normal leaf
// cannot describe.
func checkPositive(ctx context.Context, src dataset.Source, leaves []circuit.Leaf) error {
	logs := func(l circuit.Leaf) bool { _, ok := l.(circuit.LogNormal); return ok }
	if !slices.ContainsFunc(leaves, logs) {
		return nil
	}
	sums, err := dataset.Summarize(ctx, src)
	if err != nil {
		return err
	}
	s := src.Schema()
	for i, l := range leaves {
		if n := sums[i].Numbers(&s.Columns[i]); logs(l) && n.Observed > 0 && !(n.Min > 0) {
			return fmt.Errorf("%w: %s has the number %v, and a log-normal leaf takes positive ones; choose another leaf, or list the number in data.missing",
				ErrOptions, s.ColumnName(i), n.Min)
		}
	}
	return nil
}

// edges returns the edges of a histogram of numbers between two: of fewer bins where float64 does not have that many numbers there.
func (l *Leaf) edges(least, largest float64) []float64 {
	if len(l.Edges) > 0 {
		return slices.Clone(l.Edges)
	}
	bins := cmp.Or(l.Bins, defaultBins)
	if !(least < largest) { // one number is in the middle of its bin
		size := math.Abs(least)
		half := max(0.5, math.Nextafter(size, math.Inf(1))-size)
		bins, least, largest = 1, least-half, largest+half
	}
	for ; ; bins /= 2 {
		edges, ascending := make([]float64, bins+1), true
		for i := range edges {
			f := float64(i) / float64(bins)
			edges[i] = float64((1-f)*least) + float64(f*largest)
			ascending = ascending && (i == 0 || edges[i-1] < edges[i])
		}
		if ascending || bins == 1 {
			return edges
		}
	}
}

// shareScale gives the continuous columns of a source one offset and one scale, if any has some.
func shareScale(ctx context.Context, src dataset.Source, columns []dataset.Column) error {
	var numbers []int
	scaled := false
	for i, c := range columns {
		if c.Kind == dataset.Continuous {
			numbers = append(numbers, i)
			scaled = scaled || c.Scale != 0
		}
	}
	if !scaled {
		return nil
	}
	offset, scale, err := dataset.Scale(ctx, src, numbers)
	for _, i := range numbers {
		columns[i].Offset, columns[i].Scale = offset, scale
	}
	return err
}
