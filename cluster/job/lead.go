package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/uploads"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

const (
	// AuditFile, in the directory of a run, says who computed what.
	AuditFile = "audit.jsonl"
	// memberInterval is how often the list of members is read while too few are there.
	memberInterval = 250 * time.Millisecond
	// PartingTime bounds what is said to the broker at the end.
	PartingTime = 10 * time.Second
)

// Lead is a run that this process leads. One goroutine uses it.
type Lead struct {
	Coordinator *cluster.Coordinator
	Bus         cluster.Bus
	Build       string // of this program, which workers must share; "": unknown
	ID          string // of the run
	Name        string
	Kind        string
	Dir         string // of the run; Begin makes it
	Transport   string // tcp or nats
	Workers     int    // how many the run waits for
	Epochs      int    // of training
	ShardRows   int    // of training
	Log         *slog.Logger
	// Watch returns a context that ends, with the reason as its cause, when waiting
	// for workers has become hopeless; nil: nothing but ctx ends it.
	Watch func(ctx context.Context, bus cluster.Bus) (watched context.Context, stop func())

	run     *cluster.Run     // nil before Begin
	noted   []string         // digests of what this run has given the broker, in earlier attempts too; nil: not read yet
	gives   bool             // note was called: what the broker has for the run is this lead's to remove
	members []cluster.Member // present at the start; nil: not read yet
}

// Members are the workers that were there when Gather returned.
func (l *Lead) Members() []cluster.Member { return l.members }

// Began reports whether the run has begun and was not closed.
func (l *Lead) Began() bool { return l.run != nil }

// Gather waits until there are as many workers as the run wants, of this version of pce and
// not about to leave. It says so once, also of each worker of another version, since the run
// may be waiting for that one; then it looks after the broker's storage too, as the wait may
// be long. It ends with ctx.
func (l *Lead) Gather(ctx context.Context) error {
	refused := map[string]bool{}
	for told := false; ; told = true {
		members, err := Members(ctx, l.Bus)
		if err != nil {
			return err
		}
		l.members = slices.DeleteFunc(members, func(m cluster.Member) bool {
			why := m.Refused(l.Build)
			if why != "" && !refused[m.ID] {
				refused[m.ID] = true
				l.Log.Warn("worker takes no part", "worker", m.ID, "err", why)
			}
			return why != "" || m.Stopping
		})
		if len(l.members) >= l.Workers {
			return nil
		}
		if !told {
			l.Log.Info("waiting for workers", "want", l.Workers, "have", len(l.members))
			if l.Watch != nil {
				watched, stop := l.Watch(ctx, l.Bus)
				defer stop()
				ctx = watched
			}
		}
		select {
		case <-time.After(memberInterval):
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(cause, cluster.ErrUnreachable) {
				return cause
			}
			return ctx.Err()
		}
	}
}

// ShareFile describes the file at path to the workers, and gives it to the broker
// unless it lies in a root of every one.
func (l *Lead) ShareFile(ctx context.Context, path string) (FileRef, error) {
	r, err := FileAt(ctx, path)
	if err == nil && !InEveryRoot(l.members, r.Path) {
		if err = l.note(ctx, r.Digest); err == nil {
			err = r.Upload(ctx, l.Bus.Blobs(), r.Path)
		}
	}
	return r, err
}

// note says to the broker that this run needs contents, before they are uploaded. They are removed with the note when the run ends:
// by Close, or by the taker where the attempt that uploaded them could not know of the end.
func (l *Lead) note(ctx context.Context, digest string) (err error) {
	l.gives = true // a note that fails may be there all the same
	if l.noted == nil {
		if l.noted, err = uploads.Noted(ctx, l.Bus, ledPrefix+l.ID); err != nil {
			return err
		}
	}
	if slices.Contains(l.noted, digest) {
		return nil
	}
	all := append(slices.Clone(l.noted), digest)
	if err := uploads.Note(ctx, l.Bus, ledPrefix+l.ID, all); err != nil {
		return err
	}
	l.noted = all
	return nil
}

// publish gives the description of the run to the broker as a blob, named by its digest, and
// returns the spec that workers load it by. The blob goes when the run is over.
func (l *Lead) publish(ctx context.Context, model [32]byte, settings any, files []FileRef) (spec cluster.Spec, err error) {
	d := description{Run: l.ID, Kind: l.Kind}
	if d.Settings, err = json.Marshal(settings); err != nil {
		return spec, err
	}
	for _, f := range files {
		d.Files = append(d.Files, f.Digest)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return spec, err
	}
	digest, err := digestOf(ctx, bytes.NewReader(text))
	if err != nil {
		return spec, err
	}
	if err := l.note(ctx, digest); err != nil {
		return spec, err
	}
	if err := l.Bus.Blobs().Put(ctx, digest, bytes.NewReader(text), int64(len(text))); err != nil {
		return spec, err
	}
	body, err := json.Marshal(runBody{FileRef{Name: "description", Digest: digest, Size: int64(len(text)), Blob: true}})
	return cluster.Spec{Run: l.ID, Model: hexOf(model), Body: body}, err
}

