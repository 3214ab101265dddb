package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	mathbits "math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pce-engine/pce/dataset"
)

// page is a page of a file that the test writes itself.
type page struct {
	cells, nulls int32
	levels       []byte // runs; nil: the column is not optional
	encoding     format.Encoding
	values       []byte
	words        bool  // the page is a dictionary
	unsigned     bool  // of the first page: the column is of unsigned integers
	short        int32 // how many bytes the page has less than its header promises
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	out, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ofPages returns a file with a column b of those pages in a row group, of version 1 or 2 and packed by codec.
func ofPages(t testing.TB, kind format.Type, version int, codec format.CompressionCodec, pages ...page) []byte {
	t.Helper()
	pack := func(data []byte) []byte {
		out, err := parquet.LookupCompressionCodec(codec).Encode(nil, data)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	prefix := func(data []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...)
	}
	file, rows, optional, first := []byte("PAR1"), int32(0), false, int64(4)
	for _, p := range pages {
		if p.words {
			data := pack(p.values)
			header := &format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(len(p.values)), CompressedPageSize: int32(len(data)), CRC: int32(crc32.ChecksumIEEE(data))}
			header.DictionaryPageHeader.Set(format.DictionaryPageHeader{NumValues: int32(len(p.values) / 4)})
			file = append(append(file, marshal(t, header)...), data...)
			first = int64(len(file))
			continue
		}
		values, header := p.values, new(format.PageHeader)
		if p.encoding == format.RLE {
			values = prefix(values)
		}
		var data []byte
		if version == 1 {
			if p.levels != nil {
				values = append(prefix(p.levels), values...)
			}
			data, header.UncompressedPageSize = pack(values), int32(len(values))
			header.Type = format.DataPage
			header.DataPageHeader.Set(format.DataPageHeader{NumValues: p.cells, Encoding: p.encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
		} else {
			data, header.UncompressedPageSize = append(bytes.Clone(p.levels), pack(values)...), int32(len(p.levels)+len(values))
			header.Type = format.DataPageV2
			h := format.DataPageHeaderV2{NumValues: p.cells, NumNulls: p.nulls, NumRows: p.cells, Encoding: p.encoding, DefinitionLevelsByteLength: int32(len(p.levels))}
			h.IsCompressed.Set(codec != format.Uncompressed)
			header.DataPageHeaderV2.Set(h)
		}
		header.CompressedPageSize, header.CRC = int32(len(data))+p.short, int32(crc32.ChecksumIEEE(data))
		file = append(append(file, marshal(t, header)...), data...)
		rows, optional = rows+p.cells, p.levels != nil
	}
	size := int64(len(file) - 4)
	b := format.SchemaElement{Name: "b"}
	b.Type.Set(kind)
	b.RepetitionType.Set(format.Required)
	if optional {
		b.RepetitionType.Set(format.Optional)
	}
	if pages[0].unsigned {
		b.LogicalType.Value = &format.IntType{BitWidth: 32}
	}
	encodings := []format.Encoding{format.RLE}
	for _, p := range pages {
		encodings = append(encodings, p.encoding)
	}
	dictionary := int64(0)
	if first > 4 {
		dictionary = 4
	}
	root := format.SchemaElement{Name: "root"}
	root.NumChildren.Set(1)
	footer := marshal(t, &format.FileMetaData{
		Version: 2, Schema: []format.SchemaElement{root, b}, NumRows: int64(rows),
		RowGroups: []format.RowGroup{{
			Columns: []format.ColumnChunk{{MetaData: format.ColumnMetaData{
				Type: kind, Encoding: encodings, PathInSchema: []string{"b"}, Codec: codec,
				NumValues: int64(rows), TotalUncompressedSize: size, TotalCompressedSize: size, DataPageOffset: first, DictionaryPageOffset: dictionary,
			}}},
			TotalByteSize: size, NumRows: int64(rows),
		}},
	})
	file = append(file, footer...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
}

// cells returns the cells of a file with one column, b, with - for missing ones.
func cells(t *testing.T, file []byte) (string, error) {
	t.Helper()
	src, err := load(t, file, dataset.Options{Schema: &dataset.Schema{Columns: []dataset.Column{{Name: "b", Categories: 2}}}})
	if err != nil {
		return "", err
	}
	rows := make([]int, src.Rows())
	for i := range rows {
		rows[i] = i
	}
	b := new(dataset.Batch)
	if err := src.Gather(t.Context(), b, rows); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i := range b.Rows {
		if b.Columns[0].IsMissing(i) {
			out.WriteByte('-')
			continue
		}
		fmt.Fprint(&out, b.Columns[0].Codes.At(i))
	}
	return out.String(), nil
}

// TestBooleans reads runs of any length and packed Booleans, in pages of both versions, beside nulls, and packed by a codec.
func TestBooleans(t *testing.T) {
	runs := page{cells: 31, encoding: format.RLE, values: []byte{
		3 << 1, 1, // 3 times 1
		5 << 1, 0, // 5 times 0
		1<<1 | 1, 0b10110010, // 8 packed ones
		0 << 1, 1, // an empty run
		11 << 1, 1,
		1<<1 | 1, 0b1101, // 8 packed ones, of which the page has 4
	}}
	plain := page{cells: 10, encoding: format.Plain, values: []byte{0b10000001, 0b10}}
	const ofRuns, ofPlain = "111" + "00000" + "01001101" + "11111111111" + "1011", "1000000101"
	withNulls := func(p page, levels []byte, cells, nulls int32) page {
		p.levels, p.cells, p.nulls = levels, cells, nulls
		return p
	}
	nulls := []page{
		withNulls(runs, []byte{2 << 1, 1, 4 << 1, 0, 29 << 1, 1}, 35, 4),
		withNulls(plain, []byte{10 << 1, 1, 1 << 1, 0}, 11, 1),
		withNulls(page{encoding: format.RLE}, []byte{3 << 1, 0}, 3, 3),
		withNulls(plain, []byte{2<<1 | 1, 0xff, 0b110}, 12, 2), // packed levels, of which the last byte is not used up
		withNulls(plain, []byte{2<<1 | 1, 0xff, 0b11}, 10, 0),
	}
	for _, version := range []int{1, 2} {
		for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Zstd} {
			if got, err := cells(t, ofPages(t, format.Boolean, version, codec, runs, plain, runs)); err != nil || got != ofRuns+ofPlain+ofRuns {
				t.Errorf("version %d, %v: %s, %v", version, codec, got, err)
			}
			if got, err := cells(t, ofPages(t, format.Boolean, version, codec, nulls...)); err != nil || got != "11----"+ofRuns[2:]+ofPlain+"-"+"---"+ofPlain[:8]+"-"+ofPlain[8:]+"-"+ofPlain {
				t.Errorf("version %d, %v, with nulls: %s, %v", version, codec, got, err)
			}
		}
	}
}

// TestDamagedBooleans: what ends too early, or is not known, is an error of one line.
func TestDamagedBooleans(t *testing.T) {
	for name, p := range map[string]page{
		"a run":    {cells: 9, encoding: format.RLE, values: []byte{8 << 1, 1}},
		"no value": {cells: 9, encoding: format.RLE, values: []byte{9 << 1}},
		"packed":   {cells: 17, encoding: format.RLE, values: []byte{3<<1 | 1, 0xff, 0xff}},
		"plain":    {cells: 17, encoding: format.Plain, values: []byte{0xff, 0xff}},
		"levels":   {cells: 9, levels: []byte{8 << 1, 1}, encoding: format.RLE, values: []byte{9 << 1, 1}},
		"unknown":  {cells: 9, encoding: format.DeltaBinaryPacked, values: []byte{1, 2}},
	} {
		for _, version := range []int{1, 2} {
			got, err := cells(t, ofPages(t, format.Boolean, version, format.Uncompressed, p))
			if !errors.Is(err, dataset.ErrFormat) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, version %d: %s, %v", name, version, got, err)
			}
		}
	}
}

// TestDamagedIntegers: what ends too early, or is in no dictionary, is an error of one line, as is a row group of other rows than its column has.
func TestDamagedIntegers(t *testing.T) {
	last := inDifferences(1)
	words := page{words: true, values: []byte{9, 0, 0, 0}}
	for name, pages := range map[string][]page{
		"plain":         {{cells: 2, encoding: format.Plain, values: []byte{1, 0, 0, 0, 1}}, last},
		"no dictionary": {{cells: 1, encoding: format.RLEDictionary, values: []byte{1, 1 << 1, 0}}, last},
		"no place":      {words, {cells: 2, encoding: format.RLEDictionary, values: []byte{1, 2 << 1, 1}}, last},
		"places":        {words, {cells: 9, encoding: format.RLEDictionary, values: []byte{1, 8 << 1, 0}}, last},
		"packed":        {words, {cells: 40, encoding: format.RLEDictionary, values: []byte{1, 5<<1 | 1, 0}}, last},
		"wide places":   {words, {cells: 1, encoding: format.RLEDictionary, values: []byte{33, 1 << 1, 0, 0, 0, 0, 0}}, last},
		"many":          {words, {cells: 9, encoding: format.RLEDictionary, values: []byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}}, last},
		"no values":     {{cells: 1, encoding: format.DeltaBinaryPacked}, last},
		"unknown":       {{cells: 1, encoding: format.ByteStreamSplit, values: []byte{1, 0, 0, 0}}, last},
	} {
		for _, version := range []int{1, 2} {
			got, err := cells(t, ofPages(t, format.Int32, version, format.Uncompressed, pages...))
			if !errors.Is(err, dataset.ErrFormat) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, version %d: %s, %v", name, version, got, err)
			}
		}
	}
}

