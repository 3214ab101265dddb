package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func touch(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// wantNames fails unless dir holds exactly the files.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func TestRemoveTemps(t *testing.T) {
	dir := t.TempDir()
	touch(t, dir, ".model.0123456789abcdef"+tempSuffix, ".short"+tempSuffix, "kept"+tempSuffix, ".kept")
	if err := os.Mkdir(filepath.Join(dir, ".folder"+tempSuffix), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("kept", filepath.Join(dir, ".link"+tempSuffix)); err != nil {
		t.Fatal(err)
	}
	if err := RemoveTemps(dir); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, ".folder"+tempSuffix, ".kept", ".link"+tempSuffix, "kept"+tempSuffix)
	if err := RemoveTemps(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v, want ErrNotExist", err)
	}
}

// TestWriteRemovesItsOwn: Write removes what killed writers of the same file have
// left, and nothing of other files.
func TestWriteRemovesItsOwn(t *testing.T) {
	dir := t.TempDir()
	others := []string{
		".a.b.0123456789abcdef" + tempSuffix, ".b.0123456789abcdef" + tempSuffix, ".a.0123" + tempSuffix,
		".a.0123456789abcdeg" + tempSuffix, "a.0123456789abcdef" + tempSuffix, ".a.0123456789abcdef",
	}
	touch(t, dir, append([]string{".a.0123456789abcdef" + tempSuffix, ".a.fedcba9876543210" + tempSuffix}, others...)...)
	if err := Write(filepath.Join(dir, "a"), 0o644, say("x")); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, append(others, "a")...)
}

// TestLongNames writes files whose names leave no room for that of a temporary, and wants what was left of them removed.
func TestLongNames(t *testing.T) {
	for _, unit := range []string{"a", "é"} {
		for _, n := range []int{228, 229, 230, mostName - 1, mostName} {
			dir := t.TempDir()
			name := strings.Repeat("b", n%len(unit)) + strings.Repeat(unit, n/len(unit))
			left := tempName(name)
			if len(left) > mostName {
				t.Errorf("a temporary of %d bytes for a name of %d", len(left), n)
			}
			touch(t, dir, left)
			if err := Write(filepath.Join(dir, name), 0o644, say("whole")); err != nil {
				t.Errorf("a name of %d bytes: %v", n, err)
				continue
			}
			wantNames(t, dir, name)
			wantFile(t, dir, name, "whole")
		}
	}
}

// TestLivingTempsStay removes temporaries while they are being written, by this
// process and another one.
func TestLivingTempsStay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	err := Write(path, 0o644, func(w io.Writer) error {
		if _, err := io.WriteString(w, "whole"); err != nil {
			return err
		}
		if err := RemoveTemps(dir); err != nil {
			return err
		}
		if out := other(t, "ATOMICFILE_TEST_REMOVE", dir); out != "<nil>" {
			t.Errorf("the other process says %s", out)
		}
		// A second writer of the same file does not take the first one's away.
		return Write(path, 0o644, say("second"))
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, dir, "model", "whole")

	f, err := CreateTemp(dir, "rows")
	if err != nil {
		t.Fatal(err)
	}
	if err := RemoveTemps(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Name()); err != nil {
		t.Errorf("a temporary that is open is gone: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RemoveTemps(dir); err != nil {
		t.Fatal(err)
	}
	wantFile(t, dir, "model", "whole")
}

// TestWritersAndRemovers has writers and removers at work in one directory: no
// write fails, and nothing is left.
func TestWritersAndRemovers(t *testing.T) {
	dir := t.TempDir()
	var writers, removers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		removers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := RemoveTemps(dir); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 4 {
		writers.Go(func() {
			path := filepath.Join(dir, fmt.Sprint("file", i%2))
			for k := range 50 {
				if err := Write(path, 0o644, say(fmt.Sprint(k))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	removers.Wait()
	wantNames(t, dir, "file0", "file1")
}
