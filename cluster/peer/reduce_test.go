package peer_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer"
)

const (
	reducePeers = 4
	reduceElems = 12_500_000 // 100 MB of int64
	chunkElems  = cluster.MaxFrameBytes / 8
)

// mesh moves chunks between the members of a reduction, who are numbers.
type mesh interface {
	send(from, to int, kind cluster.FrameKind, offset int64, payload []byte) error
	handle(func(from, to int, kind cluster.FrameKind, offset int64, payload []byte))
	close()
}

// reduction is the work that all transports do alike: flows are added up at the
// owners of their parts, who make parameters of them and send these to all.
type reduction struct {
	mesh   mesh
	flows  [reducePeers][]int64
	params [reducePeers][]float32
	locks  [reducePeers][]sync.Mutex // of each chunk of flows
	wait   [reducePeers]struct{ flows, params sync.WaitGroup }
}

func newReduction(m mesh) *reduction {
	r := &reduction{mesh: m}
	for i := range reducePeers {
		r.flows[i] = make([]int64, reduceElems)
		r.params[i] = make([]float32, reduceElems)
		r.locks[i] = make([]sync.Mutex, reduceElems/chunkElems+1)
	}
	m.handle(r.take)
	return r
}

func part(i int) (lo, hi int) {
	return i * reduceElems / reducePeers, (i + 1) * reduceElems / reducePeers
}

// chunks calls do with the bounds of each chunk of a part.
func chunks(i, elems int, do func(lo, hi int)) {
	for lo, end := part(i); lo < end; lo += elems {
		do(lo, min(lo+elems, end))
	}
}

func count(i, elems int) (n int) {
	chunks(i, elems, func(int, int) { n++ })
	return n
}

func bytesOf[T int64 | float32](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

func (r *reduction) take(from, to int, kind cluster.FrameKind, offset int64, payload []byte) {
	switch kind {
	case cluster.FlowFrame:
		add := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(payload))), len(payload)/8)
		sum := r.flows[to][offset:][:len(add)]
		lo, _ := part(to)
		lock := &r.locks[to][(int(offset)-lo)/chunkElems]
		lock.Lock()
		for i, x := range add {
			sum[i] += x
		}
		lock.Unlock()
		r.wait[to].flows.Done()
	case cluster.ParamFrame:
		copy(bytesOf(r.params[to][offset:]), payload)
		r.wait[to].params.Done()
	}
}

// run does one reduction of flows that are their indices, and checks it.
func (r *reduction) run(tb testing.TB) time.Duration {
	for i := range reducePeers {
		for k := range r.flows[i] {
			r.flows[i][k] = int64(k)
		}
		clear(r.params[i])
		r.wait[i].flows.Add((reducePeers - 1) * count(i, chunkElems))
		for j := range reducePeers {
			if j != i {
				r.wait[i].params.Add(count(j, 2*chunkElems))
			}
		}
	}
	start := time.Now()
	var all sync.WaitGroup
	for i := range reducePeers {
		all.Go(func() { r.member(tb, i) })
	}
	all.Wait()
	took := time.Since(start)
	for i := range reducePeers {
		for k, got := range r.params[i] {
			if want := float32(reducePeers*k) * 0x1p-10; got != want {
				tb.Fatalf("parameter %d of member %d is %v, want %v", k, i, got, want)
			}
		}
	}
	return took
}

func (r *reduction) member(tb testing.TB, i int) {
	toOthers := func(kind cluster.FrameKind, payloads func(j int, send func(lo int, payload []byte))) {
		for d := 1; d < reducePeers; d++ {
			j := (i + d) % reducePeers
			r.goSend(tb, i, j, kind, payloads)
		}
	}
	toOthers(cluster.FlowFrame, func(j int, send func(int, []byte)) {
		chunks(j, chunkElems, func(lo, hi int) { send(lo, bytesOf(r.flows[i][lo:hi])) })
	})
	r.wait[i].flows.Wait()
	lo, hi := part(i)
	for k := lo; k < hi; k++ {
		r.params[i][k] = float32(r.flows[i][k]) * 0x1p-10
	}
	toOthers(cluster.ParamFrame, func(_ int, send func(int, []byte)) {
		chunks(i, 2*chunkElems, func(lo, hi int) { send(lo, bytesOf(r.params[i][lo:hi])) })
	})
	r.wait[i].params.Wait()
}

func (r *reduction) goSend(tb testing.TB, i, j int, kind cluster.FrameKind, payloads func(int, func(int, []byte))) {
	go payloads(j, func(lo int, payload []byte) {
		if err := r.mesh.send(i, j, kind, int64(lo), payload); err != nil {
			panic(err)
		}
	})
}

// peerMesh is the transport of this package.
type peerMesh []*peer.Peers

