package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// pages are the cells of a column in a row group, where the library has others than the file. Of Booleans it repeats the byte of a run, 1
// for true, in place of the bit, and makes the length of runs a multiple of 8. Of integers of 32 bits it takes differences of more than 32
// bits for other ones, and refuses a first number of 2^31 or more; DuckDB writes these.
type pages struct {
	file       *bufio.Reader
	codec      compress.Codec
	boolean    bool
	optional   bool
	dictionary []int32
	left       int64 // cells of the page that are yet to come
	there      bits  // of optional columns: which cells are not null
	values     numbers
}

// numbers are the values of a page.
type numbers interface {
	next() (int32, error)
}

// ofChunk returns the cells of a chunk of a file, nil where the library has them.
func ofChunk(file io.ReaderAt, chunk *format.ColumnMetaData, optional bool) *pages {
	differs := chunk.Type == format.Int32 && slices.Contains(chunk.Encoding, format.DeltaBinaryPacked)
	if chunk.Type != format.Boolean && !differs {
		return nil
	}
	start := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		start = min(start, chunk.DictionaryPageOffset)
	}
	section := io.NewSectionReader(file, start, chunk.TotalCompressedSize)
	return &pages{file: bufio.NewReader(section), codec: parquet.LookupCompressionCodec(chunk.Codec), boolean: !differs, optional: optional}
}

// next returns the next cell. There has to be one.
func (p *pages) next() (parquet.Value, error) {
	if p.left == 0 {
		if err := p.page(); err != nil {
			return parquet.NullValue(), err
		}
	}
	p.left--
	if p.optional {
		if there, err := p.there.next(); err != nil || there == 0 {
			return parquet.NullValue(), err
		}
	}
	x, err := p.values.next()
	if p.boolean {
		return parquet.BooleanValue(x != 0), err
	}
	return parquet.Int32Value(x), err
}

// page reads pages up to one with cells. The bytes of each are those that the writer had, as far as its header tells.
func (p *pages) page() error {
	for p.left == 0 {
		header := new(format.PageHeader)
		err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(p.file)).Decode(header)
		if err != nil {
			return fmt.Errorf("a page: %w", io.ErrUnexpectedEOF)
		}
		data, err := io.ReadAll(io.LimitReader(p.file, int64(header.CompressedPageSize)))
		switch {
		case err != nil:
		case len(data) != int(header.CompressedPageSize):
			err = errCut
		case header.CRC != 0 && uint32(header.CRC) != crc32.ChecksumIEEE(data):
			err = fmt.Errorf("a page has the checksum %#x, its bytes give %#x", uint32(header.CRC), crc32.ChecksumIEEE(data))
		case header.Type == format.DictionaryPage:
			err = p.words(data)
		case header.Type == format.DataPage:
			err = p.first(&header.DataPageHeader.V, data)
		case header.Type == format.DataPageV2:
			err = p.second(&header.DataPageHeaderV2.V, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// words takes the dictionary, of numbers one after the other.
func (p *pages) words(data []byte) error {
	data, err := p.codec.Decode(nil, data)
	if err != nil {
		return err
	}
	p.dictionary = make([]int32, len(data)/4)
	for i := range p.dictionary {
		p.dictionary[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return nil
}

// first takes a page of version 1, which is packed as a whole.
func (p *pages) first(h *format.DataPageHeader, data []byte) error {
	data, err := p.codec.Decode(nil, data)
	if err == nil && p.optional {
		if h.DefinitionLevelEncoding != format.RLE {
			return fmt.Errorf("levels in %v are not read", h.DefinitionLevelEncoding)
		}
		p.there = bits{}
		p.there.rest, data, err = prefixed(data)
	}
	if err != nil {
		return err
	}
	p.left = int64(h.NumValues)
	return p.encoded(h.Encoding, data)
}

// second takes a page of version 2, whose levels come first and are not packed.
func (p *pages) second(h *format.DataPageHeaderV2, data []byte) error {
	levels := int64(h.RepetitionLevelsByteLength) + int64(h.DefinitionLevelsByteLength)
	if h.RepetitionLevelsByteLength < 0 || h.DefinitionLevelsByteLength < 0 || levels > int64(len(data)) {
		return errCut
	}
	p.there = bits{rest: data[h.RepetitionLevelsByteLength:levels]}
	data = data[levels:]
	if len(data) > 0 && (!h.IsCompressed.Valid || h.IsCompressed.V) {
		var err error
		if data, err = p.codec.Decode(nil, data); err != nil {
			return err
		}
	}
	p.left = int64(h.NumValues)
	return p.encoded(h.Encoding, data)
}

// oldDictionary is PLAIN_DICTIONARY, as older files call RLE_DICTIONARY.
const oldDictionary format.Encoding = 2

// encoded takes the values of a page.
func (p *pages) encoded(encoding format.Encoding, data []byte) (err error) {
	switch {
	case len(data) == 0: // of nulls alone; a value that is asked for is an error
		p.values = &plain{}
	case encoding == format.DeltaBinaryPacked && !p.boolean:
		p.values, err = newDifferences(data)
	case encoding == format.Plain && !p.boolean:
		p.values = &plain{data}
	case (encoding == oldDictionary || encoding == format.RLEDictionary) && !p.boolean:
		p.values, err = newPlaces(data, p.dictionary)
	case encoding == format.Plain:
		p.values = &bits{rest: data, packed: true, left: math.MaxUint64}
	case encoding == format.RLE && p.boolean:
		data, _, err = prefixed(data)
		p.values = &bits{rest: data}
	default:
		err = fmt.Errorf("values in %v are not read", encoding)
	}
	return err
}

var errCut = errors.New("a page ends too early")

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
	at     int   // bit of the next packed number
	one    int32 // the value of a run that is not packed
}

func (b *bits) next() (int32, error) {
	for b.left == 0 {
		head, n := binary.Uvarint(b.rest)
		if n <= 0 || n == len(b.rest) { // at least a byte follows
			return 0, errCut
		}
		b.rest = b.rest[n:]
		if b.left, b.packed = head>>1, head&1 != 0; b.packed {
			b.left *= 8
		} else {
			b.one, b.rest = int32(b.rest[0]&1), b.rest[1:]
		}
	}
	b.left--
	if !b.packed {
		return b.one, nil
	}
	if len(b.rest) == 0 {
		return 0, errCut
	}
	one := int32(b.rest[0] >> b.at & 1)
	if b.at++; b.at == 8 {
		b.rest, b.at = b.rest[1:], 0
	}
	return one, nil
}
