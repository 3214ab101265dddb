package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
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

	Columns    []string    // those that run.Query is about, as Schema.Find takes them
	Levels     []float64   // as of run.Query
	Of         []string    // polynomials, as run.NewExpectation takes them
	All        bool        // as of run.Query
	Candidates int         // of a most probable completion, as of run.MPEOptions
	Search     int         // likewise
	Result     forest.What // of predict
	Schedule   string      // of predict: the text of the one under which the forest is compiled; "": none
	Profile    string      // of predict: path of the profile that the schedule uses; "": none
	Soft       bool        // cells may be ranges, sets or likelihoods, as of dataset.Options

	// Unchanged gives an error if a file has other contents than those that the job was made with. It is asked when the rows
	// have been read, as answers about two versions of a file are about neither.
	Unchanged func(ctx context.Context) error
}

// QueryKind is a kind of job over the rows of a model: what its workers load, what
// they are asked, and what becomes of their answers.
type QueryKind interface {
	// Load makes a session that answers the questions.
	Load(ctx context.Context, in *Loading) (cluster.Session, error)
	// Result is the name of the file that the job makes in the directory of its run.
	Result(q *Query) string
	// Open opens the model of a job on its coordinator, which computes nothing with it. An
	// error is the job's fault.
	Open(ctx context.Context, q *Query) (Subject, error)
}

// Subject is the model of a job over rows, a circuit or a forest, as the coordinator sees it.
type Subject interface {
	// Digest tells what the workers must compute with.
	Digest() [32]byte
	// Settings returns what the kind's Load decodes. It shares the files that they name, those
	// of the query: the model is one of them.
	Settings(share func(path string) (FileRef, error)) (any, error)
	// Questions returns those of the job, in requests of about most bytes. The answers may have
	// as many. An error is the job's fault.
	Questions(ctx context.Context, most int) (Questions, error)
	// Answers returns what becomes of the answers. Questions has succeeded before.
	Answers(l *Lead) Answers
	Close() error
}

// QueryKinds are the kinds of jobs over the rows of a model that there are.
func QueryKinds() map[string]QueryKind {
	kinds := map[string]QueryKind{Predict: predictKind{}}
	for name, kind := range circuitKinds() {
		kinds[name] = queryKind{kind}
	}
	return kinds
}

// circuitKind is a QueryKind whose models are circuits, of which schemas say everything that a
// coordinator needs.
type circuitKind interface {
	Load(ctx context.Context, in *Loading) (cluster.Session, error)
	// asks is the kind of queries that the workers answer, as of package run.
	asks() string
	Result(q *Query) string
	// Questions returns those of a job about rows of s, as of Subject.
	Questions(ctx context.Context, q *Query, s *dataset.Schema, most int) (Questions, error)
	// Answers returns what becomes of the answers.
	Answers(l *Lead, q *Query, s *dataset.Schema) Answers
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
	Model      FileRef   `json:"model"`
	Columns    []int     `json:"columns,omitempty"`
	Levels     []float64 `json:"levels,omitempty"`
	Of         []string  `json:"of,omitempty"`
	Seed       uint64    `json:"seed,omitempty"`
	Candidates int       `json:"candidates,omitempty"`
	Search     int       `json:"search,omitempty"`
	Soft       bool      `json:"soft,omitempty"`
}

// query is the question about rows of s that a kind of job asks.
func (d *querySettings) query(kind string, s *dataset.Schema) (*run.Query, error) {
	if kind == run.QueryExpect {
		return run.NewExpectation(s, d.Of)
	}
	q := &run.Query{Kind: kind, Columns: d.Columns, Levels: d.Levels}
	return q, q.Check(s)
}

// Query asks the workers about all rows of a job, and writes the result. It does nothing if the
// result is there, so a lead that takes the job again after the end is harmless. What is wrong
// with the job, such as a model that cannot be read, matches cluster.ErrJob, and the job is not
// tried again.
func (l *Lead) Query(ctx context.Context, kind QueryKind, q *Query) error {
	if done, err := l.Answered(kind.Result(q)); done || err != nil {
		return err
	}
	subject, err := kind.Open(ctx, q)
	if err != nil {
		return Bad(l.ID, "%w", err)
	}
	defer subject.Close()
	questions, err := subject.Questions(ctx, l.Bus.MaxPayload()/2)
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
	var files []FileRef
	settings, err := subject.Settings(func(path string) (FileRef, error) {
		r, err := l.ShareFile(ctx, path)
		files = append(files, r)
		return r, err
	})
	if err != nil {
		return err
	}
	if err := l.Begin(ctx, subject.Digest(), settings, files...); err != nil {
		return err
	}
	asking = true
	return l.Ask(ctx, questions, unchanged{subject.Answers(l), q}, kind.Result(q))
}

// queryKind is a kind whose models are circuits.
type queryKind struct{ circuitKind }

// Open opens the circuit of a job for its schema and its digest.
func (k queryKind) Open(ctx context.Context, q *Query) (Subject, error) {
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
	query    *Query
	settings querySettings
}

// Settings are those of the query.
func (s *circuitSubject) Settings(share func(path string) (FileRef, error)) (_ any, err error) {
	s.settings.Model, err = share(s.query.Model)
	return &s.settings, err
}

