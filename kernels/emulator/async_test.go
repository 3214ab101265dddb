package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda"
)

// copyModel is what shared memory holds while lanes copy to it asynchronously, one
// lane after the other.
type copyModel struct {
	from          *sheet
	data          []byte
	known, copied []bool // written; promised by a copy that nobody has waited for
	open          [32][]copied
	groups        [32][][]copied
	sums          [32]uint32 // of what lanes have read
}

// copied is a copy of a lane, under way.
type copied struct {
	at    int
	bytes []byte
}

// access says why a lane may not access size bytes at a place, "" if it may.
func (m *copyModel) access(at, size int, reads bool) string {
	switch {
	case at < 0 || at > len(m.data)-size:
		return "out of bounds"
	case at%size != 0:
		return "misaligned"
	case slices.Contains(m.copied[at:at+size], true):
		return "cp.async bytes not waited for"
	case reads && slices.Contains(m.known[at:at+size], false):
		return "not initialised"
	}
	return ""
}

// copy begins a copy of n bytes to size bytes, or says why it may not.
func (m *copyModel) copy(lane, from, n, at, size int) string {
	switch why := m.from.wrong(from, n, 1); {
	case n > size:
		return "cp.async reads"
	case from%size != 0:
		return "misaligned"
	case n > 0 && why != "":
		return why
	}
	if why := m.access(at, size, false); why != "" {
		return why
	}
	c := copied{at, make([]byte, size)}
	if n > 0 {
		copy(c.bytes, m.from.data[from:from+n])
	}
	for i := range size {
		m.copied[at+i] = true
	}
	m.open[lane] = append(m.open[lane], c)
	return ""
}

func (m *copyModel) commit(lane int) {
	m.groups[lane] = append(m.groups[lane], m.open[lane])
	m.open[lane] = nil
}

// wait delivers all groups of a lane but the last ones.
func (m *copyModel) wait(lane, last int) {
	for len(m.groups[lane]) > last {
		m.deliver(m.groups[lane][0])
		m.groups[lane] = m.groups[lane][1:]
	}
}

func (m *copyModel) waitAll(lane int) {
	m.wait(lane, 0)
	m.deliver(m.open[lane])
	m.open[lane] = nil
}

func (m *copyModel) deliver(list []copied) {
	for _, c := range list {
		copy(m.data[c.at:], c.bytes)
		for i := range c.bytes {
			m.copied[c.at+i], m.known[c.at+i] = false, true
		}
	}
}

// TestCopies plays random asynchronous copies, commits, waits, reads and stores, each
// in some lanes, against a model with one lane after the other: copies of all bytes, of
// some with zeros behind them, and of none; over copies that are under way; of bytes
// that nobody wrote or that lie beyond the end; and waits for some groups alone.
func TestCopies(t *testing.T) {
	onSets(t, func(t *testing.T) {
		b := newBench(t, Options{})
		random := rand.New(rand.NewPCG(12, 13))
		holes := newSource(b, random, 1024+12, func(at int) bool { return at < 512 || at >= 1024 || random.IntN(100) > 0 })
		whole := newSource(b, random, 1024+12, func(int) bool { return true })
		given, out := b.room(160*copySteps), b.room(32)
		seen := map[string]int{}
		for range 300 {
			testCopies(t, b, random, []*sheet{holes, whole}[random.IntN(2)], given, out, seen)
		}
		for _, what := range []string{"", "cp.async bytes not waited for", "not initialised", "out of bounds", "misaligned", "cp.async reads"} {
			if seen[what] < 3 {
				t.Errorf("%d programs ended with %q, want 3 and more; all: %v", seen[what], what, seen)
			}
		}
	})
}

// copySteps is how many instructions a program of TestCopies has.
const copySteps = 30

