package emulator

import (
	"math/rand/v2"

	"github.com/pce-engine/pce/kernels/cuda"
)

// work is something a stream does; inGraph says whether a graph asked for it.
type work func(inGraph bool) error

// node is work of a graph and the nodes that come before it.
type node struct {
	do    work
	after []int
}

// graph is work in an order in part.
type graph struct{ nodes []node }

// capture is a graph that is being recorded from a stream.
type capture struct {
	origin  cuda.Stream
	graph   graph
	streams []*stream
	events  []*event
}

// Capture starts to record a stream.
func (e *Emulator) Capture(s cuda.Stream) error {
	st, err := e.stream("Capture", s)
	if err != nil {
		return err
	}
	if st.capture != nil {
		return refused("Capture of stream %d, which is being captured", s)
	}
	st.capture = &capture{origin: s, streams: []*stream{st}}
	return nil
}

// Captured ends a recording. Work of other streams must have been waited for.
func (e *Emulator) Captured(s cuda.Stream) (cuda.Graph, error) {
	st, err := e.stream("Captured", s)
	if err != nil {
		return 0, err
	}
	c := st.capture
	if c == nil || c.origin != s {
		return 0, refused("Captured: no capture began on stream %d", s)
	}
	before := make([]bool, len(c.graph.nodes))
	c.graph.mark(st.after, before)
	for _, other := range c.streams {
		other.capture, other.after = nil, nil
	}
	for _, ev := range c.events {
		if ev.capture == c {
			*ev = event{}
		}
	}
	for i, ok := range before {
		if !ok {
			return 0, refused("Captured: work %d of %d was recorded on another stream that stream %d does not wait for", i+1, len(before), s)
		}
	}
	g := cuda.Graph(e.handle())
	e.graphs[g] = &c.graph
	return g, nil
}

// mark marks nodes and all that come before them.
func (g *graph) mark(nodes []int, marks []bool) {
	for _, i := range nodes {
		if !marks[i] {
			marks[i] = true
			g.mark(g.nodes[i].after, marks)
		}
	}
}

// LaunchGraph puts the work of a graph on a stream: in the order of its recording,
// or with a seed in any order that the graph allows.
func (e *Emulator) LaunchGraph(h cuda.Graph, s cuda.Stream) error {
	st, err := e.stream("LaunchGraph", s)
	if err != nil {
		return err
	}
	g, ok := e.graphs[h]
	if !ok {
		return refused("LaunchGraph of graph %d, which does not exist", h)
	}
	if st.capture != nil {
		return refused("LaunchGraph on stream %d, which is being captured", s)
	}
	e.do(st, func(bool) error {
		for _, i := range g.order(e.o.Seed, e.launches) {
			if err := g.nodes[i].do(true); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// order lists the nodes so that each comes after those it must.
func (g *graph) order(seed uint64, number uint32) []int {
	order := make([]int, 0, len(g.nodes))
	if seed == 0 {
		for i := range g.nodes {
			order = append(order, i)
		}
		return order
	}
	random := rand.New(rand.NewPCG(seed, uint64(number)))
	missing := make([]int, len(g.nodes))
	later := make([][]int, len(g.nodes))
	var ready []int
	for i, n := range g.nodes {
		missing[i] = len(n.after)
		for _, j := range n.after {
			later[j] = append(later[j], i)
		}
		if missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		k := random.IntN(len(ready))
		i := ready[k]
		ready[k] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		order = append(order, i)
		for _, j := range later[i] {
			if missing[j]--; missing[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	return order
}

// FreeGraph forgets a graph.
func (e *Emulator) FreeGraph(h cuda.Graph) error {
	if _, ok := e.graphs[h]; !ok {
		return refused("FreeGraph of graph %d, which does not exist", h)
	}
	delete(e.graphs, h)
	return nil
}
