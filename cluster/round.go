package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pce-engine/pce/cluster/assign"
	"github.com/pce-engine/pce/kernels/tensor"
)

// round is a set of shards that are computed, and for flows the move of the
// parameters that follows. The loop of its run owns it until it is over.
type round struct {
	id    int64
	task  task
	rule  *tensor.Rule
	step  AuditLine // of flows
	first int       // the shards are first to end-1
	end   int

	pending  []int // ascending
	results  map[int]shardResult
	by       map[int]string            // shard → worker that holds it
	requests map[int][]byte            // of queries that have no answer
	tries    map[int]map[string]string // shard → worker → why it failed
	last     map[int]string            // shard → the newest of its tries
	suspects map[int][]string          // shard that a dead worker held → workers that died with it alone
	slow     map[int]int               // shard → workers that were given up on it

	counted map[int]shardResult // of the flows that are being moved
	reduce  *reduceOrder
	moving  time.Time
	alone   string // inbox of a sole member that was told to move
	aloneIn Term
	quit    time.Time // when the caller stopped waiting, while that member moves; zero: it waits

	answers chan shardAnswer // of queries
	over    chan struct{}    // closed at the end
	err     error
}

type shardAnswer struct {
	shard  int
	answer []byte
}

// newRound returns a round over the shards first to end-1 of a task.
func newRound(t task, first, end int) *round {
	rd := &round{
		task: t, first: first, end: end, results: map[int]shardResult{}, by: map[int]string{}, requests: map[int][]byte{},
		tries: map[int]map[string]string{}, last: map[int]string{}, suspects: map[int][]string{}, slow: map[int]int{}, over: make(chan struct{}),
	}
	for s := first; s < end; s++ {
		rd.pending = append(rd.pending, s)
	}
	return rd
}

// do has the workers do a round, and waits for its end. A round that ctx ends
// leaves the parameters as they were, but a move that an only worker has begun is
// waited for, and counts.
func (r *Run) do(ctx context.Context, rd *round) error {
	if err := r.start(rd); err != nil {
		return err
	}
	select {
	case <-rd.over:
		return rd.err
	case <-ctx.Done():
	}
	err := r.call(func() { r.giveUp(rd) })
	<-rd.over
	if rd.err == nil || err != nil {
		return rd.err
	}
	return ctx.Err()
}

func (r *Run) start(rd *round) (err error) {
	spare := 0
	callErr := r.call(func() {
		switch {
		case r.err != nil:
			err = r.err
			return
		case r.round != nil:
			panic("BUG: cluster: two rounds at a time")
		case rd.task.Kind == flowTask && r.version == (Version{}):
			err = fmt.Errorf("%w: none were written, or no worker is left that has them", ErrLost)
			return
		}
		r.rounds++
		rd.id = r.rounds
		r.round, r.quiet = rd, false
		if n := len(r.members); rd.task.Kind == flowTask && rd.end-rd.first < n && !r.spare {
			r.spare, spare = true, n
		}
	})
	if callErr != nil {
		return callErr
	}
	if spare > 0 && r.o.OnSpare != nil {
		r.o.OnSpare(rd.end-rd.first, spare)
	}
	return err
}

// giveUp ends a round whose caller has stopped waiting for it. Not at once where an only worker moves the
// parameters: it has nothing to take them back with, so without the step they would be lost.
func (r *Run) giveUp(rd *round) {
	if r.round != rd {
		return
	}
	if rd.alone != "" && r.phase != open_ && rd.quit.IsZero() {
		rd.quit = time.Now()
		return
	}
	r.finish(context.Canceled)
	r.quiet = true
	if r.phase == reducing || r.phase == syncing { // who gives a joiner the parameters could not give them to the caller, who saves them now
		r.newTerm("the step was given up")
	}
}

