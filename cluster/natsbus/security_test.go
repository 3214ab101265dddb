package natsbus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/pce-engine/pce/cluster"
)

func newSeats(t *testing.T, dir string, n int) []Seat {
	t.Helper()
	seats, err := NewSeats(dir, n)
	if err != nil {
		t.Fatal(err)
	}
	return seats
}

func TestSeatsAreKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	first := newSeats(t, dir, 1)
	again := newSeats(t, dir, 3)
	if len(first) != 3 || len(again) != 5 || again[4].Name != "worker-002" {
		t.Fatalf("%d and %d seats", len(first), len(again))
	}
	keys := map[string]bool{}
	for i, s := range again {
		if i < len(first) && s.Key != first[i].Key {
			t.Errorf("the key of %s is another one", s.Name)
		}
		keys[s.Key] = true
		info, err := os.Stat(s.File)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", s.File, info.Mode(), err)
		}
	}
	if len(keys) != len(again) {
		t.Error("two seats have one key")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: mode %v, %v", info.Mode(), err)
	}

	if err := os.WriteFile(again[0].File, []byte("SUnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := NewSeats(dir, 1)
	wantError(t, err, cluster.ErrCluster, "coordinator.nk")
	if strings.Contains(err.Error(), "SUnonsense") {
		t.Error("the error repeats the seed")
	}
	_, err = NewSeats(dir, -1)
	wantError(t, err, cluster.ErrCluster)
	if err := os.Chmod(again[1].File, 0o644); err != nil {
		t.Fatal(err)
	}
	pair, _ := nkeys.CreateUser()
	seed, _ := pair.Seed()
	if err := os.WriteFile(again[0].File, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = NewSeats(dir, 1)
	wantError(t, err, cluster.ErrCluster, "client.nk", "chmod")
}

// table is a broker with seats, and a bus for each.
func table(t *testing.T) (*Broker, map[string]*Bus) {
	seats := newSeats(t, t.TempDir(), 2)
	broker := startBroker(t, BrokerOptions{Seats: seats})
	buses := map[string]*Bus{}
	for _, s := range seats {
		buses[s.Name] = connect(t, Options{URLs: broker.URL(), Credentials: s.File})
	}
	return broker, buses
}

// TestConnectsQuietly: members ask the broker for nothing that their keys do not allow when they connect, as
// each such request is a warning in its log.
func TestConnectsQuietly(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	seats := newSeats(t, t.TempDir(), 1)
	broker := startBroker(t, BrokerOptions{Seats: seats, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	for _, s := range append(seats, seats...) {
		connect(t, Options{URLs: broker.URL(), Credentials: s.File})
	}
	if text := log.String(); strings.Contains(text, "Violation") {
		t.Errorf("the broker warns:\n%s", text)
	}
}

// lockedBuffer is a buffer that goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	_, buses := table(t)
	coordinator, client, worker, other := buses["coordinator"], buses["client"], buses["worker-000"], buses["worker-001"]
	ctx := within(t, 2*time.Minute)
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	denied := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrDenied) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line that says that it is denied", what, err)
		}
	}
	data := []byte("contents")
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])

	// A worker does its own work ...
	r, err := worker.Bucket(cluster.MembersBucket).Put(ctx, "worker-000", data)
	do("own record", err)
	_, err = worker.Bucket(cluster.MembersBucket).List(ctx)
	do("members", err)
	_, err = client.Bucket(cluster.LeadBucket).Create(ctx, "lead", data)
	do("lead of the client", err)
	_, err = worker.Bucket(cluster.LeadBucket).Get(ctx, "lead")
	do("lead", err)
	do("blob", client.Blobs().Put(ctx, digest, bytes.NewReader(data), int64(len(data))))
	do("blob", worker.Blobs().Get(ctx, digest, &bytes.Buffer{}))
	do("event", worker.Events().Publish("run-client", data))
	do("event", client.Events().Follow(ctx, "run-client", func(e []byte) bool { return !bytes.Equal(e, data) }))

	// ... and nothing else.
	_, err = worker.Bucket(cluster.MembersBucket).Put(ctx, "worker-001", data)
	denied("another's record", err)
	_, err = worker.Bucket(cluster.LeadBucket).Put(ctx, "lead", data)
	denied("the lead", err)
	denied("another's record", worker.Bucket(cluster.LeadBucket).Delete(ctx, "lead", 0))
	_, err = worker.Bucket(cluster.RunsBucket).Put(ctx, "run", data)
	denied("a run", err)
	_, err = worker.Bucket(cluster.RunsBucket).List(ctx)
	denied("runs", err)
	denied("a job", worker.Jobs().Submit(ctx, "job", data))
	_, err = worker.Jobs().Next(ctx)
	denied("next job", err)
	denied("a dead letter", worker.Jobs().Bury(ctx, cluster.DeadLetter{}))
	worse := sha256.Sum256([]byte("worse"))
	denied("a blob", worker.Blobs().Put(ctx, hex.EncodeToString(worse[:]), strings.NewReader("worse"), 5))
	denied("deletion of a blob", worker.Blobs().Delete(ctx, digest))
	for _, s := range allStreams {
		for _, request := range []string{"STREAM.DELETE", "STREAM.PURGE", "STREAM.UPDATE", "STREAM.CREATE", "STREAM.MSG.DELETE", "STREAM.SNAPSHOT", "STREAM.RESTORE"} {
			_, err := worker.ask(ctx, request+"."+s, map[string]string{"name": s}, nil)
			denied(request+" "+s, err)
		}
	}
	_, err = worker.ask(ctx, "CONSUMER.CREATE."+membersStream+".x", map[string]string{}, nil)
	denied("a consumer", err)
	_, err = worker.Listen("worker-001-x", func([]byte) {})
	denied("another's address", err)
	_, err = worker.Listen("c-x", func([]byte) {})
	denied("a coordinator's address", err)
	_, err = client.ask(ctx, "STREAM.DELETE."+runsStream, nil, nil)
	denied("deletion of a stream", err)
	_, err = client.Bucket(cluster.MembersBucket).Put(ctx, "worker-000", data)
	denied("a record of a worker, by the client", err)
	_, err = client.Jobs().Next(ctx)
	denied("a job, by the client", err)
	is, err := other.Bucket(cluster.MembersBucket).Get(ctx, "worker-000")
	do("record", err)
	if is.Revision != r {
		t.Error("another's record was written")
	}

	// Messages.
	got := make(chan string, 100)
	listen := func(b *Bus, address string) {
		t.Helper()
		_, err := b.Listen(address, func(m []byte) { got <- address + " " + string(m) })
		do("listening at "+address, err)
	}
	listen(worker, "worker-000-life")
	listen(worker, "worker-000")
	listen(other, "worker-001-life")
	listen(client, "c-client-1")
	listen(coordinator, "c-main")
	do("send", worker.Send("worker-001-life", []byte("forbidden"))) // the broker drops it
	do("send", worker.Send("c-client-1", []byte("1")))
	do("send", worker.Send("c-main", []byte("2")))
	do("send", client.Send("worker-000-life", []byte("3")))
	do("send", coordinator.Send("worker-000", []byte("4")))
	do("send", coordinator.Send("worker-001-life", []byte("5")))
	want := map[string]bool{"c-client-1 1": true, "c-main 2": true, "worker-000-life 3": true, "worker-000 4": true, "worker-001-life 5": true}
	for len(want) > 0 {
		select {
		case m := <-got:
			if !want[m] {
				t.Errorf("message %q", m)
			}
			delete(want, m)
		case <-ctx.Done():
			t.Fatalf("messages %v did not come", want)
		}
	}

	// Bulk data: each writes as itself alone.
	subject := dataSubject("worker-001", "worker-000")
	bulk, err := other.Conn().SubscribeSync(subject)
	do("subscription", err)
	do("flush", other.Conn().Flush())
	do("publish", worker.Conn().Publish("pce.data.worker.001.~.worker.002.~", []byte("as another")))
	do("publish", worker.Conn().Publish(subject, data))
	if m, err := bulk.NextMsgWithContext(ctx); err != nil || !bytes.Equal(m.Data, data) {
		t.Errorf("bulk data: %v", err)
	}
	stolen, err := worker.Conn().SubscribeSync("pce.data.worker.001.>")
	do("subscription", err)
	do("flush", worker.Conn().Flush())
	if _, err := stolen.NextMsg(time.Millisecond); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("data for another: %v", err)
	}
	replies, err := worker.Conn().SubscribeSync("_INBOX.>")
	do("subscription", err)
	do("flush", worker.Conn().Flush())
	if _, err := replies.NextMsg(time.Millisecond); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("answers for another: %v", err)
	}

	// The coordinator.
	do("submit", client.Jobs().Submit(ctx, "job-client", data))
	d, err := coordinator.Jobs().Next(ctx)
	do("next", err)
	do("working", d.Working(ctx))
	do("release", d.Release(ctx))
	d, err = coordinator.Jobs().Next(ctx)
	do("next", err)
	do("done", d.Done(ctx))
	_, err = coordinator.Bucket(cluster.RunsBucket).Put(ctx, "run", data)
	do("run", err)
	_, err = client.Bucket(cluster.RunsBucket).Get(ctx, "run")
	do("run", err)
	do("dead letter", coordinator.Jobs().Bury(ctx, cluster.DeadLetter{Run: "run"}))
	if dead, err := client.Jobs().Dead(ctx); err != nil || len(dead) != 1 {
		t.Errorf("dead letters: %d, %v", len(dead), err)
	}
	do("deletion of a blob", coordinator.Blobs().Delete(ctx, digest))
}

