package natsbus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pce-engine/pce/cluster"
)

// TestNamelessJob puts a job into the queue whose subject has no id of a job, as other programs may: it is removed, and the job
// behind it is handed out.
func TestNamelessJob(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL()})
	ctx := within(t, time.Minute)
	msg := &nats.Msg{Subject: jobPrefix + "client.a+b", Header: nats.Header{idHeader: {"a+b"}}}
	if _, _, err := b.publish(ctx, msg, quick); err != nil {
		t.Fatal(err)
	}
	if err := b.Jobs().Submit(ctx, "good-client", nil); err != nil {
		t.Fatal(err)
	}
	d, err := b.Jobs().Next(ctx)
	if err != nil || d.ID() != "good-client" {
		t.Fatalf("next job: %v, %v", d, err)
	}
	if err := d.Done(ctx); err != nil {
		t.Error(err)
	}
	for try := 0; ; try++ {
		_, err := b.get(ctx, jobsStream, query{Seq: 1, Next: jobPrefix + ">"})
		if isNoRecord(err) {
			break
		}
		if err != nil || pause(ctx, try) != nil {
			t.Fatalf("a job is left in the queue: %v", err)
		}
	}
}

// TestStrangeLetter writes a dead letter that is none, as any client may: the others are read, and it is named.
func TestStrangeLetter(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL()})
	ctx := within(t, time.Minute)
	for _, text := range []string{`{"run":"r-1","shard":4}`, `"r-2"`, `{"run":"r-3","shard":"five"}`} {
		if _, _, err := b.publish(ctx, &nats.Msg{Subject: deadSubject, Data: []byte(text), Header: nats.Header{idHeader: {text}}}, quick); err != nil {
			t.Fatal(err)
		}
	}
	dead, err := b.Jobs().Dead(ctx)
	if err != nil || len(dead) != 3 || dead[0].Run != "r-1" || dead[0].Shard != 4 {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	for i, letter := range dead[1:] {
		if want := fmt.Sprintf("dead letter %d cannot be read", i+2); letter.Run != "" || letter.Shard != -1 || !strings.Contains(letter.Reason, want) {
			t.Errorf("%+v, want one with %q", letter, want)
		}
	}
}

// TestNoTakers has the server fail to make the consumer of jobs, as it does for a moment where one coordinator makes it while another, whose
// broker has just been started, removes it: the queue is unreachable, which takers wait out, and hands the job out once the server can.
func TestNoTakers(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL()})
	b.stubborn = 100 * time.Millisecond
	ctx := within(t, time.Minute)
	if err := b.Jobs().Submit(ctx, "r-client", []byte("job")); err != nil {
		t.Fatal(err)
	}
	consumers := filepath.Join(broker.server.JetStreamConfig().StoreDir, "$G", "streams", jobsStream, "obs")
	if err := errors.Join(os.RemoveAll(consumers), os.WriteFile(consumers, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Jobs().Next(ctx); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("without the consumer: %v, want it unreachable", err)
	}
	if err := errors.Join(os.Remove(consumers), os.Mkdir(consumers, 0o700)); err != nil {
		t.Fatal(err)
	}
	if d, err := b.Jobs().Next(ctx); err != nil || d.ID() != "r-client" {
		t.Errorf("with it: %v, %v; want the job", d, err)
	}
}

// TestOtherTakers has another program make the consumer of jobs with settings that stay as they are: that does not pass, and is said at once.
func TestOtherTakers(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL()})
	ctx := within(t, time.Minute)
	other := map[string]any{"stream_name": jobsStream, "config": jetstream.ConsumerConfig{
		Name: takers, Durable: takers, AckPolicy: jetstream.AckExplicitPolicy, MaxWaiting: 7,
	}}
	if _, err := b.ask(ctx, "CONSUMER.CREATE."+jobsStream+"."+takers, other, nil); err != nil {
		t.Fatal(err)
	}
	_, err := b.Jobs().Next(ctx)
	if !errors.Is(err, cluster.ErrCluster) || errors.Is(err, cluster.ErrUnreachable) || !strings.Contains(err.Error(), "was made by something else, delete it: max waiting can not be updated") {
		t.Errorf("a consumer of other settings: %v", err)
	}
}

// TestTakersLease makes the consumer of jobs with the lease that the broker has by then: who made it with that of its connection would have
// jobs of a taker that has died wait for three of the old ones.
func TestTakersLease(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL(), Lease: time.Hour})
	connect(t, Options{URLs: broker.URL(), Lease: time.Second})
	ctx := within(t, time.Minute)
	if err := b.Jobs().Submit(ctx, "r-client", []byte("job")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Jobs().Next(ctx); err != nil {
		t.Fatal(err)
	}
	var info jetstream.ConsumerInfo
	if _, err := b.ask(ctx, "CONSUMER.INFO."+jobsStream+"."+takers, nil, &info); err != nil || info.Config.AckWait != redeliveries*time.Second {
		t.Errorf("jobs come again after %v, %v; want three leases of a second", info.Config.AckWait, err)
	}
}
