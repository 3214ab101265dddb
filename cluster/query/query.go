package query

import (
	"context"
	"io"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
)

// Job is a job over the rows of a model.
type Job struct {
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

// Kind is a kind of job over the rows of a model: what its workers load, what
// they are asked, and what becomes of their answers.
type Kind interface {
	// Load makes a session that answers the questions.
	Load(ctx context.Context, in *job.Loading) (cluster.Session, error)
	// Result is the name of the file that the job makes in the directory of its run.
	Result(q *Job) string
	// Open opens the model of a job on its coordinator, which computes nothing with it. An
	// error is the job's fault.
	Open(ctx context.Context, q *Job) (Subject, error)
}

// Subject is the model of a job over rows, a circuit or a forest, as the coordinator sees it.
type Subject interface {
	// Digest tells what the workers must compute with.
	Digest() [32]byte
	// Settings returns what the kind's Load decodes. It shares the files that they name, those
	// of the query: the model is one of them.
	Settings(share func(path string) (job.FileRef, error)) (any, error)
	// Questions returns those of the job, in requests of about most bytes. The answers may have
	// as many. An error is the job's fault.
	Questions(ctx context.Context, most int) (job.Questions, error)
	// Answers returns what becomes of the answers. Questions has succeeded before.
	Answers(l *job.Lead) job.Answers
	Close() error
}

// Kinds are the kinds of jobs over the rows of a model that there are.
func Kinds() map[string]Kind {
	kinds := map[string]Kind{Predict: predictKind{}}
	for name, kind := range circuitKinds() {
		kinds[name] = ofCircuit{kind}
	}
	return kinds
}

// Do asks the workers about all rows of a job, and writes the result. It does nothing if the
// result is there, so a lead that takes the job again after the end is harmless. What is wrong
// with the job, such as a model that cannot be read, matches cluster.ErrJob, and the job is not
// tried again.
func Do(ctx context.Context, l *job.Lead, kind Kind, q *Job) error {
	if done, err := l.Answered(kind.Result(q)); done || err != nil {
		return err
	}
	subject, err := kind.Open(ctx, q)
	if err != nil {
		return job.Bad(l.ID, "%w", err)
	}
	defer subject.Close()
	questions, err := subject.Questions(ctx, l.Bus.MaxPayload()/2)
	if err != nil {
		return job.Bad(l.ID, "%w", err)
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
	var files []job.FileRef
	settings, err := subject.Settings(func(path string) (job.FileRef, error) {
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

// unchanged are answers of which no result is written if a file was changed while its rows were read.
type unchanged struct {
	job.Answers
	query *Job
}

func (u unchanged) Write(ctx context.Context, path string, kept io.Reader, rows int64) error {
	if err := u.query.Unchanged(ctx); err != nil {
		return err
	}
	return u.Answers.Write(ctx, path, kept, rows)
}
