package engine

import (
	"context"
	"errors"
	"math/bits"
)

// ErrClosed means that a pool was used after Close.
var ErrClosed = errors.New("engine: pool is closed")

// LaunchRows says how many rows the launches of a pool's runners may have. Results
// do not depend on it: fewer take less memory, more take less time.
type LaunchRows struct {
	First int // of a runner whatever it is asked for
	Most  int // of any runner
}

// Of returns the rows of a launch for a call over asked rows: First, or else a power
// of two that is not below asked, up to Most.
func (l LaunchRows) Of(asked int) int {
	if asked <= l.First {
		return l.First
	}
	return min(l.Most, 1<<bits.Len(uint(asked-1)))
}

// Pool lends runners of one program, each to one call at a time. It makes them when
// they are first needed, up to a number of them. A Pool is safe for concurrent use.
type Pool[R Runner] struct {
	open   func(ctx context.Context, rows int) (R, error)
	rows   LaunchRows
	idle   chan R        // runners that nobody uses
	fresh  chan struct{} // permits to make one more
	closed chan struct{} // one token until Close takes it
	done   chan struct{} // closed by Close
}

// OpenPool returns a pool of up to size runners, at least 1, which open makes for
// launches of that many rows. The first one is made at once, so that what is wrong
// with all of them shows early. Close the pool.
func OpenPool[R Runner](ctx context.Context, size int, rows LaunchRows, open func(ctx context.Context, rows int) (R, error)) (*Pool[R], error) {
	p := &Pool[R]{
		open: open, rows: rows,
		idle:   make(chan R, size),
		fresh:  make(chan struct{}, size),
		closed: make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	p.closed <- struct{}{}
	for range size {
		p.fresh <- struct{}{}
	}
	if err := p.Do(ctx, 0, func(R) error { return nil }); err != nil {
		return nil, err
	}
	return p, nil
}

// Do calls use with a runner for a call over that many rows, once there is one, and
// returns its error. Without one the error is that of ctx, of making one, or
// ErrClosed. use must not keep the runner.
func (p *Pool[R]) Do(ctx context.Context, rows int, use func(R) error) error {
	r, err := p.take(ctx, rows)
	if err != nil {
		return err
	}
	if r.Info().Rows < p.rows.Of(rows) { // it was made for fewer rows; one at a time is in memory
		if err := r.Close(); err != nil {
			p.fresh <- struct{}{}
			return err
		}
		if r, err = p.make(ctx, rows); err != nil {
			return err
		}
	}
	defer func() { p.idle <- r }()
	return use(r)
}

// take returns an idle runner of any size, or makes one for that many rows while there are
// fewer than the pool's most; else it waits for a runner to come back, for ctx or for Close.
// The caller gives the runner back.
func (p *Pool[R]) take(ctx context.Context, rows int) (none R, _ error) {
	select {
	case <-p.done:
		return none, ErrClosed
	default:
	}
	select {
	case r := <-p.idle:
		return r, nil
	default:
	}
	select {
	case r := <-p.idle:
		return r, nil
	case <-p.fresh:
		return p.make(ctx, rows)
	case <-p.done:
		return none, ErrClosed
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// make opens a runner, for which the caller has the permit. Close waits for every permit, so one comes back also where
// opening panics, as a function of the caller that gives parameters may.
func (p *Pool[R]) make(ctx context.Context, rows int) (r R, err error) {
	made := false
	defer func() {
		if !made {
			p.fresh <- struct{}{}
		}
	}()
	r, err = p.open(ctx, p.rows.Of(rows))
	made = err == nil
	return r, err
}

// Close waits for running calls and closes the runners. Calls that wait for one, and
// later ones, fail with ErrClosed; a second Close does nothing.
func (p *Pool[R]) Close() error {
	select {
	case <-p.closed:
	default:
		return nil
	}
	close(p.done)
	var err error
	for range cap(p.fresh) {
		select {
		case r := <-p.idle:
			err = errors.Join(err, r.Close())
		case <-p.fresh:
		}
	}
	return err
}
