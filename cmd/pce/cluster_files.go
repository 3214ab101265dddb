package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/uploads"
)

const (
	// filesAddress is where coordinators hear of those who want the files of a run.
	filesAddress = "c-files"
	// filesKept is how long the broker keeps files for a client that says neither that they are
	// coming nor that they have come.
	filesKept = 10 * time.Minute
	// filesBeat is the time between two words of a coordinator that is preparing files.
	filesBeat = 5 * time.Second
	// maxGiving is of how many runs files are uploaded at a time, and maxWaiting of how many they are prepared, those that wait for that
	// among them.
	maxGiving, maxWaiting = 8, 256
)

// filesRequest asks for the files of a run that has ended. It is repeated until it is
// answered.
type filesRequest struct {
	Run  string `json:"run"`
	Ask  string `json:"ask"`  // names the request
	Done bool   `json:"done"` // the files have come
	// Fetching says, now and then, that the answer was heard and that the files are coming.
	Fetching bool `json:"fetching,omitempty"`
}

// filesAnswer is a record of cluster.RunsBucket.
type filesAnswer struct {
	Ask   string        `json:"ask"`
	Also  []string      `json:"also,omitempty"` // requests of other clients that it answers too: they have one record
	Beat  int           `json:"beat"`           // counted up while files are prepared
	Ready bool          `json:"ready"`
	Files []job.FileRef `json:"files,omitempty"`
	Error string        `json:"error,omitempty"`
}

// fileGiver gives the files of runs that this coordinator has led to clients, by way
// of the broker.
type fileGiver struct {
	bus  cluster.Bus
	id   string // of the coordinator
	dir  string // runs are in runs/<id> in it
	log  *slog.Logger
	asks chan filesRequest

	given map[string]map[string]time.Time // run → request → when it was last heard of, once it was answered and until its files have come
	last  map[string]string               // run → request that the record answers
	busy  map[string]bool                 // runs whose files are being prepared or removed
	ended chan func()                     // what to do in the loop when that is over
	turns chan struct{}                   // has room for those who upload
	bg    sync.WaitGroup
}

// serveFiles answers requests for the files of runs below dir until stop is called or ctx
// ends; cluster up calls it beside the coordinator of that id. Messages that cannot be read are ignored,
// and so are requests beyond the queue, since a client repeats its request until it is
// answered.
func serveFiles(ctx context.Context, bus cluster.Bus, id, dir string, log *slog.Logger) (stop func(), err error) {
	g := &fileGiver{
		bus: bus, id: id, dir: dir, log: log, asks: make(chan filesRequest, 16), ended: make(chan func()), turns: make(chan struct{}, maxGiving),
		given: map[string]map[string]time.Time{}, last: map[string]string{}, busy: map[string]bool{},
	}
	deaf, err := bus.Listen(filesAddress, func(message []byte) {
		var r filesRequest
		if json.Unmarshal(message, &r) != nil || job.CheckID(r.Run) != nil {
			return
		}
		select {
		case g.asks <- r:
		default: // it comes again
		}
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.loop(ctx)
	}()
	return func() {
		deaf()
		cancel()
		<-done
	}, nil
}

// loop is the goroutine that owns the fileGiver's state. Files are prepared and removed beside it, those of a run by one goroutine at a
// time: a large run holds up no other. Uploads go when no client that fetches them was heard for filesKept. Requests for runs that do not
// lie here are left to the coordinator that has them.
func (g *fileGiver) loop(ctx context.Context) {
	defer g.bg.Wait()
	g.sweep(ctx)
	tick := time.NewTicker(filesKept / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case then := <-g.ended:
			then()
		case <-tick.C:
			for run, asks := range g.given {
				for ask, at := range asks {
					if time.Since(at) > filesKept {
						g.came(ctx, run, ask)
					}
				}
			}
		case r := <-g.asks:
			_, err := os.Stat(g.runDir(r.Run))
			switch {
			case err != nil: // another coordinator has it, or none
			case r.Done:
				g.came(ctx, r.Run, r.Ask)
			case r.Fetching:
				if _, ok := g.given[r.Run][r.Ask]; ok {
					g.given[r.Run][r.Ask] = time.Now()
				}
			case g.busy[r.Run] || len(g.busy) >= maxWaiting: // it comes again
			case g.last[r.Run] != r.Ask && g.given[r.Run][r.Ask].IsZero() && g.asked(ctx, r): // else the answer is there
				others := slices.Sorted(maps.Keys(g.given[r.Run]))
				g.beside(ctx, r.Run, func() (then func()) {
					answered := g.answer(ctx, r, others)
					return func() { g.answered(ctx, r, answered) }
				})
			}
		}
	}
}

// beside does something for a run in a goroutine of its own, then the rest in the loop.
func (g *fileGiver) beside(ctx context.Context, run string, do func() (then func())) {
	g.busy[run] = true
	g.bg.Go(func() {
		then := do()
		select {
		case g.ended <- func() { delete(g.busy, run); then() }:
		case <-ctx.Done(): // so is the loop
		}
	})
}

// answered takes note of a request that was answered. What was uploaded for one that could not be is removed, unless others fetch it.
func (g *fileGiver) answered(ctx context.Context, r filesRequest, ok bool) {
	if ok {
		if g.given[r.Run] == nil {
			g.given[r.Run] = map[string]time.Time{}
		}
		g.given[r.Run][r.Ask], g.last[r.Run] = time.Now(), r.Ask
	}
	g.tidy(ctx, r.Run)
}

