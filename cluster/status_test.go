package cluster_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestStatusOfLater cuts a coordinator off while another one leads its run, which has ended or is still led when the first one is back: what
// the later lead has said of the run stays.
func TestStatusOfLater(t *testing.T) {
	for _, ended := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
			defer w.finish()
			tr := w.addTraining("c-0")
			w.startWorker("w0")
			ctx, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			running := cluster.RunOptions{Status: cluster.RunStatus{State: "running"}}
			r, _ := w.leadHere(ctx, tr, running, 1)
			defer w.net.Host("c-0").Peers().Close()
			defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
			time.Sleep(2 * cluster.DefaultLease)
			w.net.Isolate("c-0")
			time.Sleep(2 * cluster.DefaultLease)

			host := w.net.Host("c-1")
			defer host.Peers().Close()
			runs := host.Bus().Bucket(cluster.RunsBucket)
			status := func() (s cluster.RunStatus) {
				t.Helper()
				rec, err := runs.Get(ctx, "run")
				if err == nil {
					err = json.Unmarshal(rec.Value, &s)
				}
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-1", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
			running.Spec, running.Transport = tr.toy.Spec("run"), "memory"
			later, err := co.Begin(ctx, running)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * cluster.DefaultLease)
			if ended {
				if err := later.Close(ctx); err != nil {
					t.Error(err)
				}
				s := status()
				s.State = "done"
				text, err := json.Marshal(s)
				if err == nil {
					_, err = runs.Put(ctx, "run", text)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			before := status()
			w.net.Rejoin("c-0")
			time.Sleep(2 * cluster.DefaultLease)
			if s := status(); s.Lead != "c-1" || s.State != before.State || before.Lead != "c-1" {
				t.Errorf("ended %v: the run is %s of %s, want %s of c-1, as before (%s)", ended, s.State, s.Lead, before.State, before.Lead)
			}
			if !ended {
				_ = later.Close(ctx)
			}
		})
	}
}
