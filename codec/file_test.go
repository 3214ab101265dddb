package codec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pce-engine/pce/circuit/reference"
)

// roundTrip compresses content, wants it back, and returns the compressed file.
func roundTrip(t *testing.T, m *Model, content []byte) ([]byte, Stats) {
	t.Helper()
	var file, back bytes.Buffer
	stats, err := m.Compress(context.Background(), &file, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if stats.Stored != int64(file.Len()) || stats.Content != int64(len(content)) {
		t.Errorf("%d bytes of %d were counted as %d of %d", file.Len(), len(content), stats.Stored, stats.Content)
	}
	got, err := m.Decompress(context.Background(), &back, bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Bytes(), content) {
		t.Fatalf("%q came back as %q", clip(content), clip(back.Bytes()))
	}
	if got.Rows != stats.Rows || got.Literals != stats.Literals || got.Stored != stats.Stored || got.Content != stats.Content {
		t.Errorf("decompressing counts %+v, compressing %+v", got, stats)
	}
	return file.Bytes(), stats
}

func clip(b []byte) []byte { return b[:min(len(b), 200)] }

// csvOf writes rows of codes with the mark ? for what is missing.
func csvOf(codes []int32, width int) []byte {
	var b strings.Builder
	for i, c := range codes {
		if c == absent {
			b.WriteByte('?')
		} else {
			b.WriteString(strconv.Itoa(int(c)))
		}
		if (i+1)%width == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(',')
		}
	}
	return []byte(b.String())
}

// TestCodecRoundTrip compresses rows of random circuits: drawn from them, or any rows,
// which may be impossible, with and without missing cells.
func TestCodecRoundTrip(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m, ev, g := testModel(t, seed, reference.RandomOptions{MaxUnits: 5})
			rng := rand.New(rand.NewPCG(seed, 3))
			n, missing := 1+rng.IntN(40), []float64{0, 0.2, 0.9}[seed%3]
			rows := sampleRows(t, ev, g, rng, n, missing)
			rows = append(rows, reference.RandomRows(g, rng, n, missing)...)
			_, stats := roundTrip(t, m, csvOf(codesOf(rows), g.NumVars))
			if stats.Rows != int64(2*n) {
				t.Errorf("%d rows, want %d", stats.Rows, 2*n)
			}
		})
	}
}

// TestCodecDamage flips every bit of a file and cuts it at every byte.
func TestCodecDamage(t *testing.T) {
	m, ev, g := testModel(t, 3, reference.RandomOptions{Vars: 5})
	content := csvOf(codesOf(sampleRows(t, ev, g, rand.New(rand.NewPCG(1, 2)), 30, 0.1)), g.NumVars)
	file, _ := roundTrip(t, m, content)
	decode := func(file []byte) error {
		_, err := m.Decompress(context.Background(), new(bytes.Buffer), bytes.NewReader(file))
		return err
	}
	for i := range 8 * len(file) {
		bad := bytes.Clone(file)
		bad[i/8] ^= 1 << (i % 8)
		if err := decode(bad); !errors.Is(err, ErrFile) {
			t.Errorf("bit %d of %d is flipped: %v", i, 8*len(file), err)
		}
	}
	for n := range file {
		if err := decode(file[:n]); !errors.Is(err, ErrFile) {
			t.Errorf("cut after %d of %d bytes: %v", n, len(file), err)
		}
	}
	if err := decode(append(bytes.Clone(file), 0)); !errors.Is(err, ErrFile) {
		t.Errorf("a byte follows: %v", err)
	}
	other, _, _ := testModel(t, 4, reference.RandomOptions{Vars: 5})
	if _, err := other.Decompress(context.Background(), new(bytes.Buffer), bytes.NewReader(file)); !errors.Is(err, ErrModel) {
		t.Errorf("another model: %v", err)
	}
}

// TestCodecCutSource wants the error of a source that ends early, wherever it does, and not a
// file of what came before.
func TestCodecCutSource(t *testing.T) {
	m := exactModel(t)
	rows := bytes.Repeat([]byte("grey,1,2,3,4,1,0\n"), 10000)
	for _, want := range []error{io.ErrUnexpectedEOF, errors.New("lost")} {
		for _, n := range []int{0, 5, 17, 1000, startSize, startSize + 1, 2*startSize - 1, len(rows)} {
			src := io.MultiReader(bytes.NewReader(rows[:n]), iotest.ErrReader(want))
			if stats, err := m.Compress(context.Background(), io.Discard, src); !errors.Is(err, want) {
				t.Errorf("%v after %d bytes: %v, and %d rows are compressed", want, n, err, stats.Rows)
			}
		}
	}
	if _, stats := roundTrip(t, m, rows); stats.Rows != 10000 {
		t.Errorf("%d rows of the whole, want 10000", stats.Rows)
	}
}

// full is a disk with room for so many bytes.
type full int

var errFull = errors.New("no room")

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), int(*f))
	if *f -= full(n); n < len(p) {
		return n, errFull
	}
	return n, nil
}

// TestCodecFull wants the error of a disk that is full, wherever it is that, both ways.
func TestCodecFull(t *testing.T) {
	m := exactModel(t)
	rows := bytes.Repeat([]byte("grey,1,2,3,4,1,0\n"), 300)
	file, _ := roundTrip(t, m, rows)
	for _, n := range []int{0, 1, len(file) / 2, len(file) - 1} {
		dst := full(n)
		if _, err := m.Compress(context.Background(), &dst, bytes.NewReader(rows)); !errors.Is(err, errFull) {
			t.Errorf("room for %d of %d bytes: %v", n, len(file), err)
		}
	}
	for _, n := range []int{0, 1, len(rows) / 2, len(rows) - 1} {
		dst := full(n)
		if _, err := m.Decompress(context.Background(), &dst, bytes.NewReader(file)); !errors.Is(err, errFull) {
			t.Errorf("room for %d of the %d bytes of the rows: %v", n, len(rows), err)
		}
	}
}
