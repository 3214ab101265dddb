package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/natsbus"
)

// States of a run, as cluster.RunStatus has them.
const (
	stateQueued      = "queued"
	stateRunning     = "running"
	stateDone        = "done"
	stateFailed      = "failed"
	stateCancelled   = "cancelled"
	stateInterrupted = "interrupted"
)

// runRecord is a record of cluster.RunsBucket: the status of a run, and how it
// ended.
type runRecord struct {
	cluster.RunStatus
	Code int `json:"code"` // exit code of the class of Error
}

// ended reports whether nothing more will happen to the run.
func (r *runRecord) ended() bool {
	return r.State == stateDone || r.State == stateFailed || r.State == stateCancelled
}

// cancelPrefix begins the keys of requests in cluster.RunsBucket. They stand
// apart from the status because its writer does not read it.
const cancelPrefix = "cancel-"

// uploadsPrefix begins the keys of records in cluster.RunsBucket that list what was
// uploaded for a run, as digests.
const uploadsPrefix = "uploads-"

// ownedRun returns the id of a run of the client that has these credentials. Only that
// one may write what belongs to the run.
func ownedRun(id, credentials string) string { return id + "-" + natsbus.ClientName(credentials) }

// isSideRecord reports whether a key of cluster.RunsBucket is that of a record beside
// the status of a run.
func isSideRecord(key string) bool {
	return strings.HasPrefix(key, cancelPrefix) || strings.HasPrefix(key, uploadsPrefix) || strings.HasPrefix(key, filesPrefix) ||
		strings.HasPrefix(key, asksPrefix)
}

// maxRunID bounds the length of a run's id.
const maxRunID = 64

// newRunID makes an id; ids sort by the time at which they were made.
func newRunID(now time.Time) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:])
}

// checkRunID refuses what cannot be the id of a run.
func checkRunID(id string) error {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if id == "" || len(id) > maxRunID || isSideRecord(id) || strings.ContainsFunc(id, odd) {
		return usagef("%.80q is no id of a run; pce cluster status lists them", id)
	}
	return nil
}

// getRun reads the record of a run.
func getRun(ctx context.Context, bus cluster.Bus, id string) (runRecord, uint64, error) {
	var r runRecord
	if err := checkRunID(id); err != nil {
		return r, 0, err
	}
	rec, err := bus.Bucket(cluster.RunsBucket).Get(ctx, id)
	if errors.Is(err, cluster.ErrNoRecord) {
		return r, 0, usagef("the cluster knows no run %s; pce cluster status lists them", id)
	}
	if err != nil {
		return r, 0, err
	}
	if err := json.Unmarshal(rec.Value, &r); err != nil {
		return r, 0, fmt.Errorf("%w: the record of run %s cannot be read: %v", cluster.ErrCluster, id, err)
	}
	return r, rec.Revision, nil
}

// putRun replaces the record of a run.
func putRun(ctx context.Context, bus cluster.Bus, r *runRecord) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = bus.Bucket(cluster.RunsBucket).Put(ctx, r.Run, value)
	return err
}

// listRuns reads the records of all runs.
func listRuns(ctx context.Context, bus cluster.Bus) ([]runRecord, error) {
	records, err := bus.Bucket(cluster.RunsBucket).List(ctx)
	if err != nil {
		return nil, err
	}
	var out []runRecord
	for _, rec := range records {
		if isSideRecord(rec.Key) {
			continue
		}
		var r runRecord
		if err := json.Unmarshal(rec.Value, &r); err != nil {
			return nil, fmt.Errorf("%w: the record of run %s cannot be read: %v; is another version of pce in the cluster?", cluster.ErrCluster, rec.Key, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// noteUploads says that a run needs contents, before they are uploaded.
func noteUploads(ctx context.Context, bus cluster.Bus, id string, digests []string) error {
	value, err := json.Marshal(digests)
	if err != nil {
		return err
	}
	_, err = bus.Bucket(cluster.RunsBucket).Put(ctx, uploadsPrefix+id, value)
	return err
}

// dropUploads removes what was uploaded for a run that has ended, unless another
// run needs it.
func dropUploads(ctx context.Context, bus cluster.Bus, id string) error {
	bucket := bus.Bucket(cluster.RunsBucket)
	records, err := bucket.List(ctx)
	if err != nil {
		return err
	}
	var own []string
	others := map[string]bool{}
	for _, rec := range records {
		run, ok := strings.CutPrefix(rec.Key, uploadsPrefix)
		if !ok {
			continue
		}
		var digests []string
		if err := json.Unmarshal(rec.Value, &digests); err != nil {
			return fmt.Errorf("%w: the record %s cannot be read: %v", cluster.ErrCluster, rec.Key, err)
		}
		if run == id {
			own = digests
			continue
		}
		for _, d := range digests {
			others[d] = true
		}
	}
	if own == nil {
		return nil
	}
	for _, d := range own {
		if others[d] {
			continue
		}
		if err := bus.Blobs().Delete(ctx, d); err != nil && !errors.Is(err, cluster.ErrNoRecord) {
			return err
		}
	}
	if err := bucket.Delete(ctx, uploadsPrefix+id, 0); err != nil && !errors.Is(err, cluster.ErrNoRecord) {
		return err
	}
	return nil
}
