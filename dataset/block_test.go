package dataset_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// mixedSchema has a column of every width of narrow cells, at its edges.
func mixedSchema() *dataset.Schema {
	return &dataset.Schema{Columns: []dataset.Column{
		{Categories: 1}, {Categories: 255}, {Categories: 256}, {Categories: dataset.MaxNarrow},
		{Kind: dataset.Continuous}, {Categories: 3, Labels: []string{"a", "b", "c"}},
	}}
}

// wideSchema has a column of every width of wide cells beside them.
func wideSchema() *dataset.Schema {
	s := mixedSchema()
	s.Columns = append(s.Columns, dataset.Column{Categories: dataset.MaxNarrow + 1}, dataset.Column{Categories: dataset.MaxCategories})
	return s
}

// mixedBatch has random rows, missing cells and the largest codes among them.
func mixedBatch(s *dataset.Schema, rows int, seed uint64) *dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 5))
	b := dataset.NewBatch(s, rows)
	for i, c := range s.Columns {
		for r := range rows {
			switch u := rng.Float64(); {
			case u < 0.2: // missing
			case c.Kind == dataset.Continuous:
				b.Columns[i].Values[r] = math.Float32frombits(rng.Uint32())
			case u < 0.5:
				b.Columns[i].Codes.Set(r, c.Categories-1)
			default:
				b.Columns[i].Codes.Set(r, rng.IntN(c.Categories))
			}
		}
	}
	return b
}

// sameCells compares two batches bit by bit.
func sameCells(a, b *dataset.Batch) bool {
	if a.Rows != b.Rows || len(a.Columns) != len(b.Columns) {
		return false
	}
	for i := range a.Columns {
		x, y := &a.Columns[i], &b.Columns[i]
		if x.Codes.Len() != y.Codes.Len() || len(x.Values) != len(y.Values) {
			return false
		}
		if !slices.Equal(x.Codes.Narrow, y.Codes.Narrow) || !slices.Equal(x.Codes.Wide, y.Codes.Wide) {
			return false
		}
		for r := range x.Values {
			if math.Float32bits(x.Values[r]) != math.Float32bits(y.Values[r]) {
				return false
			}
		}
	}
	return true
}

func TestBlockRoundTrip(t *testing.T) {
	got := &dataset.Batch{} // is used again
	for _, s := range []*dataset.Schema{mixedSchema(), wideSchema(), mixedSchema()} {
		roundTrips(t, s, got)
	}
}

// roundTrips sends blocks of several sizes through got.
func roundTrips(t *testing.T, s *dataset.Schema, got *dataset.Batch) {
	t.Helper()
	for _, rows := range []int{0, 1, 7, 300, 2} {
		want := mixedBatch(s, rows, uint64(rows))
		block, err := dataset.AppendBlock([]byte("before"), s, want)
		if err != nil {
			t.Fatal(err)
		}
		block = block[len("before"):]
		if len(block) != s.BlockBytes(rows) || s.BlockRows(len(block)) != rows || s.BlockRows(len(block)-1) != max(0, rows-1) {
			t.Errorf("%d rows take %d bytes; said %d, of which %d rows", rows, len(block), s.BlockBytes(rows), s.BlockRows(len(block)))
		}
		if err := dataset.DecodeBlock(s, block, got); err != nil {
			t.Fatal(err)
		}
		if !sameCells(want, got) {
			t.Errorf("%d rows: other cells came back", rows)
		}
	}
	if s.BlockRows(3) != 0 {
		t.Errorf("3 bytes hold %d rows", s.BlockRows(3))
	}
}

// softBatch has random evidence about half of the missing cells of a random batch, several
// rows with the same, and pieces in its lists that no row uses.
func softBatch(t testing.TB, s *dataset.Schema, rows int, seed uint64) *dataset.Batch {
	t.Helper()
	b := mixedBatch(s, rows, seed)
	rng := rand.New(rand.NewPCG(seed, 6))
	for i := range s.Columns {
		c, cells := &s.Columns[i], &b.Columns[i]
		cells.Soft.Of = make([]uint32, rows)
		for range 5 {
			var e *dataset.Evidence
			var err error
			switch {
			case c.Kind == dataset.Continuous:
				e, err = c.RangeEvidence([]float64{math.Inf(-1), -1, 0}[rng.IntN(3)], []float64{1, 2.5, math.Inf(1)}[rng.IntN(3)])
			case c.Categories < 300:
				likelihoods := make([]float64, c.Categories)
				for k := range likelihoods {
					likelihoods[k] = float64(rng.IntN(3))
				}
				likelihoods[c.Categories-1] = 1
				e, err = c.LikelihoodEvidence(likelihoods)
			default:
				e, err = c.SetEvidence([]int{0, c.Categories - 1, rng.IntN(c.Categories)})
			}
			if err != nil {
				t.Fatal(err)
			}
			cells.Soft.List = append(cells.Soft.List, e)
		}
		for r := range rows {
			if cells.IsMissing(r) && rng.IntN(2) == 0 {
				cells.Soft.Of[r] = uint32(1 + rng.IntN(5))
			}
		}
	}
	return b
}

