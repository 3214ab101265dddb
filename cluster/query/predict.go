package query

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/run"
)

// Predict is the name of the kind of jobs that ask a decision forest about rows.
const Predict = "predict"

// predictKind asks a forest for its results about rows, as numbers that are written as pce
// predict writes them. Rows travel as plain numbers in the precision in which the forest compares.
type predictKind struct{}

// predictSettings are all that a session of predictions is made of.
type predictSettings struct {
	Model  job.FileRef `json:"model"`
	Result string      `json:"result"` // as forest.ParseWhat takes it
	// Schedule is the text of the schedule under which the forest is compiled; "" without one.
	Schedule string `json:"schedule,omitempty"`
	// Profile is that of the forest, for the schedule; none without one.
	Profile *job.FileRef `json:"profile,omitempty"`
}

// Result is out.csv: numbers are written as text in the forest's own precision.
func (predictKind) Result(*Job) string { return "out.csv" }

// Load opens the forest of a run on a worker. A file that is not the run's forest is the job's
// fault.
func (predictKind) Load(ctx context.Context, in *job.Loading) (cluster.Session, error) {
	var d predictSettings
	if err := in.Decode(&d); err != nil {
		return nil, err
	}
	if d.Model == (job.FileRef{}) {
		return nil, job.Bad(in.Run, "it has no model")
	}
	what, err := forest.ParseWhat(d.Result)
	if err != nil {
		return nil, job.Bad(in.Run, "%w", err)
	}
	path, err := in.Open(ctx, d.Model)
	if err != nil {
		return nil, err
	}
	f, err := openForest(path, what)
	if err != nil {
		return nil, badModel(in, err)
	}
	if err := in.Check(f.Digest()); err != nil {
		return nil, err
	}
	profile := ""
	if d.Profile != nil {
		if profile, err = in.Open(ctx, *d.Profile); err != nil {
			return nil, err
		}
	}
	m, err := compiled(f, d.Schedule, profile, in.Options.Threads)
	if err != nil && d.Schedule != "" { // the lead has compiled it
		return nil, job.Bad(in.Run, "the schedule: %w", err)
	}
	if err != nil {
		return nil, badModel(in, err)
	}
	info := cluster.SessionInfo{Device: "cpu", Path: in.Options.KernelPath, Precision: f.Precision(what).String()}
	return job.Answering(&predictAnswerer{model: m, what: what, info: info}), nil
}

