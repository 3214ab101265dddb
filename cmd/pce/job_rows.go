package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// evaluationFile, in the directory of an eval job, has what eval --json prints.
const evaluationFile = "eval.json"

// answer asks the workers about all rows of the job, and writes what comes out.
func (c *clusterRun) answer(ctx context.Context) error {
	j := &c.cfg.Job
	out := filepath.Join(c.dir, "out."+j.Format)
	if j.Kind == kindEval {
		out = filepath.Join(c.dir, evaluationFile)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		return err // it appears when all is done
	}
	b, err := run.Build(ctx, run.Structure{Kind: "file", File: j.Model}, nil, compile.DefaultOptions())
	if err != nil {
		return badJob(c.id, "%w", err)
	}
	defer b.Close()
	q, err := c.questions(ctx, b.Schema)
	if err != nil {
		return err
	}
	defer q.close()
	if err := c.gather(ctx); err != nil {
		return err
	}
	model, err := refTo(j.Model)
	if err != nil {
		return err
	}
	if !inEveryRoot(c.members, model.Path) {
		if err := model.upload(ctx, c.bus.Blobs(), model.Path); err != nil {
			return err
		}
	}
	if err := c.begin(ctx, &description{Kind: j.Kind, Model: &model}, b.Program.Digest()); err != nil {
		return err
	}
	got, err := openAnswers(c.dir)
	if err != nil {
		return err
	}
	if err := c.ask(ctx, q, got, b.Schema); err != nil {
		return errors.Join(err, got.close())
	}
	if err := got.save(); err != nil {
		return errors.Join(err, got.close())
	}
	if err := c.write(ctx, out, got, b.Schema); err != nil {
		return errors.Join(err, got.close())
	}
	return got.remove()
}

// ask puts the questions about the rows that have no answers yet.
func (c *clusterRun) ask(ctx context.Context, q questions, got *answers, s *dataset.Schema) error {
	if err := q.skip(ctx, got.at.Rows); err != nil {
		return err
	}
	c.log.Info("asking the workers", "kind", c.cfg.Job.Kind, "rows done before", got.at.Rows)
	var asked []int // rows of the questions under way, in order
	begin, before := time.Now(), got.at.Rows
	total := q.total()
	next := func() ([]byte, bool, error) {
		request, rows, err := q.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, false, nil
		}
		asked = append(asked, rows)
		return request, err == nil, err
	}
	batch := new(dataset.Batch)
	return c.run.Map(ctx, next, func(answer []byte) error {
		rows := asked[0]
		asked = asked[1:]
		if c.cfg.Job.Kind == kindSample {
			if err := dataset.DecodeBlock(s, answer, batch); err != nil || batch.Rows != rows {
				return fmt.Errorf("%w: a worker drew %d rows of %d: %v", cluster.ErrCluster, batch.Rows, rows, err)
			}
			answer = appendPart(nil, answer)
		} else if len(answer) != 8*rows {
			return fmt.Errorf("%w: a worker gave %d bytes for %d rows", cluster.ErrCluster, len(answer), rows)
		}
		if err := got.append(answer, rows); err != nil {
			return err
		}
		c.run.Update(func(s *cluster.RunStatus) {
			s.Rows = got.at.Rows
			rate := float64(got.at.Rows-before) / max(time.Since(begin).Seconds(), 1e-3)
			s.RowsPerSecond = finite(rate)
			if total > 0 {
				s.SecondsLeft = finite(float64(total-got.at.Rows) / rate)
			}
		})
		return nil
	})
}

