package job

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestRunIDs(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	a, b := NewID(at), NewID(at.Add(time.Second))
	if !strings.HasPrefix(a, "20260304-050607-") || a >= b || CheckID(a) != nil || NewID(at) == a {
		t.Errorf("ids %q, %q", a, b)
	}
	for _, bad := range []string{"", "a b", "a.b", "../x", "a/b", "ä", strings.Repeat("a", MaxID+1), CancelPrefix + a, "a\n"} {
		if err := CheckID(bad); !errors.Is(err, ErrNoRun) {
			t.Errorf("CheckID(%q) = %v", bad, err)
		}
	}
}
