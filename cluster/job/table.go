package job

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
	maxBlockBytes = 64 << 20
	blockBytes    = 1 << 20 // that writers aim at
)

// blockRows is how many rows of s a writer puts into a block of about
// the given number of bytes.
func blockRows(s *dataset.Schema, bytes int) int { return min(maxRows, s.BlockRows(bytes)) }

// appendPart appends a part after its length.
func appendPart(dst, part []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(part))), part...)
}

// readPart reads a part into buf, or returns io.EOF if there is none.
func readPart(r io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err // io.EOF before the first byte
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n > maxBlockBytes {
		return nil, fmt.Errorf("%w: blocks: a part of %d bytes; at most %d are taken", dataset.ErrFormat, n, maxBlockBytes)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	if _, err := io.ReadFull(r, buf[:n]); err != nil {
		return nil, fmt.Errorf("%w: blocks: cut short", dataset.ErrFormat)
	}
	return buf[:n], nil
}

// writeTable writes all rows of src, block by block, to a new file in dir, and describes it by
// size and digest. The file begins with the run's name, so that equal rows of two runs are
// different contents. After an error the file is gone.
func writeTable(ctx context.Context, dir, run string, src dataset.Source) (path string, ref FileRef, err error) {
	f, err := atomicfile.CreateTemp(dir, "rows")
	if err != nil {
		return "", ref, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}()
	h := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, h), blockBytes)
	if _, err := w.Write(appendPart(nil, []byte(run))); err != nil {
		return "", ref, err
	}
	s, in := src.Schema(), dataset.NewReader(src)
	rows := max(1, blockRows(s, blockBytes))
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
			part = appendPart(part[:0], block)
			_, err = w.Write(part)
		}
		if err != nil {
			return "", ref, err
		}
	}
	if err := w.Flush(); err != nil {
		return "", ref, err
	}
	info, err := f.Stat()
	if err != nil {
		return "", ref, err
	}
	return f.Name(), FileRef{Name: "rows", Digest: hex.EncodeToString(h.Sum(nil)), Size: info.Size()}, nil
}

// readBlocks calls each with the batches of a file of blocks, behind the name of
// the run. The batch is valid until each returns.
func readBlocks(ctx context.Context, r io.Reader, s *dataset.Schema, each func(*dataset.Batch) error) error {
	var buf []byte
	for b := new(dataset.Batch); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, err := readPart(r, buf)
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

// readTable loads a file that writeTable wrote into a table of s. rows is how many the run says
// that it has, and is not trusted: memory is taken for as many as the file can hold.
func readTable(ctx context.Context, path string, s *dataset.Schema, rows int) (*dataset.Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(f, blockBytes)
	if _, err := readPart(r, nil); err != nil {
		return nil, fmt.Errorf("%w: blocks: no name of a run", dataset.ErrFormat)
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	t, err := dataset.NewTable(s, max(0, min(rows, s.BlockRows(int(info.Size())))))
	if err != nil {
		return nil, err
	}
	if err := readBlocks(ctx, r, s, t.Append); err != nil {
		return nil, err
	}
	return t, nil
}
