package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator/lanes"
)

// onSets runs a test with every set of this machine, also the one without assembly.
func onSets(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	defer func() { chosen = nil }()
	for _, set := range lanes.Sets() {
		chosen = set
		t.Run(set.Name, test)
	}
}

// sheet is memory of the card of which the test knows every byte.
type sheet struct {
	at    cuda.Ptr
	data  []byte
	known []bool
}

// newSource allocates memory, and writes what is to be known of it. It does not end
// where a slot of the address space ends, so what lies behind it is out of its bounds
// and not another allocation.
func newSource(b *bench, random *rand.Rand, size int, known func(at int) bool) *sheet {
	b.t.Helper()
	b.room(1) // the first allocation ends with its slot if it has 256 bytes
	at, err := b.Alloc(int64(size))
	if err != nil {
		b.t.Fatal(err)
	}
	s := &sheet{at, make([]byte, size), make([]bool, size)}
	for i := range s.data {
		s.data[i], s.known[i] = byte(random.Uint32()), known(i)
	}
	for lo := 0; lo < size; {
		hi := lo + 1
		for hi < size && s.known[hi] == s.known[lo] {
			hi++
		}
		if s.known[lo] {
			if err := b.CopyIn(at+cuda.Ptr(lo), s.data[lo:hi], b.s); err != nil {
				b.t.Fatal(err)
			}
		}
		lo = hi
	}
	return s
}

// wrong says why size bytes at an offset, to be aligned, cannot be read, "" if they can.
func (s *sheet) wrong(offset, size, align int) string {
	switch {
	case offset < 0 || offset > len(s.data)-size:
		return "out of bounds"
	case offset%align != 0:
		return "misaligned"
	case slices.Contains(s.known[offset:offset+size], false):
		return "not initialised"
	}
	return ""
}

// TestLoads loads from places of every shape, in any lanes, some of them out of bounds
// by one element, misaligned or with a byte that nobody wrote, and compares what is
// loaded, and faults, with those of a loop over lanes.
func TestLoads(t *testing.T) {
	onSets(t, func(t *testing.T) {
		for _, c := range []struct {
			kind, registers string
			size            int
		}{
			{"u8", "%r10", 1}, {"u32", "%r10", 4}, {"v2.u32", "{%r10, %r11}", 8}, {"v4.u32", "{%r10, %r11, %r12, %r13}", 16},
			{"u64", "%d10", 8}, {"v2.u64", "{%d10, %d11}", 16},
		} {
			t.Run(c.kind, func(t *testing.T) { testLoads(t, c.kind, c.registers, c.size) })
		}
	})
}