// TestSoftBlock sends rows with evidence, and slices of them, and damages every byte.
func TestSoftBlock(t *testing.T) {
	got := &dataset.Batch{} // is used again, with rows without evidence between
	for _, s := range []*dataset.Schema{mixedSchema(), wideSchema()} {
		all := softBatch(t, s, 60, 1)
		for _, span := range [][2]int{{0, 60}, {0, 1}, {17, 18}, {5, 59}, {60, 60}} {
			want := all.Slice(span[0], span[1])
			block, err := dataset.AppendBlock(nil, s, want)
			if err != nil {
				t.Fatal(err)
			}
			if err := dataset.DecodeBlock(s, block, got); err != nil {
				t.Fatalf("rows %v: %v", span, err)
			}
			if !sameCells(want, got) {
				t.Errorf("rows %v: other cells came back", span)
			}
			for i := range want.Columns {
				for r := range want.Rows {
					x, y := want.Columns[i].Soft.At(r), got.Columns[i].Soft.At(r)
					if (x == nil) != (y == nil) || x != nil && x.Key() != y.Key() {
						t.Errorf("rows %v: row %d, column %d: %+v became %+v", span, r, i, x, y)
					}
				}
			}
		}
		roundTrips(t, s, got)
		if got.HasSoft() {
			t.Error("evidence of a block is left in rows of the next")
		}
	}
	s := wideSchema()
	block, err := dataset.AppendBlock(nil, s, softBatch(t, s, 3, 9))
	if err != nil {
		t.Fatal(err)
	}
	for i := range block {
		bad := bytes.Clone(block)
		bad[i] ^= 0x10
		if err := dataset.DecodeBlock(s, bad, got); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if err := dataset.DecodeBlock(s, block[:i], got); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("cut after %d bytes: %v", i, err)
		}
	}
	// The checksum holds, and what the bytes say does not.
	for i := 4; i < len(block)-4; i++ {
		for _, x := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(block[:len(block)-4])
			bad[i] ^= x
			bad = binary.LittleEndian.AppendUint32(bad, crc32.Checksum(bad, crc32.MakeTable(crc32.Castagnoli)))
			if err := dataset.DecodeBlock(s, bad, got); err == nil {
				if again, err := dataset.AppendBlock(nil, s, got); err != nil || !bytes.Equal(again, bad) {
					t.Errorf("byte %d changed: it is read, and written otherwise (%v)", i, err)
				}
			} else if !errors.Is(err, dataset.ErrFormat) {
				t.Errorf("byte %d changed: %v", i, err)
			}
		}
	}
}

// TestSoftBlockOfCounts sends a range of one count, which columns of counts take and others do not.
func TestSoftBlockOfCounts(t *testing.T) {
	s := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Counts: true}}}
	e, err := s.Columns[0].RangeEvidence(11, 11)
	if err != nil {
		t.Fatal(err)
	}
	b, got := dataset.NewBatch(s, 2), &dataset.Batch{}
	b.Columns[0].SetSoft(1, e)
	block, err := dataset.AppendBlock(nil, s, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.DecodeBlock(s, block, got); err != nil {
		t.Fatal(err)
	}
	if back := got.Columns[0].Soft.At(1); back == nil || back.Key() != e.Key() || got.Columns[0].Soft.At(0) != nil {
		t.Errorf("%+v became %+v", e, back)
	}
	s.Columns[0].Counts = false
	if err := dataset.DecodeBlock(s, block, got); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("a range of one number without a probability is read: %v", err)
	}
}

// TestBlockDamage changes every byte of a block, cuts it everywhere and reads it
// as rows of others.
func TestBlockDamage(t *testing.T) {
	s := wideSchema()
	block, err := dataset.AppendBlock(nil, s, mixedBatch(s, 5, 1))
	if err != nil {
		t.Fatal(err)
	}
	b := &dataset.Batch{}
	for i := range block {
		bad := bytes.Clone(block)
		bad[i] ^= 0x10
		if err := dataset.DecodeBlock(s, bad, b); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if err := dataset.DecodeBlock(s, block[:i], b); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("cut after %d bytes: %v", i, err)
		}
	}
	fewer := wideSchema()
	fewer.Columns[1].Categories = 254 // as wide, but code 254 is there
	for name, other := range map[string]*dataset.Schema{
		"a column less": {Columns: s.Columns[1:]}, "fewer categories": fewer,
	} {
		if err := dataset.DecodeBlock(other, block, b); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := dataset.AppendBlock(nil, fewer, mixedBatch(s, 5, 1)); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("a code too large was written: %v", err)
	}
	if _, err := dataset.AppendBlock(nil, &dataset.Schema{Columns: s.Columns[1:]}, mixedBatch(s, 5, 1)); !errors.Is(err, dataset.ErrSetting) {
		t.Errorf("a batch of other columns was written: %v", err)
	}
}

func FuzzBlock(f *testing.F) {
	s := wideSchema()
	for _, rows := range []int{0, 1, 4} {
		block, err := dataset.AppendBlock(nil, s, mixedBatch(s, rows, 2))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(block)
		if block, err = dataset.AppendBlock(nil, s, softBatch(f, s, rows, 2)); err != nil {
			f.Fatal(err)
		}
		f.Add(block)
	}
	f.Add([]byte("PCB1\xff\xff\xff\xff\x08\x00\x00\x00    "))
	f.Fuzz(func(t *testing.T, block []byte) {
		b := &dataset.Batch{}
		if err := dataset.DecodeBlock(s, block, b); err != nil {
			if !errors.Is(err, dataset.ErrFormat) {
				t.Errorf("error of no class: %v", err)
			}
			return
		}
		again, err := dataset.AppendBlock(nil, s, b)
		if err != nil || !bytes.Equal(again, block) {
			t.Errorf("a block that is read is written otherwise (%v)", err)
		}
	})
}
