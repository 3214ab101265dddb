package codec

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"
)

// Decompress writes to dst what Compress read. A file that is damaged or cut short
// gives an error that matches ErrFile, and one that was compressed with another model
// an error that matches ErrModel. What it has written before is right as far as it goes.
func (m *Model) Decompress(ctx context.Context, dst io.Writer, src io.Reader) (Stats, error) {
	content := sha256.New()
	r := &reader{m: m, src: bufio.NewReader(src), out: bufio.NewWriter(dst), content: content}
	err := r.run(ctx)
	return r.stats, errors.Join(err, r.out.Flush())
}

// reader restores one file.
type reader struct {
	m       *Model
	src     *bufio.Reader
	out     *bufio.Writer
	content hash.Hash
	stats   Stats

	framing framing
	state   *state
	dec     decoder
	block   block
	stream  []byte
	text    []byte
}

// run restores the whole file, block by block, and checks the digest at its end. Every number
// of the file is bounded before memory is taken for it.
func (r *reader) run(ctx context.Context) error {
	if err := r.header(); err != nil {
		return err
	}
	if err := r.write(r.framing.head()); err != nil {
		return err
	}
	r.state = newState(r.m)
	for number := uint64(0); ; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		records, err := r.number("the number of records", blockRecords)
		if err != nil {
			return err
		}
		if records == 0 {
			return r.end()
		}
		if err := r.readBlock(number, records); err != nil {
			return err
		}
	}
}

// header reads the header, whose parts are checked in an order that tells a damaged
// file from one of another model.
func (r *reader) header() error {
	fixed := make([]byte, len(magic)+1+digestBytes)
	if n, err := io.ReadFull(r.src, fixed); err != nil {
		if !strings.HasPrefix(magic, string(fixed[:min(n, len(magic))])) || n == 0 {
			return r.cut(err, "not a file that pce has compressed")
		}
		return r.cut(err, "it ends in its header; get it again")
	}
	r.stats.Stored += int64(len(fixed))
	if !bytes.HasPrefix(fixed, []byte(magic)) {
		return badFile("not a file that pce has compressed: it begins with the bytes % x", fixed[:len(magic)])
	}
	if v := fixed[len(magic)]; v != version {
		return badFile("it has version %d and this pce reads version %d; decompress it with the pce that wrote it", v, version)
	}
	length, err := r.number("the length of its header", maxFacts)
	if err != nil {
		return err
	}
	facts, err := r.bytes(nil, length)
	if err != nil {
		return err
	}
	all := append(binary.AppendUvarint(fixed, uint64(length)), facts...)
	if err := r.checksum(crc32.Checksum(all, castagnoli), "its header"); err != nil {
		return err
	}
	if have := fixed[len(magic)+1:][:digestBytes]; !bytes.Equal(have, r.m.digest[:digestBytes]) {
		return badModel("the file was compressed with another model, whose SHA-256 begins with %x; this one's begins with %x", have[:8], r.m.digest[:8])
	}
	r.framing, err = readFraming(r.m.schema, facts)
	return err
}

// cut returns an error for a file that ends early, or the error of reading it.
func (r *reader) cut(err error, what string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return badFile("%s", what)
	}
	return err
}

func (r *reader) short(err error) error {
	return r.cut(err, fmt.Sprintf("it is cut short after %d bytes; get it again", r.stats.Stored))
}

// number reads a uvarint of at most most. A larger one, or one of more than five bytes, is
// damage, and the error says at which byte.
func (r *reader) number(what string, most int) (int, error) {
	x := uint64(0)
	for shift := 0; ; shift += 7 {
		b, err := r.src.ReadByte()
		if err != nil {
			return 0, r.short(err)
		}
		r.stats.Stored++
		if shift > 28 {
			return 0, badFile("damaged at byte %d: %s is out of range", r.stats.Stored, what)
		}
		x |= uint64(b&0x7f) << shift
		if b < 0x80 {
			break
		}
	}
	if x > uint64(most) {
		return 0, badFile("damaged at byte %d: %s is out of range", r.stats.Stored, what)
	}
	return int(x), nil
}

// bytes reads n bytes into the memory of buf, which grows as they come.
func (r *reader) bytes(buf []byte, n int) ([]byte, error) {
	b := bytes.NewBuffer(buf[:0])
	got, err := io.CopyN(b, r.src, int64(n))
	r.stats.Stored += got
	if err != nil {
		return nil, r.short(err)
	}
	return b.Bytes(), nil
}

func (r *reader) checksum(want uint32, of string) error {
	b, err := r.bytes(nil, 4)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(b) != want {
		return badFile("%s is damaged, before byte %d; get it again", of, r.stats.Stored)
	}
	return nil
}

// readBlock decodes and writes a block of that many records.
func (r *reader) readBlock(number uint64, records int) error {
	length, err := r.number("the length of a block", maxStream)
	if err != nil {
		return err
	}
	if r.stream, err = r.bytes(r.stream, length); err != nil {
		return err
	}
	h := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(records)), uint64(length))
	if err := r.checksum(blockSum(number, h, r.stream), fmt.Sprintf("block %d", number+1)); err != nil {
		return err
	}
	r.block.reset()
	r.dec.start(r.stream)
	if err := r.state.block(&r.dec, &r.block, records, r.framing.columns(), r.framing.marks()); err != nil {
		return err
	}
	return r.render()
}

// render writes the records of a block that was decoded, as the framing writes rows, literal
// ones as they are. The last record of an open block has no line end.
func (r *reader) render() error {
	b, width := &r.block, len(r.m.schema.Columns)
	row, literal := 0, 0
	for i, isLiteral := range b.literal {
		text := r.text[:0]
		if isLiteral {
			text = append(text, b.literals[literal]...)
			literal++
		} else {
			text = r.framing.append(text, b.codes[row*width:][:width], b.marks[row*width:][:width])
			if !b.open || i < len(b.literal)-1 {
				text = append(text, r.framing.ending()...)
			}
			row++
		}
		r.text = text
		if err := r.write(text); err != nil {
			return err
		}
	}
	r.stats.Rows += int64(row)
	r.stats.Literals += int64(literal)
	return nil
}

func (r *reader) write(b []byte) error {
	r.content.Write(b)
	r.stats.Content += int64(len(b))
	_, err := r.out.Write(b)
	return err
}

// end checks what follows the last block.
func (r *reader) end() error {
	sum, err := r.bytes(nil, contentBytes)
	if err != nil {
		return err
	}
	if !bytes.Equal(sum, r.content.Sum(nil)[:contentBytes]) {
		return badFile("what it decodes to is not what was compressed; please report it")
	}
	if _, err := r.src.ReadByte(); err != io.EOF {
		if err != nil {
			return err
		}
		return badFile("bytes follow its end, at byte %d; get it again", r.stats.Stored+1)
	}
	return nil
}
