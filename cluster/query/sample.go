package query

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// sampleKind asks for rows that a seed draws.
type sampleKind struct{}

func (k sampleKind) Load(ctx context.Context, in *job.Loading) (cluster.Session, error) {
	m, _, err := openModel(ctx, in, k)
	if err != nil {
		return nil, err
	}
	return job.Answering(sampleAnswerer{m}), nil
}

func (sampleKind) asks() string { return run.QuerySample }

func (sampleKind) Result(q *Job) string { return "out." + q.Format }

func (k sampleKind) Questions(_ context.Context, q *Job, s *dataset.Schema, most int) (job.Questions, error) {
	// What cannot be written should not be drawn first.
	if _, err := dataset.NewWriter(io.Discard, k.Result(q), s, q.Rows); err != nil {
		return nil, err
	}
	return &draws{all: q.Rows, rows: blocks.Rows(s, most), seed: q.Seed}, nil
}

func (sampleKind) Answers(l *job.Lead, _ *Job, b *run.Blueprint) job.Answers {
	return &sampleAnswers{schema: b.Schema, lead: l, model: b}
}

// sampleAnswers are blocks of rows, which are kept with their lengths.
type sampleAnswers struct {
	schema *dataset.Schema
	lead   *job.Lead
	model  *run.Blueprint
	batch  dataset.Batch
}

func (a *sampleAnswers) Keep(answer []byte, rows int) ([]byte, error) {
	if err := dataset.DecodeBlock(a.schema, answer, &a.batch); err != nil || a.batch.Rows != rows {
		return nil, fmt.Errorf("%w: a worker drew %d rows, want %d: %v", cluster.ErrCluster, a.batch.Rows, rows, err)
	}
	return blocks.AppendPart(nil, answer), nil
}

func (a *sampleAnswers) Write(ctx context.Context, path string, kept io.Reader, rows int64) error {
	unfilled := run.NewUnfilled(a.model.Graph, nil)
	err := atomicfile.Write(path, 0o644, func(w io.Writer) error {
		dst, err := dataset.NewWriter(w, path, a.schema, int(rows))
		if err != nil {
			return err
		}
		err = blocks.Read(ctx, kept, a.schema, func(b *dataset.Batch) error {
			unfilled.Add(b)
			return dst.Write(b)
		})
		if err != nil {
			return err
		}
		return dst.Close()
	})
	if err == nil {
		note(a.lead, unfilled.Notes())
	}
	return err
}

// sampleRequest asks for rows First to First+Rows-1 of those that a seed draws.
type sampleRequest struct {
	First int    `json:"first"`
	Rows  int    `json:"rows"`
	Seed  uint64 `json:"seed"`
}

// draws asks for rows that a seed draws.
type draws struct {
	all, at int
	rows    int // of a request
	seed    uint64
}

func (q *draws) Skip(_ context.Context, rows int64) error {
	q.at = int(min(rows, math.MaxInt))
	return nil
}

func (q *draws) Next(context.Context) ([]byte, int, error) {
	if q.at >= q.all {
		return nil, 0, io.EOF
	}
	r := sampleRequest{First: q.at, Rows: min(q.rows, q.all-q.at), Seed: q.seed}
	q.at += r.Rows
	request, err := json.Marshal(r)
	return request, r.Rows, err
}

func (q *draws) Total() int64 { return int64(q.all) }

func (q *draws) Close() error { return nil }
