package tune

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKept: what is saved is loaded, of the nearest batch, and replaced by what is saved again.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	digest := [32]byte{1, 2}
	if k, wrong := Load(dir, digest, "avx2", 5); k != nil || wrong != nil {
		t.Errorf("a folder that is not there: %v, %v", k, wrong)
	}
	when := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	for batch, text := range map[int]string{64: "represent sparse\n", 1024: "represent reorg\n", 4096: "exact\n"} {
		if _, err := Save(dir, digest, Kept{Path: "avx2", Batch: batch, Threads: 2, Schedule: text, RowsPerSecond: 1e6, When: when}); err != nil {
			t.Fatal(err)
		}
	}
	for batch, want := range map[int]int{0: 64, 1: 64, 64: 64, 255: 64, 256: 64, 257: 1024, 2048: 1024, 2049: 4096, 1 << 30: 4096} {
		k, wrong := Load(dir, digest, "avx2", batch)
		if k == nil || k.Batch != want || wrong != nil || k.When != when || k.Threads != 2 {
			t.Errorf("%d rows: %+v, %v; want that of %d", batch, k, wrong, want)
		}
	}
	if k, _ := Load(dir, [32]byte{1, 3}, "avx2", 64); k != nil {
		t.Errorf("another forest has %+v", k)
	}
	for _, path := range []string{"avx512", "avx", "avx2-64"} {
		if k, wrong := Load(dir, digest, path, 64); k != nil || wrong != nil {
			t.Errorf("%s has %+v, %v", path, k, wrong)
		}
	}
	if _, err := Save(dir, digest, Kept{Path: "avx2", Batch: 64, Schedule: "pad\n"}); err != nil {
		t.Fatal(err)
	}
	if k, _ := Load(dir, digest, "avx2", 64); k == nil || k.Schedule != "pad\n" {
		t.Errorf("saved again: %+v", k)
	}
	for _, k := range []Kept{{Path: "avx2", Schedule: "pad"}, {Path: "", Batch: 1}, {Path: "a/b", Batch: 1}, {Path: "avx2", Batch: 1, Schedule: "padd"},
		{Path: "avx2", Batch: 1, Schedule: "unroll batch"}, {Path: "avx2", Batch: 1, Schedule: "vectorReduce tree 4"}} {
		if _, err := Save(dir, digest, k); !errors.Is(err, ErrKept) {
			t.Errorf("%+v is saved: %v", k, err)
		}
	}
	if _, err := Save(filepath.Join(dir, strings.TrimPrefix(mustName(t, dir), "/"), "x"), digest, Kept{Path: "avx2", Batch: 1}); err == nil {
		t.Error("a folder within a file was made")
	}
}

// mustName returns the name of a file in a folder.
func mustName(t *testing.T, dir string) string {
	list, err := os.ReadDir(dir)
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	return list[0].Name()
}

// TestKeptDamaged: a file that is damaged, or of something else, is passed over with a line that says why, the next
// nearest is taken, and saving writes it anew.
func TestKeptDamaged(t *testing.T) {
	dir := t.TempDir()
	digest := [32]byte{9}
	near, err := Save(dir, digest, Kept{Path: "avx2", Batch: 100, Schedule: "pad\n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Save(dir, digest, Kept{Path: "avx2", Batch: 1000, Schedule: "sortTrees\n"}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(near)
	if err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) []byte {
		s := strings.Replace(string(whole), from, to, 1)
		if s == string(whole) {
			t.Fatalf("no %s in %s", from, whole)
		}
		return []byte(s)
	}
	files := map[string][]byte{
		"EOF":            nil,
		"unexpected EOF": whole[:len(whole)/2],
		"invalid":        {0, 1, 2},
		"version 2":      change(`"version": 1`, `"version": 2`),
		"of the forest":  change(`"digest": "09`, `"digest": "08`),
		"kernels":        change(`"avx2"`, `"avx512"`),
		"101 rows":       change(`"batch": 100`, `"batch": 101`),
		"not a verb":     change(`pad\n`, `padd\n`),
		"illegal":        change(`pad\n`, `unroll batch\n`),
		"order in which": change(`pad\n`, `vectorReduce tree 4\n`),
		"for a card":     change(`pad\n`, `tile batch b0 b1 64\ngpuDimension b0 grid.x\n`),
		"a profile":      change(`pad\n`, `tileNodes 3 hybrid\n`),
		"unknown field":  change(`"batch"`, `"more": 1, "batch"`),
		"one object":     append(append([]byte(nil), whole...), whole...),
		"more than":      append(append([]byte(nil), whole...), make([]byte, maxKept)...),
	}
	for want, text := range files {
		if err := os.WriteFile(near, text, 0o644); err != nil {
			t.Fatal(err)
		}
		k, wrong := Load(dir, digest, "avx2", 100)
		if k == nil || k.Batch != 1000 || len(wrong) != 1 || !errors.Is(wrong[0], ErrKept) || !strings.Contains(wrong[0].Error(), want) || strings.Contains(wrong[0].Error(), "\n") || !strings.Contains(wrong[0].Error(), near) {
			t.Errorf("%s: %+v, %v", want, k, wrong)
		}
	}
	if err := os.Remove(near); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(near, 0o755); err != nil {
		t.Fatal(err)
	}
	if k, wrong := Load(dir, digest, "avx2", 100); k == nil || k.Batch != 1000 || len(wrong) != 1 || !errors.Is(wrong[0], ErrKept) {
		t.Errorf("a folder in its place: %+v, %v", k, wrong)
	}
	if err := os.Remove(near); err != nil {
		t.Fatal(err)
	}
	if _, err := Save(dir, digest, Kept{Path: "avx2", Batch: 100, Schedule: "pad\n"}); err != nil {
		t.Fatal(err)
	}
	if k, wrong := Load(dir, digest, "avx2", 100); k == nil || k.Batch != 100 || wrong != nil {
		t.Errorf("written anew: %+v, %v", k, wrong)
	}
}
