package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestOrder(t *testing.T) {
	// Held still: a run that is resumed, maybe by a newer build, needs the same.
	if got, want := fmt.Sprint(Order(42, 3, 12)), "[4 11 1 7 3 2 6 9 5 0 10 8]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p := Order(1, 0, 1000)
	q := Order(1, 1, 1000)
	if slices.Equal(p, q) || slices.Equal(p, Order(2, 0, 1000)) {
		t.Error("epoch or seed does not matter")
	}
	slices.Sort(p)
	if !slices.Equal(p, span(0, 1000)) {
		t.Error("no permutation")
	}
}

func TestShards(t *testing.T) {
	for _, tt := range []struct {
		rows, shard int
		want        string
	}{
		{10, 4, "[{0 4} {4 8} {8 10}]"},
		{8, 4, "[{0 4} {4 8}]"},
		{3, 4, "[{0 3}]"},
		{0, 4, "[]"},
		{3, 0, "[]"},
	} {
		if got := fmt.Sprint(Shards(tt.rows, tt.shard)); got != tt.want {
			t.Errorf("Shards(%d, %d) = %s, want %s", tt.rows, tt.shard, got, tt.want)
		}
	}
}

// numbered is a source of one column whose cells are their row numbers; Gather
// fails after a number of calls, if that is not 0.
type numbered struct {
	rows, failAfter int
	calls           int // by the loader's goroutine only
}

var errBroken = errors.New("broken")

func (n *numbered) Schema() *Schema { return &Schema{Columns: []Column{{Categories: 1000}}} }
func (n *numbered) Rows() int       { return n.rows }
func (n *numbered) Gather(_ context.Context, b *Batch, rows []int) error {
	if n.calls++; n.calls == n.failAfter {
		return errBroken
	}
	b.Resize(n.Schema(), len(rows))
	for i, r := range rows {
		b.Columns[0].Codes.Set(i, r)
	}
	return nil
}

// steps runs a loader to its end and prints each step.
func steps(t *testing.T, src Source, opts LoaderOptions) ([]string, error) {
	t.Helper()
	l, err := NewLoader(context.Background(), src, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out []string
	for {
		s, err := l.Next(context.Background())
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if len(s.Rows) != s.Batch.Rows {
			t.Fatalf("%d rows, batch of %d", len(s.Rows), s.Batch.Rows)
		}
		for i, r := range s.Rows {
			if s.Batch.Columns[0].Codes.At(i) != r {
				t.Fatalf("row %d of the batch is not row %d", i, r)
			}
		}
		out = append(out, fmt.Sprint(s.At, s.Next, s.Last, s.Rows))
	}
}

func TestLoader(t *testing.T) {
	opts := LoaderOptions{BatchRows: 4, Seed: 9, Epochs: 3}
	all, err := steps(t, &numbered{rows: 10}, opts)
	if err != nil || len(all) != 9 {
		t.Fatalf("%d steps, %v", len(all), err)
	}
	for i, s := range all {
		order := Order(9, i/3, 10)
		lo, hi := []int{0, 4, 7}[i%3], []int{4, 7, 10}[i%3]
		next := Cursor{i / 3, i%3 + 1}
		if i%3 == 2 {
			next = Cursor{i/3 + 1, 0}
		}
		if want := fmt.Sprint(Cursor{i / 3, i % 3}, next, i%3 == 2, order[lo:hi]); s != want {
			t.Errorf("step %d: got %s, want %s", i, s, want)
		}
		// A run that starts there goes on in the same way.
		opts.Start = Cursor{i / 3, i % 3}
		rest, err := steps(t, &numbered{rows: 10}, opts)
		if err != nil || !slices.Equal(rest, all[i:]) {
			t.Errorf("from step %d: %v, %v", i, rest, err)
		}
	}
	inOrder, err := steps(t, &numbered{rows: 5}, LoaderOptions{BatchRows: 3, InOrder: true, Epochs: 1})
	if err != nil || fmt.Sprint(inOrder) != "[{0 0} {0 1} false [0 1 2] {0 1} {1 0} true [3 4]]" {
		t.Errorf("in order: %v, %v", inOrder, err)
	}
	subsets, err := steps(t, &numbered{rows: 5}, LoaderOptions{BatchRows: 5, MinSteps: 3, InOrder: true, Epochs: 1})
	if err != nil || fmt.Sprint(subsets) != "[{0 0} {0 1} false [0 1] {0 1} {0 2} false [2 3] {0 2} {1 0} true [4]]" {
		t.Errorf("in three parts: %v, %v", subsets, err)
	}
}

func TestLoaderEnds(t *testing.T) {
	if _, err := steps(t, &numbered{rows: 10, failAfter: 3}, LoaderOptions{BatchRows: 2}); err != errBroken {
		t.Errorf("broken source: %v", err)
	}
	for _, opts := range []LoaderOptions{
		{BatchRows: 0},
		{BatchRows: 4, Start: Cursor{0, 3}},
		{BatchRows: 4, Start: Cursor{-1, 0}},
	} {
		if _, err := NewLoader(context.Background(), &numbered{rows: 10}, opts); !errors.Is(err, ErrSetting) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	// Closing a loader that nobody reads from, twice, ends its goroutine.
	l, err := NewLoader(context.Background(), &numbered{rows: 10}, LoaderOptions{BatchRows: 2})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	for range 4 {
		if _, err = l.Next(context.Background()); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("closed: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l, err = NewLoader(ctx, &numbered{rows: 10}, LoaderOptions{BatchRows: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cancel()
	for err == nil {
		_, err = l.Next(context.Background())
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// slowToEnd is a source whose Gather takes a while after its context has ended.
type slowToEnd struct {
	numbered
	began chan struct{} // closed by the first Gather
	ended atomic.Bool
}

func (s *slowToEnd) Rows() int { return 10 }
func (s *slowToEnd) Gather(ctx context.Context, _ *Batch, _ []int) error {
	close(s.began)
	<-ctx.Done()
	time.Sleep(time.Second)
	s.ended.Store(true)
	return ctx.Err()
}

// TestLoaderWaits closes a loader whose source is slow to end: it has ended when Close returns, as what it reads from may be
// closed then.
func TestLoaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowToEnd{began: make(chan struct{})}
		l, err := NewLoader(t.Context(), slow, LoaderOptions{BatchRows: 2})
		if err != nil {
			t.Fatal(err)
		}
		<-slow.began
		l.Close()
		if !slow.ended.Load() {
			t.Error("closed while the source is read")
		}
	})
}

// broken is a source that panics when its rows are read.
type broken struct{ numbered }

func (*broken) Gather(context.Context, *Batch, []int) error { panic(errBroken) }

// TestLoaderPanic: a panic of the source reaches the caller of Next at each call, and Close returns.
func TestLoaderPanic(t *testing.T) {
	l, err := NewLoader(t.Context(), &broken{numbered{rows: 8}}, LoaderOptions{BatchRows: 4, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		func() {
			defer func() {
				if r := recover(); r != errBroken {
					t.Errorf("the caller got %v, want the panic", r)
				}
			}()
			s, err := l.Next(t.Context())
			t.Errorf("step %v, error %v", s, err)
		}()
	}
}
