package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/uploads"
	"github.com/pce-engine/pce/configs"
)

// submitFlags are the flags of cluster submit.
type submitFlags struct {
	cluster clusterFlags
	config  configFlags
	upload  bool
	wait    bool
	asJSON  bool
}

// submission is what cluster submit --json prints. The end of the run is known
// with --wait only.
type submission struct {
	Run      string `json:"run"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Uploaded int64  `json:"uploaded_bytes"`
	State    string `json:"state"`
	Code     *int   `json:"code,omitempty"`
	Error    string `json:"error,omitempty"`
	Out      string `json:"out,omitempty"` // on the coordinator's machine

	TrainLL       *float64 `json:"train_ll,omitempty"`
	ValidLL       *float64 `json:"valid_ll,omitempty"`
	TestLL        *float64 `json:"test_ll,omitempty"`
	RowsPerSecond *float64 `json:"rows_per_second,omitempty"`

	status cluster.RunStatus // at the end
}

// clusterSubmitCommand makes the command pce cluster submit, which puts a job into the queue,
// prints its id and, with --wait, follows it to its end.
func (a *app) clusterSubmitCommand() *cobra.Command {
	var f submitFlags
	c := &cobra.Command{
		Use:   "submit --cluster URL|@FILE --config FILE",
		Short: "Put a job into the cluster's queue; print the id of its run",
		Long: `Put a job into the cluster's queue, and print the id of its run.

The section job of the config says what is done; training, if it says nothing.
Files that lie in a --root of every worker are read there, and by cluster up, which
needs that --root, too; all others are uploaded, with --upload all.
With --wait what the run reports and how far it is go to stderr, what it came to is
printed at the end, and the exit code is the run's. pce cluster fetch gets its files.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.submit(cmd.Context(), &f) },
	}
	f.cluster.register(c.Flags())
	f.config.register(c.Flags())
	c.Flags().BoolVar(&f.upload, "upload", false, "upload all files, also those that the workers could read")
	c.Flags().BoolVar(&f.wait, "wait", false, "wait for the end of the run")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return c
}

// submit loads the config, puts the job into the queue and prints its id at once, so that it
// is known even if the command is interrupted. With --wait the error is that of the run, and
// so is the exit code.
func (a *app) submit(ctx context.Context, f *submitFlags) error {
	cfg, err := a.loadConfig(&f.config)
	if err != nil {
		return err
	}
	for _, note := range ofOneMachine(cfg) {
		if err := a.tell("note: %s", note); err != nil {
			return err
		}
	}
	o, err := f.cluster.options(ctx, "submit")
	if err != nil {
		return err
	}
	j, err := a.newJob(ctx, ownedRun(job.NewID(time.Now()), o.Credentials), cfg)
	if err != nil {
		return err
	}
	bus, err := connectBroker(ctx, o) // as @FILE may be a pipe, which is read once
	if err != nil {
		return err
	}
	defer bus.Close()
	s, err := enqueue(ctx, bus, j, cfg, f.upload)
	if err != nil {
		return err
	}
	if !f.asJSON {
		if _, err := fmt.Fprintln(a.stdout, s.Run); err != nil {
			return err
		}
	}
	var end error
	if f.wait {
		if end = s.await(ctx, bus, a.stderr); s.Code == nil {
			return end
		}
	}
	if f.asJSON {
		if err := a.printJSON(s); err != nil {
			return err
		}
	} else if f.wait && end == nil {
		if _, err := fmt.Fprintln(a.stdout, s.summary()); err != nil {
			return err
		}
	}
	return end
}

// ofOneMachine lists the settings of a job's config that members of a cluster do not read, and why.
func ofOneMachine(cfg *configs.Config) (notes []string) {
	if cfg.Device != "auto" && cfg.Device != "" {
		notes = append(notes, fmt.Sprintf("device %s is ignored: each worker computes on the device that it was started with", cfg.Device))
	}
	if cfg.Output != "runs/"+cfg.Name {
		notes = append(notes, fmt.Sprintf("output %s is ignored: the coordinator has a directory for each run, and pce cluster fetch gets its files", printable(cfg.Output)))
	}
	return notes
}

// summary says what a run came to.
func (s *submission) summary() string {
	text := "done"
	if f := figures(&s.status); f != "" {
		text += ": " + f
	}
	return text + fmt.Sprintf("; pce cluster fetch %s DIR gets its files", s.Run)
}

