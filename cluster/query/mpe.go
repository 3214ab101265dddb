package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

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
	o := d.completion()
	if err := o.Check(); err != nil {
		return nil, errors.Join(job.Bad(in.Run, "%w", err), m.Close())
	}
	return job.Answering(&mpeAnswerer{m, o, m.plan.MPEExact()}), nil
}

// completion is what a job asks of completions.
func (d *querySettings) completion() run.MPEOptions {
	return run.MPEOptions{Of: d.Columns, Candidates: d.Candidates, Beam: run.DefaultMPE.Beam, Search: d.Search, Seed: d.Seed}
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
	rows := min(blocks.Rows(s, most), max(1, most/(s.BlockRowBytes()+boundBytes))) // an answer has to fit a message, too
	return &numbered{rowBlocks: rowBlocks{in: in, schema: s, rows: rows, most: most}, result: k.Result(q)}, nil
}

func (mpeKind) Answers(l *job.Lead, q *Job, b *run.Blueprint) job.Answers {
	return &mpeAnswers{schema: b.Schema, query: q, lead: l, model: b}
}

// numbered are blocks after the number of their first row, on which draws depend. Of more rows than the result takes none is completed.
type numbered struct {
	rowBlocks
	at     int64
	result string // its name
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
	return request, rows, dataset.CheckCompletions(q.result, q.schema, int(q.at))
}

// boundBytes are those of a row's log-likelihood and its bound, in an answer and as it is kept.
const boundBytes = 16

// mpeAnswers are completed rows: each answer is a part, the block of them, then their
// log-likelihoods and the bounds on those of all completions. They are written with what the
// files say in the observed cells, which are read again for it.
type mpeAnswers struct {
	schema *dataset.Schema
	query  *Job
	lead   *job.Lead
	model  *run.Blueprint
	batch  dataset.Batch
}

func (a *mpeAnswers) Keep(answer []byte, rows int) ([]byte, error) {
	at := len(answer) - rows*boundBytes
	r := bytes.NewReader(answer[:max(0, at)])
	part, err := blocks.ReadPart(r, nil)
	if err == nil {
		err = dataset.DecodeBlock(a.schema, part, &a.batch)
	}
	if err != nil || r.Len() > 0 || a.batch.Rows != rows {
		return nil, fmt.Errorf("%w: a worker completed %d rows in %d bytes, want %d: %v", cluster.ErrCluster, a.batch.Rows, len(answer), rows, err)
	}
	return answer, nil
}

// Write writes the rows with their missing cells filled. The answers have codes and values
// alone; the rows are read again for the texts of their observed cells, which are written as
// they were, and for pictures, which have each row beside its completion. What the command
// without a cluster notes of completions is put into the log of the run.
func (a *mpeAnswers) Write(ctx context.Context, path string, kept io.Reader, rows int64) (err error) {
	if rows == 0 {
		return (&sampleAnswers{schema: a.schema, lead: a.lead, model: a.model}).Write(ctx, path, kept, rows)
	}
	settings, err := a.query.settings(a.schema)
	if err != nil {
		return err
	}
	how := settings.completion()
	unfilled := run.NewUnfilled(a.model.Graph, how.Of)
	var gaps run.Gaps
	if err := a.write(ctx, path, kept, rows, unfilled, &gaps); err != nil {
		return err
	}
	note(a.lead, unfilled.Notes())
	a.lead.Log.Info(gaps.Note(a.model.MPEExact(), how))
	return nil
}

func (a *mpeAnswers) write(ctx context.Context, path string, kept io.Reader, rows int64, unfilled *run.Unfilled, gaps *run.Gaps) (err error) {
	again := *a.query
	again.Read.Warn = nil // what the rows are doubtful for was told when they were asked about
	in, err := openRows(ctx, &again, a.schema, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return atomicfile.Write(path, 0o644, func(w io.Writer) error {
		dst, err := dataset.NewCompletions(w, path, a.schema, int(rows))
		if err != nil {
			return err
		}
		var part []byte
		given, b := &dataset.Batch{}, &a.batch
		for done := int64(0); done < rows; done += int64(b.Rows) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if part, err = blocks.ReadPart(kept, part); errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
			if err := dataset.DecodeBlock(a.schema, part, b); err != nil {
				return err
			}
			var broken error
			ll := slices.Collect(numbers(kept, 2*int64(b.Rows), &broken))
			if broken != nil {
				return broken
			}
			for r := range b.Rows {
				gaps.Add(ll[r], ll[b.Rows+r])
			}
			unfilled.Add(b)
			for at := 0; at < b.Rows; at += given.Rows {
				if err := in.Read(ctx, given, b.Rows-at); err != nil {
					return fmt.Errorf("rows that were there are not: %w", err)
				}
				if err := dst.Write(given, b.Slice(at, at+given.Rows)); err != nil {
					return err
				}
			}
		}
		if err := a.query.Unchanged(ctx); err != nil {
			return err
		}
		return dst.Close()
	})
}
