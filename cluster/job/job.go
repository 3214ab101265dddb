package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// Version is the version of jobs in the queue. Others are refused.
const Version = 1

// maxJobBytes bounds a job in the queue; the broker's messages may be smaller.
const maxJobBytes = 8 << 20

// headerBytes is the room that the headers of a job's message take of what a message may have: its id, of MaxID bytes, and the like.
const headerBytes = 1 << 10

// Job is what lies in the queue: data only.
type Job struct {
	Version int    `json:"version"`
	ID      string `json:"id"` // of the run
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	// Config is what the kind reads. It names files by their absolute paths, and
	// Files has all of them.
	Config string    `json:"config"`
	Files  []FileRef `json:"files"`

	files  *Files // of the coordinator that does the job
	blobs  cluster.Blobs
	opened map[string]FileRef // by the path under which Open said that it can be read
}

// AddFile adds the file at path to a job that is being made, once, and returns its
// absolute path.
func (j *Job) AddFile(ctx context.Context, path string) (string, error) {
	r, err := FileAt(ctx, path)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(r.Path) { // a config and JSON would have another path
		return "", fmt.Errorf("%w: the path %.200q is not UTF-8, and a job cannot name it; rename the file or its folder", dataset.ErrSetting, r.Path)
	}
	for _, f := range j.Files {
		if f.Path == r.Path {
			return r.Path, nil
		}
	}
	j.Files = append(j.Files, r)
	return r.Path, nil
}

// Encode writes the job for a queue that takes messages of up to most bytes. An error
// matches dataset.ErrSetting.
func (j *Job) Encode(most int) ([]byte, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	if most = min(most-headerBytes, maxJobBytes); len(text) > most {
		return nil, fmt.Errorf("%w: the job has %d bytes with its config and %d files, and the queue takes %d; name fewer files or columns, or leave the queue out: pce train --cluster leads a run itself, and queries read the files here",
			dataset.ErrSetting, len(text), len(j.Files), most)
	}
	return text, nil
}

// Parse reads a job from the queue and checks what can be without its kind and its
// files. An error matches cluster.ErrJob.
func Parse(id string, text []byte) (*Job, error) {
	if len(text) > maxJobBytes {
		return nil, Bad(id, "it has %d bytes; at most %d are taken", len(text), maxJobBytes)
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, Bad(id, "it cannot be read: %v", err)
	}
	if head.Version != Version {
		return nil, Bad(id, "it has version %d, this program takes %d; use the same version of pce everywhere", head.Version, Version)
	}
	j := new(Job)
	if err := ReadJSON(text, j); err != nil {
		return nil, Bad(id, "it cannot be read: %v", err)
	}
	if j.ID != id {
		return nil, Bad(id, "it says that it is run %.80q", j.ID)
	}
	for i := range j.Files {
		if err := j.Files[i].Check(); err != nil {
			return nil, Bad(id, "%w", err)
		}
	}
	return j, nil
}

// Open returns a path under which the file that a job names can be read here: it
// lies in a root, or is a copy of what was uploaded. An error matches
// cluster.ErrJob if it will be the same next time.
func (j *Job) Open(ctx context.Context, path string) (string, error) {
	for _, r := range j.Files {
		if r.Path != path {
			continue
		}
		local, err := j.files.Open(ctx, r, j.blobs)
		switch {
		case errors.Is(err, cluster.ErrNoRecord):
			err = Bad(j.ID, "%s was uploaded and the broker does not have it; submit the job again: %w", path, err)
		case errors.Is(err, errNoRoot): // though it lies in one of each worker that was there when the job was submitted
			err = Bad(j.ID, "%w: %s %w of the coordinator; start pce cluster up with the --root of the workers, too, or submit the job with --upload", dataset.ErrSetting, path, errNoRoot)
		case errors.Is(err, dataset.ErrFormat):
			err = Bad(j.ID, "%w, and submit the job again if it has changed since", err)
		case errors.Is(err, dataset.ErrSetting) || errors.Is(err, fs.ErrNotExist):
			err = Bad(j.ID, "%w", err)
		case err == nil:
			if j.opened == nil {
				j.opened = map[string]FileRef{}
			}
			j.opened[local] = r
		}
		return local, err
	}
	return "", Bad(j.ID, "%.200s is not among its files; submit it with pce cluster submit", path)
}

