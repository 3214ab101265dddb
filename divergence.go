package pce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/run"
)

// Estimate is an expectation over the rows of a model, in nats.
type Estimate struct {
	Nats float64
	// Error is the standard error of a mean over drawn rows; 0 if Exact.
	Error float64
	Rows  int  // that were evaluated; 0 where one pass over a deterministic circuit says it
	Exact bool // but for rounding: not a mean over drawn rows
}

// Divergence compares a model p with another, q: three expectations over rows of p. Where these
// are drawn, all three are means over the same rows, so that KL has a smaller error than the
// difference of the other two.
type Divergence struct {
	Entropy      Estimate // -E_p[log p]
	CrossEntropy Estimate // -E_p[log q]
	KL           Estimate // E_p[log p - log q]: infinite where q excludes what p allows
}

// maxDraws bounds the rows that a call may draw.
const maxDraws = 1 << 30

// Entropy returns the entropy of a row: exactly, by one pass, where the circuit is
// deterministic; that of all rows where the model has at most run.MaxStates or n of them; else
// the mean over n rows that seed draws. Continuous columns count by their density.
func (m *Model) Entropy(ctx context.Context, n int, seed uint64) (Estimate, error) {
	if m.forest != nil {
		return Estimate{}, errForest
	}
	discrete := m.plan.Schema.Discrete()
	if x, ok, err := m.information(ctx, m, n); ok || err != nil {
		return Estimate{Nats: x.Entropy, Exact: ok}.atLeastZero(discrete), err
	}
	var entropy average
	err := m.weigh(ctx, n, seed, []*average{&entropy}, func(_ *dataset.Batch, ll, weight []float64) error {
		for i, x := range ll {
			entropy.add(weight[i], -x)
		}
		return nil
	})
	return entropy.estimate().atLeastZero(discrete), err
}

// Divergence compares the model with another one of the same columns: by one pass where both are
// deterministic and have the same structure, else over rows that are chosen as by Entropy.
func (m *Model) Divergence(ctx context.Context, other *Model, n int, seed uint64) (*Divergence, error) {
	if other == nil {
		return nil, fmt.Errorf("%w: a divergence from a nil model; give one of the same columns", ErrOptions)
	}
	p, q := m.plan.Schema, other.plan.Schema
	if m.forest != nil || other.forest != nil {
		return nil, errForest
	}
	codes, err := sameColumns(m.plan, other.plan)
	if err != nil {
		return nil, fmt.Errorf("%w: the models are not of the same columns: %v", ErrOptions, err)
	}
	expectations := func(entropy, cross, kl Estimate) *Divergence {
		discrete := p.Discrete()
		return &Divergence{entropy.atLeastZero(discrete), cross.atLeastZero(discrete), kl.atLeastZero(true)}
	}
	if x, ok, err := m.information(ctx, other, n); ok || err != nil {
		exactly := func(nats float64) Estimate { return Estimate{Nats: nats, Exact: ok} }
		return expectations(exactly(x.Entropy), exactly(x.CrossEntropy), exactly(x.KL)), err
	}
	var entropy, cross, kl average
	err = m.weigh(ctx, n, seed, []*average{&entropy, &cross, &kl}, func(b *dataset.Batch, ll, weight []float64) error {
		rows, excluded := rescaled(b, p, q, codes)
		as, err := other.LogLikelihoodBatch(ctx, rows)
		if err != nil {
			return err
		}
		for _, r := range excluded {
			as[r] = math.Inf(-1)
		}
		for i, x := range ll {
			entropy.add(weight[i], -x)
			cross.add(weight[i], -as[i])
			kl.add(weight[i], x-as[i])
		}
		return nil
	})
	return expectations(entropy.estimate(), cross.estimate(), kl.estimate()), err
}

// information compares the model with another one by a pass over their circuits, if that is
// possible. n is checked alike on all ways.
func (m *Model) information(ctx context.Context, other *Model, n int) (x circuit.Information, ok bool, err error) {
	if err := checkDraws(n); err != nil {
		return x, false, err
	}
	if !m.exact() {
		return x, false, nil
	}
	err = m.withBoth(ctx, other, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if ok, err = m.plan.Comparable(other.plan); ok && err == nil {
			x, err = m.plan.Information(other.plan)
		}
		return err
	})
	if errors.Is(err, circuit.ErrLeaf) { // one of another package, whose entropy is not known: rows say it
		return circuit.Information{}, false, nil
	}
	return x, ok && err == nil, err
}

