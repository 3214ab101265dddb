package simnet

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
)

// accumulate adds the flows of a shard.
func (m *toyModel) accumulate(step cluster.Step, shard dataset.Span) em.StepResult {
	s := step.Schedule
	h := digest(m.params(), s.Seed, uint64(s.Rows), uint64(s.BatchRows), uint64(step.At.Epoch), uint64(step.At.Step), uint64(shard.Lo), uint64(shard.Hi))
	for _, o := range m.layout.Owners {
		norm := int64(0)
		for _, r := range o.Params {
			for i := r.Lo; i < r.Hi; i++ {
				f := int64(digest(h, uint64(i)) >> 44) // 20 bits
				m.flows[i] += f
				norm += f
			}
		}
		m.flows[o.Flows[len(o.Flows)-1].Lo] += norm
	}
	return toyResult(h, shard)
}

// logLikelihood has extreme rows that it may have, somewhere among the rows.
func (m *toyModel) logLikelihood(source string, rows dataset.Span) em.Evaluation {
	h := digest(digestText(m.params(), []byte(source)), uint64(rows.Lo), uint64(rows.Hi))
	e := em.Evaluation{StepResult: toyResult(h, rows)}
	if n := uint64(e.Rows); n > 0 {
		e.Lowest = em.RowLL{Row: int(digest(h, 4) % n), LL: -2 - float64(digest(h, 5)>>11)*0x1p-53}
		e.Highest = em.RowLL{Row: int(digest(h, 6) % n), LL: -float64(digest(h, 7)>>11) * 0x1p-53}
	}
	return e
}

func toyResult(h uint64, rows dataset.Span) em.StepResult {
	n := rows.Hi - rows.Lo
	r := em.StepResult{LogLikelihood: -float64(n) * (1 + float64(digest(h, 2)>>11)*0x1p-53), Rows: n}
	if digest(h, 3)%8 == 0 {
		r.Impossible = 1
	}
	return r
}

func (m *toyModel) query(request []byte) []byte {
	return binary.LittleEndian.AppendUint64(nil, digestText(m.params(), request))
}

// apply moves owners lo to hi-1.
func (m *toyModel) apply(rule tensor.Rule, lo, hi int) {
	h := digest(4, math.Float64bits(rule.Step), math.Float64bits(rule.Pseudocount))
	if a := rule.Anemone; a != nil {
		h = digest(h, math.Float64bits(a.Momentum), math.Float64bits(a.Weight), uint64(a.Rows), uint64(a.Impossible))
	}
	for _, o := range m.layout.Owners[lo:hi] {
		all := h
		for _, r := range o.Flows {
			for i := r.Lo; i < r.Hi; i++ {
				all = digest(all, uint64(m.flows[i]))
			}
		}
		if m.layout.Averages > 0 {
			for _, r := range o.Averages {
				for i := m.layout.Params + r.Lo; i < m.layout.Params+r.Hi; i++ {
					m.state[i] = fraction(digest(all, uint64(math.Float32bits(m.state[i])), uint64(i)))
					all = digest(all, uint64(math.Float32bits(m.state[i])))
				}
			}
		}
		for _, r := range o.Params {
			for i := r.Lo; i < r.Hi; i++ {
				m.state[i] = fraction(digest(all, uint64(math.Float32bits(m.state[i])), uint64(m.flows[i])))
			}
		}
		for _, r := range o.Flows {
			clear(m.flows[r.Lo:r.Hi])
		}
	}
}

// toySession is a toy on a worker. Two goroutines in it at once are a bug, as is
// the use of a closed one.
type toySession struct {
	toy    *Toy
	path   string
	model  *toyModel
	works  uint64 // pieces of work so far
	busy   atomic.Bool
	closed bool
}

// enter notes that a goroutine is in the session until the returned func.
func (s *toySession) enter() func() {
	if !s.busy.CompareAndSwap(false, true) {
		panic("BUG: two goroutines use a session at once")
	}
	if s.closed {
		panic("BUG: a closed session is used")
	}
	return func() { s.busy.Store(false) }
}

func (s *toySession) Layout() cluster.Layout { return s.model.layout }

func (s *toySession) Info() cluster.SessionInfo {
	return cluster.SessionInfo{Device: "toy", Path: s.path, Precision: "fp32"}
}

