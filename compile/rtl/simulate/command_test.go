package simulate

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// TestCommandEnds: a command that is killed is not waited for longer because a program that it has started keeps its output open.
func TestCommandEnds(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIPPED: no sh here")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := Command(ctx, []string{"sh", "-c", "sleep 15 & wait"})
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
		t.Errorf("error %v after %v", err, took)
	}
	if out, err := Command(t.Context(), []string{"sh", "-c", "echo done; sleep 15 & exit 0"}); err != nil || out != "done\n" {
		t.Errorf("a command that has ended well, before what it has started: %q, error %v", out, err)
	}
}
