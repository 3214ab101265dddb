// Package periodic calls a function at intervals, in a goroutine that its caller ends
// and waits for.
//
// # Shapes and units
//
// None.
//
// # Errors
//
// None: a function that fails says so itself, or cancels the context.
//
// # Source
//
// None.
package periodic

import (
	"context"
	"time"
)

// Start calls do after each interval, until the context ends or stop is called. A call
// that takes longer than an interval delays the next one. Stop ends the context of a call
// that runs, waits for it, and may be called more than once.
func Start(ctx context.Context, interval time.Duration, do func(ctx context.Context)) (stop func()) {
	return start(ctx, interval, func(context.Context) {}, do)
}

// StartNow is Start, with a first call at once.
func StartNow(ctx context.Context, interval time.Duration, do func(ctx context.Context)) (stop func()) {
	return start(ctx, interval, do, do)
}

func start(ctx context.Context, interval time.Duration, first, do func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for next := first; ctx.Err() == nil; next = do {
			next(ctx)
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
