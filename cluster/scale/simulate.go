package scale

import (
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/cluster/assign"
	"github.com/pce-engine/pce/layers"
)

// steps is how many are simulated: speeds are known in the second.
const steps = 2

// Pieces that what one worker sends another is cut into: frames, or larger ones
// where frames are too many to follow.
const (
	frameBytes = 256 << 10
	mostPieces = 12000
)

// host is a worker.
type host struct {
	flows, params float64 // of its part
	speed         float64 // rows per second
	session       float64 // when the session is free
	reads         server  // flows read from the session, to send
	send, receive server  // cores
	out, in       server  // the link
	memory        float64 // seconds of the session beside computing, this step

	queue  []int // shards' rows
	busy   bool
	leased int
	median assign.Median
	known  float64 // rows per second, by the median

	stage  stage
	flowIn int // pieces to come
	parIn  int
}

// stage is how far a worker is with a move.
type stage int

const (
	waiting stage = iota // for the order
	adding               // flows
	moving               // its part
	moved                // its part; others' may be to come
	told                 // the coordinator
)

type sim struct {
	events
	Setting
	rng    *rand.Rand
	hosts  []host
	flows  float64 // of the whole model
	params float64
	idle   float64 // from when on the coordinator is
	lead   float64 // coordinator: seconds of work in this step
	sum    int     // workers that have moved
	broker struct{ in, cores, out server }

	pending []int
	left    int // shards without a result
	step    int
	began   float64
	marks   [4]float64 // of the last step: its start, all done, all moved, end
	results []Result
}

// Simulate follows a few steps and returns what a step takes.
func Simulate(s Setting) (Result, error) {
	if err := s.check(); err != nil {
		return Result{}, err
	}
	m := &sim{Setting: s, rng: rand.New(rand.NewPCG(s.Seed, uint64(s.Workers)))}
	bounds := layers.SplitOwners(s.Model.Owners, s.Workers)
	lanes := max(1, min(s.Costs.Cores/2, s.Workers-1))
	for i := range s.Workers {
		f, p := size(s.Model.Owners[bounds[i]:bounds[i+1]])
		m.hosts = append(m.hosts, host{
			flows: 8 * float64(f), params: 4 * float64(p), speed: math.Exp(s.Spread*m.rng.NormFloat64()) / s.Model.Row,
			reads: newServer(1), send: newServer(lanes), receive: newServer(lanes), out: newServer(1), in: newServer(1),
		})
		m.flows, m.params = m.flows+8*float64(f), m.params+4*float64(p)
	}
	m.broker.in, m.broker.cores, m.broker.out = newServer(1), newServer(s.Costs.BrokerCores), newServer(1)
	m.begin()
	m.run()
	last := m.results[len(m.results)-1]
	last.Events = m.made
	return last, nil
}

// tell sends a message of the coordinator.
func (m *sim) tell(bytes float64, do func()) {
	m.work(m.Costs.Message + bytes*m.Costs.Byte)
	m.after(m.idle+m.delay(), do)
}

// report sends a message to the coordinator, which then does something.
func (m *sim) report(bytes float64, do func()) {
	m.after(m.now+m.delay(), func() {
		m.work(m.Costs.Message + bytes*m.Costs.Byte)
		do()
	})
}

func (m *sim) delay() float64 { return m.Network.Latency + m.Costs.Control + m.Costs.Message }

// work keeps the coordinator busy.
func (m *sim) work(seconds float64) {
	m.idle = max(m.idle, m.now) + seconds
	m.lead += seconds
}

// begin starts a step.
func (m *sim) begin() {
	m.pending = nil
	for at := 0; at < m.Job.Batch; at += m.Job.Shard {
		m.pending = append(m.pending, min(m.Job.Shard, m.Job.Batch-at))
	}
	m.left, m.sum, m.lead = len(m.pending), 0, 0
	for i := range m.hosts {
		h := &m.hosts[i]
		h.memory, h.stage = 0, waiting
		for _, s := range []*server{&h.reads, &h.send, &h.receive, &h.out, &h.in} {
			s.busy = 0
		}
	}
	for _, s := range []*server{&m.broker.in, &m.broker.cores, &m.broker.out} {
		s.busy = 0
	}
	m.began = max(m.now, m.idle)
	m.deal()
}

