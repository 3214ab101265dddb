package cluster

import (
	"context"
	"fmt"
	"hash/crc32"
	"sort"
	"sync"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// exchange is one move of the parameters by the members of a term: each gets the
// others' flows for its own part, moves the part and sends it to all. The moved
// state is staged; only a commit makes it count, and undo takes it back.
type exchange struct {
	term    Term
	version Version // before the move
	members []memberRef
	self    int
	parts   []part
	shards  []int // how many the flows of each member hold
	rule    tensor.Rule
	peers   Peers
	sess    Session
	layout  Layout
	staged  []float32 // the whole state, once all parts have moved

	reading sync.Mutex // sess, while the senders read from it
	before  []int64    // own flows of the own part
	kept    []float32  // state of the own part before it moved
	touched bool       // the session's own part is not as it was

	sums  []int64 // flows of the own part, all members'
	locks [64]sync.Mutex
	own   pieces       // that sums are cut into
	spans []ownedRange // of the own part's flows, ascending

	mu        sync.Mutex // guards what follows
	flowsIn   []*inflow
	paramsIn  []*arrivals
	bytes     int64
	failure   error
	blame     string // ID of the member at fault
	flowsDone chan struct{}
	moved     chan struct{}
	failed    chan struct{}
}

// inflow is what comes of a member's flows; frames of a member come one at a time.
type inflow struct {
	arrivals
	checks []*layers.FlowCheck // by owner of the own part
}

// ownedRange is a range of flows and its owner, counted from the part's first.
type ownedRange struct {
	layers.Range
	owner int
}

// prepare makes the exchange ready to take frames.
func (e *exchange) prepare() {
	e.flowsDone, e.moved, e.failed = make(chan struct{}), make(chan struct{}), make(chan struct{})
	own := &e.parts[e.self]
	owners := e.layout.Owners[own.lo:own.hi]
	e.own = cut(own.flows, frameFlows)
	e.sums = make([]int64, length(own.flows))
	for i, o := range owners {
		for _, r := range o.Flows {
			e.spans = append(e.spans, ownedRange{r, i})
		}
	}
	sort.Slice(e.spans, func(i, j int) bool { return e.spans[i].Lo < e.spans[j].Lo })
	for i := range e.members {
		in := &inflow{arrivals: expect(e.own)}
		for _, o := range owners {
			in.checks = append(in.checks, layers.NewFlowCheck(o))
		}
		e.flowsIn = append(e.flowsIn, in)
		state := expect(cut(e.parts[i].state, frameFloats))
		e.paramsIn = append(e.paramsIn, &state)
	}
	e.check()
}

// run does the move and returns the checksum of each member's part.
func (e *exchange) run(ctx context.Context) (map[string]uint32, error) {
	if err := e.readOwn(ctx); err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range e.members {
		if i != e.self {
			g.Go(func() error { return e.sendFlows(ctx, i) })
		}
	}
	g.Go(func() error {
		if err := e.await(ctx, e.flowsDone); err != nil {
			return err
		}
		return e.move(ctx)
	})
	g.Go(func() error { return e.await(ctx, e.moved) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	sums := make(map[string]uint32, len(e.members))
	for i, s := range e.members {
		crc := uint32(0)
		for _, r := range e.parts[i].state {
			crc = crc32.Update(crc, castagnoli, bytesOf(e.staged[r.Lo:r.Hi]))
		}
		sums[s.ID] = crc
	}
	return sums, nil
}

func (e *exchange) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-e.failed:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.failure
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail ends the exchange; blame is the member whose flows are at fault, if any.
func (e *exchange) fail(blame string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil {
		e.failure, e.blame = err, blame
		close(e.failed)
	}
}

// readOwn begins the sum with the own flows, and keeps what undo needs.
func (e *exchange) readOwn(ctx context.Context) error {
	part := &e.parts[e.self]
	e.before, e.kept = make([]int64, len(e.sums)), make([]float32, length(part.state))
	if err := eachRange(part.flows, e.before, func(at int64, x []int64) error { return e.sess.ReadFlows(ctx, at, x) }); err != nil {
		return err
	}
	if err := eachRange(part.state, e.kept, func(at int64, x []float32) error { return e.sess.ReadState(ctx, at, x) }); err != nil {
		return err
	}
	for _, p := range e.own.list {
		e.takeFlows(e.self, p.offset, e.before[p.place:p.place+p.n])
	}
	return nil
}

// eachRange calls do for each range with its stretch of x, which holds all of
// them one after another.
func eachRange[T any](ranges []layers.Range, x []T, do func(at int64, x []T) error) error {
	place := int64(0)
	for _, r := range ranges {
		if err := do(r.Lo, x[place:place+r.Len()]); err != nil {
			return err
		}
		place += r.Len()
	}
	return nil
}

// sendFlows sends another member the flows of its part.
func (e *exchange) sendFlows(ctx context.Context, to int) error {
	buf := make([]int64, min(frameFlows, length(e.parts[to].flows)))
	for _, p := range cut(e.parts[to].flows, frameFlows).list {
		e.reading.Lock()
		err := e.sess.ReadFlows(ctx, p.offset, buf[:p.n])
		e.reading.Unlock()
		if err != nil {
			return err
		}
		f := Frame{Kind: FlowFrame, Term: e.term, Version: e.version, Offset: p.offset, Count: p.n, Payload: bytesOf(buf[:p.n])}
		if err := e.peers.Send(ctx, e.members[to].ID, &f); err != nil {
			return err
		}
	}
	return nil
}

// move moves the own part by everybody's flows and sends it to all.
func (e *exchange) move(ctx context.Context) error {
	part := &e.parts[e.self]
	moving := context.WithoutCancel(ctx)
	e.reading.Lock()
	e.touched = true
	err := eachRange(part.flows, e.sums, func(at int64, x []int64) error { return e.sess.WriteFlows(moving, at, x) })
	if err == nil && part.lo < part.hi {
		err = e.sess.Apply(moving, e.rule, part.lo, part.hi)
	}
	for _, r := range part.state {
		if err == nil {
			err = e.sess.ReadState(moving, r.Lo, e.staged[r.Lo:r.Hi])
		}
	}
	e.reading.Unlock()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range e.members {
		if i != e.self {
			g.Go(func() error { return e.sendPart(ctx, i) })
		}
	}
	e.takeParams(e.self, func(a *arrivals) { a.left = 0 })
	return g.Wait()
}

func (e *exchange) sendPart(ctx context.Context, to int) error {
	for _, p := range cut(e.parts[e.self].state, frameFloats).list {
		f := Frame{Kind: ParamFrame, Term: e.term, Version: e.version, Offset: p.offset, Count: p.n, Payload: bytesOf(e.staged[p.offset : p.offset+p.n])}
		if err := e.peers.Send(ctx, e.members[to].ID, &f); err != nil {
			return err
		}
	}
	return nil
}

// undo puts flows and state of the own part back, for another attempt.
func (e *exchange) undo(ctx context.Context) error {
	if !e.touched {
		return nil
	}
	part := &e.parts[e.self]
	if err := eachRange(part.flows, e.before, func(at int64, x []int64) error { return e.sess.WriteFlows(ctx, at, x) }); err != nil {
		return err
	}
	return eachRange(part.state, e.kept, func(at int64, x []float32) error { return e.sess.WriteState(ctx, at, x) })
}

// commit takes the others' parts over; the own one has moved.
func (e *exchange) commit(ctx context.Context) error {
	for i := range e.parts {
		if i == e.self {
			continue
		}
		for _, r := range e.parts[i].state {
			if err := e.sess.WriteState(ctx, r.Lo, e.staged[r.Lo:r.Hi]); err != nil {
				return err
			}
		}
	}
	return nil
}

// accept takes a frame of another member. Frames that came before are passed over.
func (e *exchange) accept(from string, f *Frame) {
	sender := -1
	for i := range e.members {
		if e.members[i].ID == from && i != e.self {
			sender = i
		}
	}
	if sender < 0 {
		return
	}
	switch f.Kind {
	case FlowFrame:
		if flows, ok := as[int64](f); ok {
			e.takeFlows(sender, f.Offset, flows)
			return
		}
	case ParamFrame:
		if params, ok := as[float32](f); ok {
			e.takeParams(sender, func(a *arrivals) {
				if p, ok := a.take(f.Offset, f.Count); ok {
					copy(e.staged[p.offset:p.offset+p.n], params)
				}
			})
			return
		}
	}
	e.fail("", fmt.Errorf("%w: frame of kind %d with %d bytes for %d elements from %s", ErrCluster, f.Kind, len(f.Payload), f.Count, from))
}

// takeFlows adds flows of a member to the sum.
func (e *exchange) takeFlows(sender int, offset int64, flows []int64) {
	e.mu.Lock()
	in := e.flowsIn[sender]
	p, ok := in.take(offset, int64(len(flows)))
	e.mu.Unlock()
	if !ok {
		return
	}
	i := sort.Search(len(e.spans), func(i int) bool { return e.spans[i].Hi > p.offset })
	for ; i < len(e.spans) && e.spans[i].Lo < p.offset+p.n; i++ {
		s := e.spans[i]
		lo, hi := max(s.Lo, p.offset), min(s.Hi, p.offset+p.n)
		in.checks[s.owner].Add(lo, flows[lo-p.offset:hi-p.offset])
	}
	lock := &e.locks[p.index%len(e.locks)]
	lock.Lock()
	for i, x := range flows {
		e.sums[p.place+int64(i)] += x
	}
	lock.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	in.added++
	e.bytes += 8 * p.n
	e.check()
}

// takeParams changes what has come of a member's moved part.
func (e *exchange) takeParams(sender int, change func(*arrivals)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.paramsIn[sender]
	before := a.left
	change(a)
	e.bytes += int64(before - a.left)
	e.check()
}

// check notes what is complete. The lock is held, or no other goroutine knows e yet.
func (e *exchange) check() {
	for i, in := range e.flowsIn {
		if in.added < len(in.pieces.list) {
			return
		}
		for _, c := range in.checks {
			if err := c.Err(e.shards[i]); err != nil && e.failure == nil {
				e.failure, e.blame = fmt.Errorf("%w: flows of %s refused: %v", ErrCluster, e.members[i].ID, err), e.members[i].ID
				close(e.failed)
			}
		}
		in.checks = nil
	}
	if e.failure != nil {
		return
	}
	open(e.flowsDone)
	for _, a := range e.paramsIn {
		if a.left > 0 {
			return
		}
	}
	open(e.moved)
}

// open closes a channel that may be closed.
func open(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// received counts what has come, to tell progress from standstill.
func (e *exchange) received() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes
}

// bytesOf returns the memory of numbers. The machines that pce runs on are
// little-endian.
func bytesOf[T int64 | float32](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// as returns the numbers of a frame.
func as[T int64 | float32](f *Frame) ([]T, bool) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	if f.Count < 1 || f.Count > MaxFrameBytes/size || int64(len(f.Payload)) != f.Count*size {
		return nil, false
	}
	if uintptr(unsafe.Pointer(&f.Payload[0]))%unsafe.Alignof(zero) != 0 {
		x := make([]T, f.Count)
		copy(bytesOf(x), f.Payload)
		return x, true
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&f.Payload[0])), f.Count), true
}