// withBoth calls use while engines of both models are taken, so that neither is closed meanwhile. The older model's is taken
// first: two calls never wait for each other.
func (m *Model) withBoth(ctx context.Context, other *Model, use func() error) error {
	first, second := m, other
	if second.number < first.number {
		first, second = second, first
	}
	return first.with(ctx, 0, func(engine.Runner) error {
		if first == second {
			return use()
		}
		return second.with(ctx, 0, func(engine.Runner) error { return use() })
	})
}

// checkDraws reports why n rows cannot be drawn.
func checkDraws(n int) error {
	if n < 1 || n > maxDraws {
		return fmt.Errorf("%w: %d rows to draw; want 1 to %d", ErrOptions, n, maxDraws)
	}
	return nil
}

// weigh calls take with the rows over which the averages are taken, their log-likelihoods
// and their weights: all complete rows and their probabilities, or n drawn ones and ones.
func (m *Model) weigh(ctx context.Context, n int, seed uint64, of []*average, take func(b *dataset.Batch, ll, weight []float64) error) error {
	s := m.plan.Schema
	most := rowsAtOnce(len(s.Columns))
	domains := circuit.RootDomains(m.plan.Graph)
	states := run.StatesOf(s, domains)
	exact := states > 0 && states <= max(n, run.MaxStates)
	if exact {
		n = states
	}
	for _, a := range of {
		a.exact = exact
	}
	for lo := 0; lo < n; lo += most {
		rows := min(most, n-lo)
		b := dataset.NewBatch(s, rows)
		if exact {
			fillStates(b, domains, lo)
		} else if err := m.SampleBatch(ctx, b, seed, lo); err != nil {
			return err
		}
		ll, err := m.LogLikelihoodBatch(ctx, b)
		if err != nil {
			return err
		}
		weight := make([]float64, rows)
		for i, x := range ll {
			switch {
			case !exact:
				weight[i] = 1
			case x > math.Inf(-1): // a row that p allows counts where q excludes it, however rare it is
				weight[i] = max(math.Exp(x), math.SmallestNonzeroFloat64)
			}
		}
		if err := take(b, ll, weight); err != nil {
			return err
		}
	}
	return nil
}

// rowsAtOnce is how many rows of that many columns are made and evaluated at a time: many columns take memory for fewer rows.
func rowsAtOnce(columns int) int {
	const rows, cells = 4096, 1 << 23
	return min(rows, max(1, cells/max(1, columns)))
}

// fillStates fills b with the rows of discrete columns that are complete where leaves read them, from row number first on. domains has
// the categories of the columns, -1 where no leaf reads one.
func fillStates(b *dataset.Batch, domains []int, first int) {
	for r := range b.Rows {
		state := first + r
		for v, codes := range domains {
			if codes > 0 {
				b.Columns[v].Codes.Set(r, state%codes)
				state /= codes
			}
		}
	}
}

// sameColumns says why rows of two models cannot be compared, or returns what dataset.Column.CodesIn says of each discrete column: models
// of other files may have the same categories under other codes. Columns go by their places, so a name at
// another place of the other model means other columns. The probability of a count says nothing beside a density;
// histograms of whole numbers have either. A column that the other model does not read has no probability there, and would
// count as if it were certain.
func sameColumns(m, other *run.Blueprint) (codes [][]int, err error) {
	p, q := m.Schema, other.Schema
	if err := cmp.Or(unlabelled(p).Accepts(unlabelled(q)), unlabelled(q).Accepts(unlabelled(p))); err != nil {
		return nil, err
	}
	codes = make([][]int, len(p.Columns))
	place := map[string]int{}
	for v, c := range q.Columns {
		place[c.Name] = v
	}
	read, others := circuit.RootDomains(m.Graph), circuit.RootDomains(other.Graph)
	for v := range p.Columns {
		a, b := &p.Columns[v], &q.Columns[v]
		if read[v] >= 0 && others[v] < 0 {
			return nil, fmt.Errorf("no leaf of the other one reads %s, so it says nothing of it; give a model of all columns", p.ColumnName(v))
		}
		if w, ok := place[a.Name]; ok && w != v && a.Name != "" {
			return nil, fmt.Errorf("%s is column %d of one and column %d of the other; give models with one order of columns", p.ColumnName(v), v+1, w+1)
		}
		if a.Counts != b.Counts && !whole(m.Graph, v) && !whole(other.Graph, v) {
			return nil, fmt.Errorf("%s has probabilities of counts in one and densities in the other; give models whose leaves of it are alike", p.ColumnName(v))
		}
		if a.Kind != dataset.Discrete {
			continue
		}
		var all bool
		if codes[v], all = a.CodesIn(b); !all {
			return nil, fmt.Errorf("%s has other categories in one than in the other; give models that were trained on the same ones", p.ColumnName(v))
		}
	}
	return codes, nil
}

