//go:build cuda && cgo

package driver

// #include <cuda.h>
import "C"

import "gorgonia.org/cu"

// Graph is work of a stream that was captured and made ready to launch.
type Graph struct{ exec C.CUgraphExec }

// Capture starts to record what this thread puts on the stream, and on streams that
// wait for its events, instead of doing it.
func Capture(s cu.Stream) error {
	return check(C.cuStreamBeginCapture(stream(s), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
}

// Captured ends what Capture began and makes a graph of it.
func Captured(s cu.Stream) (Graph, error) {
	var g C.CUgraph
	if err := check(C.cuStreamEndCapture(stream(s), &g)); err != nil {
		return Graph{}, err
	}
	var ready Graph
	err := check(C.cuGraphInstantiateWithFlags(&ready.exec, g, 0))
	if destroyed := check(C.cuGraphDestroy(g)); err == nil && destroyed != nil {
		C.cuGraphExecDestroy(ready.exec)
		err = destroyed
	}
	return ready, err
}

// Launch puts the graph's work on a stream.
func (g Graph) Launch(s cu.Stream) error { return check(C.cuGraphLaunch(g.exec, stream(s))) }

// Destroy frees the graph.
func (g Graph) Destroy() error { return check(C.cuGraphExecDestroy(g.exec)) }
