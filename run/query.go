package run

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// The kinds of queries, named as the commands of pce query.
const (
	QueryLogLikelihood = "loglik"
	QueryConditional   = "conditional"
	QueryMoments       = "moments"
	QueryClass         = "classify"
	QueryCovariance    = "covariance" // of the command moments
	QueryQuantiles     = "quantiles"
	QueryExpect        = "expect"
)

// Query is what a model is asked about rows; it has Width numbers for each row as
// its answer. The answer to a row depends on the query and the row alone.
type Query struct {
	Kind string
	// Columns are those that it is about: of QueryLogLikelihood the given ones, if there
	// are any, of QueryConditional, QueryCovariance and QueryQuantiles those of whose
	// distributions something is wanted, of QueryClass the one of the class.
	Columns []int
	// Levels, of QueryQuantiles, lie between 0 and 1.
	Levels []float64
	// Of, of QueryExpect, are the polynomials whose expectations are wanted.
	Of []Polynomial
	// All, of QueryClass, writes the probability of every class, not of the likeliest.
	All bool
}

// NewQuery makes a query about rows of s, whose columns are named as Schema.Find
// takes them. Levels of quantiles and polynomials are not columns: NewQuantiles and NewExpectation
// make queries of these.
func NewQuery(s *dataset.Schema, kind string, columns []string) (*Query, error) {
	switch kind {
	case QueryQuantiles:
		return nil, fmt.Errorf("%w: quantiles want levels; make the query by NewQuantiles", ErrOptions)
	case QueryExpect:
		return nil, fmt.Errorf("%w: an expectation wants a polynomial; make the query by NewExpectation", ErrOptions)
	}
	found, err := s.FindAll(columns)
	if err != nil {
		return nil, err
	}
	q := &Query{Kind: kind, Columns: found}
	return q, q.Check(s)
}

// NewQuantiles makes a query for the quantiles of columns, named as in NewQuery, at levels between 0 and 1.
func NewQuantiles(s *dataset.Schema, columns []string, levels []float64) (*Query, error) {
	found, err := s.FindAll(columns)
	if err != nil {
		return nil, err
	}
	q := &Query{Kind: QueryQuantiles, Columns: found, Levels: levels}
	return q, q.Check(s)
}

// Check reports why the query cannot be answered for rows of s, with an error that matches
// ErrOptions, or returns nil. It looks at the kind and its columns only, not at what the
// circuit allows (Blueprint.Queries). NewQuery calls it; call it for a Query made by hand
// before Answer, which does not check.
func (q *Query) Check(s *dataset.Schema) error {
	if q == nil {
		return fmt.Errorf("%w: a nil query; make one by NewQuery", ErrOptions)
	}
	for _, c := range q.Columns {
		if c < 0 || c >= len(s.Columns) {
			return fmt.Errorf("%w: column %d of %d, counted from 0; name one that the model has", ErrOptions, c, len(s.Columns))
		}
	}
	switch q.Kind {
	case QueryLogLikelihood:
		return nil
	case QueryMoments:
		if len(q.Columns) > 0 {
			return fmt.Errorf("%w: moments of some columns; they are of all, so name none", ErrOptions)
		}
		return nil
	case QueryConditional, QueryCovariance, QueryQuantiles:
		if len(q.Columns) == 0 {
			return fmt.Errorf("%w: no columns whose distributions are wanted; name some", ErrOptions)
		}
		if k := len(q.Columns); q.Kind == QueryCovariance && k > maxCovariance {
			return fmt.Errorf("%w: covariances of %d columns; want at most %d", ErrOptions, k, maxCovariance)
		}
		seen := make([]bool, len(s.Columns))
		for _, c := range q.Columns {
			if seen[c] {
				return fmt.Errorf("%w: column %d, counted from 0, is listed twice; list each column once", ErrOptions, c)
			}
			seen[c] = true
		}
		return q.checkLevels()
	case QueryExpect:
		if len(q.Of) == 0 || len(q.Of) > maxExpected {
			return fmt.Errorf("%w: %d polynomials whose expectations are wanted; want 1 to %d", ErrOptions, len(q.Of), maxExpected)
		}
		for _, p := range q.Of {
			if err := p.check(len(s.Columns)); err != nil {
				return err
			}
		}
		return nil
	case QueryClass:
		if len(q.Columns) != 1 {
			return fmt.Errorf("%w: %d columns to classify by; name one", ErrOptions, len(q.Columns))
		}
		if c := q.Columns[0]; s.Columns[c].Kind != dataset.Discrete {
			return fmt.Errorf("%w: %s is continuous; classify by a column of categories", ErrOptions, s.ColumnName(c))
		}
		return nil
	}
	return fmt.Errorf("%w: unknown query %.40q", ErrOptions, q.Kind)
}

