package tensorboard

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Scalar is a value of a curve at a step.
type Scalar struct {
	Tag   string // of the curve; a slash separates its group
	Value float64
}

// Writer appends to one event file. It is not safe for concurrent use.
type Writer struct{ f *os.File }

// Create makes an event file in dir, which is created if absent. Several runs, or the
// parts of one that was resumed, may write to one directory, each to a file of its own.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	now := time.Now()
	// Files are read in the order of their names, and those of two programs differ.
	for n := range 1000 {
		name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%03d", now.Unix(), filepath.Base(host), os.Getpid(), n)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("tensorboard: %w", err)
		}
		w := &Writer{f}
		if err := w.write(event(now, 0, appendString(nil, 3, "brain.Event:2"))); err != nil {
			f.Close()
			return nil, err
		}
		return w, nil
	}
	return nil, fmt.Errorf("tensorboard: %s has a thousand event files of this second; give another directory", dir)
}

// Restart says that what earlier files have of this step and later ones does not count:
// the run continues from a checkpoint before it.
func (w *Writer) Restart(step int64) error {
	const start = 1 // SessionLog.START
	return w.write(event(time.Now(), step, appendBytes(nil, 7, appendVarint(nil, 1, start))))
}

// Scalars adds a point to each curve. Values that are not finite as float32 are left out.
func (w *Writer) Scalars(step int64, values ...Scalar) error {
	var summary []byte
	for _, v := range values {
		x := float32(v.Value)
		if x != x || math.IsInf(float64(x), 0) {
			continue
		}
		point := appendString(nil, 1, v.Tag)
		point = appendFixed32(point, 2, math.Float32bits(x))
		summary = appendBytes(summary, 1, point)
	}
	if summary == nil {
		return nil
	}
	return w.write(event(time.Now(), step, appendBytes(nil, 5, summary)))
}

// Close closes the file.
func (w *Writer) Close() error {
	if err := w.f.Close(); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

// event returns an Event that holds what is given.
func event(at time.Time, step int64, what []byte) []byte {
	b := appendFixed64(nil, 1, math.Float64bits(float64(at.UnixNano())/1e9))
	b = appendVarint(b, 2, uint64(step))
	return append(b, what...)
}

// write adds a record: the length, its checksum, the data, its checksum.
func (w *Writer) write(data []byte) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	b = binary.LittleEndian.AppendUint32(b, masked(data))
	if _, err := w.f.Write(b); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of records: the CRC of data which hold CRCs themselves would be
// weak, so it is rotated and moved by a constant.
func masked(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
