package tensor

import (
	"container/heap"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/layers"
)

// schedule says what must come before what. Which thread does a task is settled
// as the threads come free, so a thread that loses its core for a while delays
// its own task only.
type schedule struct {
	waits    [][]int32 // by task: tasks that must be done before
	next     [][]int32 // by task: tasks that wait for it
	way      []float64 // by task: cost from its start to the end of the pass
	order    []int32   // one order that keeps all waits
	lockstep bool      // all threads work on every task together
}

// schedules plans the forward and the backward pass. Forward, a task waits for
// the vectors that it reads. Backward, it waits for the tasks that read it, and
// tasks that add to the same flows or gradients follow one another in a fixed
// order, whatever the number of threads.
func (x *executor) schedules(threads int) {
	p := x.prog
	n := len(x.tasks)
	forward := make([][]int32, n)
	backward := make([][]int32, n)
	x.usersOf = make([][]int32, len(p.Vectors))
	lastAdd := make([]int32, len(p.Vectors)) // last task that added to a vector's flows
	for i := range lastAdd {
		lastAdd[i] = -1
	}
	lastGroup := make([]int32, len(x.groupParams))
	for i := range lastGroup {
		lastGroup[i] = -1
	}
	for i := n - 1; i >= 0; i-- {
		t := &x.tasks[i]
		forward[i] = t.reads
		for _, r := range t.reads {
			backward[r] = append(backward[r], int32(i))
		}
		for ei := range t.elems {
			e := &t.elems[ei]
			for fi := range e.factors {
				f := e.factors[fi].vec
				e.factors[fi].first = len(x.usersOf[f]) == 0
				x.usersOf[f] = append(x.usersOf[f], e.id)
				if x.users[f] > 1 && p.Vectors[f].Kind != layers.InputVector {
					if l := lastAdd[f]; l >= 0 && l != int32(i) {
						backward[i] = append(backward[i], l)
					}
					lastAdd[f] = int32(i)
				}
			}
		}
		if t.sum != nil && t.sum.group >= 0 {
			if l := lastGroup[t.sum.group]; l >= 0 {
				backward[i] = append(backward[i], l)
			}
			lastGroup[t.sum.group] = int32(i)
		}
	}
	for i := range p.Inputs { // the owner of tied inputs waits for all of them
		in := &p.Inputs[i]
		if o := p.Inputs[in.Owner].Vector; in.Owner != int32(i) {
			a, b := x.taskOf[o], x.taskOf[in.Vector]
			backward[a] = append(backward[a], backward[b]...)
		}
	}
	for i := range backward {
		slices.Sort(backward[i])
		backward[i] = slices.Compact(backward[i])
	}
	up := make([]int32, n)
	for i := range up {
		up[i] = int32(i)
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	x.forwardPlan = x.newSchedule(forward, up)
	x.backwardPlan = x.newSchedule(backward, down)
	// Where the threads would mostly wait for each other, as in a chain, they
	// share every task instead.
	// Circuits of single units take turns as tasks in queries only.
	lock := threads > 1 && x.singles == nil && (x.forwardPlan.efficiency(x.tasks, threads) < 0.7 || x.backwardPlan.efficiency(x.tasks, threads) < 0.7)
	x.forwardPlan.lockstep, x.backwardPlan.lockstep = lock, lock
	x.threads = threads
	x.waker.crowded = threads >= runtime.GOMAXPROCS(0)
}

func (x *executor) newSchedule(waits [][]int32, order []int32) schedule {
	n := len(order)
	s := schedule{waits: waits, next: make([][]int32, n), way: make([]float64, n), order: order}
	for i, ws := range waits {
		for _, w := range ws {
			s.next[w] = append(s.next[w], int32(i))
		}
	}
	for _, i := range slices.Backward(order) {
		for _, k := range s.next[i] {
			s.way[i] = max(s.way[i], s.way[k])
		}
		s.way[i] += x.tasks[i].cost
	}
	return s
}

// efficiency is the share of the threads' time that a pass would use, the task
// with the longest way to the end first.
func (s *schedule) efficiency(tasks []task, threads int) float64 {
	q := newQueue(s)
	type running struct {
		task int32
		end  float64
	}
	var busy []running
	now, total := 0.0, 0.0
	for {
		for len(busy) < threads {
			i, ok := q.pop()
			if !ok {
				break
			}
			busy = append(busy, running{i, now + tasks[i].cost})
			total += tasks[i].cost
		}
		if len(busy) == 0 {
			break
		}
		first := 0
		for k := range busy {
			if busy[k].end < busy[first].end {
				first = k
			}
		}
		now = busy[first].end
		if i := q.finish(busy[first].task); i >= 0 {
			heap.Push(q, i)
		}
		busy = slices.Delete(busy, first, first+1)
	}
	return total / (float64(threads) * now)
}

// queue holds the tasks of a pass that nothing keeps from starting.
type queue struct {
	s     *schedule
	left  []int32 // by task: tasks that it still waits for
	ready []int32 // a heap, the longest way first
}

func newQueue(s *schedule) *queue {
	q := &queue{s: s, left: make([]int32, len(s.waits))}
	for i, ws := range s.waits {
		if q.left[i] = int32(len(ws)); len(ws) == 0 {
			heap.Push(q, int32(i))
		}
	}
	return q
}

// Len, Less, Swap, Push and Pop make a queue a heap.Interface.
func (q *queue) Len() int { return len(q.ready) }
func (q *queue) Less(a, b int) bool {
	i, j := q.ready[a], q.ready[b]
	return q.s.way[i] > q.s.way[j] || q.s.way[i] == q.s.way[j] && i < j
}
func (q *queue) Swap(a, b int) { q.ready[a], q.ready[b] = q.ready[b], q.ready[a] }
func (q *queue) Push(i any)    { q.ready = append(q.ready, i.(int32)) }
func (q *queue) Pop() any {
	i := q.ready[len(q.ready)-1]
	q.ready = q.ready[:len(q.ready)-1]
	return i
}

func (q *queue) pop() (int32, bool) {
	if len(q.ready) == 0 {
		return 0, false
	}
	return heap.Pop(q).(int32), true
}

// finish queues what waited for task i alone, but for the one of these with the
// longest way, which it returns, or -1: the thread that did i had best do it
// next, since its operands are in that core's cache.
func (q *queue) finish(i int32) (best int32) {
	best = -1
	for _, k := range q.s.next[i] {
		if q.left[k]--; q.left[k] > 0 {
			continue
		}
		switch {
		case best < 0:
			best = k
		case q.s.way[k] > q.s.way[best]:
			best, k = k, best
			fallthrough
		default:
			heap.Push(q, k)
		}
	}
	return best
}

// run does every task of a schedule and returns when all are done.
func (x *executor) run(s *schedule, do func(w *worker, t *task)) {
	work := x.queueWork(s, do)
	if s.lockstep {
		work = func(w *worker) {
			for _, i := range s.order {
				do(w, &x.tasks[i])
				x.gate.wait(&x.waker)
			}
		}
	}
	var wg sync.WaitGroup
	for _, w := range x.workers {
		w.ttSum = -1
		if w != x.workers[0] {
			wg.Go(func() { work(w) })
		}
	}
	work(x.workers[0])
	wg.Wait()
}

// queueWork returns what each thread does: tasks from a common queue until none
// are left.
func (x *executor) queueWork(s *schedule, do func(w *worker, t *task)) func(w *worker) {
	var mu sync.Mutex // guards q
	q := newQueue(s)
	left := len(s.order)
	var change atomic.Uint32 // moves when a task becomes ready or the last is done
	return func(w *worker) {
		i := int32(-1)
		mu.Lock()
		for left > 0 {
			if i < 0 {
				var ok bool
				if i, ok = q.pop(); !ok {
					i = -1
					seen := change.Load()
					mu.Unlock()
					x.waker.until(func() bool { return change.Load() != seen })
					mu.Lock()
					continue
				}
			}
			mu.Unlock()
			do(w, &x.tasks[i])
			mu.Lock()
			left--
			i = q.finish(i)
			if left == 0 || len(q.ready) > 0 {
				change.Add(1)
				x.waker.wake()
			}
		}
		mu.Unlock()
	}
}

// patience is how long a waiting thread looks again and again before it sleeps.
// More would take the core from the thread that it waits for where cores are shared.
const patience = 50 * time.Microsecond

// courtesy is how long a waiting thread keeps its core to itself. Later it lets other
// goroutines run between two looks: where they outnumber the cores, the thread that it waits
// for may be among them, and would otherwise wait in turn until patience is over.
const courtesy = 2 * time.Microsecond

// waker lets threads wait for each other: a short wait spins, a long one sleeps.
type waker struct {
	// crowded says that the threads take all cores or more. Where cores are idle yielding
	// helps no other thread, and the scheduler would wake them to look for work.
	crowded  bool
	sleepers atomic.Int32
	mu       sync.Mutex
	changed  sync.Cond // with mu: something that a sleeper waits for may have happened
}

// until returns when ok does. The thread that makes ok true calls wake afterwards.
func (k *waker) until(ok func() bool) {
	if ok() {
		return
	}
	for start, waited := time.Now(), time.Duration(0); waited < patience; waited = time.Since(start) {
		for range 256 {
			if ok() {
				return
			}
		}
		if k.crowded && waited >= courtesy {
			runtime.Gosched()
		}
	}
	k.mu.Lock()
	k.sleepers.Add(1)
	for !ok() {
		k.changed.Wait()
	}
	k.sleepers.Add(-1)
	k.mu.Unlock()
}

func (k *waker) wake() {
	if k.sleepers.Load() > 0 {
		k.mu.Lock()
		k.changed.Broadcast()
		k.mu.Unlock()
	}
}

// barrier lets n threads meet.
type barrier struct {
	n     int32
	count atomic.Int32
	phase atomic.Uint32
}

func (b *barrier) wait(k *waker) {
	if b.n <= 1 {
		return
	}
	phase := b.phase.Load()
	if b.count.Add(1) == b.n {
		b.count.Store(0)
		b.phase.Add(1)
		k.wake()
		return
	}
	k.until(func() bool { return b.phase.Load() != phase })
}

// meet is a barrier among the threads that share a task.
func (x *executor) meet(w *worker) {
	if w.parts > 1 {
		x.gate.wait(&x.waker)
	}
}
