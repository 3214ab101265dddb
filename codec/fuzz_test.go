package codec

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
)

// forge makes a file of one block with checksums that fit, so that only the checks
// behind them can refuse it.
func forge(m *Model, facts []byte, records int, stream []byte) []byte {
	f := append([]byte(magic), version)
	f = append(f, m.digest[:digestBytes]...)
	f = append(binary.AppendUvarint(f, uint64(len(facts))), facts...)
	f = binary.LittleEndian.AppendUint32(f, crc32.Checksum(f, castagnoli))
	h := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(records)), uint64(len(stream)))
	f = append(append(f, h...), stream...)
	f = binary.LittleEndian.AppendUint32(f, blockSum(0, h, stream))
	return append(f, make([]byte, 1+contentBytes)...)
}

// checkHostile decompresses a file that need not be one. It may be refused with one line.
func checkHostile(t *testing.T, m *Model, file []byte) {
	t.Helper()
	stats, err := m.Decompress(context.Background(), io.Discard, bytes.NewReader(file))
	if err != nil && !errors.Is(err, ErrFile) && !errors.Is(err, ErrModel) {
		t.Errorf("%v is of no class", err)
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("%q has several lines", err)
	}
	// A block writes a text for each of its records and some literals.
	if most := int64(len(file)/10+1) * (blockLiterals + recordBytes + 64*blockRecords); stats.Content > most {
		t.Errorf("%d bytes became %d", len(file), stats.Content)
	}
}

func FuzzDecompress(f *testing.F) {
	m := exactModel(f)
	var file bytes.Buffer
	for _, content := range []string{"clear,0,3,0,16,x,4\n,,,,,,\n", "light,sky\n3,grey\n# no row\n4,clear", "\"grey\"\t1\t2\t3\t4\t\"x\"\t0\r\n"} {
		file.Reset()
		if _, err := m.Compress(context.Background(), &file, strings.NewReader(content)); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(file.Bytes()))
	}
	f.Fuzz(func(t *testing.T, file []byte) { checkHostile(t, m, file) })
}

func FuzzBlock(f *testing.F) {
	m := exactModel(f)
	f.Add([]byte{factLines, 0, 0}, uint16(2), []byte("some bytes of a stream"))
	f.Add([]byte{factLines, 1<<4 | 1<<2 | quoteAll, flagColumns | flagNames, 2, 4, 1}, uint16(20), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{factFixed, 2, 1, 9, 9}, uint16(3000), []byte{})
	f.Add([]byte{factChars}, uint16(1), []byte{1})
	f.Fuzz(func(t *testing.T, facts []byte, records uint16, stream []byte) {
		checkHostile(t, m, forge(m, facts, int(records%600), stream))
	})
}

func FuzzRoundTrip(f *testing.F) {
	m := exactModel(f)
	for _, content := range []string{"", "\n", "\r", "clear,0,3,0,16,x,4", "sky\nclear\n\n\"clear\"", "light;sky\r\n3;\r\n", "PAR1", "\x93NUMPY\x01\x00\x02\x00{}", "\x00\x00\x0c\x02"} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		const row = "grey,1,2,3,4,1,0\n"
		for _, content := range [][]byte{content, append([]byte(row), content...), append(bytes.Clone(content), row...)} {
			var file, back bytes.Buffer
			if _, err := m.Compress(context.Background(), &file, bytes.NewReader(content)); err != nil {
				if !errors.Is(err, ErrRows) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
				continue
			}
			if _, err := m.Decompress(context.Background(), &back, &file); err != nil || !bytes.Equal(back.Bytes(), content) {
				t.Errorf("%q came back as %q: %v", content, back.Bytes(), err)
			}
		}
	})
}
