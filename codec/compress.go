package codec

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"io"
)

// Compress writes the bytes of src to dst. They should be rows of the model; what is
// not is stored as it is, and counted in Stats. A file without a single row gives an
// error that matches ErrRows, and an error of src other than io.EOF ends the work with it.
func (m *Model) Compress(ctx context.Context, dst io.Writer, src io.Reader) (Stats, error) {
	w := &writer{m: m, dst: bufio.NewWriter(dst), src: src, content: sha256.New()}
	err := w.run(ctx)
	return w.stats, err
}

// writer compresses one file.
type writer struct {
	m       *Model
	dst     *bufio.Writer
	src     io.Reader
	content hash.Hash
	stats   Stats

	framing framing
	buf     []byte // of src: bytes that are not cut into records yet
	eof     bool

	state  *state
	enc    encoder
	block  block
	blocks uint64
}

// run compresses the whole input. The framing is found from its first bytes, records are
// gathered into blocks and coded, and the end has a digest of the content. Input without a
// single row of the model is an error, as its compressed form would be larger.
func (w *writer) run(ctx context.Context) error {
	for !w.eof && !w.started() {
		if err := w.fill(); err != nil {
			return err
		}
	}
	if len(w.buf) == 0 {
		return badRows("it is empty; give a file with at least one row")
	}
	var err error
	if w.framing, err = newFraming(w.m.schema, w.buf, w.eof); err != nil {
		return err
	}
	head := w.framing.head()
	if !bytes.HasPrefix(w.buf, head) { // its only line has no end
		return badRows("it has the names of columns alone; give a file with at least one row")
	}
	if err := w.header(); err != nil {
		return err
	}
	w.take(len(head))
	w.state = newState(w.m)
	width := len(w.m.schema.Columns)
	for {
		record, end, err := w.record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		w.add(record, end)
		if w.block.full(width) || w.block.open {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	if w.stats.Rows == 0 && w.stats.Literals == 0 {
		return badRows("it has a header alone; give a file with at least one row")
	}
	if w.stats.Rows == 0 {
		return badRows("the file has none: %s", w.stats.Problem)
	}
	w.put([]byte{0})
	w.put(w.content.Sum(nil)[:contentBytes])
	return w.dst.Flush()
}

// started reports whether the buffer has what a framing is found by: startSize bytes and, of a table whose lines are longer,
// the first line with its end.
func (w *writer) started() bool {
	end := bytes.IndexAny(w.buf, "\r\n")
	return len(w.buf) >= startSize && (end >= 0 && end+1 < len(w.buf) || len(w.buf) >= recordBytes)
}

// fill reads more of src. Only io.EOF is its end: a reader that unpacks or receives a file says
// io.ErrUnexpectedEOF where the file is cut short, which io.ReadFull says of a whole one.
func (w *writer) fill() error {
	const chunk = 1 << 16
	b := bytes.NewBuffer(w.buf)
	b.Grow(chunk + bytes.MinRead)
	_, err := io.CopyN(b, w.src, chunk)
	w.buf = b.Bytes()
	if w.eof = err == io.EOF; w.eof {
		return nil
	}
	return err
}

// record cuts the next record from the file; end is the length of its end, -1 if it
// lacks one.
func (w *writer) record() (record []byte, end int, err error) {
	for {
		if n, end := w.framing.next(w.buf); n > 0 && n <= recordBytes {
			return w.take(n), end, nil
		}
		if len(w.buf) >= recordBytes || w.eof {
			break
		}
		if err := w.fill(); err != nil {
			return nil, 0, err
		}
	}
	if len(w.buf) == 0 {
		return nil, 0, io.EOF
	}
	return w.take(min(len(w.buf), recordBytes)), -1, nil
}

// take removes bytes from the front of the buffer.
func (w *writer) take(n int) []byte {
	out := w.buf[:n:n]
	w.buf = w.buf[n:]
	w.content.Write(out)
	w.stats.Content += int64(n)
	return out
}

// add adds a record to the block.
func (w *writer) add(record []byte, end int) {
	b, width := &w.block, len(w.m.schema.Columns)
	row := record[:len(record)-max(end, 0)]
	whole := end >= 0 || len(w.buf) == 0 && w.eof && w.framing.ending() != ""
	codes, marks := b.grow(width)
	if whole && w.framing.parse(row, codes, marks) {
		b.literal = append(b.literal, false)
		b.open = end < 0
		w.stats.Rows++
		return
	}
	b.dropLast(width)
	b.literal = append(b.literal, true)
	b.literals = append(b.literals, bytes.Clone(record))
	b.bytes += len(record)
	if w.stats.Literals++; w.stats.Literals == 1 {
		w.stats.FirstLiteral = w.stats.Rows + 1
		w.stats.Problem = w.framing.problem(row)
	}
}

// put writes bytes of the compressed file. An error is kept by dst until Flush.
func (w *writer) put(b []byte) {
	w.dst.Write(b)
	w.stats.Stored += int64(len(b))
}

func (w *writer) header() error {
	facts := w.framing.facts()
	if len(facts) > maxFacts {
		return badRows("its columns are in an order that takes more than %d bytes to say", maxFacts)
	}
	h := append([]byte(magic), version)
	h = append(h, w.m.digest[:digestBytes]...)
	h = binary.AppendUvarint(h, uint64(len(facts)))
	h = append(h, facts...)
	w.put(binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli)))
	return nil
}

// flush codes and writes the block with its length and checksum, unless it is empty. It is
// where a cancelled context ends the work.
func (w *writer) flush(ctx context.Context) error {
	b := &w.block
	if len(b.literal) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w.enc.start(w.enc.out)
	if err := w.state.block(&w.enc, b, len(b.literal), w.framing.columns(), w.framing.marks()); err != nil {
		return err
	}
	stream := w.enc.finish()
	h := binary.AppendUvarint(nil, uint64(len(b.literal)))
	h = binary.AppendUvarint(h, uint64(len(stream)))
	sum := blockSum(w.blocks, h, stream)
	w.put(h)
	w.put(stream)
	w.put(binary.LittleEndian.AppendUint32(nil, sum))
	w.blocks++
	b.reset()
	_, err := w.dst.Write(nil) // the error of an earlier write
	return err
}
