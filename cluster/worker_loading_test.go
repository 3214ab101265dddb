package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// endless loads no run before its context ends.
type endless struct {
	*simnet.Toy
	began chan struct{}
}

func (l endless) Load(ctx context.Context, _ cluster.Spec, _ cluster.Blobs) (cluster.Session, error) {
	close(l.began)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestStoppedLoading stops a worker that loads a run, as from a slow line: it leaves at once, since it has no shard to finish.
func TestStoppedLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{})
		defer w.finish()
		tr := w.addTraining("c-0")
		host, l := w.net.Host("w0"), endless{&simnet.Toy{Worker: "w0"}, make(chan struct{})}
		worker, err := cluster.NewWorker(cluster.WorkerOptions{
			ID: "w0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Loader: l, Member: cluster.Member{Paths: l.Paths()}, Log: w.log,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer host.Peers().Close()
		ctx, stop := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { left <- worker.Run(ctx) }()
		tr.startLeader()
		<-l.began
		begin := time.Now()
		stop()
		if err := <-left; err != nil || time.Since(begin) >= cluster.DefaultLease {
			t.Errorf("it has left after %v with the error %v", time.Since(begin), err)
		}
	})
}
