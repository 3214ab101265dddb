package job

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// Query is a job over the rows of a model.
type Query struct {
	Model  string          // path of its file
	Data   []string        // paths of the rows that are asked about
	Read   dataset.Options // how they are read; Schema, Partial and Stdin do not count
	Rows   int             // how many are drawn
	Seed   uint64          // of the draws
	Format string          // csv, npy or png
}

// QueryKind is a kind of job over the rows of a model: what its workers load, what
// they are asked, and what becomes of their answers.
type QueryKind interface {
	// Load makes a session that answers the questions.
	Load(ctx context.Context, in *Loading) (cluster.Session, error)
	// Result is the name of the file that the job makes in the directory of its run.
	Result(q *Query) string
	// Questions returns those of a job about rows of s, in requests of about most
	// bytes. The answers may have as many.
	Questions(ctx context.Context, q *Query, s *dataset.Schema, most int) (Questions, error)
	// Answers returns what becomes of the answers.
	Answers(l *Lead, q *Query, s *dataset.Schema) Answers
}

// QueryKinds are the kinds of jobs over the rows of a model that there are.
func QueryKinds() map[string]QueryKind {
	return map[string]QueryKind{"eval": evalKind{}, "loglik": loglikKind{}, "sample": sampleKind{}}
}

// querySettings are all that a session of queries is made of.
type querySettings struct {
	Model FileRef `json:"model"`
}

// Query asks the workers about all rows of a job, and writes the result.
func (l *Lead) Query(ctx context.Context, kind QueryKind, q *Query) error {
	if done, err := l.Answered(kind.Result(q)); done || err != nil {
		return err
	}
	b, err := run.Build(ctx, run.Structure{Kind: "file", File: q.Model}, nil, compile.DefaultOptions())
	if err != nil {
		return Bad(l.ID, "%w", err)
	}
	defer b.Close()
	most := l.Bus.MaxPayload() / 2
	if blockRows(b.Schema, most) == 0 {
		return Bad(l.ID, "a row takes %d bytes and the broker's messages %d; give it a larger max_payload", b.Schema.BlockRowBytes(), most*2)
	}
	questions, err := kind.Questions(ctx, q, b.Schema, most)
	if err != nil {
		return Bad(l.ID, "%w", err)
	}
	asking := false
	defer func() {
		if !asking {
			questions.Close()
		}
	}()
	if err := l.Gather(ctx); err != nil {
		return err
	}
	model, err := l.ShareFile(ctx, q.Model)
	if err != nil {
		return err
	}
	if err := l.Begin(ctx, b.Program.Digest(), querySettings{model}, model); err != nil {
		return err
	}
	asking = true
	return l.Ask(ctx, questions, kind.Answers(l, q, b.Schema), kind.Result(q))
}

// loglikKind asks for the log-likelihood of each row.
type loglikKind struct{}

func (loglikKind) Load(ctx context.Context, in *Loading) (cluster.Session, error) {
	m, err := openModel(ctx, in)
	if err != nil {
		return nil, err
	}
	return Answering(loglikAnswerer{m}), nil
}

func (loglikKind) Result(q *Query) string { return "out." + q.Format }

func (loglikKind) Questions(ctx context.Context, q *Query, s *dataset.Schema, most int) (Questions, error) {
	o := q.Read
	o.Schema, o.Partial, o.Stdin = s, true, nil // the coordinator's input is not the client's
	in, err := dataset.OpenReaderAll(ctx, q.Data, o)
	if err != nil {
		return nil, err
	}
	return &blocks{in: in, schema: s, rows: min(blockRows(s, most), most/8)}, nil
}

func (loglikKind) Answers(*Lead, *Query, *dataset.Schema) Answers { return loglikAnswers{} }

// loglikAnswers are float64 numbers, one for each row.
type loglikAnswers struct{}

func (loglikAnswers) Keep(answer []byte, rows int) ([]byte, error) {
	if len(answer) != 8*rows {
		return nil, fmt.Errorf("%w: a worker gave %d bytes for %d rows, want %d", cluster.ErrCluster, len(answer), rows, 8*rows)
	}
	return answer, nil
}

