package cpu

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/layers"
)

// schedule says which thread does which task in which order.
type schedule struct {
	lists    [][]int32 // by thread
	waits    [][]int32 // by task: tasks that must be done before
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
	x.forwardPlan = x.list(forward, threads, false)
	x.backwardPlan = x.list(backward, threads, true)
	if x.forwardPlan.lockstep || x.backwardPlan.lockstep {
		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
		}
		down := slices.Clone(all)
		slices.Reverse(down)
		for t := range threads {
			x.forwardPlan.lists[t], x.backwardPlan.lists[t] = all, down
		}
		x.forwardPlan.lockstep, x.backwardPlan.lockstep = true, true
	}
}

// list places tasks on threads, the one with the longest way to the end first.
// It asks for lockstep where the threads would mostly wait.
func (x *executor) list(waits [][]int32, threads int, down bool) schedule {
	n := len(x.tasks)
	s := schedule{lists: make([][]int32, threads), waits: waits}
	next := make([][]int32, n) // who waits for me
	left := make([]int, n)
	for i, ws := range waits {
		left[i] = len(ws)
		for _, w := range ws {
			next[w] = append(next[w], int32(i))
		}
	}
	way := make([]float64, n) // cost from here to the end
	visit := func(i int) {
		way[i] = 0
		for _, k := range next[i] {
			way[i] = max(way[i], way[k])
		}
		way[i] += x.tasks[i].cost
	}
	if down {
		for i := range n {
			visit(i)
		}
	} else {
		for i := n - 1; i >= 0; i-- {
			visit(i)
		}
	}
	var ready []int32
	for i := range n {
		if left[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	free := make([]float64, threads) // when each thread is free
	end := make([]float64, n)
	type running struct {
		task int32
		end  float64
	}
	var busy []running
	now, total := 0.0, 0.0
	idle := make([]bool, threads)
	for i := range idle {
		idle[i] = true
	}
	of := make([]int, n)
	for len(ready) > 0 || len(busy) > 0 {
		for len(ready) > 0 {
			th := slices.Index(idle, true)
			if th < 0 {
				break
			}
			best := 0
			for k := range ready {
				if way[ready[k]] > way[ready[best]] || way[ready[k]] == way[ready[best]] && ready[k] < ready[best] {
					best = k
				}
			}
			i := ready[best]
			ready = slices.Delete(ready, best, best+1)
			idle[th], of[i] = false, th
			end[i] = now + x.tasks[i].cost
			free[th] = end[i]
			total += x.tasks[i].cost
			s.lists[th] = append(s.lists[th], i)
			busy = append(busy, running{i, end[i]})
		}
		first := 0
		for k := range busy {
			if busy[k].end < busy[first].end {
				first = k
			}
		}
		r := busy[first]
		busy = slices.Delete(busy, first, first+1)
		now = r.end
		idle[of[r.task]] = true
		for _, k := range next[r.task] {
			if left[k]--; left[k] == 0 {
				ready = append(ready, k)
			}
		}
	}
	s.lockstep = threads > 1 && total < 0.7*float64(threads)*now
	return s
}

// run does every task of a schedule and returns when all are done.
func (x *executor) run(s *schedule, do func(w *worker, t *task)) {
	x.epoch++
	epoch := x.epoch
	work := func(th int) {
		w := x.workers[th]
		w.ttSum = -1
		for _, i := range s.lists[th] {
			if s.lockstep {
				do(w, &x.tasks[i])
				x.gate.wait(&x.waker)
				continue
			}
			for _, d := range s.waits[i] {
				if x.done[d].Load() != epoch {
					x.waker.until(func() bool { return x.done[d].Load() == epoch })
				}
			}
			do(w, &x.tasks[i])
			x.done[i].Store(epoch)
			x.waker.wake()
		}
	}
	var wg sync.WaitGroup
	for th := 1; th < len(s.lists); th++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			work(th)
		}()
	}
	work(0)
	wg.Wait()
}

// polls is how often a waiting thread looks before it sleeps: about 50 µs. More
// would take the core from whoever it waits for where cores are shared.
const polls = 40000

// waker lets threads wait for each other: a short wait spins, a long one sleeps.
type waker struct {
	sleepers atomic.Int32
	mu       sync.Mutex
	changed  sync.Cond // with mu: something that a sleeper waits for may have happened
}

// until returns when ok does. Whoever makes ok true calls wake afterwards.
func (k *waker) until(ok func() bool) {
	for range polls {
		if ok() {
			return
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
