package job

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/pce-engine/pce/cluster"
)

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
		reason := strings.Join(strings.Fields(err.Error()), " ")
		letter := cluster.DeadLetter{Run: id, Shard: -1, Reason: reason, Time: time.Now().UTC()}
		err = errors.Join(err, r.Bus.Jobs().Bury(ctx, letter))
	}
	return err
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
		Coordinator: r.Coordinator, Bus: r.Bus, ID: id, Name: j.Name, Kind: j.Kind, Dir: filepath.Join(r.Dir, "runs", id),
		Log: NewLog(r.Log, r.Bus.Events(), id), Watch: r.Watch,
	}
	defer func() { err = errors.Join(err, l.Close(ctx, Over(ctx, err))) }()
	return kind.Lead(ctx, l, j)
}