// openForest opens a forest that has results of a kind.
func openForest(path string, what forest.What) (*forest.Forest, error) {
	f, err := run.OpenForest(path)
	if err != nil {
		return nil, err
	}
	err = f.Check()
	if err == nil {
		err = f.Has(what)
	}
	if err == nil && (f.Features < 1 || f.Features > dataset.MaxColumns) { // before there is memory for a row
		err = fmt.Errorf("%w: %d features; rows have 1 to %d", forest.ErrForest, f.Features, dataset.MaxColumns)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Open opens the forest of a job.
func (predictKind) Open(_ context.Context, q *Job) (Subject, error) {
	f, err := openForest(q.Model, q.Result)
	if err != nil {
		return nil, err
	}
	if q.Schedule != "" { // what it cannot run is told before workers are waited for
		m, err := compiled(f, q.Schedule, q.Profile, 1)
		if err != nil {
			return nil, fmt.Errorf("%s: the schedule: %w", q.Model, err)
		}
		if err := m.Close(); err != nil {
			return nil, err
		}
	}
	return &forestSubject{f, q}, nil
}

// compiled makes a model of a forest, as code if there is the text of a schedule, which uses the
// profile at a path if there is one.
func compiled(f *forest.Forest, schedule, profile string, threads int) (*pce.Model, error) {
	o := pce.Options{Threads: threads}
	if schedule == "" {
		return pce.NewForest(f, o)
	}
	var hits [][]int64
	if profile != "" {
		var err error
		if hits, err = run.ReadProfile(profile, f); err != nil {
			return nil, err
		}
	}
	return pce.NewScheduledForest(f, schedule, hits, o)
}

// forestSubject is the forest of a job.
type forestSubject struct {
	*forest.Forest
	query *Job
}

// Settings are those of the query.
func (s *forestSubject) Settings(share func(path string) (job.FileRef, error)) (any, error) {
	d := &predictSettings{Result: s.query.Result.String(), Schedule: s.query.Schedule}
	var err error
	if d.Model, err = share(s.query.Model); err != nil || s.query.Profile == "" {
		return d, err
	}
	profile, err := share(s.query.Profile)
	d.Profile = &profile
	return d, err
}

// Questions are the rows of all files, in order. The first rows are read at once, so that a file
// without the right columns, or without rows, is told before workers are waited for.
func (s *forestSubject) Questions(ctx context.Context, most int) (job.Questions, error) {
	row, width := s.Features*cellBytes(s.Forest), 8*max(1, s.Width(s.query.Result)) // a forest without trees has rows without leaves
	if row > most || width > most {
		return nil, fmt.Errorf("a row takes %d bytes, the answer about it %d, and a message has room for %d of either; %s", row, width, most, largerMessages)
	}
	o := s.query.Read
	o.Stdin = nil // the coordinator's input is not the client's
	round := dataset.ToFloat64
	if s.Input == forest.Float32 {
		round = dataset.ToFloat32
	}
	q := &numberBlocks{forest: s.Forest, cells: make([]float64, min(blocks.MaxRows, most/row, most/width)*s.Features)}
	for _, path := range s.query.Data {
		r, err := dataset.OpenNumbers(path, s.Features, s.Names, round, o)
		if err != nil {
			return nil, err
		}
		q.readers = append(q.readers, r)
	}
	err := q.fill(ctx)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %s has no rows", run.ErrOptions, strings.Join(s.query.Data, ", "))
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Answers are numbers, the same number of them for each row.
func (s *forestSubject) Answers(*job.Lead) job.Answers {
	what := s.query.Result
	a := numbersAnswers{width: s.Width(what), writer: func(w io.Writer, _ string, _ int) (dataset.NumberWriter, error) {
		return forest.NewWriter(w, s.Forest, what), nil
	}}
	if what == forest.Class {
		return &classAnswers{a, s.Classes}
	}
	return &a
}

func (s *forestSubject) Close() error { return nil }

// classAnswers are classes by their numbers.
type classAnswers struct {
	numbersAnswers
	classes int
}

// Keep refuses what is not a class, for which there may be no label.
func (a *classAnswers) Keep(answer []byte, rows int) ([]byte, error) {
	kept, err := a.numbersAnswers.Keep(answer, rows)
	for b := range slices.Chunk(kept, 8) {
		if x := math.Float64frombits(binary.LittleEndian.Uint64(b)); !(x >= 0 && x < float64(a.classes) && x == math.Trunc(x)) {
			return nil, fmt.Errorf("%w: a worker gave class %v, want 0..%d", cluster.ErrCluster, x, a.classes-1)
		}
	}
	return kept, err
}

// cellBytes are the bytes of a cell in a request: those of the numbers that the forest compares.
func cellBytes(f *forest.Forest) int {
	if f.Input == forest.Float32 {
		return 4
	}
	return 8
}

// numberBlocks ask about rows of numbers, [rows, features], row-major and little-endian.
type numberBlocks struct {
	forest  *forest.Forest
	readers []*dataset.NumberReader // of files that are not yet read to their ends
	cells   []float64               // of one request
	at, n   int                     // rows of cells that were asked about, and that are there
}

// fill reads the next rows, one or more, or returns io.EOF.
func (q *numberBlocks) fill(ctx context.Context) (err error) {
	for q.at, q.n = 0, 0; len(q.readers) > 0; q.readers = q.readers[1:] {
		if q.n, err = q.readers[0].Read(ctx, q.cells); !errors.Is(err, io.EOF) {
			return err
		}
		if err := q.readers[0].Close(); err != nil {
			return err
		}
	}
	return io.EOF
}

// Skip passes over rows that must be there, because they have answers.
func (q *numberBlocks) Skip(ctx context.Context, rows int64) error {
	for rows > 0 {
		if q.at == q.n {
			if err := q.fill(ctx); err != nil {
				return fmt.Errorf("rows that were there are not: %w", err)
			}
		}
		n := min(rows, int64(q.n-q.at))
		q.at, rows = q.at+int(n), rows-n
	}
	return nil
}

// Next returns the cells of the next rows.
func (q *numberBlocks) Next(ctx context.Context) ([]byte, int, error) {
	if q.at == q.n {
		if err := q.fill(ctx); err != nil {
			return nil, 0, err
		}
	}
	cells, rows := q.cells[q.at*q.forest.Features:q.n*q.forest.Features], q.n-q.at
	q.at = q.n
	request := make([]byte, 0, len(cells)*cellBytes(q.forest))
	for _, x := range cells {
		if q.forest.Input == forest.Float32 {
			request = binary.LittleEndian.AppendUint32(request, math.Float32bits(float32(x))) // it is one already
		} else {
			request = binary.LittleEndian.AppendUint64(request, math.Float64bits(x))
		}
	}
	return request, rows, nil
}

// Total is not known: files are read once.
func (q *numberBlocks) Total() int64 { return 0 }

func (q *numberBlocks) Close() (err error) {
	for _, r := range q.readers {
		err = errors.Join(err, r.Close())
	}
	return err
}

// predictAnswerer gives the results of a forest for the rows of a request.
type predictAnswerer struct {
	model      *pce.Model
	what       forest.What
	info       cluster.SessionInfo
	rows, outs []float64 // memory of the request before
}

// Answer computes the results of the rows. A request that is not whole rows, or about too many,
// is refused before memory is taken for it.
func (a *predictAnswerer) Answer(ctx context.Context, request []byte) ([]byte, error) {
	f := a.model.Forest()
	size, width := cellBytes(f), f.Width(a.what)
	rows := len(request) / (size * f.Features)
	if rows < 1 || len(request) != rows*size*f.Features || rows > blocks.MaxBytes/(8*max(1, width)) {
		return nil, fmt.Errorf("%w: request of %d bytes, want rows of %d", cluster.ErrJob, len(request), size*f.Features)
	}
	a.rows, a.outs = slices.Grow(a.rows[:0], rows*f.Features), slices.Grow(a.outs[:0], rows*width)[:rows*width]
	for b := range slices.Chunk(request, size) {
		if size == 4 {
			a.rows = append(a.rows, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		} else {
			a.rows = append(a.rows, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	}
	if err := a.model.Evaluate(ctx, a.what, a.rows, a.outs); err != nil {
		return nil, err
	}
	return appendFloats(make([]byte, 0, 8*len(a.outs)), a.outs), nil
}

// Info describes the session.
func (a *predictAnswerer) Info() cluster.SessionInfo { return a.info }

// Close frees the model.
func (a *predictAnswerer) Close() error { return a.model.Close() }