// Questions are those of the kind about rows of the circuit, of which one has to fit a message.
func (s *circuitSubject) Questions(ctx context.Context, most int) (Questions, error) {
	if blockRows(s.Schema, most) == 0 {
		return nil, fmt.Errorf("a row takes %d bytes and the broker's messages %d; give it a larger max_payload", s.Schema.BlockRowBytes(), most*2)
	}
	return s.kind.Questions(ctx, s.query, s.Schema, most)
}

// Answers are those of the kind.
func (s *circuitSubject) Answers(l *Lead) Answers { return s.kind.Answers(l, s.query, s.Schema) }

// settings are what the workers of a job about rows of s need, but for the model.
func (q *Query) settings(s *dataset.Schema) (querySettings, error) {
	columns, err := s.FindAll(q.Columns)
	return querySettings{Columns: columns, Levels: q.Levels, Of: q.Of, Seed: q.Seed, Candidates: q.Candidates, Search: q.Search, Soft: q.Soft}, err
}

// numbersKind asks for the numbers that a query has for each row as its answer.
type numbersKind struct{ name string }

func (k numbersKind) Load(ctx context.Context, in *Loading) (cluster.Session, error) {
	m, d, err := openModel(ctx, in, k)
	if err != nil {
		return nil, err
	}
	q, err := d.query(k.name, m.plan.Schema)
	if err != nil {
		return nil, errors.Join(Bad(in.Run, "%w", err), m.Close())
	}
	return Answering(numbersAnswerer{m, q}), nil
}

func (k numbersKind) asks() string { return k.name }

func (numbersKind) Result(q *Query) string { return "out." + q.Format }

// query is what a job of the kind asks.
func (k numbersKind) query(q *Query, s *dataset.Schema) (*run.Query, error) {
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

func (k numbersKind) Questions(ctx context.Context, q *Query, s *dataset.Schema, most int) (Questions, error) {
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
	return &blocks{in: in, schema: s, rows: min(blockRows(s, most), most/width), most: most}, nil
}

// openRows opens the rows of a job, with what their files say if text is true.
func openRows(ctx context.Context, q *Query, s *dataset.Schema, text bool) (dataset.Reader, error) {
	o := q.Read
	o.Schema, o.Partial, o.KeepText, o.Soft, o.Stdin = s, true, text, q.Soft, nil // the coordinator's input is not the client's
	return dataset.OpenReaderAll(ctx, q.Data, o)
}

func (k numbersKind) Answers(_ *Lead, q *Query, s *dataset.Schema) Answers {
	query, err := k.query(q, s)
	if err != nil {
		panic("BUG: job: Questions took a query that is none: " + err.Error())
	}
	return &numbersAnswers{query.Width(s), s, func(w io.Writer, path string, rows int) (dataset.NumberWriter, error) {
		return query.NewWriter(w, path, s, rows)
	}}
}

// numbersAnswers are float64 numbers, the same number of them for each row.
type numbersAnswers struct {
	width  int
	schema *dataset.Schema // of the rows
	// writer returns what writes the answers about that many rows to the result at path.
	writer func(w io.Writer, path string, rows int) (dataset.NumberWriter, error)
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
	return atomicfile.Write(path, 0o644, func(w io.Writer) error {
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
}

// evalKind asks what loglik asks, and adds up.
type evalKind struct{ numbersKind }

// EvaluationFile, in the directory of an eval job, has what eval --json prints.
const EvaluationFile = "eval.json"

func (evalKind) Result(*Query) string { return EvaluationFile }

func (k evalKind) Answers(l *Lead, q *Query, s *dataset.Schema) Answers {
	return evalAnswers{k.numbersKind.Answers(l, q, s).(*numbersAnswers), l}
}

type evalAnswers struct {
	*numbersAnswers
	lead *Lead
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

func (k sampleKind) Load(ctx context.Context, in *Loading) (cluster.Session, error) {
	m, _, err := openModel(ctx, in, k)
	if err != nil {
		return nil, err
	}
	return Answering(sampleAnswerer{m}), nil
}

func (sampleKind) asks() string { return run.QuerySample }

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
	most   int // bytes of a block, which rows with evidence may exceed
	batch  dataset.Batch
	at     int // rows of batch that were asked about
}

func (q *blocks) Skip(ctx context.Context, rows int64) error {
	for rows > 0 {
		if err := q.in.Read(ctx, &q.batch, int(min(rows, maxRows))); err != nil {
			return err
		}
		rows -= int64(q.batch.Rows)
	}
	q.batch.Resize(q.schema, 0)
	return nil
}

// Next returns a block of the next rows, and how many they are: fewer than usual where evidence
// makes them long. A single row that is longer than a message is an error.
func (q *blocks) Next(ctx context.Context) ([]byte, int, error) {
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
			return nil, 0, fmt.Errorf("%w: a row takes %d bytes with its ranges, sets and likelihoods, and a message %d; give the broker a larger max_payload",
				run.ErrOptions, len(block), q.most)
		}
		q.at += rows
		return block, rows, nil
	}
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
