package natsbus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pce-engine/pce/cluster"
)

// lossy stands between a bus and its broker, and can lose answers.
type lossy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	deaf     bool   // what the broker says is lost
	trigger  string // deaf once the bus says this
	said     []byte // by the bus while it is deaf
	conns    []net.Conn
}

func newLossy(t *testing.T, broker *Broker) *lossy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossy{listener: l, to: fmt.Sprintf("127.0.0.1:%d", broker.Port())}
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
	})
	go p.serve()
	return p
}

func (p *lossy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = c.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, s)
		p.mu.Unlock()
		go p.pipe(s, c, true)
		go p.pipe(c, s, false)
	}
}

func (p *lossy) pipe(to, from net.Conn, asks bool) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			_ = to.Close()
			return
		}
		p.mu.Lock()
		if asks && p.trigger != "" && bytes.Contains(b[:n], []byte(p.trigger)) {
			p.deaf, p.trigger = true, ""
		}
		if p.deaf && asks {
			p.said = append(p.said, b[:n]...)
		}
		lost := p.deaf && !asks
		p.mu.Unlock()
		if lost {
			continue
		}
		if _, err := to.Write(b[:n]); err != nil {
			_ = from.Close()
			return
		}
	}
}

// deafenAt makes the bus deaf when it says something.
func (p *lossy) deafenAt(trigger string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger = trigger
}

// hear ends that the bus is deaf. What was lost stays lost.
func (p *lossy) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = false
}

func (p *lossy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns, p.deaf, p.trigger, p.said = nil, false, "", nil
}

// TestLostAnswers has the broker carry out a request whose answer is lost.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	proxy := newLossy(t, broker)
	direct := connect(t, Options{URLs: broker.URL()})
	b := connect(t, Options{URLs: proxy.listener.Addr().String()})
	ctx := within(t, 3*time.Minute)
	runs, mine := direct.Bucket(cluster.RunsBucket), b.Bucket(cluster.RunsBucket)

	// doubt calls do, and waits until the broker has done it. The answer to what
	// holds the trigger is lost; then meanwhile runs, and the connection comes back.
	doubt := func(trigger string, do func() error, seen func() bool, meanwhile func()) error {
		t.Helper()
		proxy.deafenAt(trigger)
		result := make(chan error, 1)
		go func() { result <- do() }()
		for !seen() {
			if pause(ctx, 0) != nil {
				t.Fatal("the broker does not get the request")
			}
		}
		if meanwhile != nil {
			meanwhile()
		}
		proxy.cut()
		return <-result
	}
	value := func(key, want string) func() bool {
		return func() bool {
			r, err := runs.Get(ctx, key)
			return err == nil && string(r.Value) == want
		}
	}
	gone := func(key string) func() bool {
		return func() bool {
			_, err := runs.Get(ctx, key)
			return errors.Is(err, cluster.ErrNoRecord)
		}
	}
	records := func(phase string) {
		key := "k-" + phase
		var revision, next uint64
		check := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s, %s: %v", phase, what, err)
			}
			r, err := runs.Get(ctx, key)
			if err != nil || r.Revision != next || next <= revision {
				t.Fatalf("%s, %s: revision %d after %d, the record has %d (%v)", phase, what, next, revision, r.Revision, err)
			}
			revision = next
		}
		check("create", doubt(idHeader, func() (err error) {
			next, err = mine.Create(ctx, key, []byte("created"))
			return err
		}, value(key, "created"), nil))
		check("update", doubt(idHeader, func() (err error) {
			next, err = mine.Update(ctx, key, []byte("updated"), revision)
			return err
		}, value(key, "updated"), nil))
		check("update to the same", doubt(idHeader, func() (err error) {
			next, err = mine.Update(ctx, key, []byte("updated"), revision)
			return err
		}, func() bool { r, err := runs.Get(ctx, key); return err == nil && r.Revision > revision }, nil))
		if err := doubt(operationHeader, func() error { return mine.Delete(ctx, key, revision) }, gone(key), nil); err != nil {
			t.Errorf("%s, delete: %v", phase, err)
		}
	}
	records("known") // by the server, from the identifier

	// The same after the server has forgotten the identifiers. It looks at those that it has while it changes for how
	// long it keeps them, and may find the old time, of minutes: the second change finds that of the first.
	var info jetstream.StreamInfo
	if _, err := direct.ask(ctx, "STREAM.INFO."+runsStream, nil, &info); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []time.Duration{110 * time.Millisecond, 100 * time.Millisecond} {
		info.Config.Duplicates = kept
		if _, err := direct.ask(ctx, "STREAM.UPDATE."+runsStream, info.Config, nil); err != nil {
			t.Fatal(err)
		}
	}
	slow := doubt
	doubt = func(trigger string, do func() error, seen func() bool, meanwhile func()) error {
		return slow(trigger, do, seen, func() {
			forgotten(ctx, t, direct)
			if meanwhile != nil {
				meanwhile()
			}
		})
	}
	records("forgotten")

	// Another that writes meanwhile is a conflict, though the value is equal.
	revision, err := mine.Create(ctx, "other", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	err = doubt(idHeader, func() error {
		_, err := mine.Update(ctx, "other", []byte("2"), revision)
		return err
	}, value("other", "2"), func() {
		if _, err := runs.Put(ctx, "other", []byte("2")); err != nil {
			t.Error(err)
		}
	})
	wantError(t, err, cluster.ErrConflict)
	doubt = slow

	// Jobs are added once, and done.
	inQueue := func(n uint64) func() bool {
		return func() bool {
			var info jetstream.StreamInfo
			_, err := direct.ask(ctx, "STREAM.INFO."+jobsStream, nil, &info)
			return err == nil && info.State.Msgs == n
		}
	}
	if err := doubt(idHeader, func() error { return b.Jobs().Submit(ctx, "job", nil) }, inQueue(1), nil); err != nil {
		t.Error(err)
	}
	if !inQueue(1)() {
		t.Error("the job was added twice")
	}
	d, err := b.Jobs().Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := doubt("+ACK", func() error { return d.Done(ctx) }, inQueue(0), nil); err != nil {
		t.Error(err)
	}
	// A dead letter is buried once.
	dead := func() bool { l, err := direct.Jobs().Dead(ctx); return err == nil && len(l) > 0 }
	if err := doubt(idHeader, func() error { return b.Jobs().Bury(ctx, cluster.DeadLetter{}) }, dead, nil); err != nil {
		t.Error(err)
	}
	if l, err := direct.Jobs().Dead(ctx); err != nil || len(l) != 1 {
		t.Errorf("%d dead letters (%v)", len(l), err)
	}
}

