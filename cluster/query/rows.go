package query

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// openRows opens the rows of a job, with what their files say if text is true.
func openRows(ctx context.Context, q *Job, s *dataset.Schema, text bool) (dataset.Reader, error) {
	o := q.Read
	o.Schema, o.Partial, o.KeepText, o.Soft, o.Stdin = s, true, text, q.Soft, nil // the coordinator's input is not the client's
	return dataset.OpenReaderAll(ctx, q.Data, o)
}

// rowBlocks asks about the rows of a reader.
type rowBlocks struct {
	in     dataset.Reader
	schema *dataset.Schema
	rows   int // of a block
	most   int // bytes of a block, which rows with evidence may exceed
	batch  dataset.Batch
	at     int // rows of batch that were asked about
}

func (q *rowBlocks) Skip(ctx context.Context, rows int64) error {
	for rows > 0 {
		if err := q.in.Read(ctx, &q.batch, int(min(rows, blocks.MaxRows))); err != nil {
			return err
		}
		rows -= int64(q.batch.Rows)
	}
	q.batch.Resize(q.schema, 0)
	return nil
}

// largerMessages says what to do about rows that are longer than messages. The broker that pce cluster up starts has NATS' own bound.
const largerMessages = "start a NATS server with a larger max_payload, and pce cluster up with its address as --cluster"

// Next returns a block of the next rows, and how many they are: fewer than usual where evidence
// makes them long. A single row that is longer than a message is an error.
func (q *rowBlocks) Next(ctx context.Context) ([]byte, int, error) {
	if q.at == q.batch.Rows {
		if err := q.in.Read(ctx, &q.batch, q.rows); err != nil {
			return nil, 0, err
		}
		q.at = 0
	}
	for rows := q.batch.Rows - q.at; ; rows /= 2 {
		block, err := dataset.AppendBlock(make([]byte, 0, q.schema.BlockBytes(rows)), q.schema, q.batch.Slice(q.at, q.at+rows))
		if err != nil {
			return nil, 0, err
		}
		if len(block) > q.most && q.batch.HasSoft() {
			if rows > 1 {
				continue
			}
			return nil, 0, fmt.Errorf("%w: a row takes %d bytes with its ranges, sets and likelihoods, and a message has room for %d of rows; %s",
				run.ErrOptions, len(block), q.most, largerMessages)
		}
		q.at += rows
		return block, rows, nil
	}
}

func (q *rowBlocks) Total() int64 { return 0 }

func (q *rowBlocks) Close() error { return q.in.Close() }
