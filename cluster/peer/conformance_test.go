package peer_test

import (
	"runtime"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/cluster/peertest"
)

func TestConformance(t *testing.T) {
	t.Run("tcp", func(t *testing.T) { conform(t, "tcp+tls", func() string { return "" }) })
	if runtime.GOOS != "linux" {
		return
	}
	t.Run("unix", func(t *testing.T) { conform(t, "unix", t.TempDir) })
	t.Run("both", func(t *testing.T) { // every other one has a socket
		odd := false
		conform(t, "", func() string {
			if odd = !odd; odd {
				return t.TempDir()
			}
			return ""
		})
	})
}

// conform runs the suite on peers with sockets in local, or without for "". All
// frames go one way; any do for "".
func conform(t *testing.T, way string, local func() string) {
	peertest.Run(t, func(t *testing.T, ids ...string) []cluster.Peers {
		var peers []cluster.Peers
		for _, id := range ids {
			p, err := peer.Listen(peer.Options{ID: id, Local: local()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for to, got := range p.Ways() {
					if got != way && way != "" {
						t.Errorf("frames from %s to %s went by %s, want %s", id, to, got, way)
					}
				}
			})
			peers = append(peers, p)
		}
		return peers
	})
}