// A worker that comes first waits until others have made the streams.
func TestWorkerComesFirst(t *testing.T) {
	t.Parallel()
	seats := newSeats(t, t.TempDir(), 1)
	broker := startBroker(t, BrokerOptions{Seats: seats})
	worker := connect(t, Options{URLs: broker.URL(), Credentials: seats[2].File})
	ctx := within(t, 2*time.Minute)
	if _, err := worker.Bucket(cluster.MembersBucket).Get(ctx, "worker-000"); !errors.Is(err, cluster.ErrNoRecord) {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := worker.Bucket(cluster.MembersBucket).Put(short, "worker-000", nil)
	wantError(t, err, cluster.ErrUnreachable, "lacks the stream")
	put := make(chan error, 1)
	go func() {
		_, err := worker.Bucket(cluster.MembersBucket).Put(ctx, "worker-000", nil)
		put <- err
	}()
	connect(t, Options{URLs: broker.URL(), Credentials: seats[0].File})
	if err := <-put; err != nil {
		t.Fatal(err)
	}
}

func TestCredentialsRefused(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{Seats: newSeats(t, t.TempDir(), 0)})
	stranger := newSeats(t, t.TempDir(), 0)[0]
	ctx := within(t, time.Minute)
	seed, err := os.ReadFile(stranger.File)
	if err != nil {
		t.Fatal(err)
	}
	for what, file := range map[string]string{"another key": stranger.File, "no key": ""} {
		_, err := Connect(ctx, Options{URLs: broker.URL(), Credentials: file})
		wantError(t, err, ErrDenied, "refused")
		if strings.Contains(err.Error(), strings.TrimSpace(string(seed))) {
			t.Errorf("%s: the error holds the seed", what)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("secret words"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{
		{URLs: broker.URL(), Credentials: bad},
		{URLs: broker.URL(), Credentials: bad + "-absent"},
		{URLs: broker.URL(), Credentials: t.TempDir()},
		{URLs: broker.URL(), CA: bad},
		{URLs: broker.URL(), ClientCert: bad},
		{URLs: ""},
		{URLs: "http://localhost:1"},
		{URLs: "nats://me:secret@localhost:1"},
		{URLs: "nats://\x7f secret"},
		{URLs: broker.URL(), Lease: time.Millisecond},
	} {
		_, err := Connect(ctx, o)
		wantError(t, err, cluster.ErrCluster)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats a secret: %v", err)
		}
	}
}

// JWT credentials are told from seeds by content.
func TestJWTCredentials(t *testing.T) {
	t.Parallel()
	account, _ := nkeys.CreateAccount()
	user, _ := nkeys.CreateUser()
	key, _ := user.PublicKey()
	seed, _ := user.Seed()
	token, err := jwt.NewUserClaims(key).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "any.name")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, settings, err := Options{Credentials: file}.identity()
	if err != nil || got != key {
		t.Fatalf("key %q, %v", got, err)
	}
	var o nats.Options
	for _, s := range settings {
		if err := s(&o); err != nil {
			t.Fatal(err)
		}
	}
	if o.UserJWT == nil || o.Nkey != "" {
		t.Fatal("not taken for a JWT")
	}
	if have, err := o.UserJWT(); err != nil || have != token {
		t.Errorf("another JWT: %v", err)
	}
}
