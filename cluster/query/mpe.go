package query

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// mpeKind asks for the most probable completions of rows.
type mpeKind struct{}

func (k mpeKind) Load(ctx context.Context, in *job.Loading) (cluster.Session, error) {
	m, d, err := openModel(ctx, in, k)
	if err != nil {
		return nil, err
	}
	o := run.MPEOptions{Of: d.Columns, Candidates: d.Candidates, Beam: run.DefaultMPE.Beam, Search: d.Search, Seed: d.Seed}
	if err := o.Check(); err != nil {
		return nil, errors.Join(job.Bad(in.Run, "%w", err), m.Close())
	}
	return job.Answering(&mpeAnswerer{m, o, m.plan.MPEExact()}), nil
}

func (mpeKind) asks() string { return run.QueryMPE }

func (mpeKind) Result(q *Job) string { return "out." + q.Format }

func (k mpeKind) Questions(ctx context.Context, q *Job, s *dataset.Schema, most int) (job.Questions, error) {
	// What cannot be written should not be computed first.
	if _, err := dataset.NewWriter(io.Discard, k.Result(q), s, 1); err != nil {
		return nil, err
	}
	in, err := openRows(ctx, q, s, false)
	if err != nil {
		return nil, err
	}
	return &numbered{rowBlocks: rowBlocks{in: in, schema: s, rows: blocks.Rows(s, most), most: most}}, nil
}

func (mpeKind) Answers(_ *job.Lead, q *Job, s *dataset.Schema) job.Answers {
	return &mpeAnswers{sampleAnswers{schema: s}, q}
}

// numbered are blocks after the number of their first row, on which draws depend.
type numbered struct {
	rowBlocks
	at int64
}

func (q *numbered) Skip(ctx context.Context, rows int64) error {
	q.at = rows
	return q.rowBlocks.Skip(ctx, rows)
}

func (q *numbered) Next(ctx context.Context) ([]byte, int, error) {
	block, rows, err := q.rowBlocks.Next(ctx)
	if err != nil {
		return nil, 0, err
	}
	request := append(binary.LittleEndian.AppendUint64(nil, uint64(q.at)), block...)
	q.at += int64(rows)
	return request, rows, nil
}

// mpeAnswers are completed rows. They are written with what the files say in the observed
// cells, which are read again for it.
type mpeAnswers struct {
	sampleAnswers
	query *Job
}

// Write writes the rows with their missing cells filled. The answers have codes and values
// alone; the rows are read again for the texts of their observed cells, which are written as
// they were, and for pictures, which have each row beside its completion.
func (a *mpeAnswers) Write(ctx context.Context, path string, kept io.Reader, rows int64) (err error) {
	if rows == 0 {
		return a.sampleAnswers.Write(ctx, path, kept, rows)
	}
	in, err := openRows(ctx, a.query, a.schema, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return atomicfile.Write(path, 0o644, func(w io.Writer) error {
		dst, err := dataset.NewCompletions(w, path, a.schema, int(rows))
		if err != nil {
			return err
		}
		given := &dataset.Batch{}
		err = blocks.Read(ctx, kept, a.schema, func(b *dataset.Batch) error {
			for at := 0; at < b.Rows; at += given.Rows {
				if err := in.Read(ctx, given, b.Rows-at); err != nil {
					return fmt.Errorf("rows that were there are not: %w", err)
				}
				if err := dst.Write(given, b.Slice(at, at+given.Rows)); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = a.query.Unchanged(ctx)
		}
		if err != nil {
			return err
		}
		return dst.Close()
	})
}