func testCopies(t *testing.T, b *bench, random *rand.Rand, from *sheet, given, out cuda.Ptr, seen map[string]int) {
	const length = 16384 // of shared memory
	m := &copyModel{from: from, data: make([]byte, length), known: make([]bool, length), copied: make([]bool, length)}
	var body strings.Builder
	var operands []byte
	end, says, thread := "", "", -1
	careful := random.IntN(3) == 0
	for step := 0; step < copySteps && end == ""; step++ {
		size := 4 << random.IntN(3)
		kind, last := random.IntN(9), random.IntN(3)
		check := step - (copySteps - 8) // the last steps read everything
		if check >= 0 {
			kind = 6
		} else if check == -1 {
			kind = 5
		}
		instruction := []string{
			fmt.Sprintf("@%%p0 cp.async.ca.shared.global [%%r2+64], [%%d6+-32], %d, %%r3;", size),
			fmt.Sprintf("@%%p0 cp.async.ca.shared.global [%%r2+64], [%%d6+-32], %d, %%r3;", size),
			fmt.Sprintf("@%%p0 cp.async.ca.shared.global [%%r2+64], [%%d6+-32], %d;", size),
			"@%p0 cp.async.commit_group;",
			fmt.Sprintf("@%%p0 cp.async.wait_group %d;", last),
			"@%p0 cp.async.wait_all;",
			"@%p0 ld.shared.u32 %r5, [%r2+64];",
			"@%p0 st.shared.u32 [%r2+64], %r3;",
			"bar.sync 0;",
		}[kind]
		if kind >= 6 {
			size = 4
		}
		runs, victim := randomMask(random), -1
		if !careful && check < -1 && random.IntN(5) == 0 { // one lane that may do something wrong; the others do not
			victim = random.IntN(32)
			runs |= 1 << victim
		}
		if check >= -1 || kind == 5 && random.IntN(2) == 0 {
			runs = all
		}
		var sources [32]uint64
		var places, counts, masks [32]uint32
		parts := random.IntN(4) == 0 // copies of some bytes, else of all or none
		for lane := range 32 {
			at := 32*lane + size*random.IntN(32/size)
			if check >= 0 {
				at = 32*lane + 4*check
			}
			from := size * random.IntN(512/size)
			n := []int{size, size, size, 0, random.IntN(size)}[random.IntN(5)]
			if kind == 2 || !parts && n > 0 {
				n = size
			}
			if lane == victim {
				switch random.IntN(9) {
				case 0:
					from = 512 + (max(slices.Index(m.from.known[512:], false), 0)+random.IntN(2))&^(size-1) // where a byte is missing
				case 1:
					from = len(m.from.data)&^(size-1) - size*random.IntN(2) // at the end, or the last that fits
				case 2:
					from += 2
				case 3:
					at = length - 8 + 4*random.IntN(3)
				case 4:
					at += 2
				case 5:
					at = int(places[max(lane-1, 0)]) // of the lane before
				case 6:
					if kind < 2 {
						n = size + 1
					}
				default:
					if i := slices.Index(m.copied[32*lane:32*lane+32], true); i >= 0 {
						at = 32*lane + i&^(size-1)
					}
				}
			}
			if runs>>lane&1 != 0 && end == "" {
				why := ""
				switch kind {
				case 0, 1, 2:
					why = m.copy(lane, from, n, at, size)
				case 6, 7:
					why = m.access(at, 4, kind == 6)
				}
				switch {
				case why != "" && lane != victim:
					runs &^= 1 << lane
				case why != "":
					says, thread, end = why, lane, instruction
				case kind == 3:
					m.commit(lane)
				case kind == 4:
					m.wait(lane, last)
				case kind == 5:
					m.waitAll(lane)
				case kind == 6:
					m.sums[lane] = m.sums[lane]*5 + binary.LittleEndian.Uint32(m.data[at:])
				case kind == 7:
					binary.LittleEndian.PutUint32(m.data[at:], uint32(n))
					copy(m.known[at:], []bool{true, true, true, true})
				}
			}
			sources[lane], places[lane], counts[lane], masks[lane] = uint64(from+32), uint32(at), uint32(n), runs>>lane&1
		}
		for lane := range places {
			places[lane] -= 64
		}
		place := len(operands)
		for _, list := range []any{sources[:], places[:], counts[:], masks[:]} {
			operands, _ = binary.Append(operands, binary.LittleEndian, list) // of numbers: no error
		}
		fmt.Fprintf(&body, `
	ld.global.u64 %%d6, [%%d4+%d];
	add.u64 %%d6, %%d6, %%d1;
	ld.global.u32 %%r2, [%%d5+%d];
	mov.u32 %%r8, room;
	add.u32 %%r2, %%r2, %%r8;
	ld.global.u32 %%r3, [%%d5+%d];
	ld.global.u32 %%r4, [%%d5+%d];
	setp.ne.u32 %%p0, %%r4, 0;
	%s
`, place, place+256, place+384, place+512, instruction)
		if kind == 6 {
			body.WriteString("\t@%p0 mad.lo.u32 %r6, %r6, 5, %r5;\n")
		}
	}
	seen[says]++
	f := b.load(text(".param .u64 given, .param .u64 from, .param .u64 out", `
	ld.param.u64 %d0, [given];
	ld.param.u64 %d1, [from];
	ld.param.u64 %d2, [out];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d4, %r0, 8;
	add.u64 %d4, %d0, %d4;
	mul.wide.u32 %d3, %r0, 4;
	add.u64 %d5, %d0, %d3;
	add.u64 %d7, %d2, %d3;
	mov.b32 %r5, 0;
	mov.b32 %r6, 0;
`+body.String()+`
	st.global.u32 [%d7], %r6;
`), 0)
	err := errors.Join(b.CopyIn(given, operands, b.s),
		b.launch(cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 32, Args: []uint64{uint64(given), uint64(from.at), uint64(out)}}))
	if end != "" {
		if f := b.mustFault(err, end, says); f.Thread != thread {
			t.Fatalf("%v; want %s in thread %d", err, says, thread)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, body.String())
	}
	if got := b.read(out, 32); !slices.Equal(got, m.sums[:]) {
		t.Fatalf("got  %x\nwant %x\n%s", got, m.sums, body.String())
	}
}
