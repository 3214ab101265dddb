package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/pce-engine/pce/internal/atomicfile"
)

// fence says which coordinators a worker obeys.
type fence interface {
	// pass reports whether a coordinator with this fence may command: no higher one
	// has been seen. A new highest one is kept when pass returns.
	pass(fence uint64) (bool, error)
	// value is the highest that has been seen.
	value() uint64
}

// fenceFile keeps the highest fence that a worker has obeyed, so that a worker
// that starts again does not obey a coordinator that was deposed.
type fenceFile struct {
	path string // "": kept in memory alone

	mu   sync.Mutex
	high uint64
}

// openFence reads the file in dir, if there is one.
func openFence(dir string) (*fenceFile, error) {
	f := &fenceFile{}
	if dir == "" {
		return f, nil
	}
	f.path = filepath.Join(dir, "fence")
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCluster, err)
	}
	f.high, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %s holds no number; remove it if no coordinator of the past is alive", ErrCluster, f.path)
	}
	return f, nil
}

func (f *fenceFile) value() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.high
}

// pass reports whether no higher fence has been seen. A new highest one is on
// the disk when pass returns.
func (f *fenceFile) pass(fence uint64) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fence <= f.high {
		return fence == f.high && fence > 0, nil
	}
	if f.path != "" {
		err := atomicfile.Write(f.path, 0o600, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, fence)
			return err
		})
		if err != nil {
			return false, err
		}
	}
	f.high = fence
	return true, nil
}
