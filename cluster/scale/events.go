package scale

// event is something that happens at a time. Events of one time happen in the
// order in which they were made.
type event struct {
	at  float64
	seq int
	do  func()
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// events is the queue of what is to come, and the clock: a binary heap.
type events struct {
	now  float64
	made int
	list []event
}

// after makes something happen at a time that is not past.
func (q *events) after(at float64, do func()) {
	q.made++
	e := event{at, q.made, do}
	q.list = append(q.list, e)
	i := len(q.list) - 1
	for i > 0 && e.before(&q.list[(i-1)/2]) {
		q.list[i] = q.list[(i-1)/2]
		i = (i - 1) / 2
	}
	q.list[i] = e
}

// next takes the first event out.
func (q *events) next() event {
	first, n := q.list[0], len(q.list)-1
	e, i := q.list[n], 0
	q.list[n] = event{}
	q.list = q.list[:n]
	for 2*i+1 < n {
		child := 2*i + 1
		if child+1 < n && q.list[child+1].before(&q.list[child]) {
			child++
		}
		if e.before(&q.list[child]) {
			break
		}
		q.list[i], i = q.list[child], child
	}
	if n > 0 {
		q.list[i] = e
	}
	return first
}

// run lets everything happen.
func (q *events) run() {
	for len(q.list) > 0 {
		e := q.next()
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
