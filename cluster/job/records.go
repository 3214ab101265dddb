package job

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/internal/periodic"
)

// States of a run, as cluster.RunStatus has them.
const (
	StateQueued      = "queued"
	StateRunning     = "running"
	StateDone        = "done"
	StateFailed      = "failed"
	StateCancelled   = "cancelled"
	StateInterrupted = "interrupted"
)

// Record is a record of cluster.RunsBucket: the status of a run, and how it
// ended.
type Record struct {
	cluster.RunStatus
	Code int `json:"code"` // exit code of the class of Error
}

// Ended reports whether nothing more will happen to the run.
func (r *Record) Ended() bool {
	return r.State == StateDone || r.State == StateFailed || r.State == StateCancelled
}

// What begins the keys of records in cluster.RunsBucket that are kept apart from the
// status of a run, because its writer does not read them.
const (
	CancelPrefix  = "cancel-"  // a request to end it
	UploadsPrefix = "uploads-" // what was uploaded for it, as digests
	AsksPrefix    = "ask-"     // the name of a request for its files. Only the owner of a run may write it, so only its requests are answered
	FilesPrefix   = "files-"   // the answer to such a request
)

// IsSideRecord reports whether a key of cluster.RunsBucket is that of a record beside
// the status of a run.
func IsSideRecord(key string) bool {
	return strings.HasPrefix(key, CancelPrefix) || strings.HasPrefix(key, UploadsPrefix) || strings.HasPrefix(key, FilesPrefix) ||
		strings.HasPrefix(key, AsksPrefix)
}

const (
	// removalKey is the record of cluster.LeadBucket that who removes uploads keeps meanwhile: a
	// cluster.Holder with a name of its own. It vanishes when that process dies.
	removalKey = "uploads"
	// removalInterval is how often that record is renewed, and looked at by those who wait for
	// the end of a removal. The lease of the bucket is a second at least.
	removalInterval = 250 * time.Millisecond
	// removalsAtOnce is how many contents are removed at a time: each takes two round trips.
	removalsAtOnce = 16
	// listTime bounds the reading of all notes, which takes a round trip for each run.
	listTime = time.Minute
)

// MaxID bounds the length of a run's id.
const MaxID = 64

// NewID makes an id; ids sort by the time at which they were made.
func NewID(now time.Time) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:])
}

// CheckID refuses what cannot be the id of a run.
func CheckID(id string) error {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if id == "" || len(id) > MaxID || IsSideRecord(id) || strings.ContainsFunc(id, odd) {
		return fmt.Errorf("%w: %.80q is not the ID of a run; pce cluster status lists them", ErrNoRun, id)
	}
	return nil
}

// GetRun reads the record of a run.
func GetRun(ctx context.Context, bus cluster.Bus, id string) (Record, uint64, error) {
	var r Record
	if err := CheckID(id); err != nil {
		return r, 0, err
	}
	rec, err := bus.Bucket(cluster.RunsBucket).Get(ctx, id)
	if errors.Is(err, cluster.ErrNoRecord) {
		return r, 0, fmt.Errorf("%w: the cluster has no run %s; pce cluster status lists them", ErrNoRun, id)
	}
	if err != nil {
		return r, 0, err
	}
	if err := json.Unmarshal(rec.Value, &r); err != nil {
		return r, 0, fmt.Errorf("%w: the record of run %s cannot be read: %v", cluster.ErrCluster, id, err)
	}
	return r, rec.Revision, nil
}

// PutRun replaces the record of a run.
func PutRun(ctx context.Context, bus cluster.Bus, r *Record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = bus.Bucket(cluster.RunsBucket).Put(ctx, r.Run, value)
	return err
}

