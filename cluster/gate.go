package cluster

import "sync"

// gate is where frames wait for the exchange or the fetch that they belong to.
type gate struct {
	mu     sync.Mutex
	turn   sync.Cond
	term   Term
	ex     *exchange
	fetch  *fetch
	closed bool
}

func newGate() *gate {
	g := &gate{}
	g.turn.L = &g.mu
	return g
}

// set lets the frames of an exchange through, and drops those of earlier terms.
func (g *gate) set(t Term, ex *exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.term, g.ex = t, ex
	g.turn.Broadcast()
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.turn.Broadcast()
}

// wait returns the exchange of a move in a term, which may not have begun here.
// It returns nil if the move is over.
func (g *gate) wait(t Term, v Version) *exchange {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed && !g.term.Above(t) {
		if g.term == t && g.ex != nil {
			switch at := g.ex.version; {
			case at == v:
				return g.ex
			case at.Lineage != v.Lineage || at.Moves > v.Moves:
				return nil
			}
		}
		g.turn.Wait()
	}
	return nil
}

func (g *gate) setFetch(f *fetch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fetch = f
}

func (g *gate) fetching() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fetch != nil
}

// state hands a frame to the fetch that asked for it.
func (g *gate) state(f *Frame) {
	g.mu.Lock()
	fetch := g.fetch
	g.mu.Unlock()
	if fetch != nil {
		fetch.accept(f)
	}
}
