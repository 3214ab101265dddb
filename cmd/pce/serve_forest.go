package main

import (
	"context"
	"strings"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/serve"
	"github.com/pce-engine/pce/serve/oip"
)

// servedForest is a decision forest as the server sees models. Its rows are numbers as requests
// have them and not cells of a batch: float64 where its library compares those.
type servedForest struct {
	*pce.Model
	query  serve.Query
	gives  []forest.What // of each output of the query
	labels []float64     // of the classes, where all are numbers
	answer oip.Params
}

// Names of what a forest gives, as outputs of the query predict.
const (
	queryPredict  = "predict"
	answerLabels  = "labels"
	datatypeClass = oip.Int64
)

// newServedForest describes what a forest answers: predictions and, on request, raw scores,
// leaves and classes where it has them. Classes are numbers as requests write labels: their
// labels where all of those are numbers, else their indices. Labels that are words come as a
// parameter of each answer, quoted as a line of CSV.
func newServedForest(m *pce.Model) *servedForest {
	f := m.Forest()
	s := &servedForest{Model: m}
	of := map[forest.Precision]oip.Datatype{forest.Float32: oip.FP32, forest.Float64: oip.FP64}
	class := datatypeClass
	if f.Classes > 0 && f.Labels != nil {
		labels := dataset.Column{Labels: f.Labels, Categories: len(f.Labels)}
		if s.labels = labels.LabelNumbers(); s.labels != nil {
			class = oip.FP64
		} else {
			words := make([]string, len(f.Labels))
			for i, l := range f.Labels {
				words[i] = forest.QuoteLabel(l)
			}
			s.answer = oip.Params{answerLabels: strings.Join(words, ",")}
		}
	}
	s.query = serve.Query{Name: queryPredict, Numbers: of[f.Input]}
	for _, out := range []struct {
		what forest.What
		as   oip.Datatype
	}{
		{forest.Prediction, of[f.Precision(forest.Prediction)]},
		{forest.Margin, of[f.Precision(forest.Margin)]},
		{forest.Leaves, oip.Int32},
		{forest.Class, class},
	} {
		width := int64(f.Width(out.what))
		if f.Has(out.what) != nil || width == 0 {
			continue
		}
		o := serve.Output{Name: out.what.String(), Datatype: out.as, OnRequest: out.what != forest.Prediction}
		if width != 1 || out.what == forest.Leaves {
			o.Shape = []int64{width}
		}
		s.query.Outputs, s.gives = append(s.query.Outputs, o), append(s.gives, out.what)
	}
	walk := int64(len(f.Trees)) * int64(f.Depth()+1)
	if f.Linear != nil {
		walk = 2 * int64(len(f.Linear.Weights))
	}
	s.query.Flops = max(1, walk*int64(len(s.gives)))
	return s
}

// Device names the processor, on which forests run whatever --device says.
func (s *servedForest) Device() string { return "cpu" }

// Bytes is what the forest takes with its tables.
func (s *servedForest) Bytes() int64 { return s.ForestBytes() }

// CheckCell takes every number, which a forest compares as it is.
func (s *servedForest) CheckCell(int, float64) error { return nil }

// Queries lists the one query of forests.
func (s *servedForest) Queries() []serve.Query { return []serve.Query{s.query} }

// Run evaluates the forest for each output that a request of the batch asks for.
func (s *servedForest) Run(ctx context.Context, w *serve.Work) error {
	for i := range w.Parts {
		w.Parts[i].Answer = s.answer
	}
	for i, out := range w.Outputs {
		if out == nil {
			continue
		}
		if err := s.Evaluate(ctx, s.gives[i], w.Numbers, out); err != nil {
			return err
		}
		if s.gives[i] == forest.Class && s.labels != nil {
			for k, class := range out {
				out[k] = s.labels[int(class)]
			}
		}
	}
	return nil
}
