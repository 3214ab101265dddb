package peer_test

import (
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/cluster/peertest"
)

func TestConformance(t *testing.T) {
	peertest.Run(t, func(t *testing.T, ids ...string) []cluster.Peers {
		var peers []cluster.Peers
		for _, id := range ids {
			p, err := peer.Listen(peer.Options{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			peers = append(peers, p)
		}
		return peers
	})
}