// unlabelled returns a schema without the labels of its categories.
func unlabelled(s *dataset.Schema) *dataset.Schema {
	out := *s
	out.Columns = slices.Clone(s.Columns)
	for v := range out.Columns {
		out.Columns[v].Labels = nil
	}
	return &out
}

// whole reports whether all leaves of a variable are histograms of whole numbers.
func whole(g *circuit.Graph, variable int) bool {
	return !slices.ContainsFunc(g.Nodes, func(n circuit.Node) bool {
		l, ok := n.Leaf.(circuit.RealHistogram)
		return n.Kind == circuit.Input && n.Var == variable && !(ok && l.Whole())
	})
}

// rescaled returns rows of one schema as another one stores them, with its codes where they are others, and those with a number that a column of the other
// excludes. These have the cell missing, since a model refuses such numbers in rows that it is asked about.
func rescaled(b *dataset.Batch, from, to *dataset.Schema, codes [][]int) (out *dataset.Batch, excluded []int) {
	out = &dataset.Batch{Rows: b.Rows, Columns: append([]dataset.Cells{}, b.Columns...)}
	for v := range out.Columns {
		if cells := &b.Columns[v]; cells.Discrete() {
			if codes[v] != nil {
				out.Columns[v] = dataset.Cells{Codes: recoded(&cells.Codes, codes[v])}
			}
			continue
		}
		c, values := &to.Columns[v], make([]float32, b.Rows)
		for r, x := range b.Columns[v].Values {
			y := c.Standard(from.Columns[v].Number(x))
			if c.Positive && y <= 0 || c.Counts && (y < 0 || math.Trunc(float64(y)) < float64(y)) {
				y, excluded = float32(math.NaN()), append(excluded, r)
			}
			values[r] = y
		}
		out.Columns[v].Values = values
	}
	return out, excluded
}

// recoded returns cells with other codes.
func recoded(cells *dataset.Codes, codes []int) dataset.Codes {
	out := dataset.MissingCodes(cells.Wide != nil, cells.Len())
	for r := range cells.Len() {
		if code := cells.At(r); code != dataset.Missing {
			out.Set(r, codes[code])
		}
	}
	return out
}

// average is a mean with its standard error, or an expectation that is added up.
type average struct {
	exact         bool
	rows          int
	mean, squares float64
}

func (a *average) add(weight, x float64) {
	a.rows++
	switch d := x - a.mean; {
	case a.exact && weight > 0:
		a.mean += weight * x
	case a.exact:
	case math.IsInf(a.mean, 0): // it stays so, and would be a NaN after finite numbers
	case math.IsInf(x, 0):
		a.mean, a.squares = x, math.NaN()
	default:
		a.mean += d / float64(a.rows)
		a.squares += d * (x - a.mean)
	}
}

func (a *average) estimate() Estimate {
	e := Estimate{Nats: a.mean, Rows: a.rows, Exact: a.exact}
	if !a.exact {
		e.Error = math.Sqrt(a.squares / float64(a.rows-1) / float64(a.rows)) // NaN of one row
	}
	return e
}

// rounding is the most, in nats, that it leaves below 0. Densities that do not integrate to 1, as those of imported histograms, leave more.
const rounding = 1e-3

// atLeastZero takes what rounding has left below 0 from an exact expectation that is at least 0, as is says: a divergence, or
// what discrete rows say. The mean of drawn rows stays as it is, since it has an error.
func (e Estimate) atLeastZero(is bool) Estimate {
	if is && e.Exact && e.Nats > -rounding {
		e.Nats = max(e.Nats, 0)
	}
	return e
}