// maxCovariance bounds the columns of QueryCovariance, maxExpected the polynomials of
// QueryExpect, maxLevels the levels of QueryQuantiles.
const (
	maxCovariance = 1024
	maxExpected   = 1024
	maxLevels     = 1024
)

// checkLevels looks at the levels of QueryQuantiles.
func (q *Query) checkLevels() error {
	if q.Kind != QueryQuantiles {
		return nil
	}
	if len(q.Levels) == 0 || len(q.Levels) > maxLevels {
		return fmt.Errorf("%w: %d levels of quantiles; want 1 to %d", ErrOptions, len(q.Levels), maxLevels)
	}
	for _, x := range q.Levels {
		if !(x > 0 && x < 1) {
			return fmt.Errorf("%w: the quantile at %v; want a level between 0 and 1", ErrOptions, x)
		}
	}
	return nil
}

// Width is how many numbers the answer has for each row of s: the distribution of a column
// is the probability of each of its categories, or mean and variance.
func (q *Query) Width(s *dataset.Schema) int {
	switch q.Kind {
	case QueryClass, QueryConditional:
		n := 0
		for _, c := range q.Columns {
			if s.Columns[c].Kind == dataset.Discrete {
				n += s.Columns[c].Categories
			} else {
				n += 2
			}
		}
		return n
	case QueryMoments:
		return 2 * len(s.Columns)
	case QueryCovariance:
		return len(q.Columns) * len(q.Columns)
	case QueryQuantiles:
		return len(q.Columns) * len(q.Levels)
	case QueryExpect:
		return len(q.Of)
	}
	return 1
}

// Answer writes the answer for the rows of b to out, [b.Rows, q.Width]. The query must have
// passed Check for the runner's schema, and an engine must have been made for queries
// (Load.Queries) where the kind needs more than log-likelihoods; code answers these and QueryClass. Rows that the model excludes
// get NaN, or -Inf as their log-likelihood.
func Answer(ctx context.Context, r engine.Runner, q *Query, b *dataset.Batch, out []float64) error {
	if code := asCode(r); code != nil && q.Kind == QueryLogLikelihood {
		return q.logLikelihood(ctx, code, b, out)
	}
	if q.Kind == QueryClass {
		if code := classifier(r, q.Columns[0]); code != nil {
			return code.Classify(ctx, b, q.Columns[0], out)
		}
	}
	e, err := Tensor(ctx, r)
	if err != nil {
		return err
	}
	switch {
	case q.Kind == QueryClass:
		return e.Classify(ctx, b, q.Columns[0], out)
	case q.Kind == QueryConditional:
		return e.Conditional(ctx, b, q.Columns, out)
	case q.Kind == QueryMoments:
		return e.Moments(ctx, b, out)
	case q.Kind == QueryCovariance:
		return e.Covariance(ctx, b, q.Columns, out)
	case q.Kind == QueryQuantiles:
		return e.Quantiles(ctx, b, q.Columns, q.Levels, out)
	case q.Kind == QueryExpect:
		return expect(ctx, e, b, q.Of, out)
	}
	return q.logLikelihood(ctx, e, b, out)
}