// deal hands out shards while workers have room, and ends the round when all
// are done.
func (r *Run) deal() {
	rd := r.round
	span := 1
	if rd.task.Kind != queryTask {
		span = assign.Stretch(len(rd.pending), len(r.members))
	}
	fresh := map[*workerInfo][]int{}
	for len(rd.pending) > 0 {
		workers := make([]assign.Worker, len(r.members))
		suspect := rd.suspected(rd.pending[0])
		for i, w := range r.members {
			workers[i] = assign.Worker{Leased: len(w.leased), Depth: 2*span + 1, Speed: r.speedOf(w).Value()}
			if rd.task.Kind == evalTask {
				workers[i].Depth = 8 * span
			}
			_, failed := rd.tries[rd.pending[0]][w.ID]
			workers[i].Barred = failed && len(r.members) > len(rd.tries[rd.pending[0]]) ||
				len(w.leased) > 0 && (suspect || rd.suspected(w.leased[0]))
		}
		at := assign.Next(workers)
		if at < 0 {
			break
		}
		w := r.members[at]
		n := 1
		for n < span && !suspect && n < len(rd.pending) && rd.pending[n] == rd.pending[0]+n && len(rd.tries[rd.pending[n]]) == 0 && !rd.suspected(rd.pending[n]) {
			n++
		}
		taken := slices.Clone(rd.pending[:n])
		rd.pending = rd.pending[n:]
		w.leased = append(w.leased, taken...)
		fresh[w] = append(fresh[w], taken...)
	}
	for _, w := range r.members {
		if len(fresh[w]) > 0 {
			r.lease(w, fresh[w])
		}
	}
	if len(rd.pending) > 0 || rd.task.Kind == queryTask || len(rd.results) < rd.end-rd.first {
		return
	}
	if rd.task.Kind == flowTask {
		r.reduce()
	} else {
		r.finish(nil)
	}
}

// speedOf returns the speeds of workers like this one. They share what is
// measured: between workers of a kind differences are noise, and by that some
// would get nothing to do in steps of few shards.
func (r *Run) speedOf(w *workerInfo) *assign.Median {
	return median(r.speeds, w.kind())
}

// timesOf returns the seconds that workers like this one took for shards of a kind of task.
func (r *Run) timesOf(w *workerInfo, k taskKind) *assign.Median {
	return median(r.times, w.kind()+string(k))
}

// kind is the same for workers that should be equally fast.
func (w *workerInfo) kind() string { return fmt.Sprint(w.Device, w.Paths, w.Threads) }

func median(of map[string]*assign.Median, key string) *assign.Median {
	if of[key] == nil {
		of[key] = &assign.Median{}
	}
	return of[key]
}

// lease leases shards to a worker, or reminds it of those it has.
func (r *Run) lease(w *workerInfo, shards []int) {
	rd := r.round
	w.given = time.Now()
	order := workOrder{Version: r.version, MovedIn: r.movedIn, Task: rd.task}
	if rd.task.Kind != queryTask {
		order.Shards = runsOf(shards)
		r.send(w, &order)
		return
	}
	for _, s := range shards {
		order.Shards = runs{s, s + 1}
		m := r.message(&order)
		m.Payload = rd.requests[s]
		r.sendMessage(w, m)
	}
}

// done takes results of shards, or the answer of a query.
func (r *Run) done(w *workerInfo, b *doneReport, payload []byte) {
	rd := r.round
	if rd.task.Kind == queryTask {
		if s := b.Shards[0]; b.Shards.count() == 1 && r.took(w, s) {
			r.clock(w, b, 1, 1)
			delete(rd.requests, s)
			rd.answers <- shardAnswer{s, payload}
			r.count(map[string]int{w.ID: 1})
		}
		return
	}
	results, err := decodeResults(rd.task.Kind, payload)
	if err != nil {
		r.log.Warn("message refused", "worker", w.ID, "err", err)
		return
	}
	rows := 0
	for s, result := range results {
		if r.took(w, s) {
			rd.results[s], rd.by[s] = result, w.ID
			rows += result.Rows
		}
	}
	if len(results) > 0 {
		r.clock(w, b, len(results), rows)
	}
}

// took ends a worker's lease of a shard, and reports whether it had one. A new term takes leases
// back, but what a worker was at is finished: where flows are not at stake, it counts unless the shard
// is with another worker by then.
func (r *Run) took(w *workerInfo, shard int) bool {
	rd := r.round
	if at := slices.Index(w.leased, shard); at >= 0 {
		w.leased = slices.Delete(w.leased, at, at+1)
	} else if i, ok := slices.BinarySearch(rd.pending, shard); ok && rd.task.Kind != flowTask {
		rd.pending = slices.Delete(rd.pending, i, i+1)
	} else {
		return false
	}
	w.done, w.queue = time.Now(), max(0, w.queue-1)
	return true
}

// clock notes how long shards took.
func (r *Run) clock(w *workerInfo, b *doneReport, shards, rows int) {
	if seconds := float64(b.Nanos) / 1e9; seconds > 0 && rows > 0 {
		r.timesOf(w, r.round.task.Kind).Add(seconds / float64(shards))
		r.speedOf(w).Add(float64(rows) / seconds)
	}
}

