package run

import (
	"context"
	"time"

	"github.com/pce-engine/pce/dataset"
)

// StageName names a part of what Train does, see Stage.
type StageName string

// The stages of Train, in their order. Rows may be read twice, where the first
// reading decides how cells are stored.
const (
	StageRead      StageName = "read"      // the rows of a split
	StageStructure StageName = "structure" // the graph; the tree of an HCLT is learned from the rows
	StageCompile   StageName = "compile"   // the graph becomes a program
	StageTrain     StageName = "train"
	StageEvaluate  StageName = "evaluate" // log-likelihoods under the parameters that were saved
	StageDraw      StageName = "draw"     // samples of images or text
)

// Stage tells TrainOptions.OnStage that a part of the work begins or, with Done, that
// it has ended. A stage that fails has no end.
type Stage struct {
	Name StageName
	Done bool
	Took time.Duration // Done: since it began

	Split           string // StageRead: train, valid or test
	Rows, Variables int    // StageRead, Done; StageTrain: of the training rows, and of these variables those that the model reads

	Structure, Tree          string // StageStructure: hclt, ...; how an HCLT gets its tree
	Nodes, Edges, Parameters int64  // StageStructure, Done
	Learned                  string // StageStructure, Done: the settings of learnspn, chosen ones included
	Layers                   int    // StageCompile, Done

	Device, Precision string // StageTrain
	Bits              bool   // StageTrain: rows are images or text and have probabilities, so bits per dimension compare
	Resumed           int    // StageTrain: epochs that are done already
	ResumedSteps      int64  // StageTrain: steps that are
	Epochs            int    // StageTrain: of the whole run, unless patience or steps end it

	// ValidLL, of StageTrain, is the largest of the validation rows so far, as em.Trainer.BestValid has it, and, Done, that of the
	// parameters which training kept; NaN where there is none.
	ValidLL float64
}

// teller calls OnStage, which may be nil.
type teller func(Stage)

// begin says that a stage begins. The function that it returns says that the stage has
// ended, with what s says of it then.
func (t teller) begin(s Stage) (end func(s Stage)) {
	if t == nil {
		return func(Stage) {}
	}
	start := time.Now()
	t(s)
	name := s.Name
	return func(s Stage) {
		s.Name, s.Done, s.Took = name, true, time.Since(start)
		t(s)
	}
}

// read opens the rows of a split, as a stage.
func (t teller) read(ctx context.Context, split string, rows Rows, schema *dataset.Schema) (dataset.Source, error) {
	done := t.begin(Stage{Name: StageRead, Split: split})
	src, err := rows(ctx, schema)
	if err != nil {
		return nil, err
	}
	if src, err = checked(src); err != nil {
		return nil, err
	}
	done(Stage{Split: split, Rows: src.Rows(), Variables: len(src.Schema().Columns)})
	return src, nil
}
