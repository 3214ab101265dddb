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

// covarianceQuery describes the query for covariance matrices of columns that a request names, whose number gives the
// answer its shape. It takes a pass for all variances and, for each column but the last, which are summed over, one for the
// probabilities of its values and one for each of them.
func covarianceQuery(s *dataset.Schema, work rowWork) servedQuery {
	return servedQuery{serve.Query{
		Name: run.QueryCovariance,
		Outputs: []serve.Output{{Name: "covariance", Datatype: oip.FP64, Shape: []int64{-1, -1}, ShapeOf: func(p oip.Params) []int64 {
			of, _ := namedBy(s, p) // Plan has said what is wrong with them
			return []int64{int64(len(of)), int64(len(of))}
		}}},
		Params: []serve.Param{{Name: paramOf, Default: ""}},
		Plan: func(p oip.Params) (int64, error) {
			q, err := covarianceOf(s, p)
			if err != nil {
				return 0, err
			}
			passes := 1.0
			for _, v := range q.Columns[:len(q.Columns)-1] {
				passes += 1 + pointsOf(&s.Columns[v])
			}
			return operations(passes * work.posterior()), nil
		},
	}, (*servedCircuit).covariance}
}

// covarianceOf is the query for the covariances of the columns of a request.
func covarianceOf(s *dataset.Schema, p oip.Params) (*pce.Query, error) {
	of, err := namedBy(s, p)
	if err != nil {
		return nil, err
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("%s is empty; name the columns whose covariances are wanted, such as age,3", paramOf)
	}
	q := &pce.Query{Kind: pce.QueryCovariance, Columns: of}
	return q, q.Check(s)
}

// covariance gives the covariance matrix of the columns of each request. Columns over whose values no sum can be, as those with
// too many, fail that request alone.
func (c *servedCircuit) covariance(ctx context.Context, w *serve.Work) error {
	out := w.Outputs[0]
	return eachPart(w, func(rows *dataset.Batch, p *serve.Part, _ int) error {
		q, err := covarianceOf(c.Schema(), p.Params)
		if err != nil {
			return err
		}
		width := q.Width(c.Schema())
		own := out[:rows.Rows*width]
		out = out[len(own):]
		err = eachSome(rows, width, func(some *dataset.Batch, at int) error {
			all, err := c.Answer(ctx, q, some)
			copy(own[at*width:], all)
			return err
		})
		if errors.Is(err, dataset.ErrSetting) {
			p.Err, err = err, nil
		}
		return err
	})
}
