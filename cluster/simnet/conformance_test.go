package simnet

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/bustest"
	"github.com/pce-engine/pce/cluster/peertest"
)

// TestBus runs the checks of all buses in virtual time.
func TestBus(t *testing.T) {
	for _, c := range bustest.Checks {
		for name, faults := range map[string]Faults{
			"perfect": {},
			"slow":    {MinDelay: time.Millisecond, MaxDelay: 20 * time.Millisecond},
		} {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, members := New(1, faults), 0
					c.Run(t, bustest.Bench{
						Open: func(*testing.T) cluster.Bus {
							members++
							return n.Host(fmt.Sprint("m", members)).Bus()
						},
						Lease: Lease,
						Sleep: time.Sleep,
					})
				})
			})
		}
	}
}

// TestPeers runs the checks of all peers, by the clock.
func TestPeers(t *testing.T) {
	peertest.Run(t, func(t *testing.T, ids ...string) (list []cluster.Peers) {
		n := New(1, Faults{})
		for _, id := range ids {
			list = append(list, n.Host(id).Peers())
		}
		return list
	})
}