// TestChecksums: a page that has other bytes than its header has the checksum of, or fewer than it promises, is an error of one line. Its
// cells would be others.
func TestChecksums(t *testing.T) {
	for name, tt := range map[string]struct {
		kind  format.Type
		pages []page
	}{
		"Booleans":    {format.Boolean, []page{{cells: 10, encoding: format.Plain, values: []byte{0b10000001, 0b10}}}},
		"runs":        {format.Boolean, []page{{cells: 9, encoding: format.RLE, values: []byte{9 << 1, 1}}}},
		"differences": {format.Int32, []page{inDifferences(1, 0, 1, 1)}},
		"a dictionary": {format.Int32, []page{
			{words: true, values: []byte{1, 0, 0, 0}}, {cells: 2, encoding: format.RLEDictionary, values: []byte{0, 2 << 1}}, inDifferences(1),
		}},
	} {
		for _, version := range []int{1, 2} {
			whole := ofPages(t, tt.kind, version, format.Uncompressed, tt.pages...)
			if got, err := cells(t, whole); err != nil {
				t.Errorf("%s, version %d: %s, %v", name, version, got, err)
			}
			first := tt.pages[0].values
			at := bytes.Index(whole, first) + len(first) - 1
			other := bytes.Clone(whole)
			other[at] ^= 1
			if got, err := cells(t, other); !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), "checksum") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, version %d, another byte: %s, %v", name, version, got, err)
			}
			last := slices.Clone(tt.pages)
			last[len(last)-1].short = 1
			if got, err := cells(t, ofPages(t, tt.kind, version, format.Uncompressed, last...)); !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), "ends too early") {
				t.Errorf("%s, version %d, a byte less: %s, %v", name, version, got, err)
			}
		}
	}
}

