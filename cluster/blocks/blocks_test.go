package blocks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// tableOf is so many rows of a discrete and a continuous column, some cells missing.
func tableOf(t *testing.T, rows int) *dataset.Table {
	t.Helper()
	s := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Kind: dataset.Discrete, Categories: 5}, {Name: "b", Kind: dataset.Continuous}}}
	table, err := dataset.NewTable(s, rows)
	if err != nil {
		t.Fatal(err)
	}
	b := dataset.NewBatch(s, rows)
	for r := range rows {
		b.Columns[0].Codes.Set(r, r*r%5)
		b.Columns[1].Values[r] = float32(r) / 7
		if r%11 == 3 {
			b.Columns[1].Values[r] = float32(math.NaN())
		}
	}
	if err := table.Append(b); err != nil {
		t.Fatal(err)
	}
	return table
}

// TestTables reads the rows that were written, whatever number is said to be there; the digest is
// that of the contents, which are another run's own.
func TestTables(t *testing.T) {
	digests := map[string]bool{}
	for _, rows := range []int{0, 1, MaxRows - 1, MaxRows, MaxRows + 1, 3*MaxRows + 5} {
		src := tableOf(t, rows)
		want, err := dataset.AppendBlock(nil, src.Schema(), readAll(t, src))
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range []string{"run-1", "run-2"} {
			path, digest, size, err := WriteTable(t.Context(), t.TempDir(), run, src)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != digest || int64(len(text)) != size || digests[digest] {
				t.Errorf("%d rows of %s: %d bytes are called %d bytes of digest %s; %v", rows, run, len(text), size, digest, err)
			}
			digests[digest] = true
			for _, said := range []int{0, rows, 1 << 40} {
				read, err := ReadTable(t.Context(), path, src.Schema(), said)
				if err != nil || read.Rows() != rows {
					t.Fatalf("%d rows, said to be %d: %v", rows, said, err)
				}
				got, err := dataset.AppendBlock(nil, src.Schema(), readAll(t, read))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d rows, said to be %d: other rows than were written; %v", rows, said, err)
				}
			}
		}
	}
}

// readAll returns all rows of a table.
func readAll(t *testing.T, table *dataset.Table) *dataset.Batch {
	t.Helper()
	all := make([]int, table.Rows())
	for i := range all {
		all[i] = i
	}
	b := new(dataset.Batch)
	if err := table.Gather(t.Context(), b, all); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDamaged refuses files that are cut short, and parts that are larger than any can be before
// memory is taken for them.
func TestDamaged(t *testing.T) {
	dir, src := t.TempDir(), tableOf(t, 20)
	path, _, _, err := WriteTable(t.Context(), dir, "run-1", src)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head := len(AppendPart(nil, []byte("run-1")))
	for n := range len(good) {
		if n == head { // a table without rows
			continue
		}
		if err := os.WriteFile(path, good[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTable(t.Context(), path, src.Schema(), 20); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%d of %d bytes: %v", n, len(good), err)
		}
	}
	large := append(bytes.Clone(good[:head]), 1, 0, 0, 4) // 64 MiB and one byte
	if err := os.WriteFile(path, large, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTable(t.Context(), path, src.Schema(), 20); err == nil || !strings.Contains(err.Error(), "a part of 67108865 bytes; at most 67108864") {
		t.Errorf("a part that is too large: %v", err)
	}
}

// TestInterrupted leaves nothing behind when the rows end with an error.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := WriteTable(ctx, dir, "run-1", tableOf(t, 20)); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}
