package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
)

// TestOver wants a run to be over when it is done, was cancelled or failed for good,
// and not when it is interrupted or may succeed when it goes on.
func TestOver(t *testing.T) {
	end := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	interrupted, cancelled := end(errors.New("SIGTERM")), end(fmt.Errorf("asked: %w", ErrCancelled))
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), nil, true},
		{t.Context(), Bad("r", "no rows"), true},
		{t.Context(), fmt.Errorf("step: %w", cluster.ErrLost), false},
		{t.Context(), cluster.ErrDeposed, false},
		{t.Context(), cluster.ErrUnreachable, false},
		{t.Context(), cluster.ErrDead, true},
		{t.Context(), fmt.Errorf("write: %w", syscall.ENOSPC), false},
		{t.Context(), syscall.EDQUOT, false},
		{interrupted, context.Canceled, false},
		{interrupted, Bad("r", "no rows"), false},
		{cancelled, context.Canceled, true},
		{cancelled, cluster.ErrLost, true},
	} {
		if got := Over(tc.ctx, tc.err); got != tc.want {
			t.Errorf("a run that ends with %v (%v) is over: %t, want %t", tc.err, context.Cause(tc.ctx), got, tc.want)
		}
	}
}

// TestBad wants both classes, and one short line.
func TestBad(t *testing.T) {
	err := Bad(strings.Repeat("r", 1000), "rows: %w", dataset.ErrFormat)
	if !errors.Is(err, cluster.ErrJob) || !errors.Is(err, dataset.ErrFormat) || len(err.Error()) > 200 {
		t.Errorf("%v", err)
	}
}
