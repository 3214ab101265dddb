package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
)

// TestParse reads what Encode writes, and plays both sides of each bound.
func TestParse(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	good := func() *Job {
		return &Job{Version: Version, ID: "run-1", Name: "n", Kind: "toy", Config: "x: 1\n", Files: []FileRef{{Path: "/a/b.csv", Name: "b.csv", Digest: digest, Size: 3}}}
	}
	for name, tc := range map[string]struct{ pass, refuse func(j *Job) }{
		"version":       {func(*Job) {}, func(j *Job) { j.Version++ }},
		"ID":            {func(*Job) {}, func(j *Job) { j.ID = "run-2" }},
		"size":          {func(j *Job) { j.Files[0].Size = maxContents }, func(j *Job) { j.Files[0].Size = maxContents + 1 }},
		"no size":       {func(j *Job) { j.Files[0].Size = 0 }, func(j *Job) { j.Files[0].Size = -1 }},
		"name":          {func(j *Job) { j.Files[0].Name = strings.Repeat("n", 255) }, func(j *Job) { j.Files[0].Name = strings.Repeat("n", 256) }},
		"no name":       {func(j *Job) { j.Files[0].Name = "n" }, func(j *Job) { j.Files[0].Name = "" }},
		"parent":        {func(j *Job) { j.Files[0].Name = "..n" }, func(j *Job) { j.Files[0].Name = ".." }},
		"folder":        {func(*Job) {}, func(j *Job) { j.Files[0].Name = "a/b" }},
		"relative path": {func(j *Job) { j.Files[0].Path = "" }, func(j *Job) { j.Files[0].Path = "a/b.csv" }},
		"short digest":  {func(*Job) {}, func(j *Job) { j.Files[0].Digest = digest[2:] }},
		"long digest":   {func(*Job) {}, func(j *Job) { j.Files[0].Digest += "00" }},
		"upper case":    {func(*Job) {}, func(j *Job) { j.Files[0].Digest = strings.ToUpper(digest) }},
	} {
		for want, edit := range map[bool]func(*Job){true: tc.pass, false: tc.refuse} {
			j := good()
			edit(j)
			text, err := j.Encode(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse("run-1", text)
			if (err == nil) != want || err != nil && (!errors.Is(err, cluster.ErrJob) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300) {
				t.Errorf("%s: %v; want it to pass: %t", name, err, want)
			}
			if err == nil && (got.Config != j.Config || len(got.Files) != 1 || got.Files[0] != j.Files[0]) {
				t.Errorf("%s: read %+v", name, got)
			}
		}
	}
	for _, text := range []string{"", "{", "null", "[]", `{"version":1,"id":"run-1","x":1}`, `{"version":1,"id":"run-1"}{}`, `{"version":"1"}`} {
		if _, err := Parse("run-1", []byte(text)); !errors.Is(err, cluster.ErrJob) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// Both ends of the bound on bytes.
	j := good()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []int{0, 1} {
		j := good()
		j.Name += strings.Repeat("n", maxJobBytes-len(text)+more)
		long, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("run-1", long); (err == nil) != (more == 0) {
			t.Errorf("a job of %d bytes, %d are allowed: %v", len(long), maxJobBytes, err)
		}
		if _, err := j.Encode(len(long) + headerBytes); (err == nil) != (more == 0) || err != nil && !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("a job of %d bytes is written: %v", len(long), err)
		}
		if _, err := j.Encode(len(long) + headerBytes - 1); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("a job of %d bytes for a queue that takes one less: %v", len(long), err)
		}
	}
}

