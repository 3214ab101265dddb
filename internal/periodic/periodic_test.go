package periodic_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/internal/periodic"
)

// TestPeriodic counts the calls of both forms in simulated time, one of which takes longer
// than an interval.
func TestPeriodic(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(context.Context, time.Duration, func(context.Context)) func()
		want  []time.Duration
	}{
		{"start", periodic.Start, []time.Duration{10, 20, 45, 50, 60}},
		{"start now", periodic.StartNow, []time.Duration{0, 10, 35, 40, 50, 60}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := time.Now()
				var calls []time.Duration
				stop := c.start(t.Context(), 10*time.Second, func(context.Context) {
					calls = append(calls, time.Since(from)/time.Second)
					if len(calls) == 2 {
						time.Sleep(25 * time.Second)
					}
				})
				time.Sleep(65 * time.Second)
				stop()
				stop()
				time.Sleep(time.Minute)
				if !slices.Equal(calls, c.want) {
					t.Errorf("calls after %d seconds, want %d", calls, c.want)
				}
			})
		})
	}
}

// TestEnds wants a call that waits to be told of the end, by stop and by the context
// above, and stop to wait for it.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(cancel, stop func()){
		"stop":    func(_, stop func()) { stop() },
		"context": func(cancel, stop func()) { cancel(); stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				ended := false
				stop := periodic.StartNow(ctx, time.Second, func(ctx context.Context) {
					<-ctx.Done()
					time.Sleep(time.Second)
					ended = true
				})
				synctest.Wait()
				end(cancel, stop)
				if !ended {
					t.Error("stop has not waited for the call")
				}
			})
		})
	}
}

// TestEndedBefore starts with a context that has ended.
func TestEndedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, start := range []func(context.Context, time.Duration, func(context.Context)) func(){periodic.Start, periodic.StartNow} {
		start(ctx, time.Hour, func(context.Context) { t.Error("called after the end") })()
	}
}