// asked reports whether the owner of a run has made a request, which this coordinator is to answer.
func (g *fileGiver) asked(ctx context.Context, r filesRequest) bool {
	call, cancel := context.WithTimeout(ctx, job.PartingTime)
	defer cancel()
	rec, err := g.bus.Bucket(cluster.RunsBucket).Get(call, job.AsksPrefix+r.Run)
	return err == nil && string(rec.Value) == r.Ask && !g.takenOver(call, r.Run)
}

// takenOver reports whether another coordinator has led a run after this one, or may have, as the record cannot be read now. What lies
// here is then what this one had come to, and lacks the results.
func (g *fileGiver) takenOver(ctx context.Context, run string) bool {
	r, _, err := job.GetRun(ctx, g.bus, run)
	return err != nil && !errors.Is(err, job.ErrNoRun) || r.Lead != "" && r.Lead != g.id
}

// came takes note that a client has the files of a run, or has stopped waiting. The last of
// them makes the broker forget them.
func (g *fileGiver) came(ctx context.Context, run, ask string) {
	if _, ok := g.given[run][ask]; !ok {
		return
	}
	delete(g.given[run], ask)
	g.tidy(ctx, run)
}

// tidy makes the broker forget the files of a run that no client fetches.
func (g *fileGiver) tidy(ctx context.Context, run string) {
	if len(g.given[run]) > 0 || g.busy[run] {
		return
	}
	delete(g.given, run)
	delete(g.last, run)
	g.beside(ctx, run, func() (then func()) {
		g.drop(ctx, run)
		return func() {}
	})
}

func (g *fileGiver) runDir(run string) string { return filepath.Join(g.dir, "runs", run) }

// answer uploads the files of a run and says so in its record. While the upload lasts it
// writes a beat, by which the client tells slow from dead. A failure is put into the record;
// where even that fails the result is false, and the client asks again. The record stays the answer to the requests of others, who may
// not have seen theirs yet.
func (g *fileGiver) answer(ctx context.Context, r filesRequest, others []string) bool {
	answer := filesAnswer{Ask: r.Ask, Also: others}
	put := func() error {
		text, err := json.Marshal(&answer)
		if err != nil {
			return err
		}
		_, err = g.bus.Bucket(cluster.RunsBucket).Put(ctx, job.FilesPrefix+r.Run, text)
		return err
	}
	if err := put(); err != nil {
		g.log.Warn("a request for files was not answered", "run", r.Run, "err", err)
		return false
	}
	uploaded := make(chan error, 1)
	var files []job.FileRef
	go func() {
		var err error
		files, err = g.upload(ctx, r.Run)
		uploaded <- err
	}()
	beat := time.NewTicker(filesBeat)
	defer beat.Stop()
	for !answer.Ready {
		select {
		case err := <-uploaded:
			answer.Ready, answer.Files = true, files
			if err != nil {
				answer.Files, answer.Error = nil, oneLine(job.TextOf(err))
			}
		case <-beat.C:
			answer.Beat++
		}
		if err := put(); err != nil {
			g.log.Warn("a request for files was not answered", "run", r.Run, "err", err)
			if !answer.Ready {
				<-uploaded
			}
			return false
		}
	}
	return true
}

// upload gives the broker what the directory of a run holds: its results, and not
// its checkpoints, which are of use to its coordinator alone. It waits for its turn.
func (g *fileGiver) upload(ctx context.Context, run string) ([]job.FileRef, error) {
	select {
	case g.turns <- struct{}{}:
		defer func() { <-g.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	record, _, err := job.GetRun(ctx, g.bus, run)
	if err != nil {
		return nil, err
	}
	if !record.Ended() {
		return nil, fmt.Errorf("%w: run %s is %s", cluster.ErrCluster, run, record.State)
	}
	entries, err := os.ReadDir(g.runDir(run))
	if err != nil {
		return nil, err
	}
	var files []job.FileRef
	var digests []string
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") || e.Name() == job.AnswersFile || e.Name() == job.JournalFile {
			continue
		}
		f, err := job.FileAt(ctx, filepath.Join(g.runDir(run), e.Name()))
		if err != nil {
			return nil, err
		}
		files, digests = append(files, f), append(digests, f.Digest)
	}
	if err := uploads.Note(ctx, g.bus, job.FilesPrefix+run, digests); err != nil {
		return nil, err
	}
	for i := range files {
		path := files[i].Path
		if err := files[i].Upload(ctx, g.bus.Blobs(), path); err != nil {
			return nil, err
		}
		files[i].Path = "" // it means nothing elsewhere
	}
	return files, nil
}

// drop removes the files of a run from the broker.
func (g *fileGiver) drop(ctx context.Context, run string) {
	err := uploads.Drop(ctx, g.bus, job.FilesPrefix+run)
	for _, prefix := range []string{job.FilesPrefix, job.AsksPrefix} {
		if err == nil {
			err = g.bus.Bucket(cluster.RunsBucket).Delete(ctx, prefix+run, 0)
		}
	}
	if err != nil && !errors.Is(err, cluster.ErrNoRecord) && ctx.Err() == nil {
		g.log.Warn("files for a client were not removed from the broker", "run", run, "err", err)
	}
}

// sweep removes what an earlier life has left with the broker.
func (g *fileGiver) sweep(ctx context.Context) {
	records, err := g.bus.Bucket(cluster.RunsBucket).List(ctx)
	if err != nil {
		return // what is left is dropped by the next life
	}
	for _, r := range records {
		if run, ok := strings.CutPrefix(r.Key, job.FilesPrefix); ok {
			if _, err := os.Stat(g.runDir(run)); err == nil && !g.takenOver(ctx, run) {
				g.drop(ctx, run)
			}
		}
	}
}