// logLikelihood is Answer for QueryLogLikelihood, by code or tensors.
func (q *Query) logLikelihood(ctx context.Context, r engine.Runner, b *dataset.Batch, out []float64) error {
	if len(q.Columns) == 0 {
		return engine.EvaluateBatch(ctx, r, b, out)
	}
	given := make([]bool, len(b.Columns))
	for _, c := range q.Columns {
		given[c] = true
	}
	return engine.LogLikelihoodGiven(ctx, r, b, given, out)
}

// NewWriter returns a writer of answers about rows of s, in the format of path's
// extension, .csv or .npy. rows is how many rows will be written; -1, for .csv alone:
// not known.
func (q *Query) NewWriter(w io.Writer, path string, s *dataset.Schema, rows int) (dataset.NumberWriter, error) {
	if q.Kind == QueryClass {
		return newClassWriter(w, path, &s.Columns[q.Columns[0]], rows, q.All)
	}
	return dataset.NewNumberWriter(w, path, rows, q.Width(s))
}

// classWriter writes the label of the likeliest class, the first of equals, and its
// probability or those of all classes. The label is missing where no class is possible.
type classWriter struct {
	dataset.Writer
	all  bool
	line dataset.Batch // of one row
}

func newClassWriter(w io.Writer, path string, class *dataset.Column, rows int, all bool) (*classWriter, error) {
	if _, err := dataset.NewNumberWriter(io.Discard, path, 0, 1); err != nil { // no picture
		return nil, err
	}
	s := &dataset.Schema{Columns: []dataset.Column{*class, {Kind: dataset.Continuous}}}
	if all {
		s.Columns = append(s.Columns, slices.Repeat(s.Columns[1:], class.Categories-1)...)
	}
	c := &classWriter{all: all, line: *dataset.NewBatch(s, 1)}
	for i := range s.Columns[1:] {
		c.line.Columns[1+i].Text = make([][]byte, 1)
	}
	var err error
	c.Writer, err = dataset.NewWriter(w, path, s, rows)
	return c, err
}

// Likeliest returns the likeliest class of an answer for one row, the first of equals;
// dataset.Missing where none is possible.
func Likeliest(p []float64) int {
	best := 0
	for code, x := range p {
		if x > p[best] {
			best = code
		}
	}
	if math.IsNaN(p[best]) {
		return dataset.Missing
	}
	return best
}

// Write writes a row of probabilities.
func (c *classWriter) Write(p []float64) error {
	best := Likeliest(p)
	shown := p
	if !c.all {
		shown = p[max(best, 0):][:1]
	}
	c.line.Columns[0].Codes.Set(0, best)
	for i, x := range shown { // as text, which has all digits of a float64
		text := &c.line.Columns[1+i].Text[0]
		*text = strconv.AppendFloat((*text)[:0], x, 'g', -1, 64)
	}
	return c.Writer.Write(&c.line)
}

// The kinds of queries whose answers are not numbers for each row: the most probable completions of rows and drawn ones are
// rows, and entropy and divergence are of the whole model.
const (
	QueryMPE     = "mpe"
	QuerySample  = "sample"
	QueryEntropy = "entropy"
	QueryKL      = "kl"
)

// queryKinds are all kinds.
var queryKinds = []string{
	QueryLogLikelihood, QueryConditional, QueryMoments, QueryClass, QueryCovariance, QueryQuantiles, QueryExpect,
	QueryMPE, QuerySample, QueryEntropy, QueryKL,
}

