package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
	"github.com/pce-engine/pce/serve/oip"
)

// servedQuery is a query of circuits, and how it is answered.
type servedQuery struct {
	serve.Query
	run func(c *servedCircuit, ctx context.Context, w *serve.Work) error
}

// Parameters and inputs of queries.
const (
	paramSamples    = "n_samples"
	paramSeed       = "seed"
	paramCandidates = "candidates"
	paramClass      = "class"
	paramLevel      = "level"
	paramOf         = "of"
	paramOther      = "other"
	inputQueryMask  = "query_mask"
	answerExact     = "mpe_exact"
)

// Costs of queries, in likelihoods of a row: a pass down; and
// of a most probable completion, the passes for each cell that a candidate has to choose.
const (
	posteriorCost = 8
	sweepCost     = 4
	mostServed    = 64 // candidates of a row
)

// rowWork is what a row takes, in operations: its likelihood, and the probabilities of all values of all cells given what a pass
// down says of their leaves.
type rowWork struct{ likelihood, leaves float64 }

// workOf counts the work of a circuit. A sum multiplies and adds for each of its edges, a product multiplies, and a leaf does both
// for each of its codes.
func workOf(g *circuit.Graph) rowWork {
	n := circuit.Count(g)
	w := rowWork{likelihood: float64(2*n.SumEdges + n.ProductEdges)}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == circuit.Input {
			w.leaves += 2 * float64(n.Units) * float64(max(1, n.Leaf.Codes()))
		}
	}
	return w
}

// posterior is what the distributions of all cells take.
func (w rowWork) posterior() float64 { return posteriorCost*w.likelihood + w.leaves }

// search is what looking for a completion of some columns of a row takes where max-product does not give it: sweeps over the cells of
// each candidate and of the beam, and a search.
func (w rowWork) search(columns int, candidates int64) float64 {
	o := pce.DefaultMPE
	return sweepCost*(float64(columns)*w.likelihood+w.leaves)*float64(2+int(candidates)+o.Beam) + float64(o.Search)*w.posterior()
}

// operations is a number of them, or as many as there may be where it is beyond int64.
func operations(n float64) int64 { return int64(min(n, 1<<62)) }

