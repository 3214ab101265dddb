// Package blocks is files of rows on their way between the members of a cluster.
//
// # Shapes and units
//
// A file is parts, each after its length: the name of a run, then blocks of rows,
// which dataset.AppendBlock writes. Lengths are bytes, 4 bytes little-endian.
//
// # Errors
//
// Files that are cut short or have larger parts than there can be match
// dataset.ErrFormat.
//
// # Source
//
// The format is this project's own.
package blocks

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// A file of blocks is a table on its way to the members: the name of the run,
// which makes the file its own, then blocks of rows. Each part follows its
// length in 4 bytes.
const (
	// MaxBytes bounds a part.
	MaxBytes = 64 << 20
	// MaxRows is the most rows of a block that is asked about.
	MaxRows = 4096

	usualBytes = 1 << 20 // of the blocks that WriteTable writes
)

// Rows is how many rows of s a writer puts into a block of about
// the given number of bytes.
func Rows(s *dataset.Schema, bytes int) int { return min(MaxRows, s.BlockRows(bytes)) }

// AppendPart appends a part after its length.
func AppendPart(dst, part []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(part))), part...)
}

// ReadPart reads a part into buf, or returns io.EOF if there is none.
func ReadPart(r io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	switch _, err := io.ReadFull(r, head[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: blocks: cut short", dataset.ErrFormat)
	case err != nil:
		return nil, err // io.EOF before the first byte
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n > MaxBytes {
		return nil, fmt.Errorf("%w: blocks: a part of %d bytes; at most %d are taken", dataset.ErrFormat, n, MaxBytes)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	if _, err := io.ReadFull(r, buf[:n]); err != nil {
		return nil, fmt.Errorf("%w: blocks: cut short", dataset.ErrFormat)
	}
	return buf[:n], nil
}

// WriteTable writes all rows of src, block by block, to a new file in dir, and returns its path, its
// digest in hexadecimal and its size. The file begins with the run's name, so that equal rows of two runs are
// different contents. After an error the file is gone.
func WriteTable(ctx context.Context, dir, run string, src dataset.Source) (path, digest string, size int64, err error) {
	f, err := atomicfile.CreateTemp(dir, "rows")
	if err != nil {
		return "", "", 0, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}()
	h := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, h), usualBytes)
	if _, err := w.Write(AppendPart(nil, []byte(run))); err != nil {
		return "", "", 0, err
	}
	s, in := src.Schema(), dataset.NewReader(src)
	rows := max(1, Rows(s, usualBytes))
	var block, part []byte
	for b := new(dataset.Batch); ; {
		err := in.Read(ctx, b, rows)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			block, err = dataset.AppendBlock(block[:0], s, b)
		}
		if err == nil {
			part = AppendPart(part[:0], block)
			_, err = w.Write(part)
		}
		if err != nil {
			return "", "", 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return "", "", 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return "", "", 0, err
	}
	return f.Name(), hex.EncodeToString(h.Sum(nil)), info.Size(), nil
}

// Read calls each with the batches of a file of blocks, behind the name of
// the run. The batch is valid until each returns.
func Read(ctx context.Context, r io.Reader, s *dataset.Schema, each func(*dataset.Batch) error) error {
	var buf []byte
	for b := new(dataset.Batch); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, err := ReadPart(r, buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			buf = part
			err = dataset.DecodeBlock(s, part, b)
		}
		if err == nil {
			err = each(b)
		}
		if err != nil {
			return err
		}
	}
}

// ReadTable loads a file that WriteTable wrote into a table of s. rows is how many the run says
// that it has, and is not trusted: memory is taken for as many as the file can hold.
func ReadTable(ctx context.Context, path string, s *dataset.Schema, rows int) (*dataset.Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(f, usualBytes)
	if _, err := ReadPart(r, nil); err != nil {
		return nil, fmt.Errorf("%w: blocks: no name of a run", dataset.ErrFormat)
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	t, err := dataset.NewTable(s, max(0, min(rows, s.BlockRows(int(info.Size())))))
	if err != nil {
		return nil, err
	}
	if err := Read(ctx, r, s, t.Append); err != nil {
		return nil, err
	}
	return t, nil
}
