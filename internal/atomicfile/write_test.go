package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func say(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// wantFile fails unless dir holds exactly one file, name, with content want.
func wantFile(t *testing.T, dir, name, want string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("directory holds %v, want only %s", entries, name)
	}
	got, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	for _, text := range []string{"one", strings.Repeat("two", bufferBytes), ""} {
		if err := Write(path, 0o600, say(text)); err != nil {
			t.Fatal(err)
		}
		wantFile(t, dir, "model", text)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("permissions are %v, want 0600", info.Mode().Perm())
	}
	// An existing file keeps its permissions.
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, 0o600, say("x")); err != nil {
		t.Fatal(err)
	}
	if info, _ = os.Stat(path); info.Mode().Perm() != 0o666 {
		t.Errorf("permissions are %v, want 0666", info.Mode().Perm())
	}
}

// faulty fails at one call.
type faulty struct {
	*os.File
	at string
}

func (f faulty) Write(p []byte) (int, error) {
	if f.at == "write" {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return f.File.Write(p)
}

func (f faulty) Sync() error {
	if f.at == "sync" {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return f.File.Sync()
}

func (f faulty) Close() error {
	err := f.File.Close()
	if f.at == "close" {
		return &fs.PathError{Op: "close", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return err
}

func TestDiskFullKeepsTheOldFile(t *testing.T) {
	for _, at := range []string{"write", "sync", "close"} {
		for _, size := range []int{4, 3 * bufferBytes} { // fails at the flush, or inside fill
			t.Run(fmt.Sprintf("%s/%d", at, size), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "model")
				if err := Write(path, 0o644, say("old")); err != nil {
					t.Fatal(err)
				}
				err := write(t.Context(), path, 0o644, say(strings.Repeat("x", size)), func(name string, perm fs.FileMode) (file, error) {
					f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
					return faulty{f, at}, err
				})
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("error is %v, want ENOSPC", err)
				}
				if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), tempSuffix) {
					t.Errorf("error %q must name %s and not the temporary", err, path)
				}
				wantFile(t, dir, "model", "old")
			})
		}
	}
}

func TestFillErrorKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := Write(path, 0o644, say("old")); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := Write(path, 0o644, func(w io.Writer) error {
		io.WriteString(w, "half")
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("error is %v, want boom", err)
	}
	wantFile(t, dir, "model", "old")
}

// TestFillPanic: a panic of fill reaches the caller, and leaves the old file alone in its folder.
func TestFillPanic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if r := recover(); r != "fault" {
				t.Errorf("the caller got %v, want the panic", r)
			}
		}()
		_ = Write(path, 0o644, func(io.Writer) error { panic("fault") })
	}()
	wantFile(t, dir, "model", "old")
}

// TestPipesAreWrittenDirectly stands for devices too. It makes a pipe of its own:
// with /dev/null, a fault in Write would break the machine of whoever runs the
// tests as root.
func TestPipesAreWrittenDirectly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := Write(path, 0o644, say("hello")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Fatalf("the pipe became %v, %v", info.Mode(), err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "hello" {
		t.Errorf("the pipe gave %q, %v, want hello", got, err)
	}
	boom := errors.New("boom")
	if err := Write(path, 0o644, func(io.Writer) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("error is %v, want boom", err)
	}
}

// TestPipesEnd: writing to a pipe that has no reader, or one that reads nothing, ends with the context.
func TestPipesEnd(t *testing.T) {
	for _, readers := range []int{0, 1} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if readers == 1 {
			r, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for a writer
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel) // mostly enough for it to wait
		written := make(chan error, 1)
		go func() { written <- WriteContext(ctx, path, 0o644, say(strings.Repeat("x", 1<<20))) }()
		select {
		case err := <-written:
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
				t.Errorf("%d readers: error is %v, want that of the context, with the path", readers, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%d readers: it waits", readers)
		}
	}
}

// TestOpenPipes writes to a pipe by the name that a shell gives one that is open, which is a link to no file.
func TestOpenPipes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	path := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skipf("open files have no names here: %v", err)
	}
	if err := Write(path, 0o644, say("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "hello" {
		t.Errorf("the pipe gave %q, %v, want hello", got, err)
	}
	r.Close()
	if err := Write(path, 0o644, say("hello")); !errors.Is(err, syscall.EPIPE) || !strings.Contains(err.Error(), "what reads the pipe has ended") {
		t.Errorf("without a reader: %v", err)
	}
}

