package natsbus

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pce-engine/pce/cluster"
)

// TestSubjects wants identifiers back from the subjects that they are divided into,
// and no two on one subject.
func TestSubjects(t *testing.T) {
	ids := []string{"a", "a-", "-a", "-", "--", "a-b", "a--b", "a-b-c", "a-b-c-d", "a-b-", "-a-b", "worker-000", "20260102-030405-0a1b2c3d-alice", "cancel-r-1-alice", "c-alice-train-12-alice"}
	owned, members := map[string]string{}, map[string]string{}
	for _, id := range ids {
		subject := ownedSubject("p.", id)
		if got := ownedID("p.", subject); got != id {
			t.Errorf("%q is %q, which is read as %q", id, subject, got)
		}
		if other, ok := owned[subject]; ok || strings.Count(subject, ".") != 2 || strings.Contains(subject, "..") {
			t.Errorf("%q and %q are %q", id, other, subject)
		}
		owned[subject] = id
		subject = dataSubject("worker-001", id)
		if got := senderOf(subject); got != id {
			t.Errorf("%q is %q, which is read as %q", id, subject, got)
		}
		if other, ok := members[subject]; ok || strings.Count(subject, ".") != 7 || strings.Contains(subject, "..") {
			t.Errorf("%q and %q are %q", id, other, subject)
		}
		members[subject] = id
	}
	if got := ownedID("p.", "p.20260102-030405-0a1b2c3d"); got != "20260102-030405-0a1b2c3d" {
		t.Errorf("a record of an earlier version is read as %q", got)
	}
}