// Unchanged gives an error if a file that Open has found has other contents now. It matches cluster.ErrJob.
func (j *Job) Unchanged(ctx context.Context) error {
	for local, r := range j.opened {
		now, err := FileAt(ctx, local)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && now.Digest != r.Digest {
			err = fmt.Errorf("%s has other contents; submit the job again", local)
		}
		if err != nil {
			return Bad(j.ID, "%s changed while the job read it: %w", r.Path, err)
		}
	}
	return nil
}

// Submitted returns a text with the paths under which files were submitted for those under which Open has found them here.
func (j *Job) Submitted(text string) string {
	var names []string
	for _, local := range slices.Sorted(maps.Keys(j.opened)) {
		names = append([]string{local, j.opened[local].Path}, names...) // longer ones before those that they begin with
	}
	return strings.NewReplacer(names...).Replace(text)
}

// submittedError is an error with another text.
type submittedError struct {
	error
	text string
}

func (e *submittedError) Error() string { return e.text }
func (e *submittedError) Unwrap() error { return e.error }

// Runner does jobs of a queue as their coordinator, one at a time.
type Runner struct {
	Coordinator *cluster.Coordinator
	Bus         cluster.Bus
	Kinds       Kinds
	Dir         string    // runs are written to runs/<id> in it
	Files       *Files    // what jobs may read
	Log         io.Writer // gets log lines, as the events of the run do
	// Watch is that of the Lead of each job; may be nil.
	Watch func(ctx context.Context, bus cluster.Bus) (watched context.Context, stop func())
}

// Do does a job on the workers that follow the coordinator, from where an earlier
// attempt left it. A job that cannot be done gives an error that matches
// cluster.ErrJob, and a dead letter.
func (r *Runner) Do(ctx context.Context, id string, text []byte) error {
	err := r.do(ctx, id, text)
	if errors.Is(err, cluster.ErrJob) && ctx.Err() == nil {
		reason := strings.Join(strings.Fields(TextOf(err)), " ")
		letter := cluster.DeadLetter{Run: id, Shard: -1, Reason: reason, Time: time.Now().UTC()}
		err = errors.Join(err, r.Bus.Jobs().Bury(ctx, letter))
	}
	return err
}

// Forget removes the answers of a run that has ended without a result: none of the rows is asked about in its name any more.
func (r *Runner) Forget(id string) error {
	if err := CheckID(id); err != nil {
		return nil // nothing was made for it
	}
	return removeAnswers(filepath.Join(r.Dir, "runs", id))
}

// do sees a job through: it parses what is in the queue, removes files of earlier jobs, and has
// the job's kind lead it in a directory of its own. An error that matches cluster.ErrJob means
// that trying again is of no use.
func (r *Runner) do(ctx context.Context, id string, text []byte) (err error) {
	if err := CheckID(id); err != nil {
		return Bad(id, "%w", err)
	}
	j, err := Parse(id, text)
	if err != nil {
		return err
	}
	kind, err := r.Kinds.find(id, j.Kind)
	if err != nil {
		return err
	}
	j.files, j.blobs = r.Files, r.Bus.Blobs()
	keep := map[string]bool{}
	for _, f := range j.Files {
		keep[f.Digest] = true
	}
	if err := r.Files.Prune(keep); err != nil {
		return err
	}
	l := &Lead{
		Coordinator: r.Coordinator, Bus: r.Bus, Build: run.ReadVersion().Source(), ID: id, Name: j.Name, Kind: j.Kind, Dir: filepath.Join(r.Dir, "runs", id),
		Log: NewLog(r.Log, r.Bus.Events(), id), Watch: r.Watch,
	}
	defer func() { err = errors.Join(err, l.Close(ctx, Over(ctx, err))) }()
	if err := kind.Lead(ctx, l, j); err != nil {
		return &submittedError{err, j.Submitted(err.Error())}
	}
	return nil
}
