package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/run"
)

// TestRunsClosed wants runs list to say which directories it cannot look into: a run of another user is missing from the list.
func TestRunsClosed(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"mine", "theirs"} {
		dir := filepath.Join("runs", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, run.MetricsFile), []byte(`{"epoch":1}`+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join("runs", "theirs"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join("runs", "theirs"), 0o700) })
	if os.Geteuid() == 0 { // the administrator may look into all directories, another user's thread may not
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Skip("SKIPPED: ", err)
		}
		defer syscall.Setfsuid(0)
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"runs", "list"}, nil, nil, &out, &errs); code != exitOK || !strings.Contains(out.String(), "runs/mine") {
		t.Fatalf("exit %d: %s%s", code, &out, &errs)
	}
	if want := "note: a directory is left out: stat runs/theirs/metrics.jsonl: permission denied\n"; errs.String() != want {
		t.Errorf("said %q, want %q", &errs, want)
	}
}