// inDifferences returns a page of numbers as DELTA_BINARY_PACKED, in blocks of 128 in 4 parts, with differences of as many bits as
// integers of 64 bits have.
func inDifferences(numbers ...int64) page {
	data := binary.AppendUvarint([]byte{0x80, 1, 4}, uint64(len(numbers)))
	data = binary.AppendVarint(data, numbers[0])
	for at := 1; at < len(numbers); at += 128 {
		block := numbers[at-1 : min(at+128, len(numbers))]
		least := block[1] - block[0]
		for i := range block[1:] {
			least = min(least, block[i+1]-block[i])
		}
		data = binary.AppendVarint(data, least)
		widths := make([]byte, 4)
		var parts []byte
		for part := range widths {
			from, to := min(32*part, len(block)-1), min(32*part+32, len(block)-1)
			width := 0
			for i := from; i < to; i++ {
				width = max(width, mathbits.Len64(uint64(block[i+1]-block[i]-least)))
			}
			widths[part] = byte(width)
			packed := make([]byte, 4*width)
			for i := from; i < to; i++ {
				x := uint64(block[i+1] - block[i] - least)
				for bit := range width {
					at := (i-from)*width + bit
					packed[at/8] |= byte(x>>bit&1) << (at % 8)
				}
			}
			parts = append(parts, packed...)
		}
		data = append(append(data, widths...), parts...)
	}
	return page{cells: int32(len(numbers)), encoding: format.DeltaBinaryPacked, values: data}
}