// failed notes that a worker could not compute a shard. Another one tries it, if
// there is one and it could; twice is enough.
func (r *Run) failed(w *workerInfo, b *failedReport) {
	rd, shard, why := r.round, b.Shard, b.Err
	if !r.took(w, shard) {
		return
	}
	rd.note(shard, w.ID, why)
	r.log.Warn("shard failed", "worker", w.ID, "shard", shard, "err", why)
	if b.Final {
		r.fail(badJob(why))
		return
	}
	if r.dropDead() {
		return
	}
	if rd.task.Kind == flowTask { // part of its flows may have been added
		w.reset = true
		r.newTerm(fmt.Sprintf("shard %d failed on %s", shard, w.ID))
		return
	}
	rd.pending = append([]int{shard}, rd.pending...)
	slices.Sort(rd.pending)
}

func (rd *round) note(shard int, worker, why string) {
	if rd.tries[shard] == nil {
		rd.tries[shard] = map[string]string{}
	}
	if _, again := rd.tries[shard][worker]; again {
		worker += " again"
	}
	rd.tries[shard][worker], rd.last[shard] = why, worker
}

// blame notes a refusal for all shards that a worker's flows hold.
func (rd *round) blame(w *workerInfo, why string) {
	for s, id := range rd.by {
		if id == w.ID {
			rd.note(s, w.ID, why)
		}
	}
}

// suspected reports whether a worker died while it held the shard. Such a shard
// goes to a worker that holds no other, so that the next death says which it was.
func (rd *round) suspected(shard int) bool {
	_, ok := rd.suspects[shard]
	return ok
}

// suspect notes that a worker died with shards leased to it.
func (rd *round) suspect(shards []int, worker string) {
	for _, s := range shards {
		if deaths, again := rd.suspects[s]; again && len(shards) == 1 {
			rd.suspects[s] = append(deaths, worker)
		} else if !again {
			rd.suspects[s] = nil
		}
	}
}

// The most times that a shard fails, and that workers die of it, before it is given
// up.
const (
	mostTries  = 2
	mostDeaths = 3
)

// dead lists the shards that failed too often, or that took too many workers down,
// in order.
func (rd *round) dead() (letters []DeadLetter) {
	for s := range rd.tries {
		if len(rd.tries[s]) >= mostTries {
			last := rd.last[s]
			letters = append(letters, DeadLetter{Shard: s, Reason: fmt.Sprintf("failed %d times, last on %s: %s", mostTries, last, rd.tries[s][last])})
		}
	}
	for s, workers := range rd.suspects {
		if len(workers) >= mostDeaths {
			letters = append(letters, DeadLetter{Shard: s, Reason: "took the process of a worker down each time: " + strings.Join(workers, ", ")})
		}
	}
	slices.SortFunc(letters, func(a, b DeadLetter) int { return a.Shard - b.Shard })
	return letters
}

// dropDead reports whether shards of the round are dead, which no worker could compute: then a
// dead letter of each is added to the queue, in the background, and the round ends with ErrDead.
func (r *Run) dropDead() bool {
	rd := r.round
	letters := rd.dead()
	for i := range letters {
		letters[i].Run, letters[i].Time = r.o.Spec.Run, time.Now()
	}
	if len(letters) == 0 {
		return false
	}
	letters = letters[:min(len(letters), 100)]
	first := letters[0]
	err := fmt.Errorf("%w: shard %d%s %s", ErrDead, first.Shard, rd.task.rowsOf(first.Shard), first.Reason)
	queue, log, lease := r.c.o.Bus.Jobs(), r.log, r.c.lease()
	r.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*lease)
		defer cancel()
		for _, l := range letters {
			if err := queue.Bury(ctx, l); err != nil {
				log.Error("dead letter not kept", "shard", l.Shard, "err", err)
			}
		}
	})
	r.finish(err)
	return true
}

// recall takes the shards back at the start of a term. Flows count again when
// their holders say so.
func (rd *round) recall(members []*workerInfo) {
	if rd.task.Kind == flowTask {
		clear(rd.results)
		clear(rd.by)
	}
	rd.pending = nil
	if rd.task.Kind == queryTask {
		rd.pending = slices.Sorted(maps.Keys(rd.requests))
		return
	}
	for s := rd.first; s < rd.end; s++ {
		if _, ok := rd.results[s]; !ok {
			rd.pending = append(rd.pending, s)
		}
	}
}

// credit counts a shard whose flows a member holds.
func (rd *round) credit(shard int, w *workerInfo, result shardResult) {
	if shard < rd.first || shard >= rd.end {
		return
	}
	rd.results[shard], rd.by[shard] = result, w.ID
	if i, ok := slices.BinarySearch(rd.pending, shard); ok {
		rd.pending = slices.Delete(rd.pending, i, i+1)
	}
}

// What a worker may take without finishing a shard: a fixed time until workers of its kind have
// finished one of such a task, then many times what they took, and never less than a few leases.
const (
	firstPatience = time.Hour
	usualPatience = 30
	leastPatience = 6 // leases
)

