package cluster_test

import (
	"bytes"
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

// TestCutOff lets a worker join a run that cannot reach the one with the parameters: the run continues without it, and says why it waited.
// The worker takes part some time after the two reach each other.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, 3, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		tr := w.addTraining("c-0")
		tr.steps = 200
		var told []string
		tr.unfit = func(worker, why string) { told = append(told, worker+": "+why) }
		steps := func() (n int, by map[string]int) {
			text, err := os.ReadFile(tr.audit)
			if err != nil {
				t.Fatal(err)
			}
			by = map[string]int{}
			for line := range bytes.Lines(text) {
				var a cluster.AuditLine
				if err := json.Unmarshal(line, &a); err != nil {
					t.Fatal(err)
				}
				n++
				for id := range a.By {
					by[id]++
				}
			}
			return n, by
		}
		w.startWorker("w0")
		tr.startLeader()
		time.Sleep(5 * time.Second)
		before, _ := steps()
		w.net.Cut("w0", "w1")
		w.startWorker("w1")
		time.Sleep(4 * time.Minute)
		if n, by := steps(); n < before+5 || by["w1"] > 0 {
			t.Errorf("%d steps in four minutes while w1 is cut off, by %v", n-before, by)
		}
		w.net.Heal("w0", "w1")
		for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
		w.finish()
		if err := tr.check(); err != nil {
			t.Error(err)
		}
		if _, by := steps(); by["w1"] == 0 {
			t.Errorf("w1 takes no part after it has reached the other; the steps are by %v", by)
		}
		if len(told) != 1 || !strings.HasPrefix(told[0], "w1: it does not get the parameters: ") {
			t.Errorf("told %q", told)
		}
		if text := log.String(); !strings.Contains(text, "msg=trouble run=c-0 worker=w1") || !strings.Contains(text, "fetch version") {
			t.Errorf("the log does not say what w1 waits for:\n%s", text)
		}
	})
}
