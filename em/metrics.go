package em

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

	"github.com/pce-engine/pce/internal/atomicfile"
)

// Metrics describe an epoch. In JSON a log-likelihood that is absent or
// infinite is null.
type Metrics struct {
	Epoch            int     // epochs done
	Step             int64   // steps done
	TrainLL          float64 // running mean: over the rows of the epoch, each before the step that it was part of moved the parameters
	ValidLL          float64 // mean over the validation rows after the epoch; NaN without any
	Seconds          float64 // spent in the epoch's steps
	SamplesPerSecond float64
}

// Progress describes a step that was done.
type Progress struct {
	Epoch, Epochs int // the step's, of all
	Step, Steps   int // the step's within its epoch, of the epoch's
	Rows          int
	LL            float64 // running mean: over the rows of the epoch so far, each before its step
}

type metricsLine struct {
	Epoch            int      `json:"epoch"`
	Step             int64    `json:"step"`
	TrainLL          *float64 `json:"train_ll"`
	ValidLL          *float64 `json:"valid_ll"`
	Seconds          float64  `json:"seconds"`
	SamplesPerSecond float64  `json:"samples_per_second"`
}

// MarshalJSON writes one object of the keys epoch, step, train_ll, valid_ll,
// seconds and samples_per_second.
func (m Metrics) MarshalJSON() ([]byte, error) {
	return json.Marshal(metricsLine{m.Epoch, m.Step, finite(m.TrainLL), finite(m.ValidLL), m.Seconds, m.SamplesPerSecond})
}

func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// metricsFile is a file of one line an epoch. A line is on the disk when append
// returns.
type metricsFile struct{ f *os.File }

// openMetrics opens or creates a file and keeps the lines of its first epochs;
// kept says how many that were.
func openMetrics(path string, epochs int) (m *metricsFile, kept int, err error) {
	_, err = os.Stat(path)
	created := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, fmt.Errorf("em: metrics: %w", err)
	}
	kept, size, err := keptLines(f, epochs)
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil && created {
		err = atomicfile.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("em: metrics: %w", err)
	}
	return &metricsFile{f}, kept, nil
}

// keptLines counts the lines of epochs 1, 2, ... that r begins with, epochs at
// most, and their bytes.
func keptLines(r io.Reader, epochs int) (kept int, size int64, err error) {
	const longest = 4096
	buf, fill := make([]byte, longest), 0
	for kept < epochs {
		end := bytes.IndexByte(buf[:fill], '\n')
		if end < 0 {
			n, err := r.Read(buf[fill:])
			if fill += n; n > 0 {
				continue
			}
			if fill == longest || errors.Is(err, io.EOF) {
				return kept, size, nil
			}
			if err != nil {
				return 0, 0, err
			}
			continue
		}
		var line struct{ Epoch int }
		if json.Unmarshal(buf[:end], &line) != nil || line.Epoch != kept+1 {
			return kept, size, nil
		}
		kept, size = kept+1, size+int64(end)+1
		fill = copy(buf, buf[end+1:fill])
	}
	return kept, size, nil
}

func (m *metricsFile) append(x Metrics) error {
	line, err := json.Marshal(x)
	if err == nil {
		_, err = m.f.Write(append(line, '\n'))
	}
	if err == nil {
		err = m.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("em: metrics: %w; free space and resume the run", err)
	}
	return nil
}

func (m *metricsFile) close() error {
	if err := m.f.Close(); err != nil {
		return fmt.Errorf("em: metrics: %w", err)
	}
	return nil
}
