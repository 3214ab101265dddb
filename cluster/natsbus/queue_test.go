package natsbus

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
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
