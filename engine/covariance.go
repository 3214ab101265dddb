package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// Covariance writes the covariances of variables given the observed cells of each row of b to
// out, [rows, variables, variables]: variances on the diagonal. Numbers are those of Moments. An
// observed cell has zeros, an impossible row NaN.
//
// With P(x | e) the posterior of the one variable and E[y | e, x] the mean of the other, the
// covariance is Σ P(x | e) (x - E[x | e]) (E[y | e, x] - E[y | e]): a row for each value of
// the one variable, and the means of all others from one pass down. The sum is over the
// points of summary.support.
func (e *Engine) Covariance(ctx context.Context, b *dataset.Batch, variables []int, out []float64) error {
	k := len(variables)
	if len(out) < b.Rows*k*k {
		return fmt.Errorf("%w: room for %d numbers for %d rows; want %d for each", dataset.ErrFormat, len(out), b.Rows, k*k)
	}
	later := make([][]partner, k)
	for i := range later {
		for j := i + 1; j < k; j++ {
			later[i] = append(later[i], partner{j, i*k + j})
		}
	}
	if err := e.covariances(ctx, b, variables, later, k*k, true, out); err != nil {
		return err
	}
	for row := range b.Rows {
		of := out[row*k*k:][:k*k]
		for i := range k {
			for j := range i {
				of[i*k+j] = of[j*k+i]
			}
		}
	}
	return nil
}

// partner is a variable whose covariance with one before it is wanted, and the place of that among the width numbers of a row.
type partner struct{ variable, place int }

