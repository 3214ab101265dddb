package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// ErrKept means that a file of a chosen schedule is damaged, or is not one of this forest and machine.
var ErrKept = errors.New("tune: not a kept schedule")

// Kept is a schedule that was chosen, as a file keeps it.
type Kept struct {
	Version       int       `json:"version"`
	Digest        string    `json:"digest"`      // of the forest
	Path          string    `json:"kernel_path"` // the kernels that it was chosen for
	Batch         int       `json:"batch"`       // rows of a call
	Threads       int       `json:"threads"`
	Schedule      string    `json:"schedule"`
	RowsPerSecond float64   `json:"rows_per_second"`
	When          time.Time `json:"when"`
}

// keptVersion counts changes of the format or of the template.
const keptVersion = 1

// maxKept bounds the bytes of a file.
const maxKept = 64 << 10

// keptSuffix ends the names of files.
const keptSuffix = ".json"

// prefix begins the names of the files of a forest on a machine.
func prefix(digest [32]byte, path string) string { return fmt.Sprintf("%x-%s-", digest, path) }

// Save writes a chosen schedule into a folder, which is made if it is missing. What is there for the same forest, machine
// and batch is replaced at once or not at all. Version is set.
func Save(dir string, digest [32]byte, k Kept) (file string, err error) {
	k.Version, k.Digest = keptVersion, fmt.Sprintf("%x", digest)
	if err := k.check(digest, k.Path, k.Batch); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(dir, prefix(digest, k.Path)+strconv.Itoa(k.Batch)+keptSuffix)
	return file, atomicfile.Write(file, 0o644, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(k)
	})
}

// Load returns the schedule that a folder keeps for a forest and machine: of the batch that is nearest to the given one by
// their ratio, the smaller of two. It is nil where there is none. Files that cannot be used are passed over; wrong has a line
// about each, which matches ErrKept or is an error of the file system.
func Load(dir string, digest [32]byte, path string, batch int) (k *Kept, wrong []error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			wrong = append(wrong, err)
		}
		return nil, wrong
	}
	best := math.Inf(1)
	for _, e := range list {
		rest, ok := strings.CutPrefix(e.Name(), prefix(digest, path))
		number, json := strings.CutSuffix(rest, keptSuffix)
		if !ok || !json {
			continue
		}
		file := filepath.Join(dir, e.Name())
		n, err := strconv.Atoi(number)
		if err != nil {
			continue // of kernels whose name is longer, or a temporary
		}
		far := math.Abs(math.Log(float64(max(n, 1)) / float64(max(batch, 1))))
		if far > best || far == best && n > k.Batch {
			continue
		}
		found, err := read(file, digest, path, n)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, err))
			continue
		}
		k, best = found, far
	}
	return k, wrong
}

// read reads a file and checks it. A pipe in its place is refused, as no one may ever write into it.
func read(file string, digest [32]byte, path string, batch int) (*Kept, error) {
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a file", ErrKept)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKept+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxKept {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrKept, maxKept)
	}
	k := &Kept{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(k); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKept, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more than one object", ErrKept)
	}
	return k, k.check(digest, path, batch)
}

// check reports why it cannot be used: it is of another forest, machine or version, or its schedule is not one that runs on
// a CPU and keeps the scores.
func (k *Kept) check(digest [32]byte, path string, batch int) error {
	switch want := fmt.Sprintf("%x", digest); {
	case k.Version != keptVersion:
		return fmt.Errorf("%w: version %d, want %d", ErrKept, k.Version, keptVersion)
	case k.Digest != want:
		return fmt.Errorf("%w: it is of the forest %.16q, want %.16q", ErrKept, k.Digest, want)
	case k.Path != path || k.Path == "" || strings.ContainsAny(k.Path, "/\\"):
		return fmt.Errorf("%w: it is for the kernels %.40q, want %.40q", ErrKept, k.Path, path)
	case k.Batch != batch || batch < 1:
		return fmt.Errorf("%w: it is for %d rows, want %d", ErrKept, k.Batch, batch)
	}
	s, err := schedule.Parse(k.Schedule)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	n, err := s.Nest()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	switch {
	case n.Reassociates():
		return fmt.Errorf("%w: its schedule changes the order in which trees are added", ErrKept)
	case slices.ContainsFunc(n.Loops, onCard):
		return fmt.Errorf("%w: its schedule is for a card", ErrKept)
	case n.TileNodes > 0 && n.TileHow != schedule.Uniform:
		return fmt.Errorf("%w: its schedule wants a profile", ErrKept)
	}
	return nil
}

// onCard reports whether a loop, or one within it, is a dimension of a card.
func onCard(l *schedule.Loop) bool { return l.Dimension != "" || slices.ContainsFunc(l.Body, onCard) }
