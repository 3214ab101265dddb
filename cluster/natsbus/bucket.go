package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/pce-engine/pce/cluster"
)

// Headers of messages.
const (
	idHeader        = "Nats-Msg-Id" // known again by the server for a while, by us for good
	expectHeader    = "Nats-Expected-Last-Subject-Sequence"
	operationHeader = "KV-Operation" // of a message that says that the record is deleted
	streamHeader    = "Nats-Stream"  // of a message that the server has read for a client
	deleted         = "DEL"
)

// bucket is a cluster.Bucket. The newest message of a subject is the record of
// a key, or says that there is none.
type bucket struct {
	bus    *Bus
	stream string
	prefix string // of subjects
	owned  bool   // subjects are those of ownedSubject
	err    error  // of a name that is none
}

// Bucket returns a bucket of package cluster; calls on any other fail.
func (b *Bus) Bucket(name string) cluster.Bucket {
	stream := "KV_pce_" + name
	switch name {
	case cluster.MembersBucket, cluster.LeadBucket, cluster.RunsBucket:
		return &bucket{bus: b, stream: stream, prefix: bucketSubjects(stream), owned: name == cluster.RunsBucket}
	}
	return &bucket{err: fmt.Errorf("%w: there is no bucket %q", cluster.ErrCluster, name)}
}

func isNoRecord(err error) bool { return errors.Is(err, cluster.ErrNoRecord) }

// subject checks a key.
func (k *bucket) subject(key string) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	if err := checkToken("key", key); err != nil {
		return "", err
	}
	if k.owned {
		return ownedSubject(k.prefix, key), nil
	}
	return k.prefix + key, nil
}

// key is the inverse of subject.
func (k *bucket) key(subject string) string {
	if k.owned {
		return ownedID(k.prefix, subject)
	}
	return strings.TrimPrefix(subject, k.prefix)
}

// wrap says where an error came from.
func (k *bucket) wrap(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("record %s of %s: %w", key, strings.TrimPrefix(k.stream, "KV_pce_"), err)
}

func (k *bucket) Get(ctx context.Context, key string) (cluster.Record, error) {
	subject, err := k.subject(key)
	if err != nil {
		return cluster.Record{}, err
	}
	m, err := k.bus.get(ctx, k.stream, query{Last: subject})
	if err == nil && m.vacant() {
		err = cluster.ErrNoRecord
	}
	if err != nil {
		return cluster.Record{}, k.wrap(key, err)
	}
	return cluster.Record{Key: key, Value: m.Data, Revision: m.Sequence}, nil
}

// vacant reports a message that is not a record: one that says that the record was
// deleted, or one that no client wrote. The server sends answers wherever a request
// wants them, without asking who may write there; they lack the identifier, or
// tell the stream they come from.
func (m stored) vacant() bool {
	return m.header.Get(operationHeader) != "" || m.header.Get(idHeader) == "" || m.header.Get(streamHeader) != ""
}

func (k *bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return k.write(ctx, key, value, newWrite())
}

func (k *bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 { // which would mean that there is no record
		return 0, k.wrap(key, cluster.ErrConflict)
	}
	w := newWrite()
	w.expect(revision)
	return k.write(ctx, key, value, w)
}

func (k *bucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	subject, err := k.subject(key)
	if err != nil {
		return 0, err
	}
	// What is there may be no record, and go away by itself.
	expected := uint64(0)
	for {
		w := newWrite()
		w.expect(expected)
		revision, err := k.write(ctx, key, value, w)
		if !errors.Is(err, cluster.ErrConflict) {
			return revision, err
		}
		m, getErr := k.bus.get(ctx, k.stream, query{Last: subject})
		next := uint64(0)
		switch {
		case isNoRecord(getErr):
		case getErr != nil:
			return 0, k.wrap(key, getErr)
		case m.vacant():
			next = m.Sequence
		default:
			return 0, err
		}
		if next == expected && next != 0 {
			return 0, err
		}
		expected = next
	}
}

func (k *bucket) Delete(ctx context.Context, key string, revision uint64) error {
	subject, err := k.subject(key)
	if err != nil {
		return err
	}
	m, err := k.bus.get(ctx, k.stream, query{Last: subject})
	if isNoRecord(err) || err == nil && m.vacant() {
		return nil
	}
	if err != nil {
		return k.wrap(key, err)
	}
	w := newWrite()
	w.header.Set(operationHeader, deleted)
	if revision != 0 {
		w.expect(revision)
	}
	_, err = k.write(ctx, key, nil, w)
	if errors.Is(err, cluster.ErrConflict) {
		// Expired, or deleted by another, since it was read.
		if m, getErr := k.bus.get(ctx, k.stream, query{Last: subject}); isNoRecord(getErr) || getErr == nil && m.vacant() {
			return nil
		}
	}
	return err
}

// write is one change of a key: all tries of it bear the same identifier.
type write struct {
	id     string
	header nats.Header
}

func newWrite() write {
	id := nuid.Next()
	return write{id, nats.Header{idHeader: {id}}}
}

func (w write) expect(revision uint64) {
	w.header.Set(expectHeader, strconv.FormatUint(revision, 10))
}

// write stores a message. Where the answer to an earlier try was lost, that try
// may be the reason why the newest revision is not the expected one.
func (k *bucket) write(ctx context.Context, key string, value []byte, w write) (uint64, error) {
	subject, err := k.subject(key)
	if err != nil {
		return 0, err
	}
	if err := k.bus.checkSize(value, w.header); err != nil {
		return 0, k.wrap(key, err)
	}
	msg := &nats.Msg{Subject: subject, Header: w.header, Data: value}
	sequence, doubtful, err := k.bus.publish(ctx, msg, quick)
	if !hasCode(err, codeWrongSequence, codeWrongConstant) {
		return sequence, k.wrap(key, err)
	}
	if doubtful {
		m, err := k.bus.get(ctx, k.stream, query{Last: subject})
		if err != nil && !isNoRecord(err) {
			return 0, k.wrap(key, err)
		}
		if err == nil && m.header.Get(idHeader) == w.id {
			return m.Sequence, nil
		}
	}
	return 0, k.wrap(key, cluster.ErrConflict)
}
