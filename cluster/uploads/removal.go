package uploads

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/internal/periodic"
)

const (
	// removalKey is the record of cluster.LeadBucket that who removes uploads keeps meanwhile: a
	// cluster.Holder with a name of its own. It vanishes when that process dies.
	removalKey = "uploads"
	// removalInterval is how often that record is renewed, and looked at by those who wait for
	// the end of a removal. The lease of the bucket is a second at least.
	removalInterval = 250 * time.Millisecond
	// removalsAtOnce is how many contents are removed at a time: each takes two round trips.
	removalsAtOnce = 16
)

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
		err := within(parent, requestTime, func(ctx context.Context) (err error) {
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
		_ = within(context.WithoutCancel(parent), requestTime, func(ctx context.Context) error { return cluster.Withdraw(ctx, bucket, removalKey, value) })
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
		run, ok := strings.CutPrefix(rec.Key, Prefix)
		if !ok {
			continue
		}
		digests, err := digestsOf(rec)
		if err != nil {
			return nil, err
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
				e := within(ctx, requestTime, func(ctx context.Context) error { return blobs.Delete(ctx, d) })
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
