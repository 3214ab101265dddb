package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
)

// adopt begins with the round of an order, if it is another one: flows of a round
// that was given up are cleared.
func (w *Worker) adopt(ctx context.Context, round int64, t task) {
	if w.results == nil {
		w.results = map[int]shardResult{}
	}
	if round <= w.round {
		return
	}
	stale := w.task.Kind == flowTask && (len(w.results) > 0 || w.current >= 0)
	w.round, w.task, w.queue = round, t, nil
	w.results, w.answers = map[int]shardResult{}, map[int][]byte{}
	w.unreported, w.unreportedTime = nil, 0
	if stale {
		w.takeBack(ctx)
	}
}

// takeBack clears the flows that the session holds. Those of a shard that is being computed go with them.
func (w *Worker) takeBack(ctx context.Context) {
	w.era++
	sess, flows := w.sess, w.layout.Flows
	w.do(func() error { return clearFlows(ctx, sess, flows) }, func(err error) {
		if err != nil && sess == w.sess {
			w.broken(err)
		}
	})
}

// work takes shards on.
func (w *Worker) work(ctx context.Context, m *message, b *workOrder) {
	w.commit(ctx, b.Version, b.MovedIn)
	if b.Version != w.version || w.ex != nil {
		return
	}
	w.adopt(ctx, m.Round, b.Task)
	if m.Round != w.round {
		return // an order of the past
	}
	var again []int // whose results have not been heard
	for _, s := range b.Shards.all() {
		if _, ok := w.results[s]; ok {
			if w.task.Kind == queryTask {
				w.tell(&doneReport{Shards: runs{s, s + 1}}, w.answers[s])
			} else {
				again = append(again, s)
			}
			continue
		}
		if s == w.current {
			continue
		}
		if !slices.ContainsFunc(w.queue, func(l lease) bool { return l.shard == s }) {
			w.queue = append(w.queue, lease{s, m.Payload})
		}
	}
	if len(again) > 0 {
		w.report(again, 0)
	}
}

// reportInterval is how long results are kept back while there is more to do: each
// message takes time of the cores that compute.
const reportInterval = 50 * time.Millisecond

// report tells the results of shards, which took that time in all.
func (w *Worker) report(shards []int, took time.Duration) {
	done := runsOf(shards)
	w.tell(&doneReport{Shards: done, Nanos: int64(took)}, encodeResults(w.task.Kind, done, w.results))
}

// flush reports what has not been told, if it is time.
func (w *Worker) flush() {
	if len(w.unreported) == 0 || len(w.queue) > 1 && time.Since(w.told) < reportInterval {
		return
	}
	w.unreported = slices.DeleteFunc(w.unreported, func(s int) bool { _, ok := w.results[s]; return !ok }) // given up meanwhile
	if len(w.unreported) > 0 {
		w.report(w.unreported, w.unreportedTime)
	}
	w.unreported, w.unreportedTime, w.told = nil, 0, time.Now()
}

// next starts the next shard if the executor is free for it.
func (w *Worker) next(ctx context.Context) {
	if w.current >= 0 || len(w.queue) == 0 || w.enrolls > 0 || w.sess == nil {
		return
	}
	l := w.queue[0]
	w.queue, w.current = w.queue[1:], l.shard
	sess, t, round, era := w.sess, w.task, w.round, w.era
	computing, drop := context.WithCancel(ctx)
	w.currentOf, w.drop = w.spec, drop
	span := t.span(l.shard)
	var result shardResult
	var answer []byte
	begin := time.Now()
	var ahead *dataset.Span
	if t.Kind == flowTask && len(w.queue) > 0 {
		span := t.span(w.queue[0].shard)
		ahead = &span
	}
	w.do(func() (err error) {
		begin = time.Now()
		if ahead != nil {
			sess.Prepare(t.Step, *ahead)
		}
		result, answer, err = compute(computing, sess, &t, span, l.request)
		return err
	}, func(err error) {
		drop()
		w.current = -1
		took := time.Since(begin)
		w.stats.computed(took, err == nil)
		if sess != w.sess {
			return // the run is gone
		}
		if round != w.round || era != w.era {
			return // its flows have been cleared behind it
		}
		if err != nil {
			w.tell(&failedReport{Shard: l.shard, Err: reasonOf(err), Final: t.Kind == queryTask && errors.Is(err, ErrJob)}, nil)
			if t.Kind == flowTask { // part of its flows may have been added, and that word may be lost
				w.results, w.unreported, w.unreportedTime = map[int]shardResult{}, nil, 0
				w.takeBack(ctx)
			}
			return
		}
		w.results[l.shard] = result
		if t.Kind == queryTask {
			w.answers[l.shard] = answer
			// The leader has the answers to all requests that many before, as it asks for no more at a time. Others may have
			// answered some of those between.
			maps.DeleteFunc(w.answers, func(s int, _ []byte) bool { return s <= l.shard-answersKept })
			maps.DeleteFunc(w.results, func(s int, _ shardResult) bool { return s <= l.shard-answersKept })
		}
		if t.Kind == queryTask {
			w.tell(&doneReport{Shards: runs{l.shard, l.shard + 1}, Nanos: int64(took)}, answer)
			return
		}
		w.unreported, w.unreportedTime = append(w.unreported, l.shard), w.unreportedTime+took
	})
}