// MPEOptions say what most probable completions are of, and how they are looked for where max-product
// does not give them.
type MPEOptions struct {
	// Of are the columns to complete, counted from 0, all missing cells of others summed out
	// (marginal MAP). Empty: all columns.
	Of []int
	// Candidates is how many drawn completions of a row are improved, beside those of
	// max-product and of the beam.
	Candidates int
	// Beam is how many partial completions of a row a beam search keeps while it fills one
	// column after another. 0: no such search.
	Beam int
	// Search is how many partial completions of a row branch and bound may extend to find a
	// likelier one or to prove that none is. 0: no such search. A plan of memory has room for those of
	// DefaultMPE; more take 200 bytes each.
	Search int
	Seed   uint64 // of the draws
}

// DefaultMPE are the options of pce query mpe and of the server.
var DefaultMPE = MPEOptions{Candidates: 8, Beam: 8, Search: 200}

// maxCandidates bounds the candidates of a row, maxBeam its partial completions, maxSearch those that branch
// and bound extends, and mpeSweeps the times that each of its missing cells is improved.
const (
	maxCandidates = 1 << 20
	maxBeam       = 1 << 10
	maxSearch     = 1 << 20
	mpeSweeps     = 10
)

// search returns what the engine has of the options.
func (o MPEOptions) search() engine.MPEOptions {
	return engine.MPEOptions{Candidates: o.Candidates, Beam: o.Beam, Sweeps: mpeSweeps, Search: o.Search, Seed: o.Seed}
}

// Check reports why the options cannot be used.
func (o MPEOptions) Check() error {
	if o.Candidates < 0 || o.Candidates > maxCandidates {
		return fmt.Errorf("%w: %d candidates for a most probable completion; want 0 to %d", ErrOptions, o.Candidates, maxCandidates)
	}
	if o.Beam < 0 || o.Beam > maxBeam {
		return fmt.Errorf("%w: a beam of %d partial completions; want 0 to %d", ErrOptions, o.Beam, maxBeam)
	}
	if o.Search < 0 || o.Search > maxSearch {
		return fmt.Errorf("%w: a search through %d partial completions; want 0 to %d", ErrOptions, o.Search, maxSearch)
	}
	return nil
}

// completed says of each of n columns whether Of names it; nil if it names none, which means all.
func (o MPEOptions) completed(n int) ([]bool, error) {
	if len(o.Of) == 0 {
		return nil, nil
	}
	of := make([]bool, n)
	for _, c := range o.Of {
		if c < 0 || c >= n {
			return nil, fmt.Errorf("%w: column %d of %d, counted from 0; name one that the model has", ErrOptions, c, n)
		}
		of[c] = true
	}
	return of, nil
}

// MPEExact reports whether max-product gives the most probable completions: the circuit is
// deterministic, and no leaf reads the bins of values, whose probabilities are not densities.
func (b *Blueprint) MPEExact() bool { return b.mpeExact(circuit.Properties(b.Graph)) }

func (b *Blueprint) mpeExact(p circuit.Props) bool {
	return p.Deterministic && !b.binned()
}

// binned reports whether a leaf reads the bins of values.
func (b *Blueprint) binned() bool {
	return slices.ContainsFunc(b.Schema.Columns, func(c dataset.Column) bool { return c.Edges != nil })
}

// MPE fills the missing cells of rows, or those of the columns of o, with the most probable completion, or
// where exact is false the best one that it finds. It writes their log-likelihoods and a bound on those of
// all completions, [rows] both. first is the number of b's first row in the whole request.
func MPE(ctx context.Context, e *engine.Engine, exact bool, o MPEOptions, first int, b *dataset.Batch, ll, bound []float64) error {
	of, err := o.completed(len(b.Columns))
	if err != nil {
		return err
	}
	by := o.search()
	by.Of, by.First = of, first
	if exact = exact && of == nil; exact {
		by.Candidates, by.Beam, by.Sweeps, by.Search = 0, 0, 0, 0
	}
	if err := e.MPE(ctx, b, by, ll, bound); err != nil || !exact {
		return err
	}
	copy(bound, ll) // nothing is likelier
	return nil
}
