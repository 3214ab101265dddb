package parallel

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	const n = 1000
	var calls [n]atomic.Int32
	var workers atomic.Int32
	start := func() func(int) error {
		workers.Add(1)
		return func(i int) error { calls[i].Add(1); return nil }
	}
	if err := Each(n, start); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if got := calls[i].Load(); got != 1 {
			t.Fatalf("number %d was taken %d times", i, got)
		}
	}
	if workers.Store(0); Each(0, start) != nil || workers.Load() > 1 {
		t.Errorf("nothing to do took %d goroutines", workers.Load())
	}
}

// TestEachLowestError: whichever goroutine is faster, the error is that of the lowest number.
func TestEachLowestError(t *testing.T) {
	for range 50 {
		err := Each(300, func() func(int) error {
			return func(i int) error {
				if i%100 >= 17 {
					return fmt.Errorf("number %d", i)
				}
				return nil
			}
		})
		if err == nil || err.Error() != "number 17" {
			t.Fatalf("error %v, want that of number 17", err)
		}
	}
}

func TestStream(t *testing.T) {
	const n = 1000
	var calls [n]atomic.Int32
	Stream(func(put func(int)) {
		for i := range n {
			put(i)
		}
	}, func() func(int) { return func(i int) { calls[i].Add(1) } })
	for i := range calls {
		if got := calls[i].Load(); got != 1 {
			t.Fatalf("item %d was taken %d times", i, got)
		}
	}
}

// TestPanics: a panic anywhere reaches the caller with its value, and nothing hangs.
func TestPanics(t *testing.T) {
	fault := errors.New("fault")
	caught := func(call func()) (r any) {
		defer func() { r = recover() }()
		call()
		return nil
	}
	faulty := func() func(int) { return func(i int) { panic(fault) } }
	for name, call := range map[string]func(){
		"each":    func() { _ = Each(100, func() func(int) error { return func(i int) error { panic(fault) } }) },
		"work":    func() { Stream(func(put func(int)) { put(1); put(2); put(3); put(4) }, faulty) },
		"produce": func() { Stream(func(func(int)) { panic(fault) }, faulty) },
	} {
		if got := caught(call); got != fault {
			t.Errorf("%s: the caller got %v, want the panic", name, got)
		}
	}
}
