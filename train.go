package pce

import (
	"context"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// ModelFile, in the directory of a run, is the model that Open opens.
const ModelFile = run.ModelFile

// TrainOptions say what is trained, on what, and how; run.TrainOptions lists them. Structure,
// Train and Dir are needed.
type TrainOptions = run.TrainOptions

// Rows opens a table. A Structure made for its rows asks for it without a schema;
// rows of a model must be what the model's schema says.
type Rows = run.Rows

// Files returns the rows of files as dataset.OpenAll reads them: paths, globs,
// directories or builtin sources.
func Files(paths ...string) Rows { return run.Files(paths...) }

// Table returns the rows of a source that is open already.
func Table(src dataset.Source) Rows { return run.Table(src) }

// Train makes a circuit, trains it and writes the run to opts.Dir:
// model.safetensors, metrics.jsonl, checkpoints, result.json and, where asked for,
// config.yaml and samples.png or samples.txt. If ctx ends while it trains, the error matches
// em.ErrStopped and a run with Resume continues with the same bits.
func Train(ctx context.Context, opts TrainOptions) (*Result, error) { return run.Train(ctx, opts) }