func newPeerMesh(tb testing.TB, local string) mesh {
	var m peerMesh
	members := map[string]cluster.Endpoint{}
	for i := range reducePeers {
		p, err := peer.Listen(peer.Options{ID: fmt.Sprint(i), Local: local})
		if err != nil {
			tb.Fatal(err)
		}
		m = append(m, p)
		members[fmt.Sprint(i)] = p.Endpoint()
	}
	for _, p := range m {
		defer p.Admit(members)
	}
	return m
}

func (m peerMesh) send(from, to int, kind cluster.FrameKind, offset int64, payload []byte) error {
	return m[from].Send(context.Background(), string(rune('0'+to)), &cluster.Frame{Kind: kind, Offset: offset, Payload: payload})
}

func (m peerMesh) handle(take func(from, to int, kind cluster.FrameKind, offset int64, payload []byte)) {
	for to, p := range m {
		p.Handle(func(from string, f *cluster.Frame) { take(int(from[0]-'0'), to, f.Kind, f.Offset, f.Payload) })
	}
}

func (m peerMesh) close() {
	for _, p := range m {
		p.Close()
	}
}

// bareMesh sends chunks behind their lengths, with nothing checked.
type bareMesh struct {
	conns [reducePeers][reducePeers]net.Conn // [from][to]
	take  func(from, to int, kind cluster.FrameKind, offset int64, payload []byte)
	read  sync.WaitGroup
}

func newBareMesh(tb testing.TB, config *tls.Config) mesh {
	m := &bareMesh{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close()
	for i := range reducePeers {
		for j := range reducePeers {
			if i == j {
				continue
			}
			out, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				tb.Fatal(err)
			}
			in, err := listener.Accept()
			if err != nil {
				tb.Fatal(err)
			}
			if config != nil {
				out, in = tls.Client(out, config), tls.Server(in, config)
			}
			m.conns[i][j] = out
			m.read.Go(func() { m.receive(in, i, j) })
		}
	}
	return m
}

func (m *bareMesh) receive(in net.Conn, from, to int) {
	defer in.Close()
	var header [24]byte
	buffer := make([]byte, cluster.MaxFrameBytes)
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return
		}
		le := binary.LittleEndian
		payload := buffer[:le.Uint64(header[:])]
		if _, err := io.ReadFull(in, payload); err != nil {
			return
		}
		m.take(from, to, cluster.FrameKind(header[8]), int64(le.Uint64(header[16:])), payload)
	}
}

func (m *bareMesh) send(from, to int, kind cluster.FrameKind, offset int64, payload []byte) error {
	var header [24]byte
	le := binary.LittleEndian
	le.PutUint64(header[:], uint64(len(payload)))
	header[8] = uint8(kind)
	le.PutUint64(header[16:], uint64(offset))
	both := net.Buffers{header[:], payload}
	_, err := both.WriteTo(m.conns[from][to])
	return err
}

func (m *bareMesh) handle(take func(from, to int, kind cluster.FrameKind, offset int64, payload []byte)) {
	m.take = take
}

func (m *bareMesh) close() {
	for i := range m.conns {
		for _, c := range m.conns[i] {
			if c != nil {
				c.Close()
			}
		}
	}
	m.read.Wait()
}

// bareTLS is TLS 1.3 with defaults.
func bareTLS(tb testing.TB) *tls.Config {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		tb.Fatal(err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
	}
}

// BenchmarkReduce adds up 100 MB of int64 flows over four members of one
// process, and gathers float32 parameters: over this package by TCP ("peer") and by
// Unix sockets ("unix"), and beside it in each round over bare TCP and bare TLS
// 1.3. It reports medians, and the ratios of them and of the minima.
func BenchmarkReduce(b *testing.B) {
	meshes := []struct {
		name string
		mesh mesh
	}{
		{"tcp", newBareMesh(b, nil)}, {"tls", newBareMesh(b, bareTLS(b))}, {"peer", newPeerMesh(b, "")},
		{"unix", newPeerMesh(b, b.TempDir())},
	}
	took := map[string][]float64{}
	reductions := map[string]*reduction{}
	for _, m := range meshes {
		defer m.mesh.close()
		reductions[m.name] = newReduction(m.mesh)
		reductions[m.name].run(b) // connections and pages
	}
	for b.Loop() {
		for _, m := range meshes {
			took[m.name] = append(took[m.name], reductions[m.name].run(b).Seconds()*1e3)
		}
	}
	median := func(name string) float64 {
		slices.Sort(took[name])
		return took[name][len(took[name])/2]
	}
	for _, m := range meshes {
		b.ReportMetric(median(m.name), m.name+"-ms")
	}
	for _, name := range []string{"tls", "peer", "unix"} {
		b.ReportMetric(median(name)/median("tcp"), name+"/tcp")
		b.ReportMetric(slices.Min(took[name])/slices.Min(took["tcp"]), name+"/tcp-min")
	}
}
