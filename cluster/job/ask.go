package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/run"
)

// Questions are what a job over rows asks the workers, in order. The same job asks
// the same questions each time.
type Questions interface {
	// Skip passes over rows that have answers. It comes before the first Next.
	Skip(ctx context.Context, rows int64) error
	// Next returns the next request and how many rows it is about, or io.EOF. The
	// request is the caller's.
	Next(ctx context.Context) (request []byte, rows int, err error)
	// Total is the number of all rows; 0: unknown before they have been read.
	Total() int64
	Close() error
}

// Answers are what becomes of the workers' answers.
type Answers interface {
	// Keep checks the answer to a request about the given number of rows, and returns
	// what is kept of it until the result is written. It is called in the order of the
	// requests.
	Keep(answer []byte, rows int) ([]byte, error)
	// Write writes the result to a new file at path, from everything that was kept and
	// the number of rows that it is about. The file appears whole or not at all.
	Write(ctx context.Context, path string, kept io.Reader, rows int64) error
}

// Answered reports whether a job over rows has its result, a file in the directory
// of the run: it appears when all is done.
func (l *Lead) Answered(result string) (bool, error) {
	_, err := os.Stat(filepath.Join(l.Dir, result))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Ask puts the questions that have no answers yet to the workers of a run that has
// begun, keeps the answers in a journal, and writes the result to a file in the
// directory of the run. It closes q.
func (l *Lead) Ask(ctx context.Context, q Questions, a Answers, result string) (err error) {
	defer func() { err = errors.Join(err, q.Close()) }()
	j, err := openJournal(l.Dir)
	if err != nil {
		return err
	}
	if err := l.ask(ctx, q, a, j); err != nil {
		return errors.Join(err, j.close())
	}
	if err := j.save(); err != nil {
		return errors.Join(err, j.close())
	}
	if err := a.Write(ctx, filepath.Join(l.Dir, result), j.reader(), j.at.Rows); err != nil {
		return errors.Join(err, j.close())
	}
	return j.remove()
}

// ask has the workers answer the questions after those that the journal has, and appends the
// answers in order. Rows per second and the time left are of this part of the run. When it
// fails, what is in the journal stays: the next lead continues from there.
func (l *Lead) ask(ctx context.Context, q Questions, a Answers, j *journal) error {
	if err := q.Skip(ctx, j.at.Rows); err != nil {
		return err
	}
	l.Log.Info("asking the workers", "kind", l.Kind, "rows done before", j.at.Rows)
	var asked []int // rows of the questions under way, in order
	begin, before := time.Now(), j.at.Rows
	total := q.Total()
	next := func() ([]byte, bool, error) {
		request, rows, err := q.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, false, nil
		}
		if err == nil && rows < 1 {
			err = fmt.Errorf("BUG: job: a question about %d rows", rows)
		}
		asked = append(asked, rows)
		return request, err == nil, err
	}
	return l.run.Map(ctx, next, func(answer []byte) error {
		rows := asked[0]
		asked = asked[1:]
		kept, err := a.Keep(answer, rows)
		if err != nil {
			return err
		}
		if err := j.append(kept, rows); err != nil {
			return err
		}
		l.Update(func(s *cluster.RunStatus) {
			s.Rows = j.at.Rows
			rate := float64(j.at.Rows-before) / max(time.Since(begin).Seconds(), 1e-3)
			s.RowsPerSecond = run.Finite(rate)
			if total > 0 {
				s.SecondsLeft = run.Finite(float64(total-j.at.Rows) / rate)
			}
		})
		return nil
	})
}