// TestDifferences reads integers of 32 bits whose differences take up to 33 bits, over several blocks, and pages of plain ones between them.
func TestDifferences(t *testing.T) {
	dataset.Register(".parquet", Format)
	var many []int64
	for i := range int64(300) {
		many = append(many, i*i%977-400)
	}
	many[150], many[151] = math.MinInt32, math.MaxInt32
	edges := []int64{5, -math.MaxInt32, 7, math.MaxInt32, math.MinInt32, 0}
	plain := page{cells: 2, encoding: format.Plain, values: []byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}}
	withNull := inDifferences(edges...)
	withNull.cells, withNull.nulls, withNull.levels = withNull.cells+1, 1, []byte{1 << 1, 0, 6 << 1, 1}
	nulls := page{cells: 3, nulls: 3, levels: []byte{3 << 1, 0}, encoding: format.DeltaBinaryPacked} // without values
	large := []int64{1<<31 + 5, 0, 1<<32 - 1, 1 << 31, 7}
	unsigned := inDifferences(large...)
	unsigned.unsigned = true
	words := page{words: true, values: []byte{9, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0}}
	places := page{cells: 13, encoding: format.RLEDictionary, values: []byte{2,
		3 << 1, 1, // 3 times the second
		1<<1 | 1, 0b10_01_00_10, 0b00_00_10_10, // 8 packed ones
		2 << 1, 0,
	}}
	ofPlaces := []int64{-2, -2, -2, 7, 9, -2, 7, 7, 7, 9, 9, 9, 9}
	older := places
	older.encoding = oldDictionary
	single := page{cells: 2, encoding: format.RLEDictionary, values: []byte{0, 1<<1 | 1}} // of places without bits
	for name, tt := range map[string]struct {
		pages []page
		want  []int64
	}{
		"edges":  {[]page{inDifferences(edges...)}, edges},
		"blocks": {[]page{inDifferences(many...), inDifferences(many[:1]...)}, append(slices.Clone(many), many[0])},
		"plain":  {[]page{inDifferences(edges...), plain, inDifferences(many...)}, slices.Concat(edges, []int64{1, -1}, many)},
		"null":   {[]page{withNull, withNull}, slices.Concat([]int64{math.MaxInt64}, edges, []int64{math.MaxInt64}, edges)},
		"nulls":  {[]page{nulls, withNull, nulls}, slices.Concat(slices.Repeat([]int64{math.MaxInt64}, 4), edges, slices.Repeat([]int64{math.MaxInt64}, 3))},

		"unsigned":   {[]page{unsigned, unsigned}, slices.Concat(large, large)},
		"dictionary": {[]page{words, places, inDifferences(edges...), older, single, plain}, slices.Concat(ofPlaces, edges, ofPlaces, []int64{9, 9, 1, -1})},
	} {
		for _, version := range []int{1, 2} {
			path := filepath.Join(t.TempDir(), "a.parquet")
			if err := os.WriteFile(path, ofPages(t, format.Int32, version, format.Zstd, tt.pages...), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := dataset.OpenNumbers(path, 1, nil, dataset.ToFloat64, dataset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float64, len(tt.want)+1)
			n, err := r.Read(t.Context(), got)
			if err != nil || n != len(tt.want) {
				t.Fatalf("%s, version %d: %d rows, %v; want %d", name, version, n, err, len(tt.want))
			}
			for i, x := range tt.want {
				if missing := x == math.MaxInt64; !(missing && math.IsNaN(got[i]) || !missing && got[i] == float64(x)) {
					t.Fatalf("%s, version %d, row %d: %v, want %d", name, version, i, got[i], x)
				}
			}
			r.Close()
		}
	}
}
