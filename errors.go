package pce

import (
	"errors"
	"fmt"

	"github.com/pce-engine/pce/run"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrClosed means that a model was used after Close.
	ErrClosed = errors.New("pce: model is closed")
	// ErrKind means that a circuit was asked what forests answer, or the reverse.
	ErrKind = errors.New("pce: not a question for this kind of model")
	// ErrOptions means that options contradict each other or the data.
	ErrOptions = run.ErrOptions
	// ErrRun means that a directory holds a run already.
	ErrRun = run.ErrRun
)

// errForest is for what is asked of a circuit.
var errForest = fmt.Errorf("%w: it is a decision forest, which answers Predict and Evaluate alone", ErrKind)
