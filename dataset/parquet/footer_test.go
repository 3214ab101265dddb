package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pce-engine/pce/dataset"
)

// withFooter saves a file that ends in a footer and returns what checkFooter says.
func withFooter(t *testing.T, footer []byte) error {
	t.Helper()
	return saved(t, slices.Concat([]byte("PAR1"), footer, binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), []byte("PAR1")))
}

// saved saves a file and returns what checkFooter says.
func saved(t *testing.T, content []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return checkFooter(f, int64(len(content)))
}

// longFooter is a struct whose only field is a text, of n bytes in all.
func longFooter(n int) []byte {
	b := []byte{1<<4 | typeBinary}
	b = binary.AppendUvarint(b, uint64(n-6)) // which takes four bytes from 2^21 on
	b = append(b, make([]byte, n-6)...)
	return append(b, 0)
}

// TestFooterLimits reads footers at both sides of each limit.
func TestFooterLimits(t *testing.T) {
	nested := func(n int) []byte { // structs in each other, the outermost one at depth 0
		return append(bytes.Repeat([]byte{1<<4 | typeStruct}, n), make([]byte, n+1)...)
	}
	lists := func(n int) []byte { // lists in each other, the outermost one at depth 1, the innermost one empty
		return append(bytes.Repeat([]byte{1<<4 | typeList}, n), typeList, 0)
	}
	field := func(kind byte, n int) []byte { // of a type of fixed size, in n bytes
		return append(append([]byte{1<<4 | kind}, bytes.Repeat([]byte{0x11}, n)...), 0)
	}
	for _, tt := range []struct {
		name   string
		footer []byte
		ok     bool
	}{
		{"the deepest list", lists(32), true},
		{"one list deeper", lists(33), false},
		{"a double", field(typeDouble, 8), true},
		{"a double cut short", field(typeDouble, 6), false},
		{"a UUID", field(typeUUID, 16), true},
		{"a UUID cut short", field(typeUUID, 14), false},
		{"the longest", longFooter(maxFooterBytes), true},
		{"one byte more", longFooter(maxFooterBytes + 1), false},
		{"the deepest", nested(32), true},
		{"one struct deeper", nested(33), false},
		{"none", nil, false},
		{"an empty struct", []byte{0}, true},
	} {
		if err := withFooter(t, tt.footer); (err == nil) != tt.ok {
			t.Errorf("%s, %d bytes: %v", tt.name, len(tt.footer), err)
		}
	}
	// A footer that begins in the file's first bytes, where a struct could be read.
	overlapping := slices.Concat([]byte("PAR1"), []byte{0}, binary.LittleEndian.AppendUint32(nil, 2), []byte("PAR1"))
	if err := saved(t, overlapping); err == nil {
		t.Error("a footer of 2 bytes in a file that has room for 1")
	}
	if maxFooterBytes != 8<<20 {
		t.Errorf("a footer may have %d bytes; a schema of 65,534 columns takes up to 8 MiB", maxFooterBytes)
	}
}

// wide is a file of n Boolean columns without rows, which the decoder's own writer
// cannot write in every width that is asked for here.
func wide(t *testing.T, n int) []byte {
	t.Helper()
	children, boolean := int32(n), format.Boolean
	meta := format.FileMetaData{Version: 1, Schema: []format.SchemaElement{{Name: "wide", NumChildren: thrift.New(children)}}}
	for c := range n {
		meta.Schema = append(meta.Schema, format.SchemaElement{Name: fmt.Sprintf("c%05d", c), Type: thrift.New(boolean)})
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]byte("PAR1"), footer, binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), []byte("PAR1"))
}

// TestMostColumns comes to the missing rows of a file of as many columns as one
// may have, and to the columns of wider ones.
func TestMostColumns(t *testing.T) {
	for n, want := range map[int]string{
		maxColumns:     "no rows",
		maxColumns + 1: "65534 columns",
		maxColumns + 2: "65534 columns",
		100_000:        "65534 columns",
	} {
		if _, err := load(t, wide(t, n), dataset.Options{}); !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d columns: %v; want %q", n, err, want)
		}
	}
}