func (loglikAnswers) Write(_ context.Context, path string, kept io.Reader, rows int64) error {
	return atomicfile.Write(path, 0o644, func(w io.Writer) error {
		dst, err := dataset.NewNumberWriter(w, path, int(rows), 1)
		if err != nil {
			return err
		}
		var broken error
		for x := range numbers(kept, rows, &broken) {
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

// evalKind asks what loglik asks, and adds up.
type evalKind struct{ loglikKind }

// EvaluationFile, in the directory of an eval job, has what eval --json prints.
const EvaluationFile = "eval.json"

func (evalKind) Result(*Query) string { return EvaluationFile }

func (evalKind) Answers(l *Lead, _ *Query, s *dataset.Schema) Answers {
	return evalAnswers{lead: l, schema: s}
}

type evalAnswers struct {
	loglikAnswers
	lead   *Lead
	schema *dataset.Schema
}

func (a evalAnswers) Write(_ context.Context, path string, kept io.Reader, rows int64) error {
	var broken error
	e := Evaluate(numbers(kept, rows, &broken), a.schema)
	if broken != nil {
		return broken
	}
	a.lead.Update(func(s *cluster.RunStatus) { s.TestLL = e.LL })
	return writeJSON(path, e)
}

// sampleKind asks for rows that a seed draws.
type sampleKind struct{}

func (sampleKind) Load(ctx context.Context, in *Loading) (cluster.Session, error) {
	m, err := openModel(ctx, in)
	if err != nil {
		return nil, err
	}
	return Answering(sampleAnswerer{m}), nil
}

func (sampleKind) Result(q *Query) string { return "out." + q.Format }

func (k sampleKind) Questions(_ context.Context, q *Query, s *dataset.Schema, most int) (Questions, error) {
	// What cannot be written should not be drawn first.
	if _, err := dataset.NewWriter(io.Discard, k.Result(q), s, q.Rows); err != nil {
		return nil, err
	}
	return &draws{all: q.Rows, rows: blockRows(s, most), seed: q.Seed}, nil
}

func (sampleKind) Answers(_ *Lead, _ *Query, s *dataset.Schema) Answers {
	return &sampleAnswers{schema: s}
}

// sampleAnswers are blocks of rows, which are kept with their lengths.
type sampleAnswers struct {
	schema *dataset.Schema
	batch  dataset.Batch
}

func (a *sampleAnswers) Keep(answer []byte, rows int) ([]byte, error) {
	if err := dataset.DecodeBlock(a.schema, answer, &a.batch); err != nil || a.batch.Rows != rows {
		return nil, fmt.Errorf("%w: a worker drew %d rows, want %d: %v", cluster.ErrCluster, a.batch.Rows, rows, err)
	}
	return appendPart(nil, answer), nil
}

func (a *sampleAnswers) Write(ctx context.Context, path string, kept io.Reader, rows int64) error {
	return atomicfile.Write(path, 0o644, func(w io.Writer) error {
		dst, err := dataset.NewWriter(w, path, a.schema, int(rows))
		if err != nil {
			return err
		}
		if err := readBlocks(ctx, kept, a.schema, dst.Write); err != nil {
			return err
		}
		return dst.Close()
	})
}

// maxRows is the most rows of a request.
const maxRows = 4096

// blocks asks about the rows of a reader.
type blocks struct {
	in     dataset.Reader
	schema *dataset.Schema
	rows   int // of a block
	batch  dataset.Batch
}

func (q *blocks) Skip(ctx context.Context, rows int64) error {
	for rows > 0 {
		if err := q.in.Read(ctx, &q.batch, int(min(rows, maxRows))); err != nil {
			return err
		}
		rows -= int64(q.batch.Rows)
	}
	return nil
}

func (q *blocks) Next(ctx context.Context) ([]byte, int, error) {
	if err := q.in.Read(ctx, &q.batch, q.rows); err != nil {
		return nil, 0, err
	}
	block, err := dataset.AppendBlock(make([]byte, 0, q.schema.BlockBytes(q.batch.Rows)), q.schema, &q.batch)
	return block, q.batch.Rows, err
}

func (q *blocks) Total() int64 { return 0 }

func (q *blocks) Close() error { return q.in.Close() }

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
