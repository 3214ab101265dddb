package scale

import "container/heap"

// event is something that happens at a time. Events of one time happen in the
// order in which they were made.
type event struct {
	at  float64
	seq int
	do  func()
}

// events is the queue of what is to come, and the clock.
type events struct {
	now  float64
	made int
	list []event
}

func (q *events) Len() int { return len(q.list) }
func (q *events) Less(i, j int) bool {
	a, b := &q.list[i], &q.list[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
func (q *events) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *events) Push(x any)    { q.list = append(q.list, x.(event)) }
func (q *events) Pop() any {
	last := q.list[len(q.list)-1]
	q.list[len(q.list)-1] = event{}
	q.list = q.list[:len(q.list)-1]
	return last
}

// after makes something happen at a time that is not past.
func (q *events) after(at float64, do func()) {
	q.made++
	heap.Push(q, event{at, q.made, do})
}

// run lets everything happen.
func (q *events) run() {
	for len(q.list) > 0 {
		e := heap.Pop(q).(event)
		q.now = e.at
		e.do()
	}
}

// server serves what comes to it, first come, first served, on equal lanes.
type server struct {
	free []float64 // when each lane is free
	busy float64   // lane seconds of service so far
}

func newServer(lanes int) server { return server{free: make([]float64, max(1, lanes))} }

// serve takes work that comes at now and returns when it is done.
func (s *server) serve(now, work float64) float64 {
	lane := 0
	for i, t := range s.free {
		if t < s.free[lane] {
			lane = i
		}
	}
	s.free[lane] = max(s.free[lane], now) + work
	s.busy += work
	return s.free[lane]
}

// load is the seconds of service so far, by lane.
func (s *server) load() float64 { return s.busy / float64(len(s.free)) }
