package engine

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/dataset"
)

// TestLaunchRows wants the rows that a call asks for, in powers of two, as far as
// memory allows.
func TestLaunchRows(t *testing.T) {
	for _, tc := range []struct {
		r           LaunchRows
		asked, want int
	}{
		{LaunchRows{4, 512}, 0, 4}, {LaunchRows{4, 512}, 1, 4}, {LaunchRows{4, 512}, 4, 4}, {LaunchRows{4, 512}, 5, 8},
		{LaunchRows{4, 512}, 256, 256}, {LaunchRows{4, 512}, 257, 512}, {LaunchRows{4, 512}, 512, 512}, {LaunchRows{4, 512}, 1 << 20, 512},
		{LaunchRows{4, 16}, 17, 16}, {LaunchRows{7, 512}, 7, 7}, {LaunchRows{7, 512}, 8, 8}, {LaunchRows{1, 1}, 100, 1}, {LaunchRows{512, 512}, 1, 512}, {LaunchRows{7, 7}, 9, 7},
	} {
		if got := tc.r.Of(tc.asked); got != tc.want {
			t.Errorf("%+v: %d rows for %d, want %d", tc.r, got, tc.asked, tc.want)
		}
	}
}

// worker is a runner that is no circuit: of two columns it gives the sum and the
// difference.
type worker struct {
	rows   int
	number int // of the workers that were made, from 1
	shop   *shop
}

// shop makes workers.
type shop struct {
	sync.Mutex
	made   []int // rows of each
	closed []int // numbers, in order
	refuse error // of the next worker
	crash  bool  // the next worker panics when it is made
	stuck  error // of the next Close
}