// servedQueries lists what a circuit of some columns answers, whose domains are those of circuit.RootDomains, and whose rows take that
// work.
func servedQueries(s *dataset.Schema, domains []int, work rowWork, exact, soft bool) []servedQuery {
	columns := []int64{int64(len(s.Columns))}
	logProb := serve.Output{Name: "log_prob", Datatype: oip.FP32}
	cells := serve.Output{Name: "samples", Datatype: oip.FP32, Shape: columns, Completes: true}
	most, classes := 1, classColumns(s, domains)
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.Kind == dataset.Continuous {
			cells.Datatype = oip.FP64
			continue
		}
		if slices.ContainsFunc(c.LabelNumbers(), func(x float64) bool { return float64(float32(x)) != x || math.Abs(x) > 1<<24 }) {
			cells.Datatype = oip.FP64 // FP32 lacks the label, or writes it with less digits than it has
		}
		most = max(most, c.Categories)
	}
	mpe, once, twice, posterior := cells, operations(work.likelihood), operations(2*work.likelihood), operations(work.posterior())
	mpe.Name = "mpe"
	queries := []servedQuery{
		{serve.Query{Name: "log_prob", Flops: once, Outputs: []serve.Output{logProb}}, (*servedCircuit).logProb},
		{serve.Query{
			Name: "sample", Flops: twice, RowsOptional: true, Repeat: paramSamples,
			Outputs: []serve.Output{cells},
			Params:  []serve.Param{{Name: paramSamples, Default: int64(1), Min: 1, Max: math.MaxInt32}, {Name: paramSeed}},
		}, (*servedCircuit).sample},
		{serve.Query{
			Name: "marginal", Flops: posterior,
			Outputs: []serve.Output{logProb, {Name: "marginals", Datatype: oip.FP32, Shape: []int64{columns[0], int64(most)}, OnRequest: true}},
		}, (*servedCircuit).marginal},
		{serve.Query{
			Name: "conditional", Flops: twice, Outputs: []serve.Output{logProb},
			Inputs: []serve.Input{{Name: inputQueryMask, Datatype: oip.Bool, Shape: columns}},
			Check:  func(_ int, inputs [][]float64) error { return checkMask(s, inputs[0]) },
		}, (*servedCircuit).conditional},
		{serve.Query{
			Name: "moments", Flops: posterior,
			Outputs: []serve.Output{{Name: "mean", Datatype: oip.FP64, Shape: columns}, {Name: "variance", Datatype: oip.FP64, Shape: columns}},
		}, (*servedCircuit).moments},
		{serve.Query{
			Name:    "mpe",
			Outputs: []serve.Output{mpe, logProb, {Name: "bound", Datatype: oip.FP32, OnRequest: true}},
			Params: []serve.Param{
				{Name: paramCandidates, Default: int64(pce.DefaultMPE.Candidates), Max: mostServed}, {Name: paramSeed, Default: uint64(0)},
				{Name: paramOf, Default: ""},
			},
			Plan: func(p oip.Params) (int64, error) {
				of, err := namedBy(s, p)
				columns := len(of)
				if columns == 0 {
					if columns = len(s.Columns); exact { // max-product maximises over all
						return posterior, err
					}
				}
				return operations(work.posterior() + work.search(columns, p[paramCandidates].(int64))), err
			},
		}, (*servedCircuit).mpe},
	}
	if classes != nil {
		queries = append(queries, servedQuery{serve.Query{
			Name: "classify",
			Outputs: []serve.Output{
				{Name: "label", Datatype: oip.FP64}, {Name: "probability", Datatype: oip.FP32},
				{Name: "probabilities", Datatype: oip.FP32, Shape: []int64{int64(most)}, OnRequest: true},
			},
			Params: []serve.Param{{Name: paramClass, Default: "", Values: classes, Resolve: func(name string) string {
				if i, err := s.Find(name); err == nil {
					return columnParam(s, i)
				}
				return name
			}}},
			Plan: func(p oip.Params) (int64, error) {
				i, err := s.Find(p[paramClass].(string))
				if err != nil {
					return 0, err
				}
				return operations(work.likelihood * float64(s.Columns[i].Categories)), nil
			},
		}, (*servedCircuit).classify})
	}
	queries = append(queries, servedQuery{serve.Query{
		Name: "expect", Outputs: []serve.Output{{Name: "expectation", Datatype: oip.FP64}},
		Params: []serve.Param{{Name: paramOf, Default: ""}},
		Plan:   func(p oip.Params) (int64, error) { return expectFlops(s, work, p[paramOf].(string)) },
	}, (*servedCircuit).expect})
	if soft {
		for i := range queries {
			addSoft(&queries[i].Query, s, most)
		}
	}
	return append(queries, covarianceQuery(s, work), entropyQuery(s, domains, work, exact), klQuery(s, domains, work), servedQuery{serve.Query{ // which take no soft evidence
		Name: "quantiles", Outputs: []serve.Output{{Name: "quantiles", Datatype: oip.FP64, Shape: columns}},
		Params: []serve.Param{{Name: paramLevel, Default: 0.5}},
		Plan: func(p oip.Params) (int64, error) {
			q := quantilesAt(domains, p)
			return posterior, q.Check(s)
		},
	}, (*servedCircuit).quantiles})
}

// classColumns are the columns by which a request can classify, as it names them: those with categories that leaves read. A column whose
// name, or number for want of one, means another column cannot be named.
func classColumns(s *dataset.Schema, domains []int) (names []string) {
	first := map[string]int{} // column of a name
	for i := len(s.Columns) - 1; i >= 0; i-- {
		first[s.Columns[i].Name] = i
	}
	for i := range s.Columns {
		name := columnParam(s, i)
		if at, taken := first[name]; s.Columns[i].Kind == dataset.Discrete && domains[i] >= 0 && (!taken || at == i) {
			names = append(names, name)
		}
	}
	return names
}

// namedBy returns the columns that a request is about, which it names as --of does; none where it names none.
func namedBy(s *dataset.Schema, p oip.Params) ([]int, error) {
	text := p[paramOf].(string)
	if text == "" {
		return nil, nil
	}
	names, err := readList(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", paramOf, err)
	}
	return s.FindAll(names)
}