// patience says how long a worker that beats may take without finishing a shard. A worker that was
// given up on a shard may only have been slow, and what it did is lost: the next one has twice the time
// for it, so that each shard is done at last, however long it takes.
func (r *Run) patience(w *workerInfo) time.Duration {
	if r.round == nil {
		return firstPatience
	}
	most := firstPatience
	if usual := r.timesOf(w, r.round.task.Kind).Value(); usual > 0 {
		most = time.Duration(usualPatience * usual * float64(time.Second))
	}
	most = max(most, leastPatience*r.c.lease())
	if s := w.atWork(); s >= 0 {
		most <<= min(r.round.slow[s], 10)
	}
	return most
}

// atWork is the shard that a worker computes if it computes any, -1 if it has none.
func (w *workerInfo) atWork() int {
	switch {
	case len(w.leased) > 0:
		return w.leased[0]
	case len(w.before) > 0:
		return w.before[0]
	}
	return -1
}

// overdue gives a worker up that has finished nothing for longer than patience, if others are there
// to compute in its place. It is to let go of the run. Then it is met anew, but is ready only once
// what it computes has ended and the run is loaded: until then no term waits for it, and afterwards
// it holds no shard that others have computed too.
func (r *Run) overdue(w *workerInfo, took time.Duration) bool {
	if took <= r.patience(w) {
		w.overdue = false
		return false
	}
	why := fmt.Sprintf("it beats, but has finished nothing for %v", took.Round(time.Second))
	if s := w.atWork(); s >= 0 && r.round != nil {
		why = fmt.Sprintf("shard %d takes too long: %s", s, why)
	}
	if len(r.members) < 2 {
		if !w.overdue {
			r.log.Warn("the only worker is kept; if it is stuck, restart it", "worker", w.ID, "why", why)
		}
		w.overdue = true
		return false
	}
	if s := w.atWork(); s >= 0 && r.round != nil {
		r.round.slow[s]++
	}
	r.send(w, &releaseOrder{})
	r.drop(w, why)
	return true
}

// reduce has the members move the parameters by the flows of all shards.
func (r *Run) reduce() {
	rd := r.round
	held := map[string][]int{}
	for s, id := range rd.by {
		held[id] = append(held[id], s)
	}
	rd.step.Shards, rd.step.By = rd.end-rd.first, map[string]runs{}
	for id, shards := range held {
		rd.step.By[id] = runsOf(shards)
	}
	rule := *rd.rule
	if rule.Anemone != nil {
		a := *rule.Anemone
		for _, res := range rd.results {
			a.Impossible += res.Impossible
		}
		rule.Anemone = &a
	}
	rd.reduce = &reduceOrder{Version: r.version, Task: rd.task, Rule: &rule, Held: rd.step.By}
	rd.step.Term, rd.counted = r.term, maps.Clone(rd.results)
	r.phase, rd.moving = reducing, time.Now()
	if len(r.members) == 1 {
		rd.alone, rd.aloneIn = r.members[0].Inbox, r.term
	} else {
		rd.alone = ""
	}
	for _, w := range r.members {
		w.moved = nil
	}
	r.sendAll(rd.reduce)
}

// moved takes note that a member has moved all parts. When all have, with equal
// results, the step counts.
func (r *Run) moved(w *workerInfo, b *movedReport) {
	if r.phase != reducing || r.round == nil || b.Version != r.version.Next() {
		return
	}
	w.moved = b
	for _, other := range r.members {
		if other.moved == nil {
			return
		}
	}
	for _, other := range r.members {
		if !maps.Equal(other.moved.Sums, b.Sums) {
			r.newTerm(fmt.Sprintf("%s and %s have moved the parameters to different places", other.ID, w.ID))
			return
		}
	}
	r.commit(r.term)
}

// commit makes the step count.
func (r *Run) commit(in Term) {
	rd := r.round
	r.version, r.movedIn, r.phase = r.version.Next(), in, open_
	for _, w := range r.members {
		w.leased = nil
		if len(r.members) == 1 {
			w.have = r.version
		}
	}
	if len(r.members) > 1 {
		r.sendAll(&commitOrder{Version: r.version, MovedIn: in})
	}
	if err := r.audit.append(rd.step); err != nil {
		r.fail(err)
		return
	}
	shards := map[string]int{}
	for id, s := range rd.step.By {
		shards[id] = s.count()
	}
	r.count(shards)
	r.finish(nil)
}

// count adds shards that count to the status.
func (r *Run) count(shards map[string]int) {
	r.Update(func(s *RunStatus) {
		now := maps.Clone(s.Shards)
		for id, n := range shards {
			now[id] += n
		}
		s.Shards = now
	})
}
