package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrLocked means that another process holds the lock of a directory.
var ErrLocked = errors.New("atomicfile: directory in use")

// LockName is the file in a directory that carries its lock; it stays there
// when the lock is given back.
const LockName = ".lock"

// maxHolderBytes bounds what is read from a lock file.
const maxHolderBytes = 512

// DirLock is the right to write in a directory, until Close or the end of the
// process, however it ends. The lock is advisory: it binds callers of Lock.
type DirLock struct{ f *os.File }

// Lock takes the lock of an existing directory without waiting. If it is taken,
// the error matches ErrLocked and names the holder.
func Lock(dir string) (*DirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, failed("lock", dir, err)
	}
	if err := flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, failed("lock", dir, err)
		}
		return nil, fmt.Errorf("%w: %s is held by %s; wait for it or choose another directory", ErrLocked, dir, holder(f))
	}
	if err := describe(f); err != nil {
		f.Close()
		return nil, failed("lock", dir, err)
	}
	return &DirLock{f}, nil
}

// Close gives the lock back.
func (l *DirLock) Close() error {
	return l.f.Close()
}

// describe writes who holds the lock.
func describe(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "process %d (%s) on %s since %s\n", os.Getpid(), filepath.Base(os.Args[0]), host,
		time.Now().UTC().Format(time.RFC3339))
	return err
}

// holder reads what describe wrote, as one printable line.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolderBytes))
	line, _, complete := strings.Cut(string(b), "\n")
	if err != nil || !complete {
		return "another process"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
}
