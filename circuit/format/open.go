package format

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxInMemory bounds what is read into memory as a whole: text, compressed files
// and pipes. Plain native files of any size stay on disk.
const maxInMemory = 1 << 30

// Open opens the model file at path, whichever registered format it has, gzip
// included, and validates its structure. Parameters are read and checked when
// they are asked for. The caller closes the model.
func Open(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	m, err := open(f, maxInMemory)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, path, err)
	}
	m.close = f.Close
	return m, nil
}

// open reads at most limit bytes into memory.
func open(f *os.File, limit int64) (*Model, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("a directory; name the model file in it")
	}
	var r io.ReaderAt = settled{f, info}
	size := info.Size()
	if !info.Mode().IsRegular() {
		if r, size, err = slurp(f, limit); err != nil {
			return nil, err
		}
	}
	return decode(r, size, limit)
}

// settled is a file that is read as long as it is what it was when it was opened. Parameters are read whenever an engine is made,
// which may be long after the checksum was compared: what was written over the file since then is another model, or none.
type settled struct {
	file *os.File
	was  os.FileInfo
}

var errChanged = errors.New("the file was changed while it was open; write a model beside the old file and rename it, and open it anew")

// ReadAt looks at the file after it has read, so that what it gives was there before any change.
func (s settled) ReadAt(p []byte, at int64) (int, error) {
	n, err := s.file.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, err
	}
	now, broken := s.file.Stat()
	if broken == nil && (now.Size() != s.was.Size() || !now.ModTime().Equal(s.was.ModTime())) {
		broken = errChanged
	}
	if broken != nil {
		return 0, broken
	}
	return n, err
}

// decode opens a model of size bytes.
func decode(r io.ReaderAt, size, limit int64) (*Model, error) {
	head, err := readHead(r, size)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(io.NewSectionReader(r, 0, size))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		if r, size, err = slurp(z, limit); err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		if head, err = readHead(r, size); err != nil {
			return nil, err
		}
	}
	f, ok := find(head)
	if !ok {
		return nil, &UnknownError{Tried: Names()}
	}
	return f.Decode(r, size)
}

func readHead(r io.ReaderAt, size int64) ([]byte, error) {
	head := make([]byte, min(size, HeadBytes))
	n, err := r.ReadAt(head, 0)
	if n < len(head) {
		return nil, err
	}
	return head, nil
}

// slurp reads all of r, at most limit bytes, into memory.
func slurp(r io.Reader, limit int64) (io.ReaderAt, int64, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, 0, err
	}
	if int64(len(b)) > limit {
		return nil, 0, fmt.Errorf("more than %d bytes; store it as an uncompressed file", limit)
	}
	return bytes.NewReader(b), int64(len(b)), nil
}

// Decode opens a model that is not a file of its own, such as one sent over a
// network: size bytes behind r, which stays in use while the model is.
func Decode(r io.ReaderAt, size int64) (*Model, error) {
	m, err := decode(r, size, maxInMemory)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return m, nil
}
