package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAuditOfRest audits a run whose first steps were done without a cluster: its lines begin
// behind these, and are cut back like others.
func TestAuditOfRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	line := AuditLine{Shards: 1, By: map[string]runs{strings.Repeat("a", 5000): {0, 1}}} // longer than a reader's buffer
	for _, tc := range []struct {
		done, more int64 // steps
		want       string
	}{
		{100, 3, "101 102 103 "}, {102, 1, "101 102 103 "}, {103, 0, "101 102 103 "}, {50, 2, "51 52 "}, {0, 1, "1 "},
	} {
		f, err := openAudit(path)
		if err == nil {
			err = f.rewind(tc.done)
		}
		for range tc.more {
			if err == nil {
				err = f.append(line)
			}
		}
		if err := errors.Join(err, f.close()); err != nil {
			t.Fatalf("%d steps done: %v", tc.done, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, part := range strings.SplitAfter(string(text), "\n") {
			if step, _, ok := strings.Cut(strings.TrimPrefix(part, `{"step":`), ","); ok {
				got += step + " "
			}
		}
		if got != tc.want {
			t.Errorf("%d steps done, and %d more: lines of the steps %s, want %s", tc.done, tc.more, got, tc.want)
		}
	}
	if err := os.WriteFile(path, []byte("half a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.rewind(1); !errors.Is(err, ErrCluster) || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a file that has lines of something else: %v", err)
	}
}
