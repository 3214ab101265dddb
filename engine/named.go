package engine

import (
	"context"
	"errors"

	"github.com/pce-engine/pce/dataset"
)

// named returns an error of a query about the rows of b. Queries that ask about some rows at a time, or about several in place of each,
// meet a cell that the program cannot read in another row than it has in b: the error then is the one that the log-likelihoods of b have.
func (e *Engine) named(ctx context.Context, b *dataset.Batch, err error) error {
	if !errors.Is(err, dataset.ErrFormat) {
		return err
	}
	if own := e.LogLikelihood(ctx, b, make([]float64, b.Rows)); errors.Is(own, dataset.ErrFormat) {
		return own
	}
	return err
}