// quantilesAt is the query for quantiles, at the level of a request, of all columns that leaves read.
func quantilesAt(domains []int, p oip.Params) *pce.Query {
	q := &pce.Query{Kind: pce.QueryQuantiles, Levels: []float64{p[paramLevel].(float64)}}
	for i, codes := range domains {
		if codes >= 0 {
			q.Columns = append(q.Columns, i)
		}
	}
	return q
}

// linePoints bounds the points of a continuous column, or counts, over which a covariance is a sum.
const linePoints = 1 << 14

// pointsOf is how many points a sum over the values of a column has at most.
func pointsOf(c *dataset.Column) float64 {
	if c.Kind == dataset.Discrete {
		return float64(c.Categories)
	}
	return linePoints
}

// expectFlops is what the expectation of a polynomial takes for a row: one pass for all moments,
// and one for each value of one of the columns of each product, that which the polynomial names first.
func expectFlops(s *dataset.Schema, work rowWork, of string) (int64, error) {
	if of == "" {
		return 0, fmt.Errorf("%s is empty; give the function whose expectation is wanted, such as 2*age - $3^2", paramOf)
	}
	p, err := run.ParsePolynomial(s, of)
	if err != nil {
		return 0, err
	}
	passes, place, summed := 1.0, map[int]int{}, map[int]bool{} // by column: its place among those in products; whether its values are counted
	for _, t := range p.Terms {
		if len(t.Columns) < 2 || t.Columns[0] == t.Columns[1] {
			continue
		}
		for _, v := range t.Columns {
			if _, known := place[v]; !known {
				place[v] = len(place)
			}
		}
		v := t.Columns[0]
		if other := t.Columns[1]; place[other] < place[v] {
			v = other
		}
		if !summed[v] {
			passes += pointsOf(&s.Columns[v])
		}
		summed[v] = true
	}
	return operations(passes * work.posterior()), nil
}

// columnParam is how metadata names a column: by its name, or its number from 1 where it has none.
func columnParam(s *dataset.Schema, i int) string {
	return cmp.Or(s.Columns[i].Name, strconv.Itoa(i+1))
}

// logProb gives the log-likelihoods of rows.
func (c *servedCircuit) logProb(ctx context.Context, w *serve.Work) error {
	ll, err := c.LogLikelihoodBatch(ctx, w.Batch)
	copy(w.Outputs[0], ll)
	return err
}

// sample draws the missing cells of rows; each request has its own seed.
func (c *servedCircuit) sample(ctx context.Context, w *serve.Work) error {
	return eachPart(w, func(rows *dataset.Batch, p *serve.Part, at int) error {
		if err := c.SampleBatch(ctx, rows, p.Params[paramSeed].(uint64), p.First); err != nil {
			return err
		}
		c.numbers(rows, w.Outputs[0][at*len(rows.Columns):])
		return nil
	})
}

// eachPart calls do with the rows of each request, of which the first is row at of the work.
func eachPart(w *serve.Work, do func(rows *dataset.Batch, p *serve.Part, at int) error) error {
	at := 0
	for i := range w.Parts {
		p := &w.Parts[i]
		if err := do(w.Batch.Slice(at, at+p.Rows), p, at); err != nil {
			return err
		}
		at += p.Rows
	}
	return nil
}

// marginal gives log-likelihoods of the observed cells and, if asked for, the distributions of
// all columns given them: 0 beyond the categories of a column, and in columns without any or that no leaf reads.
func (c *servedCircuit) marginal(ctx context.Context, w *serve.Work) error {
	if w.Outputs[0] != nil {
		if err := c.logProb(ctx, w); err != nil {
			return err
		}
	}
	out := w.Outputs[1]
	if out == nil || w.Batch.Rows == 0 {
		return nil
	}
	q := &pce.Query{Kind: pce.QueryConditional}
	s := c.Schema()
	for i := range s.Columns {
		if s.Columns[i].Kind == dataset.Discrete && c.domains[i] >= 0 {
			q.Columns = append(q.Columns, i)
		}
	}
	if len(q.Columns) == 0 {
		return nil
	}
	most := len(out) / (w.Batch.Rows * len(s.Columns))
	return eachSome(w.Batch, q.Width(s), func(rows *dataset.Batch, at int) error {
		p, err := c.Answer(ctx, q, rows)
		if err != nil {
			return err
		}
		for row := range rows.Rows {
			for _, i := range q.Columns {
				p = p[copy(out[((at+row)*len(s.Columns)+i)*most:], p[:s.Columns[i].Categories]):]
			}
		}
		return nil
	})
}

