package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"slices"
	"testing"
)

// digestTable has rows of a column of few categories, one of more, and a continuous one.
func digestTable(t testing.TB, rows int, categories int, edit func(*Batch)) *Table {
	t.Helper()
	s := &Schema{Columns: []Column{{Kind: Discrete, Categories: 7}, {Kind: Discrete, Categories: categories}, {Name: "x", Kind: Continuous}}}
	b := NewBatch(s, rows)
	for i := range rows {
		b.Columns[0].Codes.Set(i, i%7)
		b.Columns[1].Codes.Set(i, i*31%categories)
		b.Columns[2].Values[i] = float32(i) * 0.37
	}
	if edit != nil {
		edit(b)
	}
	table, err := NewTable(s, 0)
	if err == nil {
		err = table.Append(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func mustDigest(t testing.TB, src Source) [sha256.Size]byte {
	t.Helper()
	d, err := Digest(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDigest wants every edit of the rows to show, on both sides of a chunk, and
// nothing else.
func TestDigest(t *testing.T) {
	const rows = 2*chunkRows + 1
	for _, categories := range []int{9, 255, 256, 300, MaxNarrow, MaxNarrow + 1, 151936} {
		want := mustDigest(t, digestTable(t, rows, categories, nil))
		if mustDigest(t, digestTable(t, rows, categories, nil)) != want {
			t.Errorf("%d categories: the same rows have another digest", categories)
		}
		seen := map[[sha256.Size]byte]string{want: "the rows themselves"}
		check := func(name string, src Source) {
			t.Helper()
			d := mustDigest(t, src)
			if other, ok := seen[d]; ok {
				t.Errorf("%d categories: %s has the digest of %s", categories, name, other)
			}
			seen[d] = name
		}
		check("one row fewer", digestTable(t, rows-1, categories, nil))
		check("one row more", digestTable(t, rows+1, categories, nil))
		check("one category more", digestTable(t, rows, categories+1, nil))
		for _, row := range []int{0, chunkRows - 1, chunkRows, rows - 1} {
			check("a cell of few", digestTable(t, rows, categories, func(b *Batch) { b.Columns[0].Codes.Set(row, (b.Columns[0].Codes.At(row)+1)%7) }))
			check("a missing cell of few", digestTable(t, rows, categories, func(b *Batch) { b.Columns[0].Codes.Set(row, Missing) }))
			check("the last code", digestTable(t, rows, categories, func(b *Batch) { b.Columns[1].Codes.Set(row, categories-1) }))
			check("a missing cell of many", digestTable(t, rows, categories, func(b *Batch) { b.Columns[1].Codes.Set(row, Missing) }))
			check("a value", digestTable(t, rows, categories, func(b *Batch) { b.Columns[2].Values[row] += 0x1p-10 }))
			check("a missing value", digestTable(t, rows, categories, func(b *Batch) { b.Columns[2].Values[row] = float32(math.NaN()) }))
		}
		check("another order", digestTable(t, rows, categories, func(b *Batch) {
			for i := range b.Columns {
				slices.Reverse(b.Columns[i].Codes.Narrow)
				slices.Reverse(b.Columns[i].Codes.Wide)
				slices.Reverse(b.Columns[i].Values)
			}
		}))
	}
	// A missing value is missing whatever its bits are, and rows that share a table
	// with a missing cell are kept in wider codes.
	nan := func(bits uint32) [sha256.Size]byte {
		return mustDigest(t, digestTable(t, 3, 9, func(b *Batch) { b.Columns[2].Values[1] = math.Float32frombits(bits) }))
	}
	if nan(0x7fc00001) != nan(0xffc01234) {
		t.Error("two missing values have two digests")
	}
	wide := digestTable(t, 10, 256, func(b *Batch) { b.Columns[0].Codes.Set(9, Missing) })
	if mustDigest(t, wide.Slice(0, 9)) != mustDigest(t, digestTable(t, 9, 256, nil)) {
		t.Error("the digest depends on how a table keeps its rows")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Digest(ctx, wide); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

func BenchmarkDigest(b *testing.B) {
	s := &Schema{}
	for range 784 {
		s.Columns = append(s.Columns, Column{Kind: Discrete, Categories: 256})
	}
	table, err := NewTable(s, 4096)
	if err == nil {
		batch := NewBatch(s, 4096)
		for i := range batch.Columns {
			for j := range batch.Rows {
				batch.Columns[i].Codes.Set(j, (i*31+j*17)%256)
			}
		}
		err = table.Append(batch)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(table.Bytes())
	for b.Loop() {
		mustDigest(b, table)
	}
}
