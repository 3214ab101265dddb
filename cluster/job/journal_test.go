package job

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestJournal loses what the journal does not say, and nothing else.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	number := func(x float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)) }
	list := func(j *journal) []float64 {
		t.Helper()
		text, err := io.ReadAll(j.reader())
		if err != nil || int64(len(text)) != 8*j.at.Rows {
			t.Fatalf("%d bytes about %d rows, %v", len(text), j.at.Rows, err)
		}
		var got []float64
		for b := range slices.Chunk(text, 8) {
			got = append(got, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		return got
	}
	reopen := func(want ...float64) *journal {
		t.Helper()
		j, err := openJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := list(j); !slices.Equal(got, want) || j.at.Rows != int64(len(want)) {
			t.Fatalf("%v and %d rows, want %v", got, j.at.Rows, want)
		}
		return j
	}
	add := func(j *journal, numbers ...float64) {
		t.Helper()
		for _, x := range numbers {
			if err := j.append(number(x), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	j := reopen()
	add(j, 1, 2)
	j.f.Close() // a kill
	j = reopen()
	add(j, 3, math.Inf(-1))
	if err := j.save(); err != nil {
		t.Fatal(err)
	}
	add(j, 5)
	j.f.Close()
	j = reopen(3, math.Inf(-1))
	j.saved = time.Now().Add(-time.Hour) // then the next one is made to last at once
	add(j, 6)
	add(j, 7)
	j.f.Close()
	j = reopen(3, math.Inf(-1), 6)
	add(j, 8)
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	j = reopen(3, math.Inf(-1), 6, 8)
	j.f.Close()
	if err := os.Truncate(filepath.Join(dir, AnswersFile), 16); err != nil {
		t.Fatal(err)
	}
	j = reopen() // less than the journal says: none can be trusted
	if err := j.remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for name, text := range map[string]string{AnswersFile: "12345678", JournalFile: `{"rows":1,"bytes":8}`} { // of an earlier version
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := reopen().remove(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, JournalFile), []byte(`{"rows":-1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a bad journal: %v", err)
	}
}