// enqueue uploads what the workers cannot read, and puts the job into the queue, in this
// order: who takes the job finds its files. Where a step fails, the record and the uploads are
// taken back, as far as the broker still answers; where the job may have come into the queue, its run is cancelled.
func enqueue(ctx context.Context, bus cluster.Bus, j *job.Job, cfg *configs.Config, all bool) (_ *submission, err error) {
	record, err := json.Marshal(&job.Record{RunStatus: cluster.RunStatus{
		Run: j.ID, Name: j.Name, Kind: j.Kind, State: job.StateQueued, Epochs: jobEpochs(cfg, j.Kind), Transport: cfg.Cluster.Transport,
	}})
	if err != nil {
		return nil, err
	}
	if _, err := j.Encode(bus.MaxPayload()); err != nil { // what the queue does not take is not worth an upload
		return nil, err
	}
	runs, revision, tried := bus.Bucket(cluster.RunsBucket), uint64(0), false
	defer func() {
		if err == nil {
			return
		}
		undo := context.WithoutCancel(ctx)
		call, cancel := context.WithTimeout(undo, job.PartingTime)
		defer cancel()
		switch {
		case revision != 0 && errors.Is(err, cluster.ErrUnreachable): // the job may be in the queue all the same, and have been taken
			if atOnce, e := job.RequestCancel(call, bus, j.ID, exitInterrupted); e != nil || !atOnce {
				return // who takes it removes the uploads
			}
		case revision != 0:
			if runs.Delete(call, j.ID, revision) != nil {
				return // the run stays queued and can be cancelled, or is worked on
			}
		case tried: // the record may be there although the broker has not said so, and no taker would ever come to it
			_ = cluster.Withdraw(call, runs, j.ID, record)
		}
		_ = uploads.Drop(undo, bus, j.ID)
	}()
	s := &submission{Run: j.ID, Name: j.Name, Kind: j.Kind, State: job.StateQueued}
	if s.Uploaded, err = uploadMissing(ctx, bus, j, all); err != nil {
		return nil, err
	}
	text, err := j.Encode(bus.MaxPayload())
	if err != nil {
		return nil, err
	}
	tried = true
	if revision, err = runs.Create(ctx, j.ID, record); err != nil {
		return nil, err
	}
	return s, bus.Jobs().Submit(ctx, j.ID, text)
}

// uploadMissing uploads the files of a job that some worker cannot read in its roots, or all of
// them if all is set, and returns their bytes. It is called before the job is in the queue.
// What will be uploaded is noted with the broker first, so that uploads that fail half way
// belong to a run and are dropped with it.
func uploadMissing(ctx context.Context, bus cluster.Bus, j *job.Job, all bool) (bytes int64, err error) {
	members, err := job.Members(ctx, bus)
	if err != nil {
		return 0, err
	}
	var missing []*job.FileRef
	var digests []string
	for i := range j.Files {
		file := &j.Files[i]
		if all || !job.InEveryRoot(members, file.Path) {
			missing, digests = append(missing, file), append(digests, file.Digest)
			bytes += file.Size
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}
	if err := uploads.Note(ctx, bus, j.ID, digests); err != nil {
		return 0, err
	}
	for _, file := range missing {
		if err := file.Upload(ctx, bus.Blobs(), file.Path); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

// await follows the run to its end. The code is set if it was seen; the error is
// that of the run, or of following it.
func (s *submission) await(ctx context.Context, bus cluster.Bus, w io.Writer) error {
	out := &lockedWriter{w: w}
	stop := reportProgress(ctx, bus, s.Run, out)
	_, err := (&follower{bus: bus, run: s.Run, w: out, notes: out}).print(ctx)
	stop()
	if err != nil {
		return fmt.Errorf("%w; run %s continues, pce cluster logs -f %s follows it", err, s.Run, s.Run)
	}
	r, _, err := job.GetRun(ctx, bus, s.Run)
	if err != nil {
		return err
	}
	if !r.Ended() {
		return fmt.Errorf("%w: run %s was left in state %s", cluster.ErrCluster, s.Run, r.State)
	}
	s.State, s.Code, s.Error, s.Out, s.status = r.State, &r.Code, r.Error, r.Out, r.RunStatus
	s.TrainLL, s.ValidLL, s.TestLL, s.RowsPerSecond = r.TrainLL, r.ValidLL, r.TestLL, r.RowsPerSecond
	if r.Code == exitOK {
		return nil
	}
	return &endedRun{r}
}

// endedRun is the end of a run that was not done.
type endedRun struct{ record job.Record }

// Error says how the run ended, and why if that was recorded. The exit code of the command is
// the run's, see exitCode.
func (e *endedRun) Error() string {
	text := fmt.Sprintf("run %s %s", e.record.Run, e.record.State)
	if e.record.Error != "" {
		text += ": " + e.record.Error
	}
	return text
}
