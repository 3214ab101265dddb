package query

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// numbersKind asks for the numbers that a query has for each row as its answer.
type numbersKind struct{ name string }

func (k numbersKind) Load(ctx context.Context, in *job.Loading) (cluster.Session, error) {
	m, d, err := openModel(ctx, in, k)
	if err != nil {
		return nil, err
	}
	q, err := d.query(k.name, m.plan.Schema)
	if err != nil {
		return nil, errors.Join(job.Bad(in.Run, "%w", err), m.Close())
	}
	return job.Answering(numbersAnswerer{m, q}), nil
}

func (k numbersKind) asks() string { return k.name }

func (numbersKind) Result(q *Job) string { return "out." + q.Format }

// query is what a job of the kind asks.
func (k numbersKind) query(q *Job, s *dataset.Schema) (*run.Query, error) {
	settings, err := q.settings(s)
	if err != nil {
		return nil, err
	}
	query, err := settings.query(k.name, s)
	if err == nil {
		query.All = q.All
	}
	return query, err
}

func (k numbersKind) Questions(ctx context.Context, q *Job, s *dataset.Schema, most int) (job.Questions, error) {
	query, err := k.query(q, s)
	if err != nil {
		return nil, err
	}
	width := 8 * query.Width(s)
	if width > most {
		return nil, fmt.Errorf("%w: the answer about a row takes %d bytes and a message %d; ask for fewer columns", run.ErrOptions, width, most)
	}
	in, err := openRows(ctx, q, s, false)
	if err != nil {
		return nil, err
	}
	return &rowBlocks{in: in, schema: s, rows: min(blocks.Rows(s, most), most/width), most: most}, nil
}

func (k numbersKind) Answers(l *job.Lead, q *Job, b *run.Blueprint) job.Answers {
	query, err := k.query(q, b.Schema)
	if err != nil {
		panic("BUG: job: Questions took a query that is none: " + err.Error())
	}
	var unanswered run.Unanswered
	return &numbersAnswers{
		width: query.Width(b.Schema),
		writer: func(w io.Writer, path string, rows int) (dataset.NumberWriter, error) {
			unanswered = 0
			return query.NewWriter(w, path, b.Schema, rows)
		},
		see:     unanswered.Add,
		written: func() { note(l, unanswered.Notes(query, b.Graph)) },
	}
}

// note puts what a user should know of a result into the log of a run.
func note(l *job.Lead, notes []string) {
	for _, n := range notes {
		l.Log.Warn(n)
	}
}

// numbersAnswers are float64 numbers, the same number of them for each row.
type numbersAnswers struct {
	width int
	// writer returns what writes the answers about that many rows to the result at path.
	writer  func(w io.Writer, path string, rows int) (dataset.NumberWriter, error)
	see     func(answers []float64) // called with those about each row as they are written; may be nil
	written func()                  // called when the result is there; may be nil
}

func (a *numbersAnswers) Keep(answer []byte, rows int) ([]byte, error) {
	if want := 8 * a.width * rows; len(answer) != want {
		return nil, fmt.Errorf("%w: a worker gave %d bytes for %d rows, want %d", cluster.ErrCluster, len(answer), rows, want)
	}
	return answer, nil
}

// Write writes the kept numbers of all rows as the command without a cluster would, to a file
// that appears whole.
func (a *numbersAnswers) Write(_ context.Context, path string, kept io.Reader, rows int64) error {
	err := atomicfile.Write(path, 0o644, func(w io.Writer) error {
		dst, err := a.writer(w, path, int(rows))
		if err != nil {
			return err
		}
		var broken error
		row := make([]float64, 0, a.width)
		for n := int64(0); a.width == 0 && n < rows; n++ {
			if err := dst.Write(row); err != nil {
				return err
			}
		}
		for x := range numbers(kept, rows*int64(a.width), &broken) {
			if row = append(row, x); len(row) < a.width {
				continue
			}
			if a.see != nil {
				a.see(row)
			}
			if err := dst.Write(row); err != nil {
				return err
			}
			row = row[:0]
		}
		if broken != nil {
			return broken
		}
		return dst.Close()
	})
	if err == nil && a.written != nil {
		a.written()
	}
	return err
}

// numbers yields answers that are float64 numbers, one for each row. What goes wrong
// is left in err.
func numbers(kept io.Reader, rows int64, err *error) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		var number [8]byte
		for range rows {
			if _, *err = io.ReadFull(kept, number[:]); *err != nil {
				return
			}
			if !yield(math.Float64frombits(binary.LittleEndian.Uint64(number[:]))) {
				return
			}
		}
	}
}

// evalKind asks what loglik asks, and adds up.
type evalKind struct{ numbersKind }

// EvaluationFile, in the directory of an eval job, has what eval --json prints.
const EvaluationFile = "eval.json"

func (evalKind) Result(*Job) string { return EvaluationFile }

func (k evalKind) Answers(l *job.Lead, q *Job, b *run.Blueprint) job.Answers {
	return &evalAnswers{numbersAnswers{width: 1}, l, b.Schema}
}

type evalAnswers struct {
	numbersAnswers
	lead   *job.Lead
	schema *dataset.Schema
}

func (a *evalAnswers) Write(_ context.Context, path string, kept io.Reader, rows int64) error {
	var broken error
	e := run.Evaluate(numbers(kept, rows, &broken), a.schema)
	if broken != nil {
		return broken
	}
	a.lead.Update(func(s *cluster.RunStatus) { s.TestLL = e.LL })
	err := atomicfile.Write(path, 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(e) })
	if err == nil { // and not where the disk is full, as it is then written anew
		note(a.lead, e.Warnings)
	}
	return err
}
