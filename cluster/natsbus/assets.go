package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pce-engine/pce/cluster"
)

// Bounds of what piles up.
const (
	eventsAge   = 7 * 24 * time.Hour
	eventsBytes = 256 << 20
	deadLetters = 4096
	dedupe      = 2 * time.Minute // within which a second try is known
	// freeMiB is what a new broker wants of its disk: the server lets streams bound their bytes
	// within three quarters of what is free.
	freeMiB = eventsBytes*4/3>>20 + 1
)

// assets lists the streams. No client may delete single messages but jobs, or purge
// anything but blobs; deletion in a bucket is a message.
func assets(lease time.Duration, replicas int) []jetstream.StreamConfig {
	bucket := func(stream string, age time.Duration) jetstream.StreamConfig {
		keys := bucketSubjects(stream) + "*"
		if stream == runsStream {
			keys += ".*"
		}
		c := jetstream.StreamConfig{Name: stream, Subjects: []string{keys}, MaxMsgsPerSubject: 1, MaxAge: age, DenyPurge: true}
		if age != 0 {
			c.Duplicates = min(age, dedupe)
		}
		return c
	}
	list := []jetstream.StreamConfig{
		bucket(membersStream, lease),
		bucket(leadStream, lease),
		bucket(runsStream, 0),
		bucket(takesStream, takeLeases*lease),
		{Name: jobsStream, Subjects: []string{jobPrefix + "*.*"}, Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1, DenyPurge: true},
		{Name: deadStream, Subjects: []string{deadSubject}, MaxMsgs: deadLetters, DenyPurge: true},
		{
			Name: eventsStream, Subjects: []string{eventPrefix + "*.*"}, MaxAge: eventsAge, MaxBytes: eventsBytes, DenyPurge: true,
			RePublish: &jetstream.RePublish{Source: eventPrefix + "*.*", Destination: toldPrefix + "{{wildcard(1)}}.{{wildcard(2)}}", HeadersOnly: true},
		},
		{Name: blobsStream, Subjects: []string{blobPrefix + ">"}, MaxMsgsPerSubject: 1, AllowDirect: true},
	}
	for i := range list {
		c := &list[i]
		c.Storage = jetstream.FileStorage
		c.Replicas = max(replicas, 1)
		c.DenyDelete = c.Name != jobsStream
		c.MaxConsumers = -1
		if c.MaxMsgs == 0 {
			c.MaxMsgs = -1
		}
		if c.MaxBytes == 0 {
			c.MaxBytes = -1
		}
		if c.MaxMsgsPerSubject == 0 {
			c.MaxMsgsPerSubject = -1
		}
		if c.Duplicates == 0 {
			c.Duplicates = dedupe
		}
	}
	return list
}

// prepare makes the streams that are absent and checks those that exist.
func (b *Bus) prepare(ctx context.Context) error {
	b.lease = b.opts.Lease
	if b.lease == 0 {
		b.lease = DefaultLease
	}
	for _, want := range assets(b.lease, b.opts.Replicas) {
		have, err := b.makeStream(ctx, want)
		switch {
		case errors.Is(err, ErrDenied):
			b.log.Debug("stream not checked: the credentials do not allow it", "stream", want.Name)
			continue
		case hasCode(err, codeNoRoom):
			return fmt.Errorf("%w: stream %s: %v; make room: a new broker wants %d MiB of free disk: %w", cluster.ErrCluster, want.Name, err, freeMiB, syscall.ENOSPC)
		case err != nil:
			return fmt.Errorf("stream %s: %w", want.Name, err)
		}
		if earlier, ok := strings.CutSuffix(want.Subjects[0], ".*"); ok && slices.Equal(have.Subjects, []string{earlier}) {
			if have, err = b.divide(ctx, have, want); err != nil {
				return fmt.Errorf("stream %s: %w", want.Name, err)
			}
		}
		if have.Retention != want.Retention || have.MaxMsgsPerSubject != want.MaxMsgsPerSubject ||
			have.Storage != want.Storage || !slices.Equal(have.Subjects, want.Subjects) {
			return fmt.Errorf("%w: stream %s of the broker was made by something else: use another account, or delete it",
				cluster.ErrCluster, want.Name)
		}
		if want.Name == membersStream || want.Name == leadStream || want.Name == takesStream {
			if have, err = b.setLease(ctx, have, want.MaxAge); err != nil {
				return fmt.Errorf("stream %s: %w", want.Name, err)
			}
		}
		if want.Name == membersStream {
			b.lease = have.MaxAge
		}
	}
	return nil
}

// divide gives a stream of an earlier version, whose subjects did not name the owner
// of a run, those of now.
func (b *Bus) divide(ctx context.Context, have, want jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	now := have
	now.Subjects, now.RePublish = want.Subjects, want.RePublish
	var info jetstream.StreamInfo
	_, err := b.ask(ctx, "STREAM.UPDATE."+have.Name, now, &info)
	if errors.Is(err, ErrDenied) {
		return have, nil
	}
	return info.Config, err
}

// makeStream returns the settings of a stream, which it makes if there is none.
// A stream that may not be made is reported as it should be: others make it.
func (b *Bus) makeStream(ctx context.Context, want jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	for {
		var info jetstream.StreamInfo
		_, err := b.ask(ctx, "STREAM.INFO."+want.Name, nil, &info)
		if err == nil {
			return info.Config, nil
		}
		if !hasCode(err, codeStreamNotFound) {
			return want, err
		}
		_, err = b.ask(ctx, "STREAM.CREATE."+want.Name, want, &info)
		switch {
		case err == nil:
			return info.Config, nil
		case errors.Is(err, ErrDenied):
			b.log.Info("the broker lacks a stream, which these credentials may not make", "stream", want.Name)
			return want, nil
		case !hasCode(err, codeStreamExists): // else another made it meanwhile
			return want, err
		}
	}
}

// setLease gives a bucket the lease that is asked for, if that is allowed.
func (b *Bus) setLease(ctx context.Context, have jetstream.StreamConfig, lease time.Duration) (jetstream.StreamConfig, error) {
	if b.opts.Lease == 0 || have.MaxAge == lease {
		return have, nil
	}
	want := have
	want.MaxAge = lease
	want.Duplicates = min(lease, dedupe)
	var info jetstream.StreamInfo
	_, err := b.ask(ctx, "STREAM.UPDATE."+have.Name, want, &info)
	if errors.Is(err, ErrDenied) {
		b.log.Warn("the broker has another lease than was asked for", "stream", have.Name, "lease", have.MaxAge, "asked", lease)
		return have, nil
	}
	return info.Config, err
}
