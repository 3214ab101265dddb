package em

import (
	"io"
	"io/fs"
	"log/slog"

	"github.com/pce-engine/pce/internal/atomicfile"
)

// HoldCheckpoints calls hold for each checkpoint after its state is in a file and before
// the file has its name; an error fails the write.
func (t *Trainer) HoldCheckpoints(hold func(path string) error) {
	t.dir.write = func(path string, perm fs.FileMode, fill func(io.Writer) error) error {
		return atomicfile.Write(path, perm, func(w io.Writer) error {
			if err := fill(w); err != nil {
				return err
			}
			return hold(path)
		})
	}
}

// OfEarlierVersion makes checkpoints say of averages what those of earlier versions do.
func (t *Trainer) OfEarlierVersion() { t.state.Scaled = false }

// FailReads makes reads of checkpoints that come to byte at fail.
func (t *Trainer) FailReads(at int64, err error) {
	t.dir.read = func(r io.ReaderAt) io.ReaderAt { return failing{r, at, err} }
}

type failing struct {
	io.ReaderAt
	at  int64
	err error
}

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) <= f.at {
		return f.ReaderAt.ReadAt(p, at)
	}
	n := 0
	if at < f.at {
		n, _ = f.ReaderAt.ReadAt(p[:f.at-at], at)
	}
	return n, f.err
}

// SaveFailing has a saver write a checkpoint where the state, or the file after it, fails
// at once, and returns the error.
func SaveFailing(dir string, steps int64, fill, write error) error {
	s := &saver{log: slog.New(slog.DiscardHandler), dir: &checkpointDir{dir: dir, write: func(_ string, _ fs.FileMode, f func(io.Writer) error) error {
		if err := f(io.Discard); err != nil {
			return err
		}
		return write
	}}}
	if err := s.save(steps, func(io.Writer) error { return fill }); err != nil {
		return err
	}
	return s.wait()
}