// eachSome calls do with some rows of a batch after the others, so that the numbers of an answer of that width, which no
// request has paid for, take little memory; at is the first of the rows.
func eachSome(b *dataset.Batch, width int, do func(rows *dataset.Batch, at int) error) error {
	most := max(1, readCells/width)
	for at := 0; at < b.Rows; at += most {
		if err := do(b.Slice(at, min(at+most, b.Rows)), at); err != nil {
			return err
		}
	}
	return nil
}

// conditional gives the log-likelihoods of the cells that the mask selects given the other
// observed ones, log p(selected, others) - log p(others), by evaluating the rows twice: as they
// are and without the selected cells. It changes the batch, which is the request's own. Where
// the other cells are impossible the answer is NaN.
func (c *servedCircuit) conditional(ctx context.Context, w *serve.Work) error {
	all, err := c.LogLikelihoodBatch(ctx, w.Batch)
	if err != nil {
		return err
	}
	columns := len(w.Batch.Columns)
	for i, asked := range w.Inputs[0] {
		if asked == 0 {
			continue
		}
		if cells := &w.Batch.Columns[i%columns]; cells.Discrete() {
			cells.Codes.Set(i/columns, dataset.Missing)
		} else {
			cells.Values[i/columns] = float32(math.NaN())
		}
		if of := w.Batch.Columns[i%columns].Soft.Of; of != nil {
			of[i/columns] = 0
		}
	}
	given, err := c.LogLikelihoodBatch(ctx, w.Batch)
	if err != nil {
		return err
	}
	for i, x := range given {
		if w.Outputs[0][i] = all[i] - x; math.IsInf(x, -1) {
			w.Outputs[0][i] = math.NaN() // nothing follows from what is impossible
		}
	}
	return nil
}

// checkMask refuses a mask that neither selects a cell nor leaves it out.
func checkMask(s *dataset.Schema, mask []float64) error {
	for i, asked := range mask {
		if asked != asked {
			return fmt.Errorf("input %q: data: row %d, %s: NaN; want 1 or 0, or true or false as BOOL", inputQueryMask, i/len(s.Columns), s.ColumnName(i%len(s.Columns)))
		}
	}
	return nil
}

// moments gives mean and variance of every column.
func (c *servedCircuit) moments(ctx context.Context, w *serve.Work) error {
	all, err := c.Answer(ctx, &pce.Query{Kind: pce.QueryMoments}, w.Batch)
	if err != nil {
		return err
	}
	n := len(w.Batch.Columns)
	for row := range w.Batch.Rows {
		for i, out := range w.Outputs {
			if out != nil {
				copy(out[row*n:(row+1)*n], all[(2*row+i)*n:])
			}
		}
	}
	return nil
}

// quantiles gives the quantile of every column at the level of each request, NaN of columns that no leaf reads.
func (c *servedCircuit) quantiles(ctx context.Context, w *serve.Work) error {
	return eachPart(w, func(rows *dataset.Batch, p *serve.Part, at int) error {
		q := quantilesAt(c.domains, p.Params)
		all, err := c.Answer(ctx, q, rows)
		if err != nil {
			return err
		}
		for row := range rows.Rows {
			out := w.Outputs[0][(at+row)*len(rows.Columns):][:len(rows.Columns)]
			for i := range out {
				out[i] = math.NaN()
			}
			for k, i := range q.Columns {
				out[i] = all[row*len(q.Columns)+k]
			}
		}
		return nil
	})
}

