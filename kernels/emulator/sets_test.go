package emulator

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
)

// chosen is the set that benches compute with; nil: the first of this machine.
var chosen *lanes.Set

// TestSets runs tests again with the sets that this machine has but does not prefer,
// the last one without assembly.
func TestSets(t *testing.T) {
	defer func() { chosen = nil }()
	for _, set := range lanes.Sets()[1:] {
		t.Run(set.Name, func(t *testing.T) {
			chosen = set
			for _, c := range []struct {
				name string
				test func(*testing.T)
			}{
				{"Faults", TestFaults}, {"NoFaults", TestNoFaults}, {"Instructions", TestInstructions}, {"Comparisons", TestComparisons},
				{"Atomics", TestAtomics}, {"Elements", TestElements}, {"Predicates", TestPredicates}, {"NestedIfs", TestNestedIfs},
				{"Loops", TestLoops}, {"EarlyExit", TestEarlyExit}, {"RandomFlow", TestRandomFlow}, {"Shuffles", TestShuffles},
				{"LoadMatrix", TestLoadMatrix}, {"MatrixProducts", TestMatrixProducts}, {"RacesBetweenBlocks", TestRacesBetweenBlocks},
			} {
				t.Run(c.name, c.test)
			}
		})
	}
}

// randomPlaces fills at with places of a size below a bound: apart, in a row, at one,
// and now and then out of bounds or misaligned.
func randomPlaces(random *rand.Rand, at *narrow, size, bound uint32) {
	how, first := random.IntN(5), size*random.Uint32N(bound/size)
	for i := range at {
		switch how {
		case 0:
			at[i] = first
		case 1:
			at[i] = first + uint32(i)*size
		default:
			at[i] = size * random.Uint32N(bound/size)
		}
	}
	switch random.IntN(6) {
	case 0:
		at[random.IntN(32)] += 1 + random.Uint32N(2*size)
	case 1:
		at[random.IntN(32)] = bound - size + random.Uint32N(2)*size
	case 2:
		at[random.IntN(32)] -= bound
	}
}

func randomMask(random *rand.Rand) uint32 {
	switch random.IntN(5) {
	case 0:
		return 1 << random.IntN(32)
	case 1:
		return all >> random.IntN(31)
	case 2:
		return random.Uint32() | 1
	}
	return all
}

// TestLocate compares places, what they have in common, and what lies there with what
// a loop over lanes finds.
func TestLocate(t *testing.T) {
	everySet(t, func(t *testing.T, set *lanes.Set) {
		random := rand.New(rand.NewPCG(8, 9))
		data, known := make([]byte, 1024), make([]byte, 1024)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		var seen [4]int
		for range 20000 {
			size, m := uint32(1)<<random.IntN(5), randomMask(random)
			var offsets, at, shared narrow
			var addresses wide
			randomPlaces(random, &offsets, size, uint32(len(data)))
			const base, off = 0x7fff_fff0_0100, 1 << 33
			places := narrow{}
			for i, o := range offsets {
				addresses[i] = base + uint64(int64(int32(o))) - off
				places[i] = o + 48
			}
			want, first := lanes.Same, bits.TrailingZeros32(m)
			inRow := m == all
			for i, o := range offsets {
				if i > 0 && o != offsets[0]+uint32(i)*size {
					inRow = false
				}
				switch {
				case m>>i&1 == 0:
				case o > uint32(len(data))-size || o%size != 0:
					want = lanes.Astray
				case want == lanes.Same && o != offsets[first]:
					want = lanes.Apart
				}
			}
			if want == lanes.Apart && inRow {
				want = lanes.Row
			}
			seen[want]++
			got := set.Locate(&addresses, base-off, uint64(len(data))-uint64(size), uint64(size), m, &at)
			gotShared := set.LocateShared(&places, ^uint32(47), uint32(len(data))-size, size, m, &shared)
			if got != want || gotShared != want || at != offsets || shared != offsets {
				t.Fatalf("lanes %08x of %d bytes at %v: %d (%v) and in shared memory %d (%v), want %d", m, size, offsets, got, at, gotShared, shared, want)
			}
			if want == lanes.Astray || size < 4 {
				continue
			}
			for i := range known {
				known[i] = 1
			}
			if random.IntN(2) == 0 {
				known[random.IntN(len(known))] = 0
			}
			all1 := true
			var d, wantD narrow
			for i, o := range offsets {
				d[i] = random.Uint32()
				if wantD[i] = d[i]; m>>i&1 != 0 {
					wantD[i] = binary.LittleEndian.Uint32(data[o+size-4:])
					all1 = all1 && !slices.Contains(known[o:o+size], 0)
				}
			}
			var spread, wantSpread narrow
			for i := range spread {
				if spread[i] = uint32(i); m>>i&1 != 0 {
					wantSpread[i] = 1 << 31
				} else {
					wantSpread[i] = uint32(i)
				}
			}
			if set.Spread(&spread, 1<<31, m); spread != wantSpread {
				t.Fatalf("spread over lanes %08x: %x", m, spread)
			}
			set.Gather(&d, &data[size-4], &at, m)
			if k := set.Known(&known[0], &at, int(size/4), m); d != wantD || k != all1 {
				t.Fatalf("lanes %08x of %d bytes at %v: %v, %v, want %v, %v", m, size, offsets, d, k, wantD, all1)
			}
		}
		for shape, n := range seen {
			if n < 100 {
				t.Errorf("only %d places of shape %d", n, shape)
			}
		}
	})
}

