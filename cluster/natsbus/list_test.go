package natsbus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pce-engine/pce/cluster"
)

// TestListAtOnce lists records of a broker whose answers do not come: many are asked for before the first answer, so that a list over
// a slow line does not take a round trip for each, and the answers may take as long as so many at a time do.
func TestListAtOnce(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	proxy := newLossy(t, broker)
	direct := connect(t, Options{URLs: broker.URL()})
	b := connect(t, Options{URLs: proxy.listener.Addr().String()})
	b.patience, b.stubborn = 300*time.Millisecond, time.Second
	ctx := within(t, 3*time.Minute)
	const records = 3 * readsAtOnce
	for i := range records {
		if _, err := direct.Bucket(cluster.RunsBucket).Put(ctx, fmt.Sprintf("r-%d-client", i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	asks := "STREAM.MSG.GET." + runsStream
	proxy.deafenAt(asks)
	listed := make(chan error, 1)
	go func() {
		list, err := b.Bucket(cluster.RunsBucket).List(ctx)
		if err == nil && len(list) != records {
			err = fmt.Errorf("%d records, want %d", len(list), records)
		}
		listed <- err
	}()
	for try := 0; proxy.asked(asks) < readsAtOnce; try++ {
		select {
		case err := <-listed:
			t.Fatalf("the list ends with %v after %d questions without an answer, want %d at a time", err, proxy.asked(asks), readsAtOnce)
		default:
		}
		if err := pause(ctx, try); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-listed:
		t.Fatalf("the list ends with %v while its answers are on their way", err)
	case <-time.After(3 * b.stubborn):
	}
	proxy.cut()
	if err := <-listed; err != nil {
		t.Error(err)
	}
}

// asked counts how often the bus has said something while it was deaf.
func (p *lossy) asked(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Count(p.said, []byte(what))
}

// TestListOfEarlierVersion lists records of a version whose subjects did not name the owner of a run. One that was written once more since
// is listed once, as it is now.
func TestListOfEarlierVersion(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	ctx := within(t, time.Minute)
	nc := peersConn(t, broker.URL())
	config := assets(DefaultLease, 1)[2]
	config.Subjects = []string{bucketSubjects(runsStream) + "*"}
	request, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.RequestWithContext(ctx, apiPrefix+"STREAM.CREATE."+runsStream, request); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"1-kept", "2-written", "3-deleted"} {
		msg := &nats.Msg{Subject: bucketSubjects(runsStream) + key, Header: nats.Header{idHeader: {key}}, Data: []byte("old")}
		if _, err := nc.RequestMsgWithContext(ctx, msg); err != nil {
			t.Fatal(err)
		}
	}
	runs := connect(t, Options{URLs: broker.URL()}).Bucket(cluster.RunsBucket)
	want := map[string]string{"1-kept": "old", "2-written": "old", "3-deleted": "old"}
	check := func() {
		t.Helper()
		list, err := runs.List(ctx)
		got := map[string]string{}
		for _, r := range list {
			got[r.Key] = string(r.Value)
		}
		if err != nil || len(list) != len(got) || !maps.Equal(got, want) {
			t.Errorf("%d records %v, %v; want %v", len(list), got, err, want)
		}
	}
	check()
	for _, key := range []string{"2-written", "3-deleted"} {
		if _, err := runs.Put(ctx, key, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.Delete(ctx, "3-deleted", 0); err != nil {
		t.Fatal(err)
	}
	want["2-written"] = "new"
	delete(want, "3-deleted")
	check()
}