// ListRuns reads the records of all runs.
func ListRuns(ctx context.Context, bus cluster.Bus) ([]Record, error) {
	records, err := bus.Bucket(cluster.RunsBucket).List(ctx)
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, rec := range records {
		if IsSideRecord(rec.Key) {
			continue
		}
		var r Record
		if err := json.Unmarshal(rec.Value, &r); err != nil {
			return nil, fmt.Errorf("%w: the record of run %s cannot be read: %v; is another version of pce in the cluster?", cluster.ErrCluster, rec.Key, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// NoteUploads says that a run needs contents, before they are uploaded. It waits for the end of
// a removal that began earlier, which may not have seen the note: until then contents that seem
// to be there may be about to go.
func NoteUploads(ctx context.Context, bus cluster.Bus, id string, digests []string) error {
	if err := putUploads(ctx, bus, id, digests); err != nil {
		return err
	}
	for first := ""; ; {
		r, err := bus.Bucket(cluster.LeadBucket).Get(ctx, removalKey)
		var h cluster.Holder
		switch {
		case errors.Is(err, cluster.ErrNoRecord):
			return nil
		case err != nil:
			return err
		case json.Unmarshal(r.Value, &h) != nil || first != "" && h.ID != first:
			return nil // the next removal has seen the note
		}
		first = h.ID
		select {
		case <-time.After(removalInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func putUploads(ctx context.Context, bus cluster.Bus, id string, digests []string) error {
	value, err := json.Marshal(digests)
	if err != nil {
		return err
	}
	_, err = bus.Bucket(cluster.RunsBucket).Put(ctx, UploadsPrefix+id, value)
	return err
}

// DropUploads removes what was uploaded for a run that has ended, unless another run needs it.
// However much that is, it continues as long as the broker carries out what it is asked: each
// request has a time of its own. It may be called again: contents go first and the note of them
// last, and after a failure the note has those that are left.
func DropUploads(ctx context.Context, bus cluster.Bus, id string) (err error) {
	runs := bus.Bucket(cluster.RunsBucket)
	err = within(ctx, PartingTime, func(ctx context.Context) error {
		_, err := runs.Get(ctx, UploadsPrefix+id)
		return err
	})
	if errors.Is(err, cluster.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, release, err := beginRemoval(ctx, bus.Bucket(cluster.LeadBucket))
	if err != nil {
		return err
	}
	defer release()
	var own []string
	err = within(ctx, listTime, func(ctx context.Context) (err error) {
		own, err = neededBy(ctx, runs, id)
		return err
	})
	if err != nil {
		return err
	}
	if left, err := deleteAll(ctx, bus.Blobs(), own); err != nil {
		note := within(context.WithoutCancel(ctx), PartingTime, func(ctx context.Context) error { return putUploads(ctx, bus, id, left) })
		return errors.Join(err, note)
	}
	return within(ctx, PartingTime, func(ctx context.Context) error {
		if err := runs.Delete(ctx, UploadsPrefix+id, 0); !errors.Is(err, cluster.ErrNoRecord) {
			return err
		}
		return nil
	})
}

// within calls do with a context that ends after a limit.
func within(ctx context.Context, limit time.Duration, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// beginRemoval waits until no other process removes uploads, and says that this process does, until
// release is called. The context that it returns ends when that is lost, as after a time without
// the broker: then those who need contents do not wait any more.
func beginRemoval(parent context.Context, bucket cluster.Bucket) (ctx context.Context, release func(), err error) {
	value, err := json.Marshal(cluster.Holder{ID: "removal-" + strings.ToLower(rand.Text())})
	if err != nil {
		return nil, nil, err
	}
	var revision uint64
	for {
		err := within(parent, PartingTime, func(ctx context.Context) (err error) {
			revision, err = bucket.Create(ctx, removalKey, value)
			return err
		})
		if err == nil {
			break
		}
		if !errors.Is(err, cluster.ErrConflict) {
			return nil, nil, err
		}
		select {
		case <-time.After(removalInterval):
		case <-parent.Done():
			return nil, nil, context.Cause(parent)
		}
	}
	ctx, cancel := context.WithCancelCause(parent)
	stop := periodic.Start(ctx, removalInterval, func(call context.Context) {
		next, err := bucket.Update(call, removalKey, value, revision)
		switch {
		case err == nil:
			revision = next
		case errors.Is(err, cluster.ErrConflict):
			cancel(fmt.Errorf("%w: the right to remove uploads was lost", cluster.ErrUnreachable))
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
		// If this fails the record vanishes by itself.
		_ = within(context.WithoutCancel(parent), PartingTime, func(ctx context.Context) error { return bucket.Delete(ctx, removalKey, revision) })
	}, nil
}

// neededBy returns the contents that the note of a run has and no other.
func neededBy(ctx context.Context, runs cluster.Bucket, id string) (own []string, err error) {
	records, err := runs.List(ctx)
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, rec := range records {
		run, ok := strings.CutPrefix(rec.Key, UploadsPrefix)
		if !ok {
			continue
		}
		var digests []string
		if err := json.Unmarshal(rec.Value, &digests); err != nil {
			return nil, fmt.Errorf("%w: the record %s cannot be read: %v", cluster.ErrCluster, rec.Key, err)
		}
		if run == id {
			own = digests
			continue
		}
		for _, d := range digests {
			others[d] = true
		}
	}
	return slices.DeleteFunc(own, func(d string) bool { return others[d] }), nil
}

// deleteAll removes contents, some at a time, and returns those that are left after an error.
func deleteAll(ctx context.Context, blobs cluster.Blobs, digests []string) (left []string, err error) {
	var mu sync.Mutex // guards left, err and digests
	var removers sync.WaitGroup
	for range min(removalsAtOnce, len(digests)) {
		removers.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for len(digests) > 0 && err == nil {
				d := digests[0]
				digests = digests[1:]
				mu.Unlock()
				e := within(ctx, PartingTime, func(ctx context.Context) error { return blobs.Delete(ctx, d) })
				mu.Lock()
				if e != nil && !errors.Is(e, cluster.ErrNoRecord) {
					left, err = append(left, d), e
				}
			}
		})
	}
	removers.Wait()
	return append(left, digests...), err
}

// Records decodes a bucket of a cluster.
func Records[T any](ctx context.Context, b cluster.Bucket) ([]T, error) {
	records, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(records))
	for i, r := range records {
		if err := json.Unmarshal(r.Value, &out[i]); err != nil {
			return nil, fmt.Errorf("%w: record %s cannot be read: %v; is another version of pce in the cluster?", cluster.ErrCluster, r.Key, err)
		}
	}
	return out, nil
}

// Members lists the workers of a cluster.
func Members(ctx context.Context, bus cluster.Bus) ([]cluster.Member, error) {
	return Records[cluster.Member](ctx, bus.Bucket(cluster.MembersBucket))
}

// InEveryRoot reports whether a path lies in a root of every member; false if
// there are none, as those to come are not known, or if a link leads out of the root, as far
// as it is to be seen here.
func InEveryRoot(members []cluster.Member, path string) bool {
	for _, m := range members {
		root, rel, ok := inRoot(m.Roots, path)
		if !ok || leadsOut(root, rel) {
			return false
		}
	}
	return len(members) > 0
}

// leadsOut reports whether a file in a root that this machine has too cannot be opened from there.
func leadsOut(root, rel string) bool {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = dir.Stat(rel)
	return err != nil
}
