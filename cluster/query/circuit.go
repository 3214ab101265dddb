package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// circuitKind is a Kind whose models are circuits, of which schemas say everything that a
// coordinator needs.
type circuitKind interface {
	Load(ctx context.Context, in *job.Loading) (cluster.Session, error)
	// asks is the kind of queries that the workers answer, as of package run.
	asks() string
	Result(q *Job) string
	// Questions returns those of a job about rows of s, as of Subject.
	Questions(ctx context.Context, q *Job, s *dataset.Schema, most int) (job.Questions, error)
	// Answers returns what becomes of the answers about rows of a circuit.
	Answers(l *job.Lead, q *Job, b *run.Blueprint) job.Answers
}

// circuitKinds are the kinds of jobs whose models are circuits.
func circuitKinds() map[string]circuitKind {
	kinds := map[string]circuitKind{"eval": evalKind{numbersKind{run.QueryLogLikelihood}}, "sample": sampleKind{}, run.QueryMPE: mpeKind{}}
	for _, name := range []string{
		run.QueryLogLikelihood, run.QueryConditional, run.QueryMoments, run.QueryClass, run.QueryCovariance, run.QueryQuantiles, run.QueryExpect,
	} {
		kinds[name] = numbersKind{name}
	}
	return kinds
}

// querySettings are all that a session of queries is made of.
type querySettings struct {
	Model      job.FileRef `json:"model"`
	Columns    []int       `json:"columns,omitempty"`
	Levels     []float64   `json:"levels,omitempty"`
	Of         []string    `json:"of,omitempty"`
	Seed       uint64      `json:"seed,omitempty"`
	Candidates int         `json:"candidates,omitempty"`
	Search     int         `json:"search,omitempty"`
	Soft       bool        `json:"soft,omitempty"`
}

// query is the question about rows of s that a kind of job asks.
func (d *querySettings) query(kind string, s *dataset.Schema) (*run.Query, error) {
	if kind == run.QueryExpect {
		return run.NewExpectation(s, d.Of)
	}
	q := &run.Query{Kind: kind, Columns: d.Columns, Levels: d.Levels}
	return q, q.Check(s)
}

// ofCircuit is a kind whose models are circuits.
type ofCircuit struct{ circuitKind }

// Open opens the circuit of a job for its schema and its digest.
func (k ofCircuit) Open(ctx context.Context, q *Job) (Subject, error) {
	how, err := howOf(k.circuitKind, q.Soft)
	if err != nil {
		return nil, err
	}
	b, err := run.Build(ctx, run.Structure{How: how, Kind: "file", File: q.Model}, nil, run.Options{Soft: q.Soft}.Compile())
	if err != nil {
		return nil, err
	}
	settings, err := q.settings(b.Schema)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &circuitSubject{b, k.circuitKind, q, settings}, nil
}

// circuitSubject is the circuit of a job.
type circuitSubject struct {
	*run.Blueprint
	kind     circuitKind
	query    *Job
	settings querySettings
}

// Settings are those of the query.
func (s *circuitSubject) Settings(share func(path string) (job.FileRef, error)) (_ any, err error) {
	s.settings.Model, err = share(s.query.Model)
	return &s.settings, err
}

// Questions are those of the kind about rows of the circuit, of which one has to fit a message.
func (s *circuitSubject) Questions(ctx context.Context, most int) (job.Questions, error) {
	if blocks.Rows(s.Schema, most) == 0 {
		return nil, fmt.Errorf("a row takes %d bytes, and a message has room for %d of rows; %s", s.Schema.BlockBytes(1), most, largerMessages)
	}
	return s.kind.Questions(ctx, s.query, s.Schema, most)
}

// Answers are those of the kind. A model without a checksum is noted, as commands do.
func (s *circuitSubject) Answers(l *job.Lead) job.Answers {
	if s.Unchecked {
		note(l, []string{"the model file is of an earlier version, without a checksum: damage to its parameters need not show"})
	}
	return s.kind.Answers(l, s.query, s.Blueprint)
}

// settings are what the workers of a job about rows of s need, but for the model.
func (q *Job) settings(s *dataset.Schema) (querySettings, error) {
	columns, err := s.FindAll(q.Columns)
	return querySettings{Columns: columns, Levels: q.Levels, Of: q.Of, Seed: q.Seed, Candidates: q.Candidates, Search: q.Search, Soft: q.Soft}, err
}
