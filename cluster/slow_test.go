package cluster_test

import (
	"cmp"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster/simnet"
)

// TestSlowShards plays steps of nine shards, each followed by an evaluation of two. However long shards take, each
// is computed once, in the time that it takes workers which share them (for two: six rounds of work a step). One that
// beats but finishes nothing, or is very slow, delays the run by its patience.
func TestSlowShards(t *testing.T) {
	even := func(d time.Duration) func(string) time.Duration { return func(string) time.Duration { return d } }
	slow := func(worker string, d time.Duration) func(string) time.Duration {
		return func(id string) time.Duration {
			if id == worker {
				return d
			}
			return 10 * time.Second
		}
	}
	flows := func(row int) func(simnet.ToyWork) bool {
		return func(w simnet.ToyWork) bool { return w.Worker == "w1" && w.Source == "" && w.Rows.Lo == row }
	}
	for _, tc := range []struct {
		name    string
		workers int
		steps   int // 0: 4
		rows    int // of a step, 0: 144; a shard has 16
		pace    func(worker string) time.Duration
		kind    string // of w1
		hangs   func(simnet.ToyWork) bool
		late    time.Duration // that w0 starts after the others
		second  time.Duration // after which another coordinator leads
		works   int
		took    time.Duration
	}{
		{name: "20 s", workers: 2, pace: even(20 * time.Second), works: 44, took: 8 * time.Minute},
		{name: "70 s", workers: 2, pace: even(70 * time.Second), works: 44, took: 28 * time.Minute},
		{name: "70 s alone", workers: 1, pace: even(70 * time.Second), works: 44, took: 44 * 70 * time.Second},
		{name: "10 min", workers: 2, pace: even(10 * time.Minute), works: 44, took: 4 * time.Hour},
		{name: "90 min", workers: 2, steps: 1, rows: 16, pace: even(90 * time.Minute), works: 5, took: 5*time.Hour + 30*time.Minute},
		{name: "20 times slower", workers: 3, pace: slow("w1", 200*time.Second), works: 44, took: 53*time.Minute + 20*time.Second},
		{name: "40 times slower", workers: 3, pace: slow("w1", 400*time.Second), works: 46, took: 13 * time.Minute},
		{name: "40 times slower, of another kind", workers: 3, pace: slow("w1", 400*time.Second), kind: "slow", works: 44, took: 23 * time.Minute},
		{name: "stuck at its first", workers: 2, pace: even(time.Second), hangs: flows(16), works: 45, took: time.Minute + 38*time.Second},
		{name: "stuck later", workers: 2, pace: even(time.Second), hangs: flows(80), works: 47, took: time.Minute + 38*time.Second},
		{name: "stuck in an evaluation", workers: 2, pace: even(time.Second), hangs: func(w simnet.ToyWork) bool { return w.Worker == "w1" && w.Source != "" }, works: 45, took: time.Minute + 38*time.Second},
		{name: "stuck, of another kind", workers: 2, pace: even(time.Second), kind: "other", hangs: flows(16), works: 45, took: time.Hour + 38*time.Second},
		{name: "stuck, of another kind, then led anew", workers: 3, pace: even(time.Second), kind: "other", hangs: flows(16), second: 7 * time.Minute, works: 51, took: time.Hour + 7*time.Minute + 15*time.Second},
		{name: "given up, then led anew", workers: 3, pace: even(10 * time.Second), hangs: flows(16), second: 7 * time.Minute, works: 54, took: 10 * time.Minute},
		{name: "joins in an evaluation", workers: 2, steps: 1, rows: 16, pace: even(10 * time.Minute), late: 15 * time.Minute, works: 3, took: 30 * time.Minute},
		{name: "stuck alone", workers: 2, pace: even(time.Second), hangs: flows(0), late: 10 * time.Minute, works: 45, took: time.Hour + 10*time.Minute + 38*time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && tc.took > time.Hour {
				t.Skip("hours of virtual time take a second; left out by -short")
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 7, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
				defer w.finish()
				works := 0
				w.pace, w.kinds = tc.pace, map[string]string{"w1": tc.kind}
				w.fault = func(work simnet.ToyWork) simnet.ToyFault {
					w.mu.Lock()
					defer w.mu.Unlock()
					works++
					return when(tc.hangs != nil && tc.hangs(work), simnet.ToyHangs)
				}
				tr := w.addTraining("c-0")
				tr.steps, tr.rows = cmp.Or(tc.steps, 4), cmp.Or(tc.rows, 144)
				tr.startLeader()
				begin := time.Now()
				for i := tc.workers - 1; i >= 0; i-- {
					if i == 0 {
						time.Sleep(tc.late)
					}
					w.startWorker(fmt.Sprintf("w%d", i))
				}
				if tc.second > 0 {
					time.Sleep(tc.second)
					w.kill("c-0")
					tr.startLeader()
				}
				for !w.over() && time.Since(begin) < 20*time.Hour {
					time.Sleep(time.Second)
				}
				took := time.Since(begin)
				if err := tr.check(); err != nil {
					t.Error(err)
				}
				if works != tc.works || took < tc.took || took > tc.took+20*time.Second {
					t.Errorf("%d pieces of work in %v, want %d in %v", works, took, tc.works, tc.took)
				}
			})
		})
	}
}
