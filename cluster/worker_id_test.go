package cluster_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestSameID starts two workers with one id, which both say so, and a worker again before the
// record of its earlier life is gone, which is as usual.
func TestSameID(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
			defer w.finish()
			logs := make([]bytes.Buffer, 2)
			for i, host := range []string{"w0", "w0-too"} {
				if again && i == 1 {
					w.kill("w0")
				}
				h := w.net.Host(host)
				toy := &simnet.Toy{Worker: host, Seed: w.seed}
				worker, err := cluster.NewWorker(cluster.WorkerOptions{
					ID: "w0", Bus: h.Bus(), Peers: []cluster.Peers{h.Peers()}, Loader: loader{toy, host, w}, Dir: t.TempDir(),
					Member: cluster.Member{Paths: toy.Paths(), Device: "toy"}, Log: slog.New(slog.NewTextHandler(&logs[i], nil)),
				})
				if err != nil {
					t.Fatal(err)
				}
				w.begin(host, func(ctx context.Context) {
					_ = worker.Run(ctx)
					_ = h.Peers().Close()
				})
				time.Sleep(time.Second)
			}
			time.Sleep(2 * cluster.DefaultLease)
			w.finish()
			for i := range logs {
				if warned := strings.Contains(logs[i].String(), "another worker has this id"); warned == again {
					t.Errorf("started again: %v; worker %d says %q", again, i, logs[i].String())
				}
			}
		})
	}
}