// work takes the time of a piece of work, and returns what goes wrong with it.
func (s *toySession) work(ctx context.Context, w ToyWork) (ToyFault, error) {
	s.works++
	w.Worker = s.toy.Worker
	fault := ToyFine
	if s.toy.Fault != nil {
		fault = s.toy.Fault(w)
	}
	if fault == ToyHangs {
		<-ctx.Done()
	}
	took := s.toy.MinTime
	if more := s.toy.MaxTime - s.toy.MinTime; more > 0 {
		h := digest(digestText(s.toy.Seed, []byte(s.toy.Worker)), s.works, uint64(w.Rows.Lo))
		took += time.Duration(h % uint64(more))
	}
	if took > 0 && ctx.Err() == nil {
		timer := time.NewTimer(took)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return fault, err
	}
	if fault == ToyFails {
		return fault, fmt.Errorf("%w on %s: %+v", ErrToy, s.toy.Worker, w)
	}
	return fault, nil
}

func (s *toySession) Prepare(cluster.Step, dataset.Span) { defer s.enter()() }

func (s *toySession) Accumulate(ctx context.Context, step cluster.Step, shard dataset.Span) (em.StepResult, error) {
	defer s.enter()()
	fault, err := s.work(ctx, ToyWork{At: step.At, Rows: shard})
	if err != nil {
		return em.StepResult{}, err
	}
	r := s.model.accumulate(step, shard)
	o := s.model.layout.Owners[uint64(shard.Lo)%uint64(len(s.model.layout.Owners))]
	switch fault {
	case ToyNaN:
		r.LogLikelihood = math.NaN()
	case ToyNegative: // more than all other shards can make up for
		s.model.flows[o.Params[len(o.Params)-1].Lo] -= 1 << 50
		s.model.flows[o.Flows[len(o.Flows)-1].Lo] -= 1 << 50
	case ToyUnconserved:
		s.model.flows[o.Flows[len(o.Flows)-1].Lo] += 1 << 50
	}
	return r, nil
}

func (s *toySession) LogLikelihood(ctx context.Context, source string, rows dataset.Span) (em.Evaluation, error) {
	defer s.enter()()
	fault, err := s.work(ctx, ToyWork{Source: source, Rows: rows})
	if err != nil {
		return em.Evaluation{}, err
	}
	r := s.model.logLikelihood(source, rows)
	if fault == ToyNaN {
		r.LogLikelihood = math.NaN()
	}
	return r, nil
}

func (s *toySession) Query(ctx context.Context, request []byte) ([]byte, error) {
	defer s.enter()()
	if _, err := s.work(ctx, ToyWork{Request: request}); err != nil {
		return nil, err
	}
	return s.model.query(request), nil
}

// Reading, writing and applying take no time: those that call them may hold a
// lock, and then time would stand still.

func (s *toySession) ReadFlows(ctx context.Context, offset int64, flows []int64) error {
	defer s.enter()()
	held, err := window(ctx, "flows", s.model.flows, offset, len(flows))
	copy(flows, held)
	return err
}

func (s *toySession) WriteFlows(ctx context.Context, offset int64, flows []int64) error {
	defer s.enter()()
	held, err := window(ctx, "flows", s.model.flows, offset, len(flows))
	copy(held, flows)
	return err
}

func (s *toySession) ReadState(ctx context.Context, offset int64, state []float32) error {
	defer s.enter()()
	held, err := window(ctx, "state", s.model.state, offset, len(state))
	copy(state, held)
	return err
}

func (s *toySession) WriteState(ctx context.Context, offset int64, state []float32) error {
	defer s.enter()()
	held, err := window(ctx, "state", s.model.state, offset, len(state))
	copy(held, state)
	return err
}

// window is the part of a buffer that a call is about.
func window[T any](ctx context.Context, what string, all []T, offset int64, n int) ([]T, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if offset < 0 || offset > int64(len(all)) || int64(n) > int64(len(all))-offset {
		return nil, fmt.Errorf("%w: %s %d to %d of %d", cluster.ErrCluster, what, offset, offset+int64(n), len(all))
	}
	return all[offset : offset+int64(n)], nil
}

func (s *toySession) Apply(ctx context.Context, rule tensor.Rule, lo, hi int) error {
	defer s.enter()()
	if err := ctx.Err(); err != nil {
		return err
	}
	if lo < 0 || hi < lo || hi > len(s.model.layout.Owners) {
		return fmt.Errorf("%w: owners %d to %d of %d", cluster.ErrCluster, lo, hi, len(s.model.layout.Owners))
	}
	s.model.apply(rule, lo, hi)
	return nil
}

func (s *toySession) Close() error {
	defer s.enter()()
	s.closed = true
	return nil
}
