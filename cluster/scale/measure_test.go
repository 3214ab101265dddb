//go:build unix

package scale

import (
	"encoding/json"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/assign"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/layers"
)

// cpu is the processor time of this process: other processes do not lengthen it.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWire sends frames from one member to another over the TCP transport:
// what a sender and a receiver each take for a byte.
func BenchmarkWire(b *testing.B) {
	const frames = 1000
	var members [2]*peer.Peers
	var got atomic.Int64
	came := make(chan struct{})
	for i, id := range []string{"a", "b"} {
		p, err := peer.Listen(peer.Options{ID: id})
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		p.Handle(func(string, *cluster.Frame) {
			if got.Add(1)%frames == 0 {
				came <- struct{}{}
			}
		})
		members[i] = p
	}
	all := map[string]cluster.Endpoint{"a": members[0].Endpoint(), "b": members[1].Endpoint()}
	members[0].Admit(all)
	members[1].Admit(all)
	f := cluster.Frame{Kind: cluster.FlowFrame, Count: cluster.MaxFrameBytes / 8, Payload: make([]byte, cluster.MaxFrameBytes)}
	begin, n := cpu(b), 0
	for b.Loop() {
		for range frames {
			if err := members[0].Send(b.Context(), "b", &f); err != nil {
				b.Fatal(err)
			}
		}
		<-came
		n++
	}
	b.ReportMetric(float64(cpu(b)-begin)/float64(n)/frames/cluster.MaxFrameBytes/2, "cpu-ns/byte")
}

// BenchmarkFold checks and adds a frame of flows, as an owner does.
func BenchmarkFold(b *testing.B) {
	const frames, elems = 64, cluster.MaxFrameBytes / 8
	flows, sums := make([]int64, elems), make([]int64, frames*elems)
	owner := layers.Owner{Flows: []layers.Range{{Lo: 0, Hi: frames * elems}, {Lo: frames * elems, Hi: frames*elems + 1}}}
	begin, n := cpu(b), 0
	for b.Loop() {
		check := layers.NewFlowCheck(owner)
		for at := int64(0); at < frames*elems; at += elems {
			check.Add(at, flows)
			for i, x := range flows {
				sums[at+int64(i)] += x
			}
		}
		n++
	}
	b.ReportMetric(float64(cpu(b)-begin)/float64(n)/frames/cluster.MaxFrameBytes, "cpu-ns/byte")
}

// BenchmarkCopy copies flows of a large model.
func BenchmarkCopy(b *testing.B) {
	from, to := make([]int64, 8<<20), make([]int64, 8<<20)
	begin, n := cpu(b), 0
	for b.Loop() {
		copy(to, from)
		n++
	}
	b.ReportMetric(float64(cpu(b)-begin)/float64(n)/float64(8*len(from)), "cpu-ns/byte")
}

// BenchmarkLook assigns a shard: what a worker that is looked at takes.
func BenchmarkLook(b *testing.B) {
	const workers = 256
	speeds := make([]assign.Median, workers)
	for i := range speeds {
		for k := range 15 {
			speeds[i].Add(float64(1000 + (7*k+i)%13))
		}
	}
	list := make([]assign.Worker, workers)
	begin, n := cpu(b), 0
	for b.Loop() {
		for i := range list {
			list[i] = assign.Worker{Leased: 2, Depth: 2, Speed: speeds[i].Value()}
		}
		if assign.Next(list) >= 0 {
			b.Fatal("a shard for a worker with its hands full")
		}
		n++
	}
	b.ReportMetric(float64(cpu(b)-begin)/float64(n)/workers, "cpu-ns/worker")
}

// BenchmarkMessage writes and reads JSON like that of a message with a checksum
// for each seat.
func BenchmarkMessage(b *testing.B) {
	for name, seats := range map[string]int{"seats=0": 0, "seats=256": 256} {
		b.Run(name, func(b *testing.B) {
			type message struct {
				Kind, From, Run string
				Term, MovedIn   cluster.Term
				Version         cluster.Version
				Task            struct {
					Kind                   string
					Step                   cluster.Step
					Rows, ShardRows, Round int
				}
				Shards []int
				Result struct {
					LL               uint64
					Rows, Impossible int
				}
				Nanos int64
				Sums  map[string]uint32
			}
			m := message{Kind: "done", From: "worker-17-abcdefghij", Run: "run-abcdefghij", Shards: []int{117, 118}, Nanos: 1e9, Sums: map[string]uint32{}}
			for i := range seats {
				m.Sums["worker-"+string(rune('a'+i/26))+string(rune('a'+i%26))] = 4_000_000_000
			}
			size := 0
			begin, n := cpu(b), 0
			for b.Loop() {
				text, err := json.Marshal(&m)
				if err != nil {
					b.Fatal(err)
				}
				var back message
				if err := json.Unmarshal(text, &back); err != nil {
					b.Fatal(err)
				}
				size = len(text)
				n++
			}
			b.ReportMetric(float64(cpu(b)-begin)/float64(n)/2, "cpu-ns/message")
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