// write writes the result from all answers.
func (c *clusterRun) write(ctx context.Context, out string, got *answers, s *dataset.Schema) error {
	rows := int(got.at.Rows)
	if c.cfg.Job.Kind == kindEval {
		var err error
		e := evaluate(got.numbers(&err), s)
		if err != nil {
			return err
		}
		c.run.Update(func(s *cluster.RunStatus) { s.TestLL = e.LL })
		return writeJSON(out, e)
	}
	return atomicfile.Write(out, 0o644, func(w io.Writer) error {
		if c.cfg.Job.Kind == kindSample {
			dst, err := dataset.NewWriter(w, out, s, rows)
			if err != nil {
				return err
			}
			if err := readBlocks(ctx, got.reader(), s, dst.Write); err != nil {
				return err
			}
			return dst.Close()
		}
		dst, err := dataset.NewNumberWriter(w, out, rows, 1)
		if err != nil {
			return err
		}
		var broken error
		for x := range got.numbers(&broken) {
			if err := dst.Write([]float64{x}); err != nil {
				return err
			}
		}
		if broken != nil {
			return broken
		}
		return dst.Close()
	})
}

// questions are what a job asks, in order.
type questions interface {
	// skip passes over rows that have answers.
	skip(ctx context.Context, rows int64) error
	// next returns the next request and how many rows it is about, or io.EOF.
	next(ctx context.Context) (request []byte, rows int, err error)
	// total is the number of all rows; 0: unknown before they have been read.
	total() int64
	close() error
}

// questions returns those of the job, whose model has rows of s.
func (c *clusterRun) questions(ctx context.Context, s *dataset.Schema) (questions, error) {
	j := &c.cfg.Job
	most := c.bus.MaxPayload() / 2
	rows := blockRows(s, most)
	if rows == 0 {
		return nil, badJob(c.id, "a row takes %d bytes and the broker's messages %d; give it a larger max_payload", s.BlockRowBytes(), most*2)
	}
	if j.Kind == kindSample {
		// What cannot be written should not be drawn first.
		if _, err := dataset.NewWriter(io.Discard, "out."+j.Format, s, j.Rows); err != nil {
			return nil, badJob(c.id, "%w", err)
		}
		return &draws{all: j.Rows, rows: rows, seed: j.Seed}, nil
	}
	o, err := c.app.queryOptions(&c.cfg.Data, s)
	if err != nil {
		return nil, badJob(c.id, "%w", err)
	}
	o.Stdin = nil // the coordinator's is not the client's
	in, err := dataset.OpenReaderAll(ctx, j.Data, o)
	if err != nil {
		return nil, badJob(c.id, "%w", err)
	}
	return &blocks{in: in, schema: s, rows: min(rows, most/8)}, nil
}

// blocks asks about the rows of a reader.
type blocks struct {
	in     dataset.Reader
	schema *dataset.Schema
	rows   int // of a block
	batch  dataset.Batch
}

func (q *blocks) skip(ctx context.Context, rows int64) error {
	for rows > 0 {
		if err := q.in.Read(ctx, &q.batch, int(min(rows, readRows))); err != nil {
			return err
		}
		rows -= int64(q.batch.Rows)
	}
	return nil
}

func (q *blocks) next(ctx context.Context) ([]byte, int, error) {
	if err := q.in.Read(ctx, &q.batch, q.rows); err != nil {
		return nil, 0, err
	}
	block, err := dataset.AppendBlock(make([]byte, 0, q.schema.BlockBytes(q.batch.Rows)), q.schema, &q.batch)
	return block, q.batch.Rows, err
}

func (q *blocks) total() int64 { return 0 }

func (q *blocks) close() error { return q.in.Close() }

// draws asks for rows that a seed draws.
type draws struct {
	all, at int
	rows    int // of a request
	seed    uint64
}

func (q *draws) skip(_ context.Context, rows int64) error {
	q.at = int(min(rows, math.MaxInt))
	return nil
}

func (q *draws) next(context.Context) ([]byte, int, error) {
	if q.at >= q.all {
		return nil, 0, io.EOF
	}
	r := sampleRequest{First: q.at, Rows: min(q.rows, q.all-q.at), Seed: q.seed}
	q.at += r.Rows
	request, err := r.encode()
	return request, r.Rows, err
}

func (q *draws) total() int64 { return int64(q.all) }

func (q *draws) close() error { return nil }
