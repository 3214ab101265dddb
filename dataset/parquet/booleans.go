package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pce-engine/pce/dataset"
)

// booleans are the values of a column of Booleans in a row group. They are not the library's: it repeats the byte of a run, 1 for
// true, in place of the bit, and makes the length of runs a multiple of 8.
type booleans struct {
	pages    *bufio.Reader
	codec    compress.Codec
	optional bool
	left     int64 // cells of the page that are yet to come
	there    bits  // of optional columns: which cells are not null
	values   bits
}

// newBooleans returns the values of a chunk of a file.
func newBooleans(file io.ReaderAt, chunk *format.ColumnMetaData, optional bool) *booleans {
	pages := io.NewSectionReader(file, chunk.DataPageOffset, chunk.TotalCompressedSize)
	return &booleans{pages: bufio.NewReader(pages), codec: parquet.LookupCompressionCodec(chunk.Codec), optional: optional}
}

// next returns the next cell; the page that it is on must have been read.
func (b *booleans) next() (dataset.Value, error) {
	b.left--
	if b.optional {
		if there, err := b.there.next(); err != nil || !there {
			return dataset.Value{}, err
		}
	}
	v := dataset.Value{Kind: dataset.Number}
	one, err := b.values.next()
	if one {
		v.Number = 1
	}
	return v, err
}

// page reads pages up to one with cells.
func (b *booleans) page() error {
	for b.left == 0 {
		header := new(format.PageHeader)
		err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(b.pages)).Decode(header)
		if err != nil {
			return fmt.Errorf("a page of Booleans: %w", io.ErrUnexpectedEOF)
		}
		data, err := io.ReadAll(io.LimitReader(b.pages, int64(header.CompressedPageSize)))
		switch {
		case err != nil:
		case header.Type == format.DataPage:
			err = b.first(&header.DataPageHeader.V, data)
		case header.Type == format.DataPageV2:
			err = b.second(&header.DataPageHeaderV2.V, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// first takes a page of version 1, which is packed as a whole.
func (b *booleans) first(h *format.DataPageHeader, data []byte) error {
	data, err := b.codec.Decode(nil, data)
	if err == nil && b.optional {
		if h.DefinitionLevelEncoding != format.RLE {
			return fmt.Errorf("Booleans with levels in %v are not read", h.DefinitionLevelEncoding)
		}
		b.there.rest, data, err = prefixed(data)
		b.there.left = 0
	}
	if err != nil {
		return err
	}
	b.left = int64(h.NumValues)
	return b.encoded(h.Encoding, data)
}

// second takes a page of version 2, whose levels come first and are not packed.
func (b *booleans) second(h *format.DataPageHeaderV2, data []byte) error {
	levels := int64(h.RepetitionLevelsByteLength) + int64(h.DefinitionLevelsByteLength)
	if h.RepetitionLevelsByteLength < 0 || h.DefinitionLevelsByteLength < 0 || levels > int64(len(data)) {
		return errCut
	}
	b.there = bits{rest: data[h.RepetitionLevelsByteLength:levels]}
	data = data[levels:]
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		var err error
		if data, err = b.codec.Decode(nil, data); err != nil {
			return err
		}
	}
	b.left = int64(h.NumValues)
	return b.encoded(h.Encoding, data)
}

// encoded takes the values of a page.
func (b *booleans) encoded(encoding format.Encoding, data []byte) (err error) {
	switch encoding {
	case format.Plain:
		b.values = bits{rest: data, packed: true, left: math.MaxUint64}
	case format.RLE:
		b.values = bits{}
		b.values.rest, _, err = prefixed(data)
	default:
		err = fmt.Errorf("Booleans in %v are not read", encoding)
	}
	return err
}

var errCut = errors.New("a page of Booleans ends too early")

// prefixed divides data into what its first 4 bytes have the length of and the rest.
func prefixed(data []byte) (part, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, errCut
	}
	n := binary.LittleEndian.Uint32(data)
	if data = data[4:]; uint64(n) > uint64(len(data)) {
		return nil, nil, errCut
	}
	return data[:n], data[n:], nil
}

// bits are numbers of one bit, in runs: of one value, or packed, the least bit of a byte first.
type bits struct {
	rest   []byte // from the byte of the next packed number on, or the next run
	left   uint64 // numbers of the run
	packed bool
	at     int  // bit of the next packed number
	one    bool // the value of a run that is not packed
}

func (b *bits) next() (bool, error) {
	for b.left == 0 {
		head, n := binary.Uvarint(b.rest)
		if n <= 0 || n == len(b.rest) { // at least a byte follows
			return false, errCut
		}
		b.rest = b.rest[n:]
		if b.left, b.packed = head>>1, head&1 != 0; b.packed {
			b.left *= 8
		} else {
			b.one, b.rest = b.rest[0]&1 != 0, b.rest[1:]
		}
	}
	b.left--
	if !b.packed {
		return b.one, nil
	}
	if len(b.rest) == 0 {
		return false, errCut
	}
	one := b.rest[0]>>b.at&1 != 0
	if b.at++; b.at == 8 {
		b.rest, b.at = b.rest[1:], 0
	}
	return one, nil
}