// expect gives the expectation of the polynomial of each request. A polynomial that cannot be
// computed, such as a product with a column that has too many values, fails that request alone.
func (c *servedCircuit) expect(ctx context.Context, w *serve.Work) error {
	return eachPart(w, func(rows *dataset.Batch, p *serve.Part, at int) error {
		q, err := c.NewExpectation(p.Params[paramOf].(string))
		if err != nil {
			return err
		}
		all, err := c.Answer(ctx, q, rows)
		if errors.Is(err, dataset.ErrSetting) {
			p.Err, err = err, nil
		}
		copy(w.Outputs[0][at:], all)
		return err
	})
}

// mpe fills the missing cells of rows with the most probable completion, whose log-likelihood
// and bound are further outputs; outputs that are not asked for are nil. Parts are done one by
// one, as each request has its own seed and candidates, and numbers its rows itself: an answer
// does not depend on what was batched with it.
func (c *servedCircuit) mpe(ctx context.Context, w *serve.Work) error {
	return eachPart(w, func(rows *dataset.Batch, p *serve.Part, at int) error {
		o := pce.DefaultMPE
		o.Candidates, o.Seed = int(p.Params[paramCandidates].(int64)), p.Params[paramSeed].(uint64)
		var err error
		if o.Of, err = namedBy(c.Schema(), p.Params); err != nil {
			return err
		}
		p.Answer = oip.Params{answerExact: c.MPEExact() && len(o.Of) == 0}
		how, err := c.MPEBatch(ctx, rows, o, p.First)
		if err != nil {
			return err
		}
		if w.Outputs[0] != nil {
			c.numbers(rows, w.Outputs[0][at*len(rows.Columns):])
		}
		for i, x := range how {
			if w.Outputs[1] != nil {
				w.Outputs[1][at+i] = x.LogLikelihood
			}
			if w.Outputs[2] != nil {
				w.Outputs[2][at+i] = x.Bound
			}
		}
		return nil
	})
}

// classify gives the likeliest category of a column, as requests write it in x, its
// probability and, if asked for, that of every category.
func (c *servedCircuit) classify(ctx context.Context, w *serve.Work) error {
	return eachPart(w, func(rows *dataset.Batch, p *serve.Part, at int) error {
		q, err := c.NewQuery(pce.QueryClass, p.Params[paramClass].(string))
		if err != nil {
			return err
		}
		n := q.Width(c.Schema())
		return eachSome(rows, n, func(rows *dataset.Batch, first int) error {
			all, err := c.Answer(ctx, q, rows)
			if err != nil {
				return err
			}
			c.classes(w, q.Columns[0], all, n, at+first)
			return nil
		})
	})
}

// classes writes what classify gives for rows from the at-th of the work on, of whose n categories of a column all has the
// probabilities.
func (c *servedCircuit) classes(w *serve.Work, column int, all []float64, n, at int) {
	labels := c.Schema().Columns[column].LabelNumbers()
	for i := range len(all) / n {
		of := all[i*n : (i+1)*n]
		best := run.Likeliest(of)
		label := float64(best)
		if labels != nil && best != dataset.Missing {
			label = labels[best]
		}
		if best == dataset.Missing {
			label, best = math.NaN(), 0
		}
		for k, x := range []float64{label, of[best]} {
			if w.Outputs[k] != nil {
				w.Outputs[k][at+i] = x
			}
		}
		if out := w.Outputs[2]; out != nil {
			copy(out[(at+i)*(len(out)/w.Batch.Rows):], of)
		}
	}
}

// numbers writes the cells of b, row by row, as requests write them in x.
func (c *servedCircuit) numbers(b *dataset.Batch, out []float64) {
	columns := len(b.Columns)
	for v := range b.Columns {
		cells, column := &b.Columns[v], &c.Schema().Columns[v]
		labels := column.LabelNumbers()
		for row := range b.Rows {
			x := math.NaN()
			switch {
			case cells.IsMissing(row): // nothing was drawn: what the row says is impossible, or no leaf reads the column
			case !cells.Discrete():
				x = column.Number(cells.Values[row])
			case labels != nil:
				x = labels[cells.Codes.At(row)]
			default:
				x = float64(cells.Codes.At(row))
			}
			out[row*columns+v] = x
		}
	}
}
