package cluster_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestStoppingRecord tells a worker to stop while it computes a shard: its record says so until it has left, and the run is done by
// the other one.
func TestStoppingRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 7, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
		w.pace = func(string) time.Duration { return 4 * time.Second }
		tr := w.addTraining("c-0")
		tr.rows = 160
		w.startWorker("w0")
		w.startWorker("w1")
		tr.startLeader()
		members := w.net.Host("reader").Bus().Bucket(cluster.MembersBucket)
		stopping := func() (is, there bool) {
			rec, err := members.Get(t.Context(), "w0")
			if err != nil {
				return false, false
			}
			var m cluster.Member
			if err := json.Unmarshal(rec.Value, &m); err != nil {
				t.Fatal(err)
			}
			return m.Stopping, true
		}
		time.Sleep(6 * time.Second) // in the middle of its second shard
		if is, there := stopping(); is || !there {
			t.Errorf("before the stop: stopping %v, there %v", is, there)
		}
		w.all.Go(func() { w.stop("w0") })
		time.Sleep(500 * time.Millisecond)
		if is, there := stopping(); !is || !there {
			t.Errorf("after the stop: stopping %v, there %v; want both", is, there)
		}
		for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
		w.finish()
		if err := tr.check(); err != nil {
			t.Error(err)
		}
	})
}
