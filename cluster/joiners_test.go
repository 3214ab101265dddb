package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// TestStoppedWhileJoining stops a run while a worker joins that gets the parameters over a slow line, from the only one that has them: the
// parameters are read for the last checkpoint all the same, at once.
func TestStoppedWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
		defer w.finish()
		w.quick = true
		w.line = func(p cluster.Peers) cluster.Peers { return slowLine{p, 3 * cluster.DefaultLease} }
		tr := w.addTraining("c-0")
		tr.toy.Params = 12 * cluster.MaxFrameBytes / 4
		w.startWorker("w0")
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		r, f := w.leadHere(ctx, tr, cluster.RunOptions{}, 2)
		defer w.net.Host("c-0").Peers().Close()
		defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
		if _, err := f.Step(ctx, tr.rule(0)); err != nil {
			t.Fatal(err)
		}
		w.startWorker("w1")
		time.Sleep(cluster.DefaultLease)
		time.AfterFunc(cluster.DefaultLease, stop)
		if _, err := f.Step(ctx, tr.rule(1)); !errors.Is(err, context.Canceled) {
			t.Fatalf("a step while a worker joins: %v, want it to wait until the run is stopped", err)
		}
		reading, end := context.WithTimeout(context.Background(), time.Hour)
		defer end()
		begin := time.Now()
		if err := f.ReadParams(reading, 0, tr.first()); err != nil || time.Since(begin) > cluster.DefaultLease {
			t.Errorf("the parameters are read in %v: %v", time.Since(begin), err)
		}
	})
}
