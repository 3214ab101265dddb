package em

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// memory is a ParamReader over a slice.
type memory []float32

func (m memory) Program() *layers.Program {
	return &layers.Program{BlockSize: 1, NumParams: int64(len(m))}
}

func (m memory) ReadParams(_ context.Context, offset int64, params []float32) error {
	copy(params, m[offset:])
	return nil
}

func (m memory) ReadAverages(_ context.Context, offset int64, averages []float32) error {
	copy(averages, m[offset:])
	return nil
}

func sample(t testing.TB, n int, best bool) ([]byte, memory) {
	t.Helper()
	m := make(memory, n)
	for i := range m {
		m[i] = math.Float32frombits(uint32(i) * 2654435761) // NaN payloads and denormals too
	}
	st := newState()
	st.At, st.Steps, st.Rows, st.TotalRows, st.LLSum = dataset.Cursor{Epoch: 2, Step: 3}, 23, 30, 230, exact(math.Inf(-1))
	var b []float32
	if best {
		st.Averages = exact(1 - 0x1p-30)
		st.BestEpoch, st.BestLL, b = 1, exact(-math.Pi), m
	}
	var out bytes.Buffer
	o := Options{Seed: math.MaxUint64, Phases: []Phase{{Rule: FullBatch, Epochs: 5}}}
	if err := writeCheckpoint(context.Background(), &out, m, b, o.settings(100), o.fingerprint(100), nil, &st); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), m
}

// openCheckpoint reads a checkpoint of a program.
func openCheckpoint(b []byte, prog *layers.Program) (*checkpoint, error) {
	c, err := readCheckpoint(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	return c, c.fits(prog)
}

// TestCheckpointRoundTrip wants every bit back, of sizes around the chunks.
func TestCheckpointRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, chunkFloats - 1, chunkFloats, 2*chunkFloats + 3} {
		b, m := sample(t, n, true)
		c, err := openCheckpoint(b, m.Program())
		if err != nil {
			t.Fatal(err)
		}
		st := c.state
		if st.At != (dataset.Cursor{Epoch: 2, Step: 3}) || !math.IsInf(float64(st.LLSum), -1) || st.BestLL != exact(-math.Pi) || !math.IsNaN(float64(st.TrainLL)) {
			t.Errorf("state %+v", st)
		}
		if c.settings.Seed != math.MaxUint64 {
			t.Errorf("settings %+v", c.settings)
		}
		best, err := c.best()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]float32{bestTensor: best}
		for _, name := range []string{paramsTensor, averagesTensor} {
			err := c.copyTo(context.Background(), name, int64(n), func(_ context.Context, at int64, src []float32) error {
				got[name] = append(got[name][:at], src...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, read := range got {
			if len(read) != n {
				t.Fatalf("%d parameters: %d of %s", n, len(read), name)
			}
			for i := range m {
				if math.Float32bits(read[i]) != math.Float32bits(m[i]) {
					t.Fatalf("%d parameters: %s %d is %#x, want %#x", n, name, i, math.Float32bits(read[i]), math.Float32bits(m[i]))
				}
			}
		}
		if c.state.Averages != exact(1-0x1p-30) {
			t.Errorf("averages of weight %v", float64(c.state.Averages))
		}
	}
}

// TestTruncatedCheckpoint cuts a checkpoint at every byte.
func TestTruncatedCheckpoint(t *testing.T) {
	b, m := sample(t, 5, true)
	for n := range b {
		if _, err := openCheckpoint(b[:n], m.Program()); err == nil {
			t.Errorf("%d of %d bytes are a checkpoint", n, len(b))
		}
	}
}

// FuzzCheckpoint reads hostile files with good checksums: they are refused, or
// hold a state that a run could have.
func FuzzCheckpoint(f *testing.F) {
	for _, best := range []bool{false, true} {
		b, _ := sample(f, 5, best)
		f.Add(b[:len(b)-checkBytes])
	}
	prog := make(memory, 5).Program()
	f.Fuzz(func(t *testing.T, b []byte) {
		b = binary.LittleEndian.AppendUint64(bytes.Clone(b), uint64(crc32.Checksum(b, castagnoli)))
		c, err := openCheckpoint(b, prog)
		if err != nil {
			return
		}
		if err := c.state.validate(); err != nil {
			t.Error(err)
		}
		if best, err := c.best(); err != nil || best != nil && len(best) != 5 {
			t.Errorf("best %v, %v", best, err)
		}
		if c.state.Averages > 0 {
			read := 0
			err := c.copyTo(context.Background(), averagesTensor, 5, func(_ context.Context, _ int64, src []float32) error {
				read += len(src)
				return nil
			})
			if err != nil || read != 5 {
				t.Errorf("%d averages, %v", read, err)
			}
		}
		o := Options{Phases: []Phase{{Rule: MiniBatch, Epochs: 9, BatchRows: 7}}}
		st := c.state
		st.recut(c.settings, o.settings(100))
		if err := st.validate(); err != nil {
			t.Errorf("%+v became %+v: %v", c.state, st, err)
		}
		CompareFacts(c.fingerprint, o.fingerprint(100))
	})
}
