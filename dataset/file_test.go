package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLinks lists folders with symbolic links: to files elsewhere, which are read; to a file of
// the folder, which is read once; to folders, one of them above, which are not followed; and to
// nothing, which opening reports. The folder may be a link itself.
func TestLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"store", "data/sub", "other"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"store/1", "data/b.csv", "data/sub/c.csv", "other/x.csv"} {
		if err := os.WriteFile(name, []byte("0,1\n1,0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	absolute, err := filepath.Abs("data/sub/c.csv")
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"data/a.csv": "../store/1", "data/latest.csv": "b.csv", "data/sub/again.csv": absolute, "data/same.csv": "../store/1",
		"data/other": "../other", "data/up": "..", "linked": "data", "data/d.csv.d": "../other",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Skipf("this machine has no symbolic links: %v", err)
		}
	}
	for path, want := range map[string]string{
		"data":         "data/a.csv data/b.csv data/sub/c.csv",
		"linked":       "linked/a.csv linked/b.csv linked/sub/c.csv",
		"./data/**/*":  "data/a.csv data/b.csv data/sub/c.csv",
		"linked/**/a*": "linked/a.csv linked/sub/again.csv",
		"**/*.csv":     "data/a.csv data/b.csv data/sub/c.csv other/x.csv",
		"data/other":   "data/other/x.csv",
	} {
		names, err := FindFiles([]string{path}, Options{})
		if got := filepath.ToSlash(strings.Join(names, " ")); err != nil || got != want {
			t.Errorf("%s: %s (%v), want %s", path, got, err, want)
		}
	}
	// Files that are left out for their names take no place of links to them.
	for name, link := range map[string]string{"blobs/.objects/sha256-ab": "blobs/rows.csv", "blobs/z.csv": "", "store/2": "kept/a.csv.bak"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("0,1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if link == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..", name), link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../store/2", "kept/b.csv"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("host.1", "kept/.#b.csv"); err != nil { // of an editor
		t.Fatal(err)
	}
	for path, want := range map[string]string{"blobs": "blobs/rows.csv blobs/z.csv", "kept": "kept/b.csv"} {
		names, err := FindFiles([]string{path}, Options{})
		if got := filepath.ToSlash(strings.Join(names, " ")); err != nil || got != want {
			t.Errorf("%s: %s (%v), want %s", path, got, err, want)
		}
	}
	src, err := Open(t.Context(), "linked", Options{})
	if err != nil || src.Rows() != 6 {
		t.Errorf("%v, want 6 rows", err)
	}
	if err := os.Symlink("nothing", "data/e.csv"); err != nil {
		t.Fatal(err)
	}
	if names, err := FindFiles([]string{"data"}, Options{}); err != nil || !slices.Contains(names, filepath.Join("data", "e.csv")) {
		t.Errorf("a link to nothing: %v, %v", names, err)
	}
	if _, err := Open(t.Context(), "data", Options{}); err == nil || !strings.Contains(err.Error(), "e.csv") {
		t.Errorf("a link to nothing: %v", err)
	}
}

// TestRunsAreNoData wants folders below one with data that hold a run to be left out, from when the
// run has its lock alone, and a folder that is named to be read.
func TestRunsAreNoData(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("some text\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"d/a.txt", "d/app/config.yaml", "d/runs/one/.lock"} {
		write(name)
	}
	check := func(path, want string) {
		t.Helper()
		names, err := FindFiles([]string{path}, Options{Text: Text{Unit: Char}})
		if got := filepath.ToSlash(strings.Join(names, " ")); err != nil || got != want {
			t.Errorf("%s: %s (%v), want %s", path, got, err, want)
		}
	}
	check("d", "d/a.txt d/app/config.yaml")
	write("d/runs/one/config.yaml")
	check("d", "d/a.txt d/app/config.yaml")
	for _, name := range []string{"metrics.jsonl", "samples.txt", "checkpoints/1", "config.yaml"} {
		write("d/runs/one/" + name)
		write("d/runs/copy/" + name)
	}
	check("d", "d/a.txt d/app/config.yaml")
	check("d/**/*.txt", "d/a.txt")
	check("d/runs/copy/*.txt", "d/runs/copy/samples.txt")
	check("d/runs/copy/**/*.txt", "d/runs/copy/samples.txt")
}