// TestJobOpen opens the files of a job, each listed once, and no others.
func TestJobOpen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.csv": "1\n", "b.csv": "2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := NewFiles(t.TempDir(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{ID: "run-1", files: files, blobs: simnet.New(1, simnet.Faults{}).Host("c").Bus().Blobs()}
	for range 2 {
		if path, err := j.AddFile(t.Context(), filepath.Join(dir, "a.csv")); err != nil || path != filepath.Join(dir, "a.csv") || len(j.Files) != 1 {
			t.Fatalf("%s, %v, %d files", path, err, len(j.Files))
		}
	}
	if _, err := j.AddFile(t.Context(), filepath.Join(dir, "c.csv")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if latin := filepath.Join(dir, "\xe9.csv"); os.WriteFile(latin, nil, 0o644) == nil { // as far as the file system has such names
		if _, err := j.AddFile(t.Context(), latin); !errors.Is(err, dataset.ErrSetting) || !strings.Contains(err.Error(), `\xe9.csv" is not UTF-8`) || len(j.Files) != 1 {
			t.Errorf("a name that is not UTF-8: %v", err)
		}
	}
	if path, err := j.Open(t.Context(), filepath.Join(dir, "a.csv")); err != nil || string(readFile(t, path)) != "1\n" {
		t.Errorf("%s, %v", path, err)
	}
	for _, path := range []string{filepath.Join(dir, "b.csv"), "", "a.csv", dir} {
		if _, err := j.Open(t.Context(), path); !errors.Is(err, cluster.ErrJob) || !strings.Contains(err.Error(), "is not among its files") {
			t.Errorf("%q: %v", path, err)
		}
	}
	again := "; give all members the same file, and submit the job again if it has changed since"
	for what, change := range map[string]func(path string) error{
		" has other contents here than where the run was made": func(string) error { return nil },
		": no such file or directory":                          os.Remove,
	} {
		path := filepath.Join(dir, "a.csv")
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("3\n"), 0o644), change(path)); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Open(t.Context(), path); !errors.Is(err, cluster.ErrJob) || !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), ": "+path+what+again) {
			t.Errorf("a file that was changed: %v; want %s", err, what)
		}
	}
	a := filepath.Join(dir, "a.csv")
	if err := errors.Join(os.RemoveAll(a), os.Symlink(filepath.Join(dir, "b.csv"), a)); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Open(t.Context(), a); !errors.Is(err, cluster.ErrJob) || !errors.Is(err, dataset.ErrSetting) || !strings.Contains(err.Error(), "leads out of the root "+dir+", or is absolute; name the path that it leads to") || strings.Contains(err.Error(), again) {
		t.Errorf("an absolute link: %v", err)
	}
	j.files = &Files{cache: t.TempDir()}
	if _, err := j.Open(t.Context(), filepath.Join(dir, "a.csv")); !errors.Is(err, cluster.ErrJob) || !errors.Is(err, dataset.ErrSetting) || !strings.Contains(err.Error(), "lies in no root of the coordinator; start pce cluster up") {
		t.Errorf("a file that lies in no root: %v", err)
	}
	j.Files[0].Blob = true // and the broker has nothing
	if _, err := j.Open(t.Context(), filepath.Join(dir, "a.csv")); !errors.Is(err, cluster.ErrJob) || !strings.Contains(err.Error(), "submit the job again") {
		t.Errorf("uploaded contents that are gone: %v", err)
	}
}

// TestRunnerRefuses buries what cannot be done, before anything is made for it.
func TestRunnerRefuses(t *testing.T) {
	dir := t.TempDir()
	files, err := NewFiles(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	bus := simnet.New(1, simnet.Faults{}).Host("c-1").Bus()
	kinds := Kinds{}
	kinds.Register("toy", toyKind{})
	r := &Runner{Bus: bus, Kinds: kinds, Dir: dir, Files: files, Log: os.Stderr}
	for i, tc := range []struct {
		id, text, want string
		class          error
	}{
		{"../run", "{}", "is not the ID of a run", ErrNoRun},
		{CancelPrefix + "run", "{}", "is not the ID of a run", ErrNoRun},
		{"", "{}", "is not the ID of a run", ErrNoRun},
		{"run-1", "{", "cannot be read", cluster.ErrJob},
		{"run-1", `{"version":1,"id":"run-1","kind":"mine"}`, `unknown kind "mine"`, cluster.ErrJob},
		{"run-1", `{"version":1,"id":"run-1","kind":"toy","config":"{\"x\":1}"}`, `unknown field`, cluster.ErrJob},
	} {
		err := r.Do(t.Context(), tc.id, []byte(tc.text))
		if !errors.Is(err, cluster.ErrJob) || !errors.Is(err, tc.class) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("job %s: %v, want %q", tc.text, err, tc.want)
		}
		dead, err := bus.Jobs().Dead(t.Context())
		if err != nil || len(dead) != i+1 || dead[i].Run != tc.id || dead[i].Shard != -1 || strings.Contains(dead[i].Reason, "\n") {
			t.Errorf("job %s: dead letters %+v, %v", tc.text, dead, err)
		}
	}
	if made, err := os.ReadDir(filepath.Join(dir, "runs")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directories were made: %v, %v", made, err)
	}
}

// openKind opens all files of a job and complains about each row of them.
type openKind struct{ toyKind }

func (openKind) Lead(ctx context.Context, _ *Lead, j *Job) (err error) {
	for _, f := range j.Files {
		local, e := j.Open(ctx, f.Path)
		if e != nil {
			return e
		}
		err = errors.Join(err, fmt.Errorf("%w: %s:3: no number", dataset.ErrFormat, local))
	}
	return err
}

// TestRunnerNames wants errors about uploaded files to name the paths that were submitted, also
// where one begins with another, and to keep their class.
func TestRunnerNames(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	bus := simnet.New(1, simnet.Faults{}).Host("c-1").Bus()
	j := &Job{Version: Version, ID: "run-1", Kind: "open"}
	var want []string
	for i, name := range []string{"a.csv", "a.csv.gz"} {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, []byte("same\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := j.AddFile(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := j.Files[i].Upload(t.Context(), bus.Blobs(), path); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%v: %s:3: no number", dataset.ErrFormat, path))
	}
	text, err := j.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	files, err := NewFiles(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := Kinds{}
	kinds.Register("open", openKind{})
	r := &Runner{Bus: bus, Kinds: kinds, Dir: dir, Files: files, Log: io.Discard}
	err = r.Do(t.Context(), "run-1", text)
	if !errors.Is(err, dataset.ErrFormat) || err.Error() != strings.Join(want, "\n") {
		t.Errorf("the run ended with\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
}