func (s *shop) open(ctx context.Context, rows int) (*worker, error) {
	s.Lock()
	defer s.Unlock()
	if s.crash {
		s.crash = false
		panic("crash")
	}
	if err := s.refuse; err != nil {
		s.refuse = nil
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.made = append(s.made, rows)
	return &worker{rows, len(s.made), s}, nil
}

func (w *worker) Schema() *dataset.Schema { return nil }
func (w *worker) Info() Info              { return Info{Rows: w.rows, Outputs: 2} }

func (w *worker) Evaluate(ctx context.Context, next func() (*dataset.Batch, error), take func([]float64)) error {
	for {
		b, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for lo := 0; lo < b.Rows; lo += w.rows {
			var out []float64
			for r := lo; r < min(lo+w.rows, b.Rows); r++ {
				x, y := float64(b.Columns[0].Values[r]), float64(b.Columns[1].Values[r])
				out = append(out, x+y, x-y)
			}
			take(out)
		}
	}
}

func (w *worker) Close() error {
	w.shop.Lock()
	defer w.shop.Unlock()
	w.shop.closed = append(w.shop.closed, w.number)
	err := w.shop.stuck
	w.shop.stuck = nil
	return err
}

func openShop(t *testing.T, size int) (*shop, *Pool[*worker]) {
	t.Helper()
	s := new(shop)
	p, err := OpenPool(t.Context(), size, LaunchRows{First: 4, Most: 16}, s.open)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// use is a call over so many rows, and the number of the worker that did it.
func use(t *testing.T, p *Pool[*worker], rows int) (number int) {
	t.Helper()
	if err := p.Do(t.Context(), rows, func(w *worker) error {
		if w.rows < min(rows, 16) {
			t.Errorf("a worker for %d rows is given %d", w.rows, rows)
		}
		number = w.number
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return number
}

// TestPoolGrows wants one worker for calls in turn, which is replaced by a larger
// one where a call has more rows, and stays large.
func TestPoolGrows(t *testing.T) {
	s, p := openShop(t, 3)
	for _, tc := range []struct{ rows, number int }{{1, 1}, {4, 1}, {5, 2}, {8, 2}, {1, 2}, {9, 3}, {1 << 30, 3}, {0, 3}} {
		if got := use(t, p, tc.rows); got != tc.number {
			t.Errorf("worker %d for %d rows, want %d", got, tc.rows, tc.number)
		}
	}
	if err := p.Close(); err != nil || !slices.Equal(s.made, []int{4, 8, 16}) || !slices.Equal(s.closed, []int{1, 2, 3}) {
		t.Errorf("%v: made for %v rows, closed %v", err, s.made, s.closed)
	}
}

// TestPoolErrors wants a pool to go on after workers that cannot be made or closed,
// with as many as before.
func TestPoolErrors(t *testing.T) {
	broken := errors.New("broken")
	s := &shop{refuse: broken}
	if p, err := OpenPool(t.Context(), 1, LaunchRows{1, 1}, s.open); p != nil || err != broken {
		t.Errorf("no first worker: %v, %v", p, err)
	}
	s, p := openShop(t, 1)
	none := func(*worker) error {
		t.Error("called")
		return nil
	}
	s.refuse = broken
	if err := p.Do(t.Context(), 5, none); err != broken {
		t.Errorf("no larger worker: %v", err)
	}
	s.crash = true
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic where a worker panics when it is made")
			}
		}()
		_ = p.Do(t.Context(), 5, none)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := p.Do(ctx, 5, func(*worker) error { return nil }); err != nil {
		t.Fatalf("after a panic: %v", err)
	}
	use(t, p, 5)
	s.stuck = broken
	if err := p.Do(t.Context(), 9, none); err != broken {
		t.Errorf("a worker that does not close: %v", err)
	}
	use(t, p, 1)
	if err := p.Do(t.Context(), 1, func(*worker) error { return broken }); err != broken {
		t.Errorf("the call's own error: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.Do(t.Context(), 1, func(*worker) error { panic(broken) })
	}()
	use(t, p, 1)
	s.stuck = broken
	for i, want := range []error{broken, nil} {
		if err := p.Close(); !errors.Is(err, want) {
			t.Errorf("Close %d: %v, want %v", i, err, want)
		}
	}
	if err := p.Do(t.Context(), 1, none); err != ErrClosed {
		t.Errorf("after Close: %v", err)
	}
	if len(s.made) != len(s.closed) {
		t.Errorf("made %d workers, closed %v", len(s.made), s.closed)
	}
}

// TestPoolWaits has more calls than workers: the last ones wait, and end with their
// context, with a worker, or with the pool. Close waits for the calls that run.
func TestPoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := openShop(t, 2)
		end := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
		ran := make(chan error, 2)
		for i := range end {
			go func() { ran <- p.Do(t.Context(), 1, func(*worker) error { <-end[i]; return nil }) }()
		}
		synctest.Wait()
		if len(s.made) != 2 {
			t.Fatalf("%d workers for two calls", len(s.made))
		}
		impatient, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- p.Do(impatient, 1, func(*worker) error { return nil }) }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that was cancelled while it waited: %v", err)
		}
		third := make(chan error, 1)
		go func() { third <- p.Do(t.Context(), 1, func(*worker) error { return nil }) }()
		synctest.Wait()
		select {
		case err := <-third:
			t.Fatalf("a third call ran beside two others: %v", err)
		default:
		}
		close(end[0])
		if err := errors.Join(<-ran, <-third); err != nil || len(s.made) != 2 {
			t.Errorf("%v, %d workers", err, len(s.made))
		}

		again := make(chan struct{}) // both are at work again
		go func() { ran <- p.Do(t.Context(), 1, func(*worker) error { <-again; return nil }) }()
		synctest.Wait()
		go func() { third <- p.Do(t.Context(), 1, func(*worker) error { return nil }) }()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- p.Close() }()
		synctest.Wait()
		if err := <-third; err != ErrClosed {
			t.Errorf("a call that waited when the pool was closed: %v", err)
		}
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait for the calls that run: %v", err)
		default:
		}
		close(end[1])
		close(again)
		if err := errors.Join(<-ran, <-ran, <-closed); err != nil || len(s.closed) != 2 {
			t.Errorf("%v, closed %v", err, s.closed)
		}
	})
}

// TestPoolAnswers asks a pool of runners with two outputs from many goroutines, with
// more rows than a launch takes.
func TestPoolAnswers(t *testing.T) {
	_, p := openShop(t, 3)
	var wg sync.WaitGroup
	for n := range 40 {
		wg.Go(func() {
			b := &dataset.Batch{Rows: n, Columns: []dataset.Cells{{Values: make([]float32, n)}, {Values: make([]float32, n)}}}
			want := make([]float64, 2*n)
			for r := range n {
				b.Columns[0].Values[r], b.Columns[1].Values[r] = float32(r), float32(n)
				want[2*r], want[2*r+1] = float64(r+n), float64(r-n)
			}
			out := make([]float64, 2*n)
			err := p.Do(t.Context(), n, func(w *worker) error { return EvaluateBatch(t.Context(), w, b, out) })
			if err != nil || !slices.Equal(out, want) {
				t.Errorf("%d rows: %v, %v; want %v", n, err, out, want)
			}
			if n == 0 {
				return
			}
			err = p.Do(t.Context(), n, func(w *worker) error { return EvaluateBatch(t.Context(), w, b, out[:2*n-1]) })
			if !errors.Is(err, dataset.ErrFormat) {
				t.Errorf("%d rows and room for %d numbers: %v", n, 2*n-1, err)
			}
		})
	}
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