// TestClients gives two clients keys of their own: each writes its own runs, and what
// it does with another's is a permissions violation.
func TestClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker := startBroker(t, BrokerOptions{Seats: newSeats(t, dir, 1)})
	coordinator := connect(t, Options{URLs: broker.URL(), Credentials: filepath.Join(dir, "coordinator.nk")})
	before := connect(t, Options{URLs: broker.URL(), Credentials: filepath.Join(dir, "worker-000.nk")})
	for _, bad := range []string{"", "Alice", "a-b", "a.b", "*", "coordinator", "worker", "up", "health", strings.Repeat("a", maxClientName+1)} {
		if file, err := NewClient(dir, bad); !errors.Is(err, cluster.ErrCluster) {
			t.Errorf("client %q has the key %s, %v", bad, file, err)
		}
	}
	buses := map[string]*Bus{}
	for _, name := range []string{"alice", "bob"} {
		file, err := NewClient(dir, name)
		if err != nil || filepath.Base(file) != name+".nk" {
			t.Fatalf("key of %s: %s, %v", name, file, err)
		}
		if again, err := NewClient(dir, name); err != nil || again != file {
			t.Errorf("the key of %s again: %s, %v", name, again, err)
		}
		seats := newSeats(t, dir, 1)
		if i := slices.IndexFunc(seats, func(s Seat) bool { return s.Name == name }); i < 3 || !seats[i].Client {
			t.Fatalf("seats %+v", seats)
		}
		if err := broker.Admit(seats); err != nil { // while it runs
			t.Fatal(err)
		}
		buses[name] = connect(t, Options{URLs: broker.URL(), Credentials: file})
		if got := buses[name].Client(); got != name {
			t.Errorf("%s is called %s", name, got)
		}
	}
	ctx := within(t, 2*time.Minute)
	alice, bob := buses["alice"], buses["bob"]
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
	const own, other = "20260102-030405-0a1b2c3d-alice", "20260102-030405-0a1b2c3d-bob"
	for _, key := range []string{own, "cancel-" + own, "uploads-" + own, "files-" + own} {
		_, err := alice.Bucket(cluster.RunsBucket).Put(ctx, key, []byte("x"))
		do("own record "+key, err)
		rec, err := bob.Bucket(cluster.RunsBucket).Get(ctx, key)
		if err != nil || rec.Key != key {
			t.Errorf("record %s read by another: %+v, %v", key, rec, err)
		}
		_, err = bob.Bucket(cluster.RunsBucket).Put(ctx, key, []byte("y"))
		denied("another's record "+key, err)
		_, err = bob.Bucket(cluster.RunsBucket).Create(ctx, key, []byte("y"))
		denied("another's record "+key, err)
		_, err = bob.Bucket(cluster.RunsBucket).Update(ctx, key, []byte("y"), rec.Revision)
		denied("another's record "+key, err)
		denied("another's record "+key, bob.Bucket(cluster.RunsBucket).Delete(ctx, key, 0))
	}
	_, err := alice.Bucket(cluster.RunsBucket).Put(ctx, "20260102-030405-0a1b2c3d", nil)
	denied("a run without an owner", err)
	do("submit", alice.Jobs().Submit(ctx, own, []byte("job")))
	denied("another's job", alice.Jobs().Submit(ctx, other, []byte("job")))
	d, err := coordinator.Jobs().Next(ctx)
	if err != nil || d.ID() != own {
		t.Fatalf("next job: %v, %v", d, err)
	}
	do("done", d.Done(ctx))
	list, err := coordinator.Bucket(cluster.RunsBucket).List(ctx)
	if err != nil || len(list) != 4 {
		t.Errorf("%d records, %v", len(list), err)
	}

	// Raw subjects, past what a Bus does by itself.
	violates := func(what string, b *Bus, subject string) {
		t.Helper()
		sub, err := b.Conn().SubscribeSync(subject)
		do(what, err)
		do(what, b.Conn().Flush())
		if _, err := sub.NextMsg(time.Millisecond); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v, want a permissions violation", what, err)
		}
	}
	for what, subject := range map[string]string{
		"all bulk data": "pce.data.>", "bulk data of another": "pce.data.c.alice.>", "bulk data of a worker": "pce.data.worker.000.>",
		"bulk data by pattern": "pce.data.*.*.*.*.*.*", "messages of all": "pce.inbox.>", "messages of coordinators": "pce.inbox.c.>",
		"messages of another": "pce.inbox.c.alice.>", "records as they are written": "$KV.pce_runs.>", "another's records": "$KV.pce_runs.alice.*", "answers": "_INBOX.>",
	} {
		violates(what, bob, subject)
	}
	heard := make(chan string, 10)
	_, err = coordinator.Listen("c-main", func(m []byte) { heard <- string(m) })
	do("listen", err)
	_, err = alice.Listen("c-alice-train-1", func(m []byte) { heard <- string(m) })
	do("listen", err)
	_, err = bob.Listen("c-alice-x", func([]byte) {})
	denied("another's address", err)
	bulk := dataSubject("c-alice-train-1", "c-bob-train-1")
	came, err := alice.Conn().SubscribeSync("pce.data.c.alice.>")
	do("own bulk data", err)
	do("flush", alice.Conn().Flush())
	forged := dataSubject("c-alice-train-1", "worker-000")
	do("publish", bob.Conn().Publish(forged, []byte("forged"))) // the broker drops it
	do("send", bob.Send("c-main", []byte("forged")))
	do("send", bob.Send("c-alice-train-1", []byte("forged")))
	do("publish", bob.Conn().Publish(bulk, []byte("sound")))
	do("flush", bob.Conn().Flush())
	if m, err := came.NextMsgWithContext(ctx); err != nil || string(m.Data) != "sound" {
		t.Errorf("bulk data: %v, %v", m, err)
	}
	do("send", before.Send("c-main", []byte("worker")))
	if got := <-heard; got != "worker" {
		t.Errorf("heard %q of one who may not send there", got)
	}

	// A key that is removed opens nothing any more; the connections of others go on.
	if err := os.Remove(filepath.Join(dir, "bob.nk")); err != nil {
		t.Fatal(err)
	}
	up, err := before.link.wait(ctx)
	do("link", err)
	if err := broker.Admit(newSeats(t, dir, 1)); err != nil {
		t.Fatal(err)
	}
	for bob.Conn().IsConnected() {
		select {
		case <-ctx.Done():
			t.Fatal("a client whose key is gone is still connected")
		case <-time.After(time.Millisecond):
		}
	}
	if up.Err() != nil {
		t.Error("the connection of a worker was cut")
	}
}