func TestSymlinkStays(t *testing.T) {
	dir, disk := t.TempDir(), t.TempDir()
	if err := Write(filepath.Join(disk, "big"), 0o644, say("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(disk, "big"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "link"), 0o644, say("new")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, disk, "big", "new")
	wantFile(t, dir, "link", "new")
}

// TestDanglingSymlinkStays writes through links whose target is missing: it is created where they
// lead, and they stay, with their directory as it was.
func TestDanglingSymlinkStays(t *testing.T) {
	for name, links := range map[string][][2]string{ // target and name of links, in order
		"absolute":               {{"ROOT/disk/file", "dir/link"}},
		"relative":               {{"../disk/file", "dir/link"}},
		"chain":                  {{"second", "dir/link"}, {"../disk/third", "dir/second"}, {"file", "disk/third"}},
		"through linked folder":  {{"deep/er", "up"}, {"../../disk/file", "deep/er/link"}, {"../up/link", "dir/link"}},
		"dots behind a link":     {{"deep/er", "up"}, {"../up/../../disk/file", "dir/link"}},
		"linked folder, no link": {{"disk", "up"}, {"../up/file", "dir/link"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range []string{"dir", "disk", "deep/er"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, l := range links {
				if err := os.Symlink(strings.Replace(l[0], "ROOT", root, 1), filepath.Join(root, l[1])); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(root, "disk", "file")
			for from, path := range map[string]string{".": "dir/link", "dir": "link", "disk": "../dir/link"} {
				t.Chdir(filepath.Join(root, from))
				for _, text := range []string{"new", "newer"} {
					if err := Write(path, 0o640, say(text)); err != nil {
						t.Fatal(err)
					}
					if got, err := os.ReadFile(file); err != nil || string(got) != text {
						t.Fatalf("from %s the target holds %q (%v), want %q", from, got, err, text)
					}
				}
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			for _, l := range links {
				if info, err := os.Lstat(filepath.Join(root, l[1])); err != nil || info.Mode().Type() != fs.ModeSymlink {
					t.Errorf("%s became %v (%v)", l[1], info.Mode(), err)
				}
			}
		})
	}
}

// TestBadSymlinks wants an error for links that lead nowhere, and leaves them.
func TestBadSymlinks(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"self": "self", "a": "b", "b": "a", "no folder": "none/file"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{"self": syscall.ELOOP, "a": syscall.ELOOP, "no folder": fs.ErrNotExist} {
		path := filepath.Join(dir, name)
		if err := Write(path, 0o644, say("x")); !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %v and the path", name, err, want)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s became %v (%v)", name, info.Mode(), err)
		}
	}
	wantNames(t, dir, "a", "b", "no folder", "self")
}

func TestBadTargets(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, 0o644, say("x")); err == nil {
		t.Error("a directory was accepted as target")
	}
	if err := Write(filepath.Join(dir, "no", "file"), 0o644, say("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v, want ErrNotExist", err)
	}
}

// TestCures wants the advice to be about what failed: a name that cannot be replaced, and a process that has too many files, have
// nothing to do with permissions.
func TestCures(t *testing.T) {
	for err, want := range map[error]string{
		&os.LinkError{Op: "rename", Old: "x", New: "y", Err: syscall.EBUSY}: "mount the folder",
		&fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}:           "limit on open files",
		&fs.PathError{Op: "open", Path: "x", Err: syscall.ENFILE}:           "limit on open files",
		&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}:           "permissions",
	} {
		if got := failed("write", "a.csv", err).Error(); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want in it %q", err, got, want)
		}
	}
}
