package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
)

// TestFiles copies from the broker once, notices damage, and forgets what no
// run needs.
func TestFiles(t *testing.T) {
	bus := simnet.New(1, simnet.Faults{}).Host("c").Bus()
	dir := t.TempDir()
	source := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(source, []byte("1,2\n3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := FileAt(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewFiles(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), r, bus.Blobs()); !errors.Is(err, dataset.ErrSetting) {
		t.Errorf("a file that is nowhere: %v", err)
	}
	if err := r.Upload(t.Context(), bus.Blobs(), source); err != nil {
		t.Fatal(err)
	}
	path, err := s.Open(t.Context(), r, bus.Blobs())
	if err != nil || filepath.Ext(path) != ".csv" || string(readFile(t, path)) != "1,2\n3,4\n" {
		t.Fatalf("copy %s, %v", path, err)
	}
	if err := os.WriteFile(path, []byte("1,2\n3,5\n"), 0o644); err != nil { // as many bytes
		t.Fatal(err)
	}
	if path, err = s.Open(t.Context(), r, bus.Blobs()); err != nil || string(readFile(t, path)) != "1,2\n3,4\n" {
		t.Errorf("a damaged copy is taken (%v)", err)
	}
	if err := bus.Blobs().Delete(t.Context(), r.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), r, bus.Blobs()); err != nil {
		t.Errorf("a copy that is there is fetched: %v", err)
	}
	if err := s.Prune(map[string]bool{r.Digest: true}); err != nil {
		t.Fatal(err)
	}
	readFile(t, path)
	other := filepath.Join(dir, "cache", "thumbnails.db")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Prune(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a copy that no run needs is kept")
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("what is not a copy is removed: %v", err)
	}
}

// TestInEveryRoot: a file lies in the roots by its path, unless a link leads out of one.
func TestInEveryRoot(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(root, "in.csv"), filepath.Join(other, "out.csv")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"within.csv": "in.csv", "leads.csv": filepath.Join(other, "out.csv")} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skipf("this machine has no symbolic links: %v", err)
		}
	}
	member := func(roots ...string) cluster.Member { return cluster.Member{Roots: roots} }
	for name, tc := range map[string]struct {
		members []cluster.Member
		path    string
		want    bool
	}{
		"without members": {nil, filepath.Join(root, "in.csv"), false},
		"all":             {[]cluster.Member{member(root), member(other, root)}, filepath.Join(root, "in.csv"), true},
		"one":             {[]cluster.Member{member(root), member(other)}, filepath.Join(root, "in.csv"), false},
		"a link within":   {[]cluster.Member{member(root)}, filepath.Join(root, "within.csv"), true},
		"a link out":      {[]cluster.Member{member(root)}, filepath.Join(root, "leads.csv"), false},
		"roots of others": {[]cluster.Member{member("/elsewhere")}, "/elsewhere/in.csv", true},
		"not UTF-8":       {[]cluster.Member{member("/elsewhere")}, "/elsewhere/\xe9.csv", false},
	} {
		if got := InEveryRoot(tc.members, tc.path); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestFilesStopped ends the context while a file is read for its digest, which takes minutes of a large one: that is not the fault of the file
// or the job.
func TestFilesStopped(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.csv")
	if err := os.WriteFile(source, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := FileAt(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewFiles(t.TempDir(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{ID: "r-1", Files: []FileRef{r}, files: s}
	if _, err := j.Open(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for what, do := range map[string]func() error{
		"description": func() error { _, err := FileAt(ctx, source); return err },
		"job":         func() error { _, err := j.AddFile(ctx, source); return err },
		"rows":        func() error { _, err := FindRows(ctx, []string{source}, dataset.Options{}); return err },
		"opening":     func() error { _, err := j.Open(ctx, source); return err },
		"comparison":  func() error { return j.Unchanged(ctx) },
	} {
		if err := do(); !errors.Is(err, context.Canceled) || errors.Is(err, cluster.ErrJob) || errors.Is(err, dataset.ErrSetting) || errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%s: %v, want the end of the context", what, err)
		}
	}
}
