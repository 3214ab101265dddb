package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// LeadKey is the record of the lead in LeadBucket.
const LeadKey = "lead"

// lead is the right to command the workers, as long as its record is renewed.
type lead struct {
	bucket Bucket
	holder []byte
	id     string
	lease  func() time.Duration
	follow func(context.Context) // asks for the lease anew

	mu  sync.Mutex
	rev uint64 // of the record
}

// takeLead waits for the lead. The lease is asked for before each try, as there may have been no run for long, or another one. onWait is
// called with each other holder.
func takeLead(ctx context.Context, bucket Bucket, h Holder, lease func() time.Duration, follow func(context.Context), onWait func(Holder)) (l *lead, fence uint64, err error) {
	text, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("BUG: cluster: holder: %v", err))
	}
	l = &lead{bucket: bucket, holder: text, id: h.ID, lease: lease, follow: follow}
	var last Holder
	for {
		follow(ctx)
		other, err := l.try(ctx)
		if err != nil {
			return nil, 0, err
		}
		if other == nil {
			return l, l.rev, nil
		}
		if *other != last && onWait != nil {
			onWait(*other)
		}
		last = *other
		select {
		case <-time.After(lease() / 5):
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// try takes the lead if it is free, or held by an earlier life of this one.
func (l *lead) try(ctx context.Context) (other *Holder, err error) {
	rev, err := l.bucket.Create(ctx, LeadKey, l.holder)
	if errors.Is(err, ErrConflict) {
		r, getErr := l.bucket.Get(ctx, LeadKey)
		if errors.Is(getErr, ErrNoRecord) { // it has just expired
			return &Holder{}, nil
		}
		if getErr != nil {
			return nil, getErr
		}
		var h Holder
		if json.Unmarshal(r.Value, &h) != nil || h.ID != l.id {
			return &h, nil
		}
		if rev, err = l.bucket.Update(ctx, LeadKey, l.holder, r.Revision); errors.Is(err, ErrConflict) {
			return &h, nil
		}
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rev = rev
	return nil, nil
}

// keep renews the lead until ctx ends. changed is called with a new fence after
// the record had expired, as it does while the broker is away, and with 0 once
// another has the lead. The lease is asked for after each renewal, whether or not that succeeds.
func (l *lead) keep(ctx context.Context, changed func(fence uint64)) {
	for {
		select {
		case <-time.After(l.lease() / 4):
		case <-ctx.Done():
			return
		}
		attempt, cancel := context.WithTimeout(ctx, l.lease())
		rev, err := l.bucket.Update(attempt, LeadKey, l.holder, l.revision())
		switch {
		case err == nil:
			l.mu.Lock()
			l.rev = rev
			l.mu.Unlock()
		case errors.Is(err, ErrConflict):
			other, err := l.try(attempt)
			if err == nil && other == nil {
				changed(l.revision())
			} else if err == nil && other.ID != "" {
				cancel()
				changed(0)
				return
			}
		}
		cancel()
		l.follow(ctx)
	}
}

func (l *lead) revision() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rev
}

// release gives the lead back.
func (l *lead) release(ctx context.Context) error { return Withdraw(ctx, l.bucket, LeadKey, l.holder) }

// Withdraw deletes the record of a key that has a value which its writer alone gives it, and does nothing where it has another, or is gone.
// The writer need not know the revision: an update whose answer it has not waited for may have been carried out all the same, or may be yet.
func Withdraw(ctx context.Context, bucket Bucket, key string, value []byte) error {
	for {
		r, err := bucket.Get(ctx, key)
		if err == nil && !bytes.Equal(r.Value, value) {
			return nil
		}
		if err == nil {
			err = bucket.Delete(ctx, key, r.Revision)
		}
		switch {
		case errors.Is(err, ErrNoRecord):
			return nil
		case !errors.Is(err, ErrConflict): // else such an update has come between
			return err
		}
	}
}