// covariances writes the covariances of variables with their partners to out, [rows, width], and variances to the diagonal of a
// matrix where diagonal is set. The other numbers of a row are 0, of an impossible row NaN.
func (e *Engine) covariances(ctx context.Context, b *dataset.Batch, variables []int, later [][]partner, width int, diagonal bool, out []float64) error {
	if err := refuseSoftQuery("covariances", b); err != nil {
		return err
	}
	k := len(variables)
	columns, summaries, err := e.summaries(ctx, variables)
	if err != nil {
		return err
	}
	points, without := 0, make([]bool, k)
	for i, s := range summaries {
		points = max(points, pointsOf(&s.column))
		summable, err := e.summable(ctx, s, columns[i])
		if err != nil {
			return err
		}
		without[i] = !summable
	}
	later = turned(later, without)
	most := pointRows(e.rows, points)
	for lo := 0; lo < b.Rows; lo += most {
		hi := min(lo+most, b.Rows)
		c := &covariance{e: e, b: b.Slice(lo, hi), variables: variables, columns: columns, summaries: summaries, later: later, width: width, diagonal: diagonal, out: out[lo*width : hi*width]}
		c.means, c.points, c.possible = make([]float64, (hi-lo)*k), make([][]point, hi-lo), make([]bool, hi-lo)
		if err := c.variances(ctx); err != nil {
			return e.named(ctx, b, err)
		}
		for i := range variables {
			if len(later[i]) == 0 {
				continue
			}
			if err := c.with(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// turned returns the pairs of later with the variables of which without is set behind others: sums are over the values of the
// first of a pair, and these have no points to sum over.
func turned(later [][]partner, without []bool) [][]partner {
	out := make([][]partner, len(later))
	for i, all := range later {
		for _, p := range all {
			if j := p.variable; without[i] && !without[j] {
				out[j] = append(out[j], partner{i, p.place})
			} else {
				out[i] = append(out[i], p)
			}
		}
	}
	return out
}

// pointsLen bounds the points that are kept for the rows of a part, unless one row has more: 24 MiB.
const pointsLen, pointBytes = 1 << 20, 24

// pointRows is how many rows, of which each has that many points at most, have theirs kept at a time where launches have some rows.
func pointRows(rows, points int) int {
	return max(1, min(rows/8, pointsLen/max(1, points)))
}

// pointsOf is how many points a cell of a column has at most.
func pointsOf(c *layers.Column) int {
	if c.Codes == 0 {
		return maxSupport
	}
	return int(c.Codes)
}

// PointBytes is what the points of Covariance take at most in launches of that many rows.
func PointBytes(p *layers.Program, rows int) int64 {
	columns, points := 0, 0
	for i := range p.Columns {
		if c := &p.Columns[i]; !c.Beside {
			columns, points = columns+1, max(points, pointsOf(c))
		}
	}
	if columns < 2 { // one has no points
		return 0
	}
	return pointBytes * int64(points) * int64(pointRows(rows, points))
}

// covariance is one call.
type covariance struct {
	e         *Engine
	b         *dataset.Batch
	variables []int
	columns   []int32
	summaries []*summary
	later     [][]partner // of the variables
	width     int
	diagonal  bool
	out       []float64 // [rows, width]
	means     []float64 // [rows, variables]
	possible  []bool    // of the rows
	points    [][]point // of the rows, for the variable in turn
}

// variances writes means and variances, and NaN to the rows that are impossible.
func (c *covariance) variances(ctx context.Context) error {
	k := len(c.variables)
	return c.e.posteriors(ctx, c.b, c.columns, func(p *posteriors) error {
		for r := range p.rows {
			row := p.lo + r
			out := c.out[row*c.width : (row+1)*c.width]
			clear(out)
			for i, s := range c.summaries {
				weights, possible := p.of(i, r)
				if c.possible[row] = possible; !possible {
					fillNaN(out)
					break
				}
				mean, variance := s.moments(&c.b.Columns[c.variables[i]], row, weights)
				if c.means[row*k+i] = mean; c.diagonal {
					out[i*k+i] = variance
				}
			}
		}
		return nil
	})
}

// with adds the covariances of the i-th variable with its partners, for the rows in which it
// and one of these are missing. For each such row it takes the points of the variable's
// posterior; each point becomes a row with that value, in launches as full as possible.
func (c *covariance) with(ctx context.Context, i int) error {
	v := c.variables[i]
	any, total := false, 0
	for row := range c.points {
		any = any || c.asked(row, i)
	}
	if !any {
		return nil
	}
	err := c.e.posteriors(ctx, c.b, c.columns[i:i+1], func(p *posteriors) error {
		for r := range p.rows {
			row := p.lo + r
			c.points[row] = nil
			if !c.asked(row, i) {
				continue
			}
			weights, _ := p.of(0, r)
			var err error
			if c.points[row], err = c.summaries[i].support(weights, c.e.columnName(v)); err != nil {
				return err
			}
			total += len(c.points[row])
		}
		return nil
	})
	if err != nil || total == 0 {
		return err
	}
	if c.summaries[i].steps != nil {
		undo, err := c.e.normalise(ctx, c.columns[i])
		if err != nil {
			return err
		}
		return errors.Join(c.sum(ctx, i), undo())
	}
	return c.sum(ctx, i)
}

// sum adds the terms of all points.
func (c *covariance) sum(ctx context.Context, i int) error {
	var rows []int // of the launch to come, and their points
	var points []point
	for row, all := range c.points {
		for _, x := range all {
			rows, points = append(rows, row), append(points, x)
			if len(rows) == c.e.rows {
				if err := c.given(ctx, i, rows, points); err != nil {
					return err
				}
				rows, points = rows[:0], points[:0]
			}
		}
	}
	return c.given(ctx, i, rows, points)
}

// asked reports whether a row is possible, and its cells are missing in the i-th variable and a partner of it.
func (c *covariance) asked(row, i int) bool {
	if !c.possible[row] || !c.b.Columns[c.variables[i]].IsMissing(row) {
		return false
	}
	for _, p := range c.later[i] {
		if c.b.Columns[c.variables[p.variable]].IsMissing(row) {
			return true
		}
	}
	return false
}

// given adds the terms of points of the i-th variable: rows[n] with the value of points[n] is
// evaluated, and its distance from the mean, times that of the means of the partners,
// counts by the point's probability. There are at most as many points as a launch has rows.
func (c *covariance) given(ctx context.Context, i int, rows []int, points []point) error {
	if len(rows) == 0 {
		return nil
	}
	k, v := len(c.variables), c.variables[i]
	known := chosen(c.b, rows)
	for n, x := range points {
		if err := put(&known.Columns[v], n, int32(v), x.value); err != nil {
			return err
		}
	}
	columns := make([]int32, len(c.later[i]))
	for n, p := range c.later[i] {
		columns[n] = c.columns[p.variable]
	}
	return c.e.posteriors(ctx, known, columns, func(p *posteriors) error {
		for r := range p.rows {
			row, x := rows[p.lo+r], points[p.lo+r]
			for n, with := range c.later[i] {
				j := with.variable
				weights, possible := p.of(n, r)
				if !possible { // rounded to nothing: its probability is as small
					break
				}
				mean, _ := c.summaries[j].moments(&known.Columns[c.variables[j]], p.lo+r, weights)
				term := x.weight * (x.number - c.means[row*k+i]) * (mean - c.means[row*k+j])
				c.out[row*c.width+with.place] += term
			}
		}
		return nil
	})
}

// point is a value that a missing cell may have, as it is stored, with the number that it
// means and its probability.
type point struct {
	value, number, weight float64
}

// maxSupport bounds the points of a cell, and negligible is the probability of a unit that has none.
const maxSupport, negligible = 1 << 14, 1e-14

// summable reports whether there is a sum over the values of a column, whatever its posterior is.
func (e *Engine) summable(ctx context.Context, s *summary, column int32) (bool, error) {
	if s.units == nil {
		return true, nil
	}
	even := make([]float64, len(s.units))
	for i := range even {
		even[i] = 1 / float64(len(even))
	}
	err := s.oneKind("")
	switch _, steps := s.units[0].family.(stepwise); {
	case err != nil:
	case steps:
		if _, err = s.parts(even, ""); err == nil {
			_, err = e.binDensities(ctx, column)
		}
	default:
		_, err = s.grid(even, "")
		for i := range even {
			if s.wide(i) { // a posterior without such units has another grid
				even[i] = 0
			}
		}
		if err == nil && slices.Max(even) > 0 {
			_, err = s.grid(even, "")
		}
	}
	if errors.Is(err, dataset.ErrSetting) {
		return false, nil
	}
	return err == nil, err
}

// oneKind gives an error with the name of the column if units are of several families, whose densities are of different measures.
func (s *summary) oneKind(name string) error {
	for i := range s.units {
		if first, kind := s.units[0].kind(), s.units[i].kind(); first != kind {
			return fmt.Errorf("%w: a sum over the values of %s, which has %s and %s leaves; leave it out", dataset.ErrSetting, name, first, kind)
		}
	}
	return nil
}

// support returns points for which sums over the values of a missing cell are, given its
// posterior, sums over points: its codes, its bins, its counts, or a grid. Between normal units
// the trapezoidal rule with a step of their least standard deviation errs by 2·exp(-2π²) =
// 5e-9 of what is integrated; the grid of positive values is one of their logarithms. No points
// fit units of several families.
func (s *summary) support(weights []float32, name string) ([]point, error) {
	p := make([]float64, len(weights))
	shares(p, weights)
	var points []point
	switch {
	case s.units != nil:
		if err := s.oneKind(name); err != nil {
			return nil, err
		}
		if _, ok := s.units[0].family.(stepwise); ok {
			return s.parts(p, name)
		}
		return s.line(p, name)
	case s.bins != nil:
		for code, x := range p {
			if x > 0 {
				mid, _ := s.bins.moments(code)
				points = append(points, point{mid, s.number(mid), x})
			}
		}
	default:
		points = make([]point, 0, len(p))
		for code, x := range p {
			number := float64(code)
			if s.numbers != nil {
				number = s.numbers[code]
			}
			if x > 0 {
				points = append(points, point{float64(code), number, x})
			}
		}
	}
	return points, nil
}

// grid says where the points of a column without codes or steps lie: from lo to hi, a step apart, of the numbers or of their logarithms.
type grid struct {
	lo, hi, step float64
	logs         bool
}

// wide reports whether a unit is one of positive numbers and so wide that its grid is one of their logarithms.
func (s *summary) wide(i int) bool {
	const narrow = 0.01 // a standard deviation of a logarithm
	family := s.units[i].family
	return family.Check(0.5) == nil && family.Check(-1) != nil && s.variance[i] > narrow*narrow*s.mean[i]*s.mean[i]
}

// grid returns that of a column without codes or steps, whose units have probabilities p. On it
// the trapezoidal rule integrates the mixture, as fine as its smallest standard
// deviation, and every number for counts. Positive numbers have the grid in the logarithm, unless
// all units are so narrow that they are nearly normal. A grid of more than maxSupport points, or finer
// than float32, is an error with the name of the column.
func (s *summary) grid(p []float64, name string) (grid, error) {
	const reach = 10 // standard deviations
	counts, logs := s.units[0].family.Check(0.5) != nil, false
	for i := range s.units {
		logs = logs || p[i] > negligible && s.wide(i)
	}
	lo, hi, step := math.Inf(1), math.Inf(-1), math.Inf(1)
	for i := range s.units {
		if p[i] <= negligible {
			continue
		}
		mean, variance := s.mean[i], s.variance[i]
		if logs {
			variance = math.Log1p(variance / (mean * mean))
			mean = math.Log(mean) - variance/2
			hi = max(hi, mean+2*variance+reach*math.Sqrt(variance)) // large numbers weigh more in moments
		}
		sd := math.Sqrt(variance)
		lo, hi, step = min(lo, mean-reach*sd), max(hi, mean+reach*sd), min(step, sd)
	}
	switch {
	case counts:
		lo, hi, step = max(0, math.Floor(lo)), math.Ceil(hi)+40, 1
	case !logs: // the numbers of the grid are float32, since the rule wants them equally far apart
		far := float32(min(max(-lo, hi), math.MaxFloat32))
		unit := float64(far - math.Nextafter32(far, 0))
		if !(step >= unit) {
			return grid{}, fmt.Errorf("%w: a sum over the values of %s, whose leaves have standard deviations down to %.3g where float32 numbers are %.3g apart; leave it out",
				dataset.ErrSetting, name, step, unit)
		}
		lo, step = math.Floor(lo/unit)*unit, math.Floor(step/unit)*unit
	}
	if !((hi-lo)/step < maxSupport) {
		return grid{}, fmt.Errorf("%w: a sum over the values of %s has %.3g points, more than %d: its leaves are of too different widths; leave it out",
			dataset.ErrSetting, name, (hi-lo)/step, maxSupport)
	}
	return grid{lo, hi, step, logs}, nil
}

// line returns the points of a column without codes or steps, whose units have probabilities p.
func (s *summary) line(p []float64, name string) ([]point, error) {
	g, err := s.grid(p, name)
	if err != nil {
		return nil, err
	}
	family := s.units[0].family
	var points []point
	for k := 0; ; k++ {
		x, width := g.lo+float64(k)*g.step, g.step
		if x > g.hi {
			return points, nil
		}
		if g.logs {
			x = math.Exp(x)
			width *= x
		}
		x = float64(float32(x)) // as the device reads it
		if family.Check(x) != nil {
			continue
		}
		d := 0.0
		for i, u := range s.units {
			if p[i] > 0 {
				d += p[i] * math.Exp(u.family.LogProb(u.params, x))
			}
		}
		if d > 0 {
			points = append(points, point{x, s.number(x), d * width})
		}
	}
}