// TestNote compares shadows of shared memory, and faults, with what one lane after the
// other notes, from shadows of all kinds.
func TestNote(t *testing.T) {
	everySet(t, func(t *testing.T, set *lanes.Set) {
		random := rand.New(rand.NewPCG(10, 11))
		const words, epoch = 256, 5
		sides := [2]*warp{}
		for i, s := range []*lanes.Set{set, lanes.Sets()[len(lanes.Sets())-1]} {
			run := &launch{kernel: &kernel{set: s, ops: make([]op, 1)}}
			b := &block{run: run, epoch: epoch, shared: make([]byte, 4*words), shadow: make([]uint64, words)}
			sides[i] = &warp{blk: b, index: 6, pc: 1}
		}
		pick := func(of ...uint64) uint64 { return of[random.IntN(len(of))] }
		passed, failed := 0, 0
		for range 20000 {
			rare := random.IntN(3) // shadows against which something speaks
			for i := range words {
				s := 15 | pick(epoch-1, epoch)<<atEpoch
				if random.IntN(2) == 0 {
					s |= 7<<atWriter | 15<<bytesWritten
				}
				if random.IntN(2) == 0 {
					s |= 7<<atReader | 15<<bytesRead
				}
				if rare == 0 && random.IntN(20) == 0 {
					s = pick(0, 7, 14, 15) | pick(0, 0, 0, 1)<<bytesPromised | pick(epoch-1, epoch)<<atEpoch
					if random.IntN(2) == 0 {
						s |= pick(1, 12, 15)<<bytesWritten | pick(7, 9, several)<<atWriter | pick(0, 1)<<atAtomic
					}
					if random.IntN(2) == 0 {
						s |= pick(1, 12, 15)<<bytesRead | pick(7, 9, several)<<atReader
					}
				} else if rare == 1 && s>>atReader&255 != 0 {
					s |= pick(7, 9, several) << atReader
				}
				sides[0].blk.shadow[i], sides[1].blk.shadow[i] = s, s
			}
			size, m := uint32(1)<<random.IntN(5), randomMask(random)
			how := []access{plainRead, plainRead, plainWrite, promise, arrival, volatileRead, atomicUpdate}[random.IntN(7)]
			if how == promise || how == arrival {
				size = max(size, 4)
			}
			var at narrow
			randomPlaces(random, &at, size, 4*words)
			var ok [2]bool
			var fault [2]string
			for i, w := range sides {
				w.fault = nil
				shape := set.LocateShared(&at, 0, uint32(4*words-size), size, m, &w.places)
				if how == arrival { // of what has been checked
					for i, o := range at {
						at[i] = o % (4 * words) / size * size
					}
					shape = lanes.Apart
				}
				w.places = at
				if ok[i] = w.touchPlaces(shape, uint64(size), m, how, &w.places); !ok[i] {
					fault[i] = w.fault.Error()
				}
			}
			if ok[0] != ok[1] || fault[0] != fault[1] || ok[0] && !slices.Equal(sides[0].blk.shadow, sides[1].blk.shadow) {
				t.Fatalf("access %d of lanes %08x, %d bytes at %v: %v %s, want %v %s\n%x\n%x", how, m, size, at, ok[0], fault[0], ok[1], fault[1],
					sides[0].blk.shadow, sides[1].blk.shadow)
			}
			if ok[0] {
				passed++
			} else {
				failed++
			}
		}
		if passed < 1000 || failed < 1000 {
			t.Errorf("%d accesses passed and %d failed: the test looks at the wrong shadows", passed, failed)
		}
	})
}
