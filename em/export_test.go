package em

import (
	"io"
	"io/fs"

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
