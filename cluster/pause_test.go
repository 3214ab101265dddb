package cluster_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// TestPauses plays runs on a network where a message takes 1 ms and computing no
// time at all. Whatever a run does may then last a few messages, and none of the
// pauses that are fractions of the lease.
func TestPauses(t *testing.T) {
	const most = 30 * time.Millisecond
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprintf("workers=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
				defer w.finish()
				w.quick = true
				tr := w.addTraining("c-0")
				for i := range n {
					w.startWorker(fmt.Sprintf("w%d", i))
				}
				time.Sleep(time.Minute + 123*time.Millisecond) // they are there, between two ticks
				host := w.net.Host("c-0")
				defer host.Peers().Close()
				c := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
				last := time.Now()
				took := func(what string, err error) {
					t.Helper()
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if d := time.Since(last); d > most {
						t.Errorf("%s took %v, want at most %v", what, d, most)
					}
					last = time.Now()
				}
				ctx := context.Background()
				for run := range 2 {
					r, err := c.Begin(ctx, cluster.RunOptions{
						Spec: tr.toy.Spec(fmt.Sprintf("run-%d", run)), Transport: "memory", Workers: n, AuditFile: filepath.Join(w.dir, fmt.Sprint(run)),
					})
					took("begin", err)
					valid, named := tr.sources()
					f := r.FlowsOf(ctx, tr.layout(), tr.rows, named)
					state := tr.first()
					took("write", f.WriteParams(ctx, 0, state))
					plan := em.Plan{Schedule: tr.schedule(), ShardRows: tr.shardRows, Epochs: 3, Start: dataset.Cursor{}}
					took("plan", f.Begin(ctx, plan))
					for step := range 3 {
						_, err := f.Step(ctx, tr.rule(step))
						took(fmt.Sprintf("step %d", step), err)
						if step > 0 { // the first is evaluated before it is read
							took("read", f.ReadParams(ctx, 0, state))
						}
						_, err = f.LogLikelihood(ctx, valid)
						took("evaluation", err)
						took("read again", f.ReadParams(ctx, 0, state))
					}
					took("close", r.Close(ctx))
				}
			})
		})
	}
}