// deal leases shards as package cluster does.
func (m *sim) deal() {
	span := assign.Stretch(len(m.pending), m.Workers)
	fresh := make([][]int, m.Workers)
	workers := make([]assign.Worker, m.Workers)
	for len(m.pending) > 0 {
		for i := range m.hosts {
			workers[i] = assign.Worker{Leased: m.hosts[i].leased, Depth: 2*span + 1, Speed: m.hosts[i].known}
		}
		m.work(m.Costs.Look * float64(m.Workers))
		at := assign.Next(workers)
		if at < 0 {
			break
		}
		n := min(span, len(m.pending))
		fresh[at] = append(fresh[at], m.pending[:n]...)
		m.hosts[at].leased += n
		m.pending = m.pending[n:]
	}
	for i, shards := range fresh {
		if len(shards) > 0 {
			m.tell(workBytes, func() {
				h := &m.hosts[i]
				h.queue = append(h.queue, shards...)
				m.compute(i)
			})
		}
	}
}

// Bytes of messages.
const (
	workBytes = 600
	doneBytes = 350
	heldBytes = 60 // a member's shards in the order to move
	sumBytes  = 30 // a member's checksum in the answer
)

// compute starts a worker's next shard.
func (m *sim) compute(i int) {
	h := &m.hosts[i]
	if h.busy || len(h.queue) == 0 {
		return
	}
	rows := h.queue[0]
	h.queue, h.busy = h.queue[1:], true
	took := float64(rows) / h.speed * math.Exp(m.Noise*m.rng.NormFloat64())
	h.session = max(h.session, m.now) + took
	m.after(h.session, func() {
		h.busy = false
		m.report(doneBytes, func() {
			h.leased--
			h.median.Add(float64(rows) / took)
			h.known = h.median.Value()
			m.left--
			m.deal()
			if m.left == 0 {
				m.reduce()
			}
		})
		m.compute(i)
	})
}

// reduce orders the move.
func (m *sim) reduce() {
	m.marks[1] = max(m.now, m.idle)
	order, pieces := workBytes+heldBytes*float64(m.Workers), m.pieces()
	for i := range m.hosts {
		m.hosts[i].flowIn, m.hosts[i].parIn = 0, 0
		for j := range m.hosts {
			if i != j && m.hosts[i].flows > 0 {
				m.hosts[i].flowIn += pieces
			}
			if i != j && m.hosts[j].params > 0 {
				m.hosts[i].parIn += pieces
			}
		}
	}
	for i := range m.hosts {
		m.tell(order, func() { m.exchange(i, pieces) })
	}
}

// pieces is into how many pieces what goes from one worker to another is cut.
func (m *sim) pieces() int {
	pairs, largest := 0, 0.0
	for i := range m.hosts {
		if m.hosts[i].flows > 0 {
			pairs += m.Workers - 1
			largest = max(largest, m.hosts[i].flows)
		}
	}
	return int(max(1, min(math.Ceil(largest/frameBytes), float64(mostPieces/max(1, pairs)))))
}

// occupy keeps a worker's session at something beside computing.
func (m *sim) occupy(h *host, seconds float64) float64 {
	h.session = max(h.session, m.now) + seconds
	h.memory += seconds
	return h.session
}

// exchange is a worker's side of a move.
func (m *sim) exchange(i, pieces int) {
	h, c := &m.hosts[i], &m.Costs
	if m.Workers == 1 {
		m.after(m.occupy(h, c.Copy*m.flows+c.Apply*m.params/4), func() { m.report(workBytes, func() { m.done(h) }) })
		return
	}
	m.after(m.occupy(h, c.Copy*(h.flows+h.params)+c.Fold*h.flows), func() {
		h.stage = adding
		m.spread(i, pieces, func(j int) float64 { return m.hosts[j].flows }, c.Copy, c.Wire+c.Fold, func(j int) {
			m.hosts[j].flowIn--
			m.move(j, pieces)
		})
		m.move(i, pieces)
	})
}

// move moves a worker's part once all flows have come.
func (m *sim) move(i, pieces int) {
	h, c := &m.hosts[i], &m.Costs
	if h.stage != adding || h.flowIn > 0 {
		return
	}
	h.stage = moving
	m.after(m.occupy(h, c.Copy*(h.flows+h.params)+c.Apply*h.params/4), func() {
		m.spread(i, pieces, func(int) float64 { return h.params }, 0, c.Wire+c.Copy, func(j int) {
			m.hosts[j].parIn--
			m.finish(j)
		})
		h.stage = moved
		m.finish(i)
	})
}

// finish reports the move once all parts have come.
func (m *sim) finish(i int) {
	h := &m.hosts[i]
	if h.stage == moved && h.parIn == 0 {
		h.stage = told
		m.after(m.occupy(h, m.Costs.Copy*m.params), func() {
			m.report(workBytes+sumBytes*float64(m.Workers), func() { m.done(h) })
		})
	}
}