// forgotten returns when the server has forgotten an identifier that is newer
// than all that it has seen.
func forgotten(ctx context.Context, t *testing.T, b *Bus) {
	t.Helper()
	first := uint64(0)
	for try := 0; ; try++ {
		msg := &nats.Msg{Subject: ownedSubject(bucketSubjects(runsStream), "probe"), Header: nats.Header{idHeader: {"probe"}}}
		sequence, _, err := b.publish(ctx, msg, quick)
		switch {
		case err != nil:
			t.Error(err)
			return
		case first == 0:
			first = sequence
		case sequence > first:
			return
		}
		if pause(ctx, 0) != nil {
			t.Error("the server does not forget")
			return
		}
	}
}

// A pull that is given up hands the job back.
func TestLateJobReturns(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	x, y := connect(t, Options{URLs: broker.URL(), Lease: 10 * time.Second}), connect(t, Options{URLs: broker.URL()})
	ctx := within(t, 8*time.Second) // less than the lease
	for i := range 20 {
		id := fmt.Sprintf("late-%d", i)
		short, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			d, err := x.Jobs().Next(short)
			if err == nil {
				err = d.Release(ctx)
			}
			ended <- err
		}()
		_ = pause(ctx, 0)
		go cancel()
		if err := y.Jobs().Submit(ctx, id, nil); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		d, err := y.Jobs().Next(ctx)
		if err != nil || d.ID() != id {
			t.Fatalf("job %d is with nobody: %v", i, err)
		}
		if err := d.Done(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// Contents that are longer than said are refused, and chunks that do not have
// their checksum.
func TestDamagedBlobs(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL()})
	ctx := within(t, 2*time.Minute)
	size := int64(3 << 20)
	d := random(1, size)
	wantError(t, b.Blobs().Put(ctx, d, io.MultiReader(source(1, size), bytes.NewReader([]byte{0})), size), cluster.ErrCluster, "more than")
	wantError(t, b.Blobs().Get(ctx, d, io.Discard), cluster.ErrNoRecord)
	if err := b.Blobs().Put(ctx, d, source(1, size), size); err != nil {
		t.Fatal(err)
	}
	wantError(t, b.Blobs().Put(ctx, d, source(1, size), size+1), cluster.ErrCluster, "bytes")
	wantError(t, b.Blobs().Put(ctx, "../"+d[3:], source(1, size), size), cluster.ErrCluster, "SHA-256")

	m, err := (&blobs{b}).manifest(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	good := make([]byte, m.Chunk)
	if _, err := io.ReadFull(source(1, size), good); err != nil {
		t.Fatal(err)
	}
	store := func(chunk []byte, crc string) {
		t.Helper()
		msg := &nats.Msg{Subject: chunkSubject(d, m.Chunk, 0), Data: chunk, Header: nats.Header{crcHeader: {crc}}}
		if _, _, err := b.publish(ctx, msg, quick); err != nil {
			t.Fatal(err)
		}
	}
	bad := bytes.Clone(good)
	bad[7]++
	store(bad, checksum(good))
	wantError(t, b.Blobs().Get(ctx, d, io.Discard), cluster.ErrCluster, "chunk 0 is damaged")
	store(good[1:], checksum(good[1:]))
	wantError(t, b.Blobs().Get(ctx, d, io.Discard), cluster.ErrCluster, "chunk 0 is damaged")
	store(good, "")
	wantError(t, b.Blobs().Get(ctx, d, io.Discard), cluster.ErrCluster, "chunk 0 is damaged")
	store(bad, checksum(bad)) // by one who put something else under this name
	wantError(t, b.Blobs().Get(ctx, d, io.Discard), cluster.ErrCluster, "have the digest")
	store(good, checksum(good))
	if err := b.Blobs().Get(ctx, d, io.Discard); err != nil {
		t.Error(err)
	}
}

// Answers that the broker sends where a worker wants them are no records.
func TestStrayAnswers(t *testing.T) {
	t.Parallel()
	_, buses := table(t)
	worker, client := buses["worker-000"], buses["client"]
	ctx := within(t, 2*time.Minute)
	if err := worker.nc.PublishRequest(apiPrefix+"STREAM.INFO."+leadStream, bucketSubjects(leadStream)+"lead", nil); err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ { // until the answer is there
		if m, err := client.get(ctx, leadStream, query{Last: bucketSubjects(leadStream) + "lead"}); err == nil && len(m.Data) > 0 {
			break
		}
		if pause(ctx, min(try, 3)) != nil {
			t.Skip("NOT RUN: this broker checks who may write to the address of an answer, so the attack of this test cannot be made")
		}
	}
	k := client.Bucket(cluster.LeadBucket)
	if _, err := k.Get(ctx, "lead"); !errors.Is(err, cluster.ErrNoRecord) {
		t.Errorf("an answer is a record (%v)", err)
	}
	if list, err := k.List(ctx); err != nil || len(list) != 0 {
		t.Errorf("an answer is listed (%v)", err)
	}
	if _, err := k.Create(ctx, "lead", nil); err != nil {
		t.Error(err)
	}
}

// TestClaimCut ends the wait for a job after the broker has written who takes it, and before that was heard: another taker has the job at
// once.
func TestClaimCut(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	proxy := newLossy(t, broker)
	direct := connect(t, Options{URLs: broker.URL(), Lease: DefaultLease})
	b := connect(t, Options{URLs: proxy.listener.Addr().String(), Lease: DefaultLease})
	ctx := within(t, time.Minute)
	if err := direct.Jobs().Submit(ctx, "r-1", []byte("job")); err != nil {
		t.Fatal(err)
	}
	proxy.deafenAt("PUB " + bucketSubjects(takesStream))
	first, stop := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		d, err := b.Jobs().Next(first)
		if d != nil {
			err = fmt.Errorf("job %s was had", d.ID())
		}
		result <- err
	}()
	for {
		if _, err := direct.takes().Get(ctx, "r-1"); err == nil {
			break
		}
		if pause(ctx, 0) != nil {
			t.Fatal("the job is not claimed")
		}
	}
	proxy.hear()
	stop()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the first taker ends with %v", err)
	}
	next, stop := context.WithTimeout(ctx, DefaultLease/2)
	defer stop()
	if d, err := direct.Jobs().Next(next); err != nil || d.ID() != "r-1" {
		t.Errorf("the next taker has %v, %v", d, err)
	}
}
