// Package atomicfile replaces files so that a reader, a crash or a full disk
// never meets half of one, and locks directories against a second writer.
//
// # Shapes and units
//
// Data goes to a hidden temporary in the directory of the target, is synced,
// renamed over the target, and the directory is synced: after Write returns
// nil the new file survives a power cut. A target that is a symbolic link stays
// one; a target that is a device or a pipe is written directly.
//
// A process that is killed leaves its temporary. The next Write of the same target
// removes it, and RemoveTemps those of all targets in a directory. The writer of a
// temporary holds a lock on it, so none is removed that is being written.
//
// # Errors
//
// An error leaves the old file whole and no temporary behind. Errors of the
// system are wrapped: a full disk matches syscall.ENOSPC. A directory that
// another process has locked gives an error that matches ErrLocked.
package atomicfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// bufferBytes is what Write collects before it calls the system.
const bufferBytes = 256 << 10

// buffers are kept from file to file, as most files are smaller by far than a buffer.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferBytes) }}

// file is what Write needs of an *os.File; tests pass one that fails.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// Write replaces the file at path by what fill writes. The writer it passes is
// buffered and valid until fill returns; perm applies to a new file, before the
// umask, and an existing file keeps its permissions.
func Write(path string, perm fs.FileMode, fill func(io.Writer) error) error {
	return write(context.Background(), path, perm, fill, createTemp)
}

// WriteContext is Write where path may be a pipe: waiting for a reader to open it, or to take what is written, ends with ctx.
func WriteContext(ctx context.Context, path string, perm fs.FileMode, fill func(io.Writer) error) error {
	return write(ctx, path, perm, fill, createTemp)
}

// write is Write with a way to create the temporary. The file is written aside, synced, renamed
// to path and the directory synced, so path has the old content or the new one at every moment.
// A link is followed, permissions of an old file are kept, and a device is written directly.
// After an error nothing is left but a temporary that could not be removed.
func write(ctx context.Context, path string, perm fs.FileMode, fill func(io.Writer) error, create func(string, fs.FileMode) (file, error)) (err error) {
	info, err := os.Stat(path) // before links are followed: /dev/stdout and /dev/fd/63 of a pipe lead to names that no folder has
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("atomicfile: %s: %w; name a file in it", path, syscall.EISDIR)
	case err == nil && !info.Mode().IsRegular():
		return writeDevice(ctx, path, fill)
	case err == nil:
		perm = info.Mode().Perm()
	}
	target, err := follow(path)
	if err != nil {
		return failed("create", path, err)
	}
	dir := filepath.Dir(target)
	// A temporary that cannot be removed does no harm.
	_ = removeTemps(dir, func(name string) bool { return isTempOf(name, filepath.Base(target)) })
	temp := filepath.Join(dir, tempName(filepath.Base(target)))
	f, err := create(temp, perm)
	if err != nil {
		return failed("create", path, err)
	}
	if l, ok := f.(*lockedTemp); ok { // after the rename: until then the name is that of a temporary
		defer l.unlock()
	}
	renamed := false
	defer func() {
		if !renamed { // after an error, or a panic of fill
			f.Close() // a second Close is harmless
			os.Remove(temp)
		}
	}()
	if info != nil { // the umask must not narrow what the old file had
		if err := os.Chmod(temp, perm); err != nil {
			return failed("set the permissions of", path, err)
		}
	}
	if err := fillFile(f, path, fill); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return failed("sync", path, err)
	}
	if err := f.Close(); err != nil {
		return failed("close", path, err)
	}
	if err := os.Rename(temp, target); err != nil {
		return failed("rename to", path, err)
	}
	renamed = true
	if err := SyncDir(dir); err != nil {
		return failed("sync the directory of", path, err)
	}
	return nil
}

// maxLinks is how many links that end at a missing file are followed, as by Linux.
const maxLinks = 40

// follow returns the path without links of what path leads to, also where that is missing: a
// link to a file that is yet to be written stays one. Paths are put together as they are
// written, since dir/link/.. need not be dir. Where a folder is missing, creating the file
// will say so.
func follow(path string) (string, error) {
	at := path
	for range maxLinks {
		if resolved, err := filepath.EvalSymlinks(at); err == nil {
			return resolved, nil
		}
		dir, name := filepath.Split(at)
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil || name == "" {
			return at, nil // without its folder
		}
		at = filepath.Join(dir, name)
		next, err := os.Readlink(at)
		switch {
		case err != nil:
			return at, nil // a name that is free
		case filepath.IsAbs(next):
			at = next
		default:
			at = dir + string(filepath.Separator) + next
		}
	}
	return "", syscall.ELOOP
}

// SyncDir makes the names in a directory durable, where the file system can.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // some network file systems sync no directories
	}
	return errors.Join(err, d.Close())
}

func fillFile(f io.Writer, path string, fill func(io.Writer) error) error {
	b := buffers.Get().(*bufio.Writer)
	b.Reset(namedWriter{f, path})
	defer func() {
		b.Reset(nil)
		buffers.Put(b)
	}()
	if err := fill(b); err != nil {
		return err
	}
	return b.Flush()
}

// namedWriter reports errors under the name that the user knows.
type namedWriter struct {
	w    io.Writer
	path string
}

func (n namedWriter) Write(p []byte) (int, error) {
	k, err := n.w.Write(p)
	if err != nil {
		err = failed("write", n.path, err)
	}
	return k, err
}

// failed names the action and the user's path in place of the temporary's.
func failed(action, path string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	cure := "check the path and its permissions"
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		cure = "free space or choose another disk, the old file is unchanged"
	case errors.Is(err, syscall.EPIPE):
		cure = "what reads the pipe has ended before all was written"
	case errors.Is(err, syscall.EBUSY): // of rename: a container's mount of a single file cannot be replaced
		cure = "where the file is a mount of its own, mount the folder that holds it instead"
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		cure = "raise the limit on open files"
	}
	return fmt.Errorf("atomicfile: %s %s: %w; %s", action, path, err, cure)
}
