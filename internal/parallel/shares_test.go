package parallel

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestShares: shares are adjacent, cover all rows, are multiples of the step between the limits, and are neither too large nor, but
// for the last one, too small. Each thread has one share at a time.
func TestShares(t *testing.T) {
	for _, rows := range []int{0, 1, 2, 511, 512, 513, 4096, 8192, 8193, 20_001} {
		for _, threads := range []int{1, 2, 3, 16} {
			for _, s := range []Shares{
				{threads, 512, 8192, 512, nil}, {threads, 4096, 8192, 512, new(Pace)}, {threads, 8192, 8192, 512, nil}, {threads, 3, 3, 64, nil}, {threads, 512, 2048, 64, new(Pace)},
			} {
				if rows > 10_000 && s.Most == 3 {
					continue
				}
				taken := make([]atomic.Int32, rows+1)
				var busy [16]atomic.Bool
				err := s.Do(rows, func(thread, at, n int) error {
					if !busy[thread].CompareAndSwap(false, true) || thread >= threads {
						return fmt.Errorf("thread %d has two shares", thread)
					}
					defer busy[thread].Store(false)
					if n < 1 || n > s.Most || at+n > rows || threads > 1 && n < s.Least && at+n != rows || n > s.Least && n < s.Most && at+n != rows && n%s.Step != 0 {
						return fmt.Errorf("a share of %d rows from %d on", n, at)
					}
					for i := at; i < at+n; i++ {
						taken[i].Add(1)
					}
					return nil
				})
				if err != nil {
					t.Fatalf("%+v of %d rows: %v", s, rows, err)
				}
				for i := range rows {
					if taken[i].Load() != 1 {
						t.Fatalf("%+v: row %d of %d is taken %d times", s, i, rows, taken[i].Load())
					}
				}
			}
		}
	}
}

// TestSharesShrink: with several threads shares get smaller towards the end, however late a thread begins.
func TestSharesShrink(t *testing.T) {
	var next atomic.Int64
	s, last := Shares{Threads: 2, Least: 64, Most: 1 << 20, Step: 64}, 1<<20
	sizes := map[int]bool{}
	for {
		_, n := s.take(100_000, 2, &next)
		if n == 0 {
			break
		}
		if n > last {
			t.Errorf("a share of %d rows after one of %d", n, last)
		}
		last, sizes[n] = n, true
	}
	if len(sizes) < 8 || !sizes[100_000/4/64*64] {
		t.Errorf("shares of %v rows", sizes)
	}
}

// TestSharesLowestError: whichever thread is faster, the error is that of the first share that has one.
func TestSharesLowestError(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		for range 50 {
			var after atomic.Bool // a later row has an error
			err := Shares{Threads: threads, Least: 1, Most: 1, Step: 1}.Do(300, func(_, at, _ int) error {
				if at < 17 {
					return nil
				}
				for at == 17 && threads > 1 && !after.Load() {
					runtime.Gosched()
				}
				after.Store(true)
				return fmt.Errorf("row %d", at)
			})
			if err == nil || err.Error() != "row 17" {
				t.Fatalf("%d threads: error %v, want that of row 17", threads, err)
			}
		}
	}
}

// TestSharesPanic: a panic on any thread reaches the caller.
func TestSharesPanic(t *testing.T) {
	fault := errors.New("fault")
	for at := range 3 {
		func() {
			defer func() {
				if r := recover(); r != fault {
					t.Errorf("the caller got %v, want the panic of row %d", r, at)
				}
			}()
			_ = Shares{Threads: 3, Least: 1, Most: 1, Step: 1}.Do(3, func(_, row, _ int) error {
				if row == at {
					panic(fault)
				}
				return nil
			})
		}()
	}
}

// TestPaceRows: how many rows take a duration, rounded up, once a share was timed.
func TestPaceRows(t *testing.T) {
	var p Pace
	if n := p.Rows(time.Second); n != 0 {
		t.Errorf("%d rows of a pace that is not known", n)
	}
	p.picoseconds.Store(3000)
	for d, want := range map[time.Duration]int{0: 0, 1: 1, 3: 1, 4: 2, 6: 2, 300: 100, 301: 101} {
		if n := p.Rows(d * time.Nanosecond); n != want {
			t.Errorf("%d rows of 3 ns in %d ns, want %d", n, d, want)
		}
	}
}
