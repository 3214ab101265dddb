package ir

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/fold"
)

// least returns the smaller of two integers.
func (m *emitter) least(x, y simt.Value) simt.Value {
	a, one := m.known[x]
	c, two := m.known[y]
	if one && two {
		return m.int(int(min(a, c)))
	}
	return m.b.Binary(simt.Min, x, y)
}

// loop makes the code of a loop over trees, of those that the loops around it leave.
func (m *emitter) loop(o *Op, r span) error {
	l := o.Loop
	in := span{m.plus(r.lo, m.int(l.Skip)), r.hi, r.most}
	if l.Most > 0 {
		in.hi, in.most = m.least(in.hi, m.plus(in.lo, m.int(l.Most))), min(in.most, l.Most)
	}
	if o.Known {
		in = span{m.int(o.First), m.int(o.Last), o.Last - o.First}
	}
	step := l.Step
	if l.Innermost() && l.Interleave > 0 {
		step *= l.Interleave
	}
	hi, whole := m.hi, m.whole
	defer func() { m.hi, m.whole = hi, whole }()
	stride, shared := step, l.Shared && m.k.Share > 0
	if shared { // each thread of a row has an iteration of as many
		step = min(step, max(in.most, 1)) // where the last thread begins is within 32 bits
		stride = step * m.k.Share
		in.lo = m.plus(in.lo, m.times(m.thread, step))
	}
	m.whole = o.Known && (o.Last-o.First)%step == 0
	vector := l.VectorWidth > 0 && !m.k.Keeps // what is kept is added in the model's order
	if vector {
		m.vector = fold.NewRegisters(m.b, fold.Sum(m.sum), l.VectorWidth, len(m.sums))
	}
	var err error
	if l.Skip > 0 && !o.Known || shared { // there may be none
		before := m.state()
		m.restore(m.b.If(m.b.Binary(simt.Lt, in.lo, in.hi), func() []simt.Value {
			err = m.turns(o, in, step, stride)
			return m.state()
		}, func() []simt.Value { return before }))
	} else {
		err = m.turns(o, in, step, stride)
	}
	if vector {
		total := m.vector.Total()
		m.vector = nil
		for k := range m.sums {
			m.sums[k] = m.b.Add(m.sums[k], total[k][0])
		}
	}
	return err
}

// state returns the values that a loop carries: the sums, and those of a vector.
func (m *emitter) state() []simt.Value {
	list := slices.Clone(m.sums)
	if m.vector != nil {
		list = append(list, m.vector.State()...)
	}
	return list
}

// restore sets them.
func (m *emitter) restore(list []simt.Value) {
	n := len(m.sums)
	m.sums = slices.Clone(list[:n])
	if m.vector != nil {
		m.vector.Restore(list[n:])
	}
}

// turn makes the vector's next sum the first one.
func (m *emitter) turn() {
	if m.vector != nil {
		m.vector.Turn()
	}
}

// turns makes the iterations of a loop, of step trees each and stride apart: one, or a loop of the language.
func (m *emitter) turns(o *Op, in span, step, stride int) error {
	first, one := m.known[in.lo]
	last, two := m.known[in.hi]
	if one && two && first >= last {
		return nil
	}
	if one && two && last-first <= int64(step) {
		m.v[o.Out[0]] = in.lo
		m.hi = in.hi
		err := m.block(o.Body, in)
		m.turn()
		return err
	}
	most := max(1, (in.most+stride-1)/stride)
	if most > simt.MaxTurns {
		return fmt.Errorf("%w: %s has %d iterations, want at most %d; tile it", ErrLower, o.Loop.Name, most, simt.MaxTurns)
	}
	var err error
	init := append([]simt.Value{in.lo}, m.state()...)
	out := m.b.Loop(most, init, func(now []simt.Value) ([]simt.Value, simt.Value) {
		m.v[o.Out[0]] = now[0]
		m.restore(now[1:])
		next := m.b.Add(now[0], m.int(stride))
		part := span{now[0], in.hi, min(in.most, step)}
		if !o.Loop.Innermost() {
			end := next
			if stride != step {
				end = m.plus(now[0], m.int(step))
			}
			part.hi = m.least(end, in.hi)
		}
		m.hi = in.hi
		err = m.block(o.Body, part)
		m.turn()
		return append([]simt.Value{next}, m.state()...), m.b.Binary(simt.Lt, next, in.hi)
	})
	m.restore(out[1:])
	return err
}

// repeat makes the code of the turns of a walk.
func (m *emitter) repeat(o *Op, r span) error {
	if o.N > simt.MaxTurns {
		return fmt.Errorf("%w: a walk has %d turns, want at most %d; unrollWalk with more steps, or represent sliced", ErrLower, o.N, simt.MaxTurns)
	}
	init := make([]simt.Value, len(o.Args))
	for i, v := range o.Args {
		init[i] = m.v[v]
	}
	var err error
	out := m.b.Loop(max(o.N, 1), init, func(now []simt.Value) ([]simt.Value, simt.Value) {
		for i, v := range o.Carried {
			m.v[v] = now[i]
		}
		err = m.block(o.Body, r)
		next := make([]simt.Value, len(o.Next))
		for i, v := range o.Next {
			next[i] = m.v[v]
		}
		done := m.v[o.Until[0]]
		for _, v := range o.Until[1:] {
			done = m.b.Binary(simt.And, done, m.v[v])
		}
		return next, m.b.Unary(simt.Not, done)
	})
	for i, v := range o.Out {
		m.v[v] = out[i]
	}
	return err
}
