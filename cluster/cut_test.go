package cluster_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster/simnet"
)

// TestCutOff lets a worker join a run that cannot reach the one with the parameters: the run's log says why it waits, and the run
// is done once the two reach each other.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, 3, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		tr := w.addTraining("c-0")
		tr.steps = 12
		w.startWorker("w0")
		tr.startLeader()
		time.Sleep(5 * time.Second)
		w.net.Cut("w0", "w1")
		w.startWorker("w1")
		time.Sleep(5 * time.Minute)
		w.net.Heal("w0", "w1")
		for end := time.Now().Add(time.Hour); !w.over() && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
		w.finish()
		if err := tr.check(); err != nil {
			t.Error(err)
		}
		if text := log.String(); !strings.Contains(text, "msg=trouble run=c-0 worker=w1") || !strings.Contains(text, "fetch version") {
			t.Errorf("the log does not say what w1 waits for:\n%s", text)
		}
	})
}