// Begin waits for workers and for the lead of the cluster, and starts the run. It looks after the broker's storage as Gather does.
// Workers load it from settings, which are JSON of the kind's own, with a model of
// the given digest. Files are all that the settings name.
func (l *Lead) Begin(ctx context.Context, model [32]byte, settings any, files ...FileRef) error {
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return err
	}
	spec, err := l.publish(ctx, model, settings, files)
	if err != nil {
		return err
	}
	if l.Watch != nil {
		watched, stop := l.Watch(ctx, l.Bus)
		defer stop()
		ctx = watched
	}
	l.run, err = l.Coordinator.Begin(ctx, cluster.RunOptions{
		Spec:      spec,
		Build:     l.Build,
		Status:    cluster.RunStatus{Run: l.ID, Name: l.Name, Kind: l.Kind, State: StateRunning, Epochs: l.Epochs, Out: l.Dir},
		Transport: l.Transport,
		Workers:   l.Workers,
		Path:      l.earlierPath(),
		Again:     strings.HasPrefix(l.ID, LocalPrefix), // train --resume; who takes a job has seen that its run has not ended
		AuditFile: filepath.Join(l.Dir, AuditFile),
		OnWait: func(h cluster.Holder) {
			l.Log.Info("another run has the cluster, waiting for it", "run", h.Run, "host", h.Host, "pid", h.PID)
		},
		OnFew: func(have, want int) {
			l.Log.Info("waiting for workers", "want", want, "have", have)
		},
		OnSpare: func(shards, workers int) {
			l.Log.Warn("a step has fewer shards than there are workers, so some have nothing to do; a new run with fewer rows per shard would use all of them",
				"shards", shards, "workers", workers, "shard_rows", l.ShardRows)
		},
		OnUnfit: func(worker, why string) {
			l.Log.Warn("worker takes no part", "worker", worker, "err", why)
		},
	})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, cluster.ErrUnreachable) {
		return cause
	}
	return err
}

// earlierPath returns the kernel path of an earlier part of the run, "" if there
// is none.
func (l *Lead) earlierPath() string {
	for _, f := range em.LastFingerprint(filepath.Join(l.Dir, run.CheckpointDir)) {
		if f.Name == run.KernelPathFact {
			return f.Value
		}
	}
	return ""
}

// kernels describes what the workers have in common that the run began with.
func (l *Lead) kernels() kernels.Info {
	path := l.run.Path()
	for _, m := range l.members {
		if path != "" && slices.Contains(m.Paths, path) {
			return kernels.Info{Name: m.Device, KernelPath: path}
		}
	}
	return kernels.Info{Name: mixedKernels, KernelPath: mixedKernels}
}

// Update changes the status of the run. Before Begin it does nothing.
func (l *Lead) Update(change func(*cluster.RunStatus)) {
	if l.run != nil {
		l.run.Update(change)
	}
}

// Status returns the status of the run; none before Begin.
func (l *Lead) Status() (s cluster.RunStatus) {
	l.Update(func(now *cluster.RunStatus) { s = *now })
	return s
}

// Close lets go of the workers. What only this run needs is removed from the
// broker if the run is over, unless this lead has given it nothing: a process that finds the
// directory in use must not take away what the one that uses it has given.
func (l *Lead) Close(ctx context.Context, over bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), PartingTime)
	defer cancel()
	var err error
	if l.run != nil {
		err = l.run.Close(ctx)
		l.run = nil
	}
	if over && l.gives {
		var e error
		if len(l.noted) > 0 { // who cancelled the run may have removed the note before all had come
			e = uploads.Note(ctx, l.Bus, ledPrefix+l.ID, l.noted)
		}
		if e == nil {
			e = uploads.Drop(ctx, l.Bus, ledPrefix+l.ID)
		}
		if e != nil { // the note keeps what is left
			l.Log.Warn("what was uploaded for the run was not removed", "err", e)
		}
		l.noted, l.gives = nil, false
	}
	return err
}

// eventWriter publishes what is written to it, a line a call, as events of a run.
type eventWriter struct {
	events cluster.Events
	run    string
}

func (w eventWriter) Write(line []byte) (int, error) {
	return len(line), w.events.Publish(w.run, bytes.TrimSuffix(line, []byte("\n")))
}

// NewLog returns a log to w, without times, and as JSON to the events of a run.
func NewLog(w io.Writer, events cluster.Events, run string) *slog.Logger {
	withoutTime := func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 && attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return attr
	}
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: withoutTime}),
		slog.NewJSONHandler(eventWriter{events, run}, nil),
	))
}
