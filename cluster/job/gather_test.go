package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestGatherRefuses waits for a worker where there are two of other versions and one whose record cannot be read: the log says once of each why the
// wait goes beyond it, and all are left out.
func TestGatherRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1, simnet.Faults{})
		bus := net.Host("c-1").Bus()
		register := func(m cluster.Member) {
			text, err := json.Marshal(m)
			if err != nil {
				t.Error(err)
			}
			if _, err := net.Host(m.ID).Bus().Bucket(cluster.MembersBucket).Put(t.Context(), m.ID, text); err != nil {
				t.Error(err)
			}
		}
		go func() {
			for range 4 { // records last as long as a lease
				register(cluster.Member{ID: "w0", Version: "0", Build: "v2"})
				register(cluster.Member{ID: "w1", Version: cluster.Protocol, Build: "v1"})
				if _, err := bus.Bucket(cluster.MembersBucket).Put(t.Context(), "w3", []byte(`{"id":"w3","threads":"many"}`)); err != nil {
					t.Error(err)
				}
				time.Sleep(simnet.Lease / 2)
			}
			register(cluster.Member{ID: "w2", Version: cluster.Protocol, Build: "v2"})
		}()
		var log bytes.Buffer
		l := &Lead{Bus: bus, Build: "v2", Workers: 1, Log: slog.New(slog.NewTextHandler(&log, nil))}
		if err := l.Gather(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(l.members) != 1 || l.members[0].ID != "w2" {
			t.Errorf("gathered %v", l.members)
		}
		for _, want := range []string{"worker=w0 err=\"it speaks version 0 of the protocol", "worker=w1 err=\"it is pce v1, this is v2; give all members the same version of pce", "worker=w3 err=\"its record cannot be read"} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("want %s once in:\n%s", want, &log)
			}
		}
	})
}

// TestBeginWaits has a run get the lead when its workers have left: the log says that it waits for some, and it ends where the broker cannot
// store any more.
func TestBeginWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		host := simnet.New(1, simnet.Faults{}).Host("c-1")
		defer host.Peers().Close()
		l := testLead(t, host.Bus())
		l.Coordinator = cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-1", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}})
		l.Workers, l.Transport, l.Log = 2, "memory", slog.New(slog.NewTextHandler(&log, nil))
		full := fmt.Errorf("%w: its disk is full", cluster.ErrUnreachable)
		l.Watch = func(ctx context.Context, _ cluster.Bus) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(time.Hour, func() { cancel(full) })
			return ctx, func() { timer.Stop(); cancel(nil) }
		}
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Hour)
		defer stop()
		if err := l.Begin(ctx, [32]byte{}, nil); !errors.Is(err, full) {
			t.Errorf("it ends with %v, want %v", err, full)
		}
		if n := strings.Count(log.String(), `msg="waiting for workers" want=2 have=0`); n != 1 {
			t.Errorf("%d times it is said that workers are waited for, want once:\n%s", n, &log)
		}
		if err := l.Close(t.Context(), true); err != nil {
			t.Error(err)
		}
	})
}

// TestBeginAgain leads runs whose records say that they are done: that of one which pce train --cluster resumes says that it runs, also while
// it waits for workers, and that of the queue stays.
func TestBeginAgain(t *testing.T) {
	for id, want := range map[string]string{LocalPrefix + "1": StateRunning, "run-1": StateDone} {
		synctest.Test(t, func(t *testing.T) {
			host := simnet.New(1, simnet.Faults{}).Host("c-1")
			defer host.Peers().Close()
			l := testLead(t, host.Bus())
			l.Coordinator = cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-1", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}})
			l.ID, l.Transport = id, "memory"
			if err := PutRun(t.Context(), l.Bus, &Record{RunStatus: cluster.RunStatus{Run: id, State: StateDone}}); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if err := l.Begin(ctx, [32]byte{}, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without workers it ends with %v", err)
			}
			if r, _, err := GetRun(t.Context(), l.Bus, id); err != nil || r.State != want {
				t.Errorf("run %s is %s, %v; want %s", id, r.State, err, want)
			}
			if err := l.Close(t.Context(), true); err != nil {
				t.Error(err)
			}
		})
	}
}
