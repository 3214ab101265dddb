package simnet

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// bucket is a bucket in the broker.
type bucket struct {
	lease    time.Duration // 0: records stay
	revision uint64
	records  map[string]record
}

type record struct {
	value    []byte
	revision uint64
	written  time.Duration
	by       *call // nil: a call that need not be known again
}

// call is one call of a host, however often its request comes.
type call struct{ _ byte }

// read returns the record of a key, unless its lease is over.
func (b *bucket) read(key string, now time.Duration) (record, bool) {
	r, ok := b.records[key]
	if ok && b.lease > 0 && now-r.written >= b.lease {
		delete(b.records, key)
		return record{}, false
	}
	return r, ok
}

func (b *bucket) write(key string, value []byte, now time.Duration, by *call) uint64 {
	b.revision++
	b.records[key] = record{value, b.revision, now, by}
	return b.revision
}

// store is a host's view of a bucket.
type store struct {
	host *Host
	name string
}

// result is what the broker answers.
type result struct {
	records  []cluster.Record
	revision uint64
	err      error
}

// call has op run on the bucket by the broker.
func (s store) call(ctx context.Context, what, key string, value []byte, op func(b *bucket, now time.Duration) result) (result, error) {
	if err := s.check(what, key, value); err != nil {
		return result{}, err
	}
	n := s.host.net
	what += " " + s.name + "/" + key
	r, err := ask(ctx, s.host, what, false, func() (result, bool) {
		return op(n.broker.buckets[s.name], n.now()), true
	})
	if err == nil && r.err != nil {
		err = fmt.Errorf("%w: %s", r.err, what)
	}
	return r, err
}

func (s store) check(what, key string, value []byte) error {
	switch s.name {
	case cluster.MembersBucket, cluster.LeadBucket, cluster.RunsBucket:
	default:
		return fmt.Errorf("%w: no bucket %q; there are members, lead and runs", cluster.ErrCluster, s.name)
	}
	if what != "list" && !isKey(key) {
		return fmt.Errorf("%w: key %q; use letters, digits, - and _", cluster.ErrCluster, key)
	}
	return fits("value", value)
}

func isKey(key string) bool {
	for _, c := range key {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return key != ""
}

func (s store) Get(ctx context.Context, key string) (cluster.Record, error) {
	r, err := s.call(ctx, "get", key, nil, func(b *bucket, now time.Duration) result {
		r, ok := b.read(key, now)
		if !ok {
			return result{err: cluster.ErrNoRecord}
		}
		return result{records: []cluster.Record{{Key: key, Value: bytes.Clone(r.value), Revision: r.revision}}}
	})
	if err != nil {
		return cluster.Record{}, err
	}
	return r.records[0], nil
}

func (s store) List(ctx context.Context) ([]cluster.Record, error) {
	r, err := s.call(ctx, "list", "", nil, func(b *bucket, now time.Duration) result {
		var out []cluster.Record
		for _, key := range slices.Sorted(maps.Keys(b.records)) {
			if r, ok := b.read(key, now); ok {
				out = append(out, cluster.Record{Key: key, Value: bytes.Clone(r.value), Revision: r.revision})
			}
		}
		return result{records: out}
	})
	return r.records, err
}

func (s store) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return s.change(ctx, "create", key, value, func(_ record, ok bool) bool { return !ok })
}

func (s store) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return s.change(ctx, "update", key, value, func(r record, ok bool) bool { return ok && r.revision == revision })
}

// change writes a record if what is there allows it. A request that comes again
// finds what the call itself has written.
func (s store) change(ctx context.Context, what, key string, value []byte, allowed func(r record, ok bool) bool) (uint64, error) {
	value = bytes.Clone(value)
	id := new(call)
	r, err := s.call(ctx, what, key, value, func(b *bucket, now time.Duration) result {
		r, ok := b.read(key, now)
		switch {
		case ok && r.by == id:
			return result{revision: r.revision}
		case !allowed(r, ok):
			return result{err: cluster.ErrConflict}
		}
		return result{revision: b.write(key, value, now, id)}
	})
	return r.revision, err
}

func (s store) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	value = bytes.Clone(value)
	r, err := s.call(ctx, "put", key, value, func(b *bucket, now time.Duration) result {
		return result{revision: b.write(key, value, now, nil)}
	})
	return r.revision, err
}

func (s store) Delete(ctx context.Context, key string, revision uint64) error {
	_, err := s.call(ctx, "delete", key, nil, func(b *bucket, now time.Duration) result {
		r, ok := b.read(key, now)
		if !ok { // maybe by this very call, whose reply was missed
			return result{}
		}
		if revision != 0 && r.revision != revision {
			return result{err: cluster.ErrConflict}
		}
		b.revision++
		delete(b.records, key)
		return result{}
	})
	return err
}
