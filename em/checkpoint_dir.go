package em

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/internal/atomicfile"
)

const (
	checkpointPrefix = "step-"
	checkpointSuffix = ".safetensors"
	defaultKeep      = 2
)

// checkpointDir is the checkpoints of a run, one file each, named by its steps.
type checkpointDir struct {
	dir   string
	keep  int
	log   *slog.Logger
	write func(path string, perm fs.FileMode, fill func(io.Writer) error) error // atomicfile.Write; tests hold it up
	read  func(io.ReaderAt) io.ReaderAt                                         // of tests, whose disks fail
}

func (d *checkpointDir) path(steps int64) string {
	return filepath.Join(d.dir, fmt.Sprintf("%s%012d%s", checkpointPrefix, steps, checkpointSuffix))
}

// list returns the steps of all checkpoints, newest first; none if there is no directory. Files
// of other names, such as a checkpoint that was not written to its end, are left alone.
func (d *checkpointDir) list() ([]int64, error) {
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("em: checkpoints: %w", err)
	}
	var all []int64
	for _, e := range entries {
		text, isOne := strings.CutPrefix(e.Name(), checkpointPrefix)
		text, hasEnd := strings.CutSuffix(text, checkpointSuffix)
		steps, err := strconv.ParseInt(text, 10, 64)
		if isOne && hasEnd && err == nil && steps >= 0 && d.path(steps) == filepath.Join(d.dir, e.Name()) {
			all = append(all, steps)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all, nil
}

// prepare makes the directory and removes what a killed run left half written.
func (d *checkpointDir) prepare() error {
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return fmt.Errorf("em: checkpoints: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(d.dir)); err != nil {
		return fmt.Errorf("em: checkpoints: %w", err)
	}
	return atomicfile.RemoveTemps(d.dir)
}

// save writes a checkpoint and removes old ones, and those of steps that this
// run has not reached: they were damaged, or it would have gone on from them.
func (d *checkpointDir) save(steps int64, fill func(io.Writer) error) error {
	if err := d.write(d.path(steps), 0o644, fill); err != nil {
		return err
	}
	all, err := d.list()
	if err != nil {
		return err
	}
	kept := 0
	for _, s := range all {
		if s <= steps && kept < d.keep {
			kept++
			continue
		}
		if err := os.Remove(d.path(s)); err != nil {
			return fmt.Errorf("em: checkpoints: %w", err)
		}
	}
	return nil
}

// elsewhere is an error of what a checkpoint is read from or copied to. It says nothing about the checkpoint, and the one before does not help.
type elsewhere struct{ error }

func (e elsewhere) Unwrap() error { return e.error }

// disk is a file whose bytes may not come back: what it lies on has failed then, which may be over at the next attempt, and says nothing of the
// checkpoint. A file that ends early is damaged.
type disk struct{ io.ReaderAt }

func (d disk) ReadAt(p []byte, at int64) (int, error) {
	n, err := d.ReaderAt.ReadAt(p, at)
	if err != nil && err != io.EOF {
		err = elsewhere{fmt.Errorf("%w; repeat the command, or remove the file to continue from the checkpoint before it", err)}
	}
	return n, err
}

// load hands the newest checkpoint that is good to use, which returns why it is
// not; found is false if there are none. Each one that is passed over is logged.
func (d *checkpointDir) load(ctx context.Context, use func(path string, f io.ReaderAt, size int64) error) (found bool, err error) {
	all, err := d.list()
	if err != nil {
		return false, err
	}
	var newest error
	for _, steps := range all {
		path := d.path(steps)
		err := d.open(path, use)
		switch {
		case err == nil:
			return true, nil
		case ctx.Err() != nil:
			return false, err
		case errors.Is(err, ErrChanged):
			return false, err
		case errors.Is(err, errOther):
			return false, fmt.Errorf("%w: %s: %w", ErrCheckpoint, path, err)
		case errors.As(err, new(elsewhere)):
			return false, fmt.Errorf("em: checkpoint %s: %w", path, err)
		}
		d.log.Error("checkpoint is damaged, trying the one before", "path", path, "err", err)
		if newest == nil {
			newest = fmt.Errorf("%w: %s: %w; start again in another directory", ErrCheckpoint, path, err)
		}
	}
	return false, newest
}

func (d *checkpointDir) open(path string, use func(path string, f io.ReaderAt, size int64) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return err // of a link that leads nowhere
	}
	if err != nil {
		return elsewhere{err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return elsewhere{err}
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	var r io.ReaderAt = f
	if d.read != nil {
		r = d.read(f)
	}
	return use(path, disk{r}, info.Size())
}
