package job

import (
	"testing"

	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/run"
)

// TestEarlierPath trains with the plainest kernels and wants the lead of a run that resumes it to ask for these.
func TestEarlierPath(t *testing.T) {
	_, paths, err := run.Probe(run.Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	o := trainOptions(t, imageFiles(t, t.TempDir(), 4), "hmm")
	o.EM.Phases[0].Epochs, o.Options.KernelPath = 1, paths[len(paths)-1]
	l := testLead(t, simnet.New(1, simnet.Faults{}).Host("c").Bus())
	l.Dir = o.Dir
	if got := l.earlierPath(); got != "" {
		t.Errorf("before the run: path %q", got)
	}
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := l.earlierPath(); got != o.Options.KernelPath {
		t.Errorf("path %q, want %q", got, o.Options.KernelPath)
	}
}
