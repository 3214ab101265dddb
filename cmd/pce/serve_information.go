package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
	"github.com/pce-engine/pce/serve/oip"
)

// Parameters of answers about a whole model, which the commands print under these names.
const (
	answerRows    = "rows"
	answerIsExact = "exact"
)

// mostDrawn bounds the rows that a request has drawn of a model, as the library does.
const mostDrawn = 1 << 30

// drawParams are the parameters of queries that draw rows of a model, which are those of the commands.
func drawParams() []serve.Param {
	return []serve.Param{{Name: paramSamples, Default: int64(expectRows), Min: 1, Max: mostDrawn}, {Name: paramSeed, Default: uint64(0)}}
}

// estimateOutputs are estimates and their standard errors.
func estimateOutputs(names ...string) (list []serve.Output) {
	for _, name := range names {
		list = append(list, serve.Output{Name: name, Datatype: oip.FP64}, serve.Output{Name: name + "_error", Datatype: oip.FP64})
	}
	return list
}

// expectationRows is over how many rows of a model an expectation is taken, and what each takes of a model in which a likelihood takes
// once: all complete rows where these are few, else drawn ones.
func expectationRows(s *dataset.Schema, domains []int, p oip.Params, once float64) (rows, each float64) {
	n := int(p[paramSamples].(int64))
	if states := run.StatesOf(s, domains); states > 0 && states <= max(n, run.MaxStates) {
		return float64(states), once
	}
	return float64(n), 3 * once // to draw it is twice a likelihood
}

// entropyQuery describes the query for the entropy of a model's rows: one pass where max-product is exact.
func entropyQuery(s *dataset.Schema, domains []int, work rowWork, exact bool) servedQuery {
	return servedQuery{serve.Query{
		Name: run.QueryEntropy, Whole: true, Outputs: estimateOutputs("entropy"), Params: drawParams(),
		Plan: func(p oip.Params) (int64, error) {
			if exact {
				return operations(work.likelihood), nil
			}
			rows, each := expectationRows(s, domains, p, work.likelihood)
			return operations(rows * each), nil
		},
	}, (*servedCircuit).entropy}
}

// entropy gives the entropy of the model's rows.
func (c *servedCircuit) entropy(ctx context.Context, w *serve.Work) error {
	return information(w, func(_ oip.Params, n int, seed uint64) ([]pce.Estimate, error) {
		e, err := c.Entropy(ctx, n, seed)
		return []pce.Estimate{e}, err
	})
}

// klQuery describes the query for cross-entropy and divergence of the model and another one of the server, whose likelihoods of the
// rows count too.
func klQuery(s *dataset.Schema, domains []int, work rowWork) servedQuery {
	return servedQuery{serve.Query{
		Name: run.QueryKL, Whole: true, Outputs: estimateOutputs("entropy", "cross_entropy", "kl"),
		Params: append([]serve.Param{{Name: paramOther, Default: "", Model: true}}, drawParams()...),
		Plan: func(p oip.Params) (int64, error) {
			other, ok := p[paramOther].(*servedCircuit)
			if !ok {
				return 0, fmt.Errorf("%s is a decision forest; give the name of a circuit", paramOther)
			}
			rows, each := expectationRows(s, domains, p, work.likelihood)
			return operations(rows * (each + other.work.likelihood)), nil
		},
	}, (*servedCircuit).kl}
}

// kl compares the model with another one of the server.
func (c *servedCircuit) kl(ctx context.Context, w *serve.Work) error {
	return information(w, func(p oip.Params, n int, seed uint64) ([]pce.Estimate, error) {
		d, err := c.Divergence(ctx, p[paramOther].(*servedCircuit).Model, n, seed)
		if err != nil {
			return nil, err
		}
		return []pce.Estimate{d.Entropy, d.CrossEntropy, d.KL}, nil
	})
}

// information gives the estimates that of makes for the parameters of each request, and says over how many rows they were
// taken and whether they are exact. What cannot be computed fails that request alone.
func information(w *serve.Work, of func(p oip.Params, n int, seed uint64) ([]pce.Estimate, error)) error {
	return eachPart(w, func(_ *dataset.Batch, p *serve.Part, at int) error {
		list, err := of(p.Params, int(p.Params[paramSamples].(int64)), p.Params[paramSeed].(uint64))
		if errors.Is(err, pce.ErrOptions) {
			p.Err = err
			return nil
		}
		if err != nil {
			return err
		}
		for i, e := range list {
			for k, x := range []float64{e.Nats, e.Error} {
				if out := w.Outputs[2*i+k]; out != nil {
					out[at] = x
				}
			}
		}
		p.Answer = oip.Params{answerRows: int64(list[0].Rows), answerIsExact: list[0].Exact}
		return nil
	})
}
