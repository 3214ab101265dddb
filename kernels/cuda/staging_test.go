package cuda_test

import (
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
)

// emulated opens an emulator as a device with loaders.
func emulated(t *testing.T, e *emulator.Emulator, loaders cuda.Loaders) *cuda.Device {
	t.Helper()
	d, err := cuda.Open("emulator", func() (cuda.Driver, error) { return e, nil }, loaders)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestStaging writes more than the pinned memory holds, at once and bit by bit,
// and reads it back.
func TestStaging(t *testing.T) {
	ctx := t.Context()
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		dev := emulated(t, emulator.New(emulator.Options{Seed: seed}), nil)
		var buffers []kernels.Buffer
		var want [][]int64
		for i, n := range []int{3 << 20, 200_000, 300_000, 1, 400_000, 5, 350_000, 1 << 20} {
			b, err := dev.Alloc(ctx, kernels.Int64, n)
			if err != nil {
				t.Fatal(err)
			}
			w := make([]int64, n)
			for k := range w {
				w[k] = int64(k*(i+3) - i)
			}
			if err := dev.Write(ctx, b, 0, w); err != nil {
				t.Fatal(err)
			}
			buffers, want = append(buffers, b), append(want, slices.Clone(w))
			clear(w) // Write has taken it
		}
		for i, b := range buffers {
			got := make([]int64, b.Len())
			if err := dev.Read(ctx, got, b, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[i]) {
				t.Errorf("seed %d: buffer %d of %d numbers comes back with others", seed, i, b.Len())
			}
			b.Free()
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// porter is a card that counts the copies from it that are in flight.
type porter struct {
	*emulator.Emulator
	flying map[cuda.Stream]int
	waits  []int // at each wait for copies: how many others were in flight
}

func (p *porter) CopyOut(dst []byte, src cuda.Ptr, s cuda.Stream) error {
	p.flying[s]++
	return p.Emulator.CopyOut(dst, src, s)
}

func (p *porter) Wait(s cuda.Stream) error {
	if p.flying[s] > 0 {
		p.flying[s] = 0
		others := 0
		for _, n := range p.flying {
			others += n
		}
		p.waits = append(p.waits, others)
	}
	return p.Emulator.Wait(s)
}

// TestReadOverlaps reads memory of several parts, and wants the copy of a part to be in
// flight while the host takes the part before it.
func TestReadOverlaps(t *testing.T) {
	const part = 1 << 20
	for _, c := range []struct {
		bytes int
		waits []int
	}{{0, nil}, {1, []int{0}}, {part, []int{0}}, {part + 1, []int{1, 0}}, {4*part + 100, []int{1, 1, 1, 1, 0}}} {
		p := &porter{Emulator: emulator.New(emulator.Options{}), flying: map[cuda.Stream]int{}}
		dev, err := cuda.Open("emulator", func() (cuda.Driver, error) { return p, nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := dev.Alloc(t.Context(), kernels.Uint8, c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]uint8, c.bytes)
		for i := range want {
			want[i] = uint8(i*7 + i>>12)
		}
		if err := dev.Write(t.Context(), b, 0, want); err != nil {
			t.Fatal(err)
		}
		got := make([]uint8, c.bytes)
		if err := dev.Read(t.Context(), got, b, 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d bytes come back with others, or with %v", c.bytes, err)
		}
		if !slices.Equal(p.waits, c.waits) {
			t.Errorf("a read of %d bytes waits with %v copies in flight; want %v", c.bytes, p.waits, c.waits)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadWaitsForItsOwn has a launch in flight, with rows of the next one queued behind
// it. Reads of other memory wait for neither, reads of what they touch for both.
func TestReadWaitsForItsOwn(t *testing.T) {
	d, card := counted(t)
	rows := newAdder(t, d)
	ctx := t.Context()
	alloc := func(n int) kernels.Buffer {
		b, err := d.Alloc(ctx, kernels.Uint32, n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	params := alloc(3 << 20)
	small := make([]kernels.Buffer, 100) // more than are told apart
	for i := range small {
		small[i] = alloc(1)
	}
	values := make([]uint32, params.Len())
	for i := range values {
		values[i] = uint32(i)
	}
	if err := d.Write(ctx, params, 0, values); err != nil {
		t.Fatal(err)
	}
	if err := d.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	done := false
	if err := rows.start(d, 5, func() { done = true }); err != nil {
		t.Fatal(err)
	}
	next := slices.Repeat([]uint32{1000}, 31)
	if err := d.Write(ctx, rows.to, 1, next); err != nil {
		t.Fatal(err)
	}
	got := make([]uint32, len(values))
	if err := d.Read(ctx, got, params, 0); err != nil || !slices.Equal(got, values) {
		t.Errorf("parameters come back with others, or with %v", err)
	}
	if ran := len(card.Log()); done || ran != 0 {
		t.Errorf("a read of other memory has waited for a launch: %d have run", ran)
	}
	// What has just been written is read, however many writes came since.
	for i, b := range small {
		if err := d.Write(ctx, b, 0, []uint32{uint32(i) + 7}); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range small {
		var one [1]uint32
		if err := d.Read(ctx, one[:], b, 0); err != nil || one[0] != uint32(i)+7 {
			t.Errorf("buffer %d holds %d, %v; want %d", i, one, err, i+7)
		}
	}
	own := make([]uint32, 32)
	if err := d.Read(ctx, own, rows.to, 0); err != nil || own[0] != 5 || !slices.Equal(own[1:], next) || !done {
		t.Errorf("after the launch the rows are %v, %v, and its end is known: %v; want 5 and then %v", own, err, done, next)
	}
}