// spread sends pieces to all others in turn: read costs a byte of the session,
// take a byte of a receiver's core, and came happens with each piece.
func (m *sim) spread(i, pieces int, bytes func(to int) float64, read, take float64, came func(to int)) {
	for range pieces {
		for k := 1; k < m.Workers; k++ {
			j := (i + k) % m.Workers
			if n := bytes(j) / float64(pieces); n > 0 {
				p := &piece{sim: m, to: j, came: came}
				m.route(p, i, n, read, take)
				p.next = p.pass
				p.pass()
			}
		}
	}
}

// piece is on its way from one worker to another.
type piece struct {
	*sim
	to   int
	way  [8]hop
	hops int
	at   int // the hop that comes next
	next func()
	came func(to int)
}

// hop is a server on a piece's way, the seconds it takes there and then to get on.
type hop struct {
	at   *server
	work float64
	then float64
}

// route sets the way of a piece of n bytes.
func (m *sim) route(p *piece, i int, n, read, take float64) {
	from, to, link := &m.hosts[i], &m.hosts[p.to], n/m.Network.Bandwidth
	scale := 1.0
	if m.Costs.Cores == 1 {
		scale = 2 // one core sends and receives
	}
	p.add(&from.reads, n*read, 0)
	p.add(&from.send, scale*n*m.Costs.Wire, 0)
	p.add(&from.out, link, m.Network.Latency)
	if m.Network.Transport == NATS {
		p.add(&m.broker.in, link, 0)
		p.add(&m.broker.cores, n*m.Costs.Wire, 0)
		p.add(&m.broker.out, link, m.Network.Latency)
	}
	p.add(&to.in, link, 0)
	p.add(&to.receive, scale*n*take, 0)
}

// add adds a hop that takes time.
func (p *piece) add(s *server, work, then float64) {
	if work > 0 || then > 0 {
		p.way[p.hops] = hop{s, work, then}
		p.hops++
	}
}

// pass takes the next hop, or ends the way.
func (p *piece) pass() {
	if p.at == p.hops {
		p.came(p.to)
		return
	}
	h := &p.way[p.at]
	p.at++
	p.after(h.at.serve(p.now, h.work)+h.then, p.next)
}

// done takes note that a worker has moved, and commits once all have.
func (m *sim) done(h *host) {
	m.sum++
	if m.sum < m.Workers {
		return
	}
	m.marks[2] = max(m.now, m.idle)
	for i := range m.hosts {
		if m.Workers > 1 {
			h := &m.hosts[i]
			m.tell(workBytes, func() { m.occupy(h, m.Costs.Copy*(m.params-h.params+m.flows)) })
		}
	}
	m.marks[3] = max(m.now, m.idle)
	m.results = append(m.results, m.result())
	if m.step++; m.step < steps {
		m.begin()
	}
}

// result says what the step took, and why.
func (m *sim) result() Result {
	speeds := 0.0
	for i := range m.hosts {
		speeds += m.hosts[i].speed
	}
	r := Result{
		Step: m.marks[3] - m.began, Compute: m.marks[1] - m.began, Exchange: m.marks[2] - m.marks[1],
		Ideal: float64(m.Job.Batch) / speeds,
	}
	r.Epoch = r.Step * float64(m.Job.Rows) / float64(m.Job.Batch)
	r.Limit = m.limit(&r)
	return r
}

// limit names what takes most of the step beside computing.
func (m *sim) limit(r *Result) string {
	if r.Step-r.Ideal < 0.1*r.Step {
		return ByCompute
	}
	load := map[string]float64{
		ByBrokerLink: max(m.broker.in.load(), m.broker.out.load()), ByBroker: m.broker.cores.load(), ByCoordinator: m.lead,
	}
	mean := map[string]float64{}
	for i := range m.hosts {
		h := &m.hosts[i]
		for what, x := range map[string]float64{
			ByLink: max(h.out.load(), h.in.load()), ByWire: max(h.send.load(), h.receive.load()), ByMemory: max(h.memory, h.reads.load()),
		} {
			load[what], mean[what] = max(load[what], x), mean[what]+x/float64(m.Workers)
		}
	}
	load[ByShards] = r.Compute - r.Ideal
	if m.Workers > 1 { // the commit before is in it
		load[ByShards] -= m.Costs.Copy * (m.params + m.flows)
	}
	most, name := 0.2*(r.Step-r.Ideal), ByLatency
	for _, what := range []string{ByShards, ByLink, ByWire, ByMemory, ByBrokerLink, ByBroker, ByCoordinator} {
		if load[what] > most {
			most, name = load[what], what
		}
	}
	if share := mean[name]; share > 0 && most > 1.5*share {
		return ByOwner
	}
	return name
}