func testLoads(t *testing.T, kind, registers string, size int) {
	b := newBench(t, Options{})
	random := rand.New(rand.NewPCG(11, uint64(size)))
	const length, offset, stride = 1024, 48, 16
	given, out := b.room(96), b.room(32*stride/4)
	holes := newSource(b, random, length, func(at int) bool { return at < length/2 || random.IntN(100) > 0 })
	whole := newSource(b, random, length+4, func(int) bool { return true }) // of which no byte is looked at any more
	// Lanes take the distance of their place, in 64 bits, and whether they run. A load
	// from the same memory comes before, since that finds its allocation the long way.
	load := fmt.Sprintf("@%%p0 ld.global.%s %s, [%%d6+%d];", kind, registers, offset)
	f := b.load(text(".param .u64 given, .param .u64 from, .param .u64 out", fmt.Sprintf(`
	ld.param.u64 %%d0, [given];
	ld.param.u64 %%d1, [from];
	ld.param.u64 %%d2, [out];
	mov.u32 %%r0, %%tid.x;
	mul.wide.u32 %%d3, %%r0, 8;
	add.u64 %%d3, %%d0, %%d3;
	ld.global.u64 %%d4, [%%d3];
	add.u64 %%d6, %%d1, %%d4;
	mul.wide.u32 %%d3, %%r0, 4;
	add.u64 %%d3, %%d0, %%d3;
	ld.global.u32 %%r1, [%%d3+256];
	setp.ne.u32 %%p0, %%r1, 0;
	mul.wide.u32 %%d3, %%r0, 1;
	add.u64 %%d3, %%d1, %%d3;
	ld.global.u8 %%r2, [%%d3];
	mul.wide.u32 %%d3, %%r0, %d;
	add.u64 %%d8, %%d2, %%d3;
	%s
	@%%p0 st.global.%s [%%d8], %s;
`, stride, load, kind, registers)), 0)
	const good = "loaded"
	seen := map[string]int{}
	for range 400 {
		from := holes
		if random.IntN(4) == 0 {
			from = whole
		}
		var at narrow
		randomPlaces(random, &at, uint32(size), length)
		shift := uint32(0) // of all lanes
		switch random.IntN(8) {
		case 0:
			shift = random.Uint32N(uint32(size))
		case 1: // the last lane's element begins where the memory ends, or not far from there
			shift = uint32(len(from.data)) - uint32(size)*random.Uint32N(3) - at[31]
		}
		for i := range at {
			at[i] += shift
		}
		m := randomMask(random)
		src, runs := []byte{}, []byte{}
		want, says, thread := make([]byte, 32*stride), good, -1
		for lane, a := range at {
			place := int(int32(a))
			src = binary.LittleEndian.AppendUint64(src, uint64(place-offset))
			runs = binary.LittleEndian.AppendUint32(runs, m>>lane&1)
			if m>>lane&1 == 0 || says != good {
				continue
			}
			switch why := from.wrong(place, size, size); {
			case why == "":
				copy(want[stride*lane:], from.data[place:place+size])
			default:
				says, thread = why, lane
			}
		}
		seen[says]++
		err := errors.Join(b.CopyIn(given, append(src, runs...), b.s), b.Clear(out, 32*stride, b.s),
			b.launch(cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 32, Args: []uint64{uint64(given), uint64(from.at), uint64(out)}}))
		if says != good {
			if f := b.mustFault(err, load, says); f.Thread != thread {
				t.Fatalf("lanes %08x at %v: %v; want %s in thread %d", m, at, err, says, thread)
			}
			continue
		}
		if got := make([]byte, len(want)); errors.Join(err, b.CopyOut(got, out, b.s), b.Wait(b.s)) != nil || !slices.Equal(got, want) {
			t.Fatalf("lanes %08x at %v: %v\ngot  %x\nwant %x", m, at, err, got, want)
		}
	}
	ends := []string{good, "out of bounds", "not initialised"}
	if size > 1 {
		ends = append(ends, "misaligned")
	}
	for _, what := range ends {
		if seen[what] < 10 {
			t.Errorf("%d launches ended with %q, want 10 and more; all: %v", seen[what], what, seen)
		}
	}
}

// TestLoadOverAddresses loads over the registers that hold the addresses, where these lie in two allocations: no lane may read
// its address after its element is there.
func TestLoadOverAddresses(t *testing.T) {
	onSets(t, func(t *testing.T) {
		for _, c := range []struct{ load, wants string }{{"u64", "%d6"}, {"v2.u64", "{%d6, %d7}"}} {
			b := newBench(t, Options{})
			x, y, out := b.words(11, 12, 13, 14), b.words(21, 22, 23, 24), b.room(64)
			b.must(fmt.Sprintf(`
	and.b32 %%r2, %%r0, 1;
	setp.ne.u32 %%p0, %%r2, 0;
	selp.b64 %%d6, %%d1, %%d0, %%p0;
	ld.global.%s %s, [%%d6];
	mad.wide.u32 %%d8, %%r0, 8, %%d2;
	st.global.u64 [%%d8], %%d6;
`, c.load, c.wants), 1, 32, uint64(x), uint64(y), uint64(out))
			got := b.read(out, 64)
			for lane := range 32 {
				if want := [2][2]uint32{{11, 12}, {21, 22}}[lane%2]; [2]uint32(got[2*lane:]) != want {
					t.Fatalf("%s: lane %d has %v, want %v", c.load, lane, got[2*lane:][:2], want)
				}
			}
		}
	})
}
