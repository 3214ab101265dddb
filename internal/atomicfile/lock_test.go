package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary be the second process of tests.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ATOMICFILE_TEST_REMOVE"); dir != "" {
		fmt.Print(RemoveTemps(dir))
		os.Exit(0)
	}
	if dir := os.Getenv("ATOMICFILE_TEST_LOCK"); dir != "" {
		_, err := Lock(dir)
		fmt.Print(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// other does what a variable asks for in another process, and returns its error
// text.
func other(t *testing.T, what, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), what+"="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("second Lock = %v, want ErrLocked", err)
	}
	got := other(t, "ATOMICFILE_TEST_LOCK", dir)
	for _, want := range []string{dir, fmt.Sprintf("process %d ", os.Getpid())} {
		if !strings.Contains(got, want) {
			t.Errorf("other process got %q, want it to name %q", got, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := other(t, "ATOMICFILE_TEST_LOCK", dir); got != "<nil>" {
		t.Errorf("after Close the other process got %q, want the lock", got)
	}
	if l, err = Lock(dir); err != nil { // the other process ended without Close
		t.Fatal(err)
	}
	l.Close()
}

func TestLockErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Lock(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Lock of a missing directory = %v, want ErrNotExist", err)
	}
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// A scribbled lock file must not spoil the message.
	if err := os.WriteFile(filepath.Join(dir, LockName), []byte("a\x1b[2Jb\nc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("Lock = %q, want one printable line", err)
	}
}
