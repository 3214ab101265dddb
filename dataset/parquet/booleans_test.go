package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pce-engine/pce/dataset"
)

// page is a page of Booleans of a file that the test writes itself.
type page struct {
	cells, nulls int32
	levels       []byte // runs; nil: the column is not optional
	encoding     format.Encoding
	values       []byte
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	out, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ofBooleans returns a file with a column b of those pages in a row group, of version 1 or 2 and packed by codec.
func ofBooleans(t *testing.T, version int, codec format.CompressionCodec, pages ...page) []byte {
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
	file, rows, optional := []byte("PAR1"), int32(0), false
	for _, p := range pages {
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
		header.CompressedPageSize = int32(len(data))
		file = append(append(file, marshal(t, header)...), data...)
		rows, optional = rows+p.cells, p.levels != nil
	}
	size := int64(len(file) - 4)
	b := format.SchemaElement{Name: "b"}
	b.Type.Set(format.Boolean)
	b.RepetitionType.Set(format.Required)
	if optional {
		b.RepetitionType.Set(format.Optional)
	}
	root := format.SchemaElement{Name: "root"}
	root.NumChildren.Set(1)
	footer := marshal(t, &format.FileMetaData{
		Version: 2, Schema: []format.SchemaElement{root, b}, NumRows: int64(rows),
		RowGroups: []format.RowGroup{{
			Columns: []format.ColumnChunk{{MetaData: format.ColumnMetaData{
				Type: format.Boolean, Encoding: []format.Encoding{format.RLE}, PathInSchema: []string{"b"}, Codec: codec,
				NumValues: int64(rows), TotalUncompressedSize: size, TotalCompressedSize: size, DataPageOffset: 4,
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
	}
	for _, version := range []int{1, 2} {
		for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Zstd} {
			if got, err := cells(t, ofBooleans(t, version, codec, runs, plain, runs)); err != nil || got != ofRuns+ofPlain+ofRuns {
				t.Errorf("version %d, %v: %s, %v", version, codec, got, err)
			}
			if got, err := cells(t, ofBooleans(t, version, codec, nulls...)); err != nil || got != "11----"+ofRuns[2:]+ofPlain+"-"+"---" {
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
			got, err := cells(t, ofBooleans(t, version, format.Uncompressed, p))
			if !errors.Is(err, dataset.ErrFormat) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, version %d: %s, %v", name, version, got, err)
			}
		}
	}
}
