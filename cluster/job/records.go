package job

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/uploads"
)

// States of a run, as cluster.RunStatus has them.
const (
	StateQueued      = "queued"
	StateRunning     = "running"
	StateDone        = cluster.StateDone
	StateFailed      = cluster.StateFailed
	StateCancelled   = cluster.StateCancelled
	StateInterrupted = cluster.StateInterrupted
	StateUnreadable  = "unreadable" // of ListRuns alone: nothing is known of the run
)

// Record is a record of cluster.RunsBucket: the status of a run, and how it
// ended.
type Record struct {
	cluster.RunStatus
	Code int `json:"code"` // exit code of the class of Error
}

// What begins the keys of records in cluster.RunsBucket that are kept apart from the
// status of a run, because its writer does not read them.
const (
	CancelPrefix = "cancel-" // a request to end it
	AsksPrefix   = "ask-"    // the name of a request for its files. Only the owner of a run may write it, so only its requests are answered
	FilesPrefix  = "files-"  // the answer to such a request
	begunPrefix  = "begun-"  // that a taker leads it
)

// ledPrefix is before the id of a run in the id of the note of what its leads have uploaded; that of who submitted it has the id alone. No
// id of a run begins so.
const ledPrefix = uploads.Prefix + "led-"

// IsSideRecord reports whether a key of cluster.RunsBucket is that of a record beside
// the status of a run.
func IsSideRecord(key string) bool {
	return strings.HasPrefix(key, CancelPrefix) || strings.HasPrefix(key, uploads.Prefix) || strings.HasPrefix(key, FilesPrefix) ||
		strings.HasPrefix(key, AsksPrefix) || strings.HasPrefix(key, begunPrefix)
}

// LocalPrefix begins the ids of runs that do not come from the queue: pce train --cluster leads them.
const LocalPrefix = "train-"

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

// errUnreadable says that a record is there and is not what this version reads.
var errUnreadable = errors.New("cannot be read")

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
		return Record{}, 0, fmt.Errorf("%w: the record of run %s %w: %v", cluster.ErrCluster, id, errUnreadable, err)
	}
	return r, rec.Revision, nil
}

// PutRun replaces the record of a run.
func PutRun(ctx context.Context, bus cluster.Bus, r *Record) error {
	return putRunAt(ctx, bus, r, 0)
}

// putRunAt replaces the record of a run that has a revision, and matches cluster.ErrConflict if the newest is another; 0: any.
func putRunAt(ctx context.Context, bus cluster.Bus, r *Record, revision uint64) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	runs := bus.Bucket(cluster.RunsBucket)
	if revision == 0 {
		_, err = runs.Put(ctx, r.Run, value)
	} else {
		_, err = runs.Update(ctx, r.Run, value, revision)
	}
	return err
}

// ListRuns reads the records of all runs. One that cannot be read, as of another version of pce, is in StateUnreadable, with the reason as
// its error, and hides no other.
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
			r = Record{RunStatus: cluster.RunStatus{Run: rec.Key, State: StateUnreadable, Error: unreadable(err)}}
		}
		out = append(out, r)
	}
	return out, nil
}

// unreadable is what is said of a record that cannot be read.
func unreadable(err error) string {
	return fmt.Sprintf("its record cannot be read: %v; is another version of pce in the cluster?", err)
}

// Members lists the workers of a cluster. One whose record cannot be read has its ID and the trouble alone, and no run takes it.
func Members(ctx context.Context, bus cluster.Bus) ([]cluster.Member, error) {
	records, err := bus.Bucket(cluster.MembersBucket).List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]cluster.Member, len(records))
	for i, r := range records {
		if err := json.Unmarshal(r.Value, &out[i]); err != nil {
			out[i] = cluster.Member{ID: r.Key, Trouble: unreadable(err)}
		}
	}
	return out, nil
}

// InEveryRoot reports whether a path lies in a root of every member; false if
// there are none, as those to come are not known, or if a link leads out of the root, as far
// as it is to be seen here. A path that is not UTF-8 lies in none, as members are told paths in JSON.
func InEveryRoot(members []cluster.Member, path string) bool {
	if !utf8.ValidString(path) {
		return false
	}
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
