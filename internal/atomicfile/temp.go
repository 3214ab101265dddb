package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// tempSuffix ends the names of temporaries.
const tempSuffix = ".pce-tmp"

// tempDigits is the length of the random number in the name of a temporary.
const tempDigits = 16

// mostName is how many bytes the name of a file may have on common file systems.
const mostName = 255

// tempStem returns what names of temporaries of the file base begin with. Where base is nearly as long as names may be its end is
// left out, so that the file can be written all the same. Files of the same beginning then share names of temporaries, of
// which none is removed that is being written.
func tempStem(base string) string {
	if most := mostName - len("..") - tempDigits - len(tempSuffix); len(base) > most {
		base = strings.ToValidUTF8(base[:most], "") // no part of a letter, which some file systems refuse
	}
	return "." + base + "."
}

// tempName returns a new name for a temporary of the file base.
func tempName(base string) string {
	return fmt.Sprintf("%s%0*x%s", tempStem(base), tempDigits, rand.Uint64(), tempSuffix)
}

// isTemp reports whether name is that of a temporary.
func isTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, tempSuffix)
}

// isTempOf reports whether name is that of a temporary of the file base.
func isTempOf(name, base string) bool {
	digits, begins := strings.CutPrefix(name, tempStem(base))
	digits, ends := strings.CutSuffix(digits, tempSuffix)
	_, err := strconv.ParseUint(digits, 16, 64)
	return begins && ends && len(digits) == tempDigits && err == nil
}

// lockedTemp is a temporary that is being written. The lock belongs to the open
// file, which lock is a second descriptor of: it outlasts Close.
type lockedTemp struct {
	*os.File
	lock int
}

func (t *lockedTemp) unlock() { syscall.Close(t.lock) }

// createTemp creates and locks a temporary.
func createTemp(name string, perm fs.FileMode) (file, error) {
	for {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if err != nil {
			return nil, err
		}
		if err := flock(int(f.Fd()), syscall.LOCK_EX); err == nil && !sameFile(f, name) {
			f.Close() // removed between the two calls, as one that was left behind
			continue
		}
		// A file system without locks: RemoveTemps leaves all temporaries there.
		lock, err := dup(f)
		if err != nil {
			f.Close()
			os.Remove(name)
			return nil, err
		}
		return &lockedTemp{f, lock}, nil
	}
}

// dup returns a second descriptor of an open file, which a child process does not
// inherit.
func dup(f *os.File) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	return fd, err
}

// flock is the system call, again if a signal interrupts it.
func flock(fd, how int) error {
	for {
		if err := syscall.Flock(fd, how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// sameFile reports whether name still is the name of an open file.
func sameFile(f *os.File, name string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(name)
	return err == nil && os.SameFile(open, now)
}

// CreateTemp creates a temporary file in dir, open for writing, that no target will
// replace: its creator removes it. RemoveTemps leaves it alone until it is closed.
func CreateTemp(dir, base string) (*os.File, error) {
	f, err := createTemp(filepath.Join(dir, tempName(base)), 0o600)
	if err != nil {
		return nil, err
	}
	t := f.(*lockedTemp)
	t.unlock()
	return t.File, nil
}

// RemoveTemps removes the temporaries that killed writers left in dir. Those that
// are being written, in this process or another one, stay.
func RemoveTemps(dir string) error {
	if err := removeTemps(dir, isTemp); err != nil {
		return fmt.Errorf("atomicfile: remove temporaries: %w", err)
	}
	return nil
}

func removeTemps(dir string, which func(name string) bool) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if which(name) {
			err = errors.Join(err, removeTemp(filepath.Join(dir, name)))
		}
	}
	return err
}

// removeTemp removes a regular file that is not locked. One that vanishes
// meanwhile is not an error.
func removeTemp(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0) // NFS locks what is open for writing
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // gone, or another user's
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !sameFile(f, name) {
		return nil // it is being written, or has become what it was written for
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
