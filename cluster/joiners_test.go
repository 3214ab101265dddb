package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// slowLine takes a while for each frame of parameters to workers.
type slowLine struct {
	cluster.Peers
	each time.Duration
}

func (l slowLine) Send(ctx context.Context, to string, f *cluster.Frame) error {
	if f.Kind == cluster.StateFrame && strings.HasPrefix(to, "w") {
		select {
		case <-time.After(l.each):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.Peers.Send(ctx, to, f)
}

// TestJoinersTakeTurns lets four workers join a run at once, where it takes five leases to give one the parameters: each gets them when
// another is free to give them, and none gives up before.
func TestJoinersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, 3, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		w.line = func(p cluster.Peers) cluster.Peers { return slowLine{p, 5 * cluster.DefaultLease} }
		tr := w.addTraining("c-0")
		tr.steps, tr.save = 40, 40
		w.startWorker("w0")
		tr.startLeader()
		time.Sleep(5 * time.Second)
		joiners := []string{"w1", "w2", "w3", "w4"}
		for _, id := range joiners {
			w.startWorker(id)
		}
		for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
		w.finish()
		if err := tr.check(); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(tr.audit)
		if err != nil {
			t.Fatal(err)
		}
		steps := map[string]int{}
		for line := range bytes.Lines(text) {
			var a cluster.AuditLine
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatal(err)
			}
			for id := range a.By {
				steps[id]++
			}
		}
		for _, id := range joiners {
			if steps[id] == 0 {
				t.Errorf("%s takes no part; the steps are by %v", id, steps)
			}
		}
		if strings.Contains(log.String(), "msg=trouble") {
			t.Errorf("a worker gave up:\n%s", &log)
		}
	})
}
