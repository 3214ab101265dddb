package cluster

import (
	"context"
	"slices"
	"sync"

	"github.com/pce-engine/pce/kernels/tensor"
)

// Defects are mistakes that can be planted in a worker or a coordinator, to see
// that schedules find them. Each stands around the code that it spoils, which has
// no trace of it.
var Defects = []string{countTwice, staleFence, lostWord}

const (
	countTwice = "count twice" // flows that arrive twice count twice
	staleFence = "stale fence" // a worker obeys coordinators that were deposed
	lostWord   = "lost word"   // a step counts before all members have moved
)

// NewPlantedWorker returns a worker with a defect; "" is none.
func NewPlantedWorker(o WorkerOptions, defect string) (*Worker, error) {
	if defect == countTwice {
		twice := &doubles{}
		o.Peers = slices.Clone(o.Peers)
		for i, p := range o.Peers {
			o.Peers[i] = doublingPeers{p, twice}
		}
		o.Loader = doublingLoader{o.Loader, twice}
	}
	w, err := NewWorker(o)
	if err == nil && defect == staleFence {
		w.fence = anyFence{w.fence, w}
	}
	return w, err
}

// NewPlantedCoordinator returns a coordinator with a defect; "" is none.
func NewPlantedCoordinator(o CoordinatorOptions, defect string) *Coordinator {
	if defect == lostWord {
		o.Bus = &forgingBus{Bus: o.Bus}
	}
	return NewCoordinator(o)
}

// anyFence obeys everyone, and leaves the term of the newest coordinator for that
// of a deposed one.
type anyFence struct {
	fence
	w *Worker
}

func (f anyFence) pass(fence uint64) (bool, error) {
	if newest, err := f.fence.pass(fence); newest || err != nil {
		return newest, err
	}
	if f.w.term.Fence > fence {
		f.w.term = Term{} // pass is called by the loop, which owns it
	}
	return fence > 0, nil
}

// doubles are the flows of the newest exchange that have come more than once.
type doubles struct {
	mu      sync.Mutex
	term    Term
	version Version
	seen    map[frameKey]bool
	again   []Frame
}

type frameKey struct {
	from   string
	offset int64
}

// note keeps a frame that has come before.
func (d *doubles) note(from string, f *Frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Term != d.term || f.Version != d.version {
		if d.term.Above(f.Term) || d.term == f.Term && d.version.Lineage == f.Version.Lineage && d.version.Moves > f.Version.Moves {
			return
		}
		d.term, d.version, d.seen, d.again = f.Term, f.Version, map[frameKey]bool{}, nil
	}
	key := frameKey{from, f.Offset}
	if d.seen[key] {
		kept := *f
		kept.Payload = slices.Clone(f.Payload)
		d.again = append(d.again, kept)
	}
	d.seen[key] = true
}

// doublingPeers notes frames that come twice, as an exchange without its list of
// arrivals would.
type doublingPeers struct {
	Peers
	doubles *doubles
}

func (p doublingPeers) Handle(handle func(from string, f *Frame)) {
	p.Peers.Handle(func(from string, f *Frame) {
		if f.Kind == FlowFrame {
			p.doubles.note(from, f)
		}
		handle(from, f)
	})
}

// doublingLoader makes sessions that count what came twice twice.
type doublingLoader struct {
	Loader
	doubles *doubles
}

func (l doublingLoader) Load(ctx context.Context, spec Spec, blobs Blobs) (Session, error) {
	s, err := l.Loader.Load(ctx, spec, blobs)
	if err != nil {
		return nil, err
	}
	return doublingSession{s, l.doubles}, nil
}

type doublingSession struct {
	Session
	doubles *doubles
}

func (s doublingSession) Apply(ctx context.Context, rule tensor.Rule, lo, hi int) error {
	s.doubles.mu.Lock()
	again := s.doubles.again
	s.doubles.again = nil
	s.doubles.mu.Unlock()
	for i := range again {
		more, ok := as[int64](&again[i])
		if !ok {
			continue
		}
		sums := make([]int64, len(more))
		if err := s.ReadFlows(ctx, again[i].Offset, sums); err != nil {
			return err
		}
		for k, x := range more {
			sums[k] += x
		}
		if err := s.WriteFlows(ctx, again[i].Offset, sums); err != nil {
			return err
		}
	}
	return s.Session.Apply(ctx, rule, lo, hi)
}

// forgingBus brings a coordinator the word of all members that they have moved as
// soon as one of them says so.
type forgingBus struct {
	Bus

	mu      sync.Mutex
	members []memberRef // of the last term that was announced
}

func (b *forgingBus) Send(to string, data []byte) error {
	if m, err := decodeMessage(data); err == nil {
		if order, ok := m.Body.(*enrollOrder); ok {
			b.mu.Lock()
			b.members = order.Members
			b.mu.Unlock()
		}
	}
	return b.Bus.Send(to, data)
}

func (b *forgingBus) Listen(address string, handle func([]byte)) (stop func(), err error) {
	return b.Bus.Listen(address, func(data []byte) {
		handle(data)
		m, err := decodeMessage(data)
		if err != nil {
			return
		}
		if _, ok := m.Body.(*movedReport); !ok {
			return
		}
		b.mu.Lock()
		members := b.members
		b.mu.Unlock()
		for _, s := range members {
			forged := *m
			forged.From = s.Inbox
			handle(forged.encode())
		}
	})
}