// quit ends the shard in work, unless it is of the given run: none wants its result.
func (w *Worker) quit(but *Spec) {
	if w.current >= 0 && !w.currentOf.same(but) {
		w.drop()
	}
}

func compute(ctx context.Context, sess Session, t *task, span dataset.Span, request []byte) (shardResult, []byte, error) {
	switch t.Kind {
	case flowTask:
		r, err := sess.Accumulate(ctx, t.Step, span)
		return stepOf(r), nil, err
	case evalTask:
		r, err := sess.LogLikelihood(ctx, t.Source, span)
		return evaluationOf(r), nil, err
	case queryTask:
		answer, err := sess.Query(ctx, request)
		return shardResult{}, answer, err
	}
	return shardResult{}, nil, fmt.Errorf("%w: task %q is unknown to this version", ErrCluster, t.Kind)
}

// reduce moves the parameters together with the others.
func (w *Worker) reduce(ctx context.Context, m *message, b *reduceOrder) {
	if w.ex != nil {
		if w.exSums != nil {
			w.moved()
		}
		return
	}
	if b.Version.Next() == w.version && len(w.members) == 1 { // done, but the leader did not hear
		w.moved()
		return
	}
	if b.Version == w.version {
		w.adopt(ctx, m.Round, b.Task)
	}
	own := w.held()
	if m.Round < w.round {
		return
	}
	if want := b.Held[w.members[w.self].ID]; b.Version != w.version || m.Round != w.round || len(w.queue) > 0 || w.current >= 0 || !slices.Equal(own, want) {
		w.tell(&troubleReport{Err: reasonOf(fmt.Errorf("flows of shards %v are to be moved, but %v are held", want, own))}, nil)
		return
	}
	if len(w.members) == 1 {
		w.moveAlone(ctx, *b.Rule)
		return
	}
	if int64(len(w.staging)) != w.layout.stateLen() {
		w.staging = make([]float32, w.layout.stateLen())
	}
	ex := &exchange{
		term: w.term, version: w.version, members: w.members, self: w.self, parts: w.layout.split(len(w.members)), rule: *b.Rule,
		peers: w.peers, sess: w.sess, layout: w.layout, staged: w.staging,
	}
	for _, s := range w.members {
		ex.shards = append(ex.shards, b.Held[s.ID].count())
	}
	ex.prepare()
	moving, cancel := context.WithCancel(ctx)
	w.ex, w.exDone, w.exSums, w.asks, w.cancel = ex, false, nil, map[string]*Frame{}, cancel
	w.gate.set(w.term, ex)
	var sums map[string]uint32
	w.do(func() (err error) {
		defer cancel()
		sums, err = ex.run(moving)
		return err
	}, func(err error) {
		if w.ex != ex {
			return
		}
		w.exDone = true
		if err != nil {
			if moving.Err() == nil || !errors.Is(err, context.Canceled) {
				w.tell(&troubleReport{Err: reasonOf(err), Blame: ex.blame}, nil)
			}
			return
		}
		w.exSums = sums
		w.moved()
	})
}

// moveAlone moves all parameters where this is the only worker: none shares the work or
// repeats it.
func (w *Worker) moveAlone(ctx context.Context, rule tensor.Rule) {
	sess := w.sess
	w.version, w.results = w.version.Next(), nil
	w.exSums = map[string]uint32{w.o.ID: 0}
	w.do(func() error { return sess.Apply(ctx, rule, 0, len(w.layout.Owners)) }, func(err error) {
		if sess != w.sess {
			return
		}
		if err != nil {
			w.broken(err)
			return
		}
		w.moved()
	})
}

func (w *Worker) moved() {
	v := w.version
	if w.ex != nil {
		v = w.ex.version.Next()
	}
	w.tell(&movedReport{Version: v, Sums: w.exSums}, nil)
}

// finish makes a staged move count.
func finish(ctx context.Context, ex *exchange) error {
	if err := ex.commit(ctx); err != nil {
		return err
	}
	return clearFlows(ctx, ex.sess, ex.layout.Flows)
}

// commit makes the staged move count, if it is the one.
func (w *Worker) commit(ctx context.Context, v Version, in Term) {
	if w.ex == nil || w.exSums == nil || v != w.ex.version.Next() || in != w.ex.term {
		return
	}
	ex := w.ex
	w.ex, w.exSums, w.results = nil, nil, nil
	w.version = v
	w.gate.set(w.term, nil)
	w.do(func() error { return finish(ctx, ex) }, func(err error) {
		if err != nil && ex.sess == w.sess {
			w.broken(err)
		}
	})
	for to, ask := range w.asks {
		w.serve(to, ask)
	}
	w.asks = nil
}
