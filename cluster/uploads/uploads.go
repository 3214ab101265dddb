// Package uploads keeps account of the contents that the broker has for runs, by notes of their digests: contents
// go with the last run that needs them, however the processes end that uploaded them.
//
// # Shapes and units
//
// A note is a JSON list of SHA-256 digests in hexadecimal.
//
// # Errors
//
// Those of the bus; a note that cannot be read matches cluster.ErrCluster.
//
// # Source
//
// None.
package uploads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// Prefix begins the keys of notes in cluster.RunsBucket. The id of what they are of follows.
const Prefix = "uploads-"

const (
	// requestTime bounds each request to the broker.
	requestTime = 10 * time.Second
	// listTime bounds the reading of all notes, which takes a round trip for each run.
	listTime = time.Minute
)

// Note says that a run needs contents, before they are uploaded. It waits for the end of
// a removal that began earlier, which may not have seen the note: until then contents that seem
// to be there may be about to go.
func Note(ctx context.Context, bus cluster.Bus, id string, digests []string) error {
	if err := put(ctx, bus, id, digests); err != nil {
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

// Noted returns the contents that a note has, none where it is not there.
func Noted(ctx context.Context, bus cluster.Bus, id string) ([]string, error) {
	r, err := bus.Bucket(cluster.RunsBucket).Get(ctx, Prefix+id)
	if errors.Is(err, cluster.ErrNoRecord) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return digestsOf(r)
}

func digestsOf(r cluster.Record) (digests []string, err error) {
	if err := json.Unmarshal(r.Value, &digests); err != nil {
		return nil, fmt.Errorf("%w: the record %s cannot be read: %v", cluster.ErrCluster, r.Key, err)
	}
	return digests, nil
}

func put(ctx context.Context, bus cluster.Bus, id string, digests []string) error {
	value, err := json.Marshal(digests)
	if err != nil {
		return err
	}
	_, err = bus.Bucket(cluster.RunsBucket).Put(ctx, Prefix+id, value)
	return err
}

// Drop removes what was uploaded for a run that has ended, unless another run needs it.
// However much that is, it continues as long as the broker carries out what it is asked: each
// request has a time of its own. It may be called again: contents go first and the note of them
// last, and after a failure the note has those that are left.
func Drop(ctx context.Context, bus cluster.Bus, id string) (err error) {
	runs := bus.Bucket(cluster.RunsBucket)
	err = within(ctx, requestTime, func(ctx context.Context) error {
		_, err := runs.Get(ctx, Prefix+id)
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
		note := within(context.WithoutCancel(ctx), requestTime, func(ctx context.Context) error { return put(ctx, bus, id, left) })
		return errors.Join(err, note)
	}
	return within(ctx, requestTime, func(ctx context.Context) error {
		if err := runs.Delete(ctx, Prefix+id, 0); !errors.Is(err, cluster.ErrNoRecord) {
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
