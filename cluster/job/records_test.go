package job

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/cluster/uploads"
)

func TestRunIDs(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	a, b := NewID(at), NewID(at.Add(time.Second))
	if !strings.HasPrefix(a, "20260304-050607-") || a >= b || CheckID(a) != nil || NewID(at) == a {
		t.Errorf("ids %q, %q", a, b)
	}
	for _, bad := range []string{"", "a b", "a.b", "../x", "a/b", "ä", strings.Repeat("a", MaxID+1), CancelPrefix + a, ledPrefix + a, "a\n"} {
		if err := CheckID(bad); !errors.Is(err, ErrNoRun) {
			t.Errorf("CheckID(%q) = %v", bad, err)
		}
	}
}

// brokenBus is a bus whose buckets cannot be listed.
type brokenBus struct{ cluster.Bus }

type brokenBucket struct{ cluster.Bucket }

var errList = errors.New("the broker is away")

func (b brokenBus) Bucket(name string) cluster.Bucket { return brokenBucket{b.Bus.Bucket(name)} }

func (brokenBucket) List(context.Context) ([]cluster.Record, error) { return nil, errList }

// TestListRuns reads the records of all runs, without those beside them. One that cannot be read is named and hides none. Where none can be
// read, that is not the same as having no runs.
func TestListRuns(t *testing.T) {
	bus := simnet.New(1, simnet.Faults{}).Host("c").Bus()
	if err := errors.Join(PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "a"}}), uploads.Note(t.Context(), bus, "b", nil)); err != nil {
		t.Fatal(err)
	}
	if runs, err := ListRuns(t.Context(), bus); err != nil || len(runs) != 1 || runs[0].Run != "a" {
		t.Errorf("runs %+v, error %v; want run a alone", runs, err)
	}
	if _, err := bus.Bucket(cluster.RunsBucket).Put(t.Context(), "c", []byte(`{"run":"c","step":"many"}`)); err != nil {
		t.Fatal(err)
	}
	runs, err := ListRuns(t.Context(), bus)
	if err != nil || len(runs) != 2 || runs[0].Run != "a" || runs[1].Run != "c" || runs[1].State != StateUnreadable || !strings.Contains(runs[1].Error, "its record cannot be read") {
		t.Errorf("runs %+v, error %v; want run a, and c that cannot be read", runs, err)
	}
	if runs, err := ListRuns(t.Context(), brokenBus{bus}); !errors.Is(err, errList) {
		t.Errorf("runs %+v, error %v; want %v", runs, err, errList)
	}
}
