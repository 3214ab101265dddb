package emulator

import (
	"bytes"
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
)

// slotBits is the binary logarithm of a slot of the address space. An allocation
// owns the slots it touches; what it does not fill of them is the gap around it.
const (
	slotBits  = 32
	firstSlot = 0x7f
)

// allocation is a run of bytes in the memory of the card.
type allocation struct {
	base  uint64
	size  int64
	data  []byte
	known []byte // 1 for each byte that was written; nil: all were
	words []word // for races between blocks; nil where they are not looked for
	freed bool

	index   int           // in the order of Alloc
	writer  use           // the last work that wrote to it; zero: none
	readers map[int32]use // the last work of each stream that has read it since
}

// memory is the memory of the card. An address's high half finds its allocation.
type memory struct {
	slots []*allocation // from firstSlot
	count int           // allocations so far
	used  int64
	limit int64
	races bool
}

// alloc makes an allocation. Bases differ in their low halves and come close to
// the end of a slot, so that arithmetic of 32 bits on addresses is found out.
func (m *memory) alloc(size int64) (*allocation, error) {
	if size <= 0 {
		return nil, refused("Alloc of %d bytes; ask for at least one", size)
	}
	if size > m.limit-m.used {
		return nil, fmt.Errorf("emulator: Alloc of %d bytes with %d of %d in use: %w", size, m.used, m.limit, kernels.ErrMemory)
	}
	first := len(m.slots)
	low := uint64(1<<slotBits) - 256*(1+uint64(first*37%61))
	a := &allocation{
		base:  uint64(firstSlot+first)<<slotBits + low,
		size:  size,
		data:  make([]byte, size),
		known: make([]byte, size),
		index: m.count,
	}
	m.count++
	if m.races {
		a.words = make([]word, (size+3)/4)
	}
	last := int((a.base+uint64(size)-1)>>slotBits) - firstSlot
	for i := first; i <= last; i++ {
		m.slots = append(m.slots, a)
	}
	m.used += size
	return a, nil
}

// free gives back the bytes; the addresses are not used again.
func (m *memory) free(p cuda.Ptr) error {
	a := m.find(uint64(p))
	switch {
	case a == nil || a.base != uint64(p):
		return refused("Free of %#x, which Alloc did not return", uint64(p))
	case a.freed:
		return refused("Free of %#x, which was freed before", uint64(p))
	}
	m.used -= a.size
	a.freed, a.data, a.known, a.words = true, nil, nil, nil
	return nil
}

// find returns the allocation that owns an address's slot, or nil.
func (m *memory) find(address uint64) *allocation {
	i := address>>slotBits - firstSlot
	if i >= uint64(len(m.slots)) {
		return nil
	}
	return m.slots[i]
}

// span finds size bytes at p for a call of the host.
func (m *memory) span(call string, p cuda.Ptr, size int64) (*allocation, int64, error) {
	a := m.find(uint64(p))
	if why := m.why(a, uint64(p), size); why != "" {
		return nil, 0, refused("%s: %d bytes at %#x: %s", call, size, uint64(p), why)
	}
	return a, int64(uint64(p) - a.base), nil
}

// why says why size bytes at an address of allocation a cannot be accessed, or "".
func (m *memory) why(a *allocation, address uint64, size int64) string {
	switch {
	case a == nil:
		return "no such memory"
	case a.freed:
		return fmt.Sprintf("freed memory (%d bytes at %#x)", a.size, a.base)
	case address < a.base || address-a.base > uint64(a.size) || size > a.size-int64(address-a.base):
		return fmt.Sprintf("out of bounds of %d bytes at %#x (offset %d)", a.size, a.base, int64(address-a.base))
	}
	return ""
}

// copyIn writes bytes of the host.
func (m *memory) copyIn(dst cuda.Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	a, at, err := m.span("CopyIn", dst, int64(len(src)))
	if err != nil {
		return err
	}
	copy(a.data[at:], src)
	a.write(at, int64(len(src)))
	return nil
}

// copyOut reads bytes for the host. Those that were never written read as 0xa5.
func (m *memory) copyOut(dst []byte, src cuda.Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	a, at, err := m.span("CopyOut", src, int64(len(dst)))
	if err != nil {
		return err
	}
	copy(dst, a.data[at:])
	if a.known != nil {
		for i, k := range a.known[at : at+int64(len(dst))] {
			if k == 0 {
				dst[i] = 0xa5
			}
		}
	}
	return nil
}

// zero clears bytes.
func (m *memory) zero(dst cuda.Ptr, size int64) error {
	if size == 0 {
		return nil
	}
	if size < 0 {
		return refused("Clear of %d bytes", size)
	}
	a, at, err := m.span("Clear", dst, size)
	if err != nil {
		return err
	}
	clear(a.data[at : at+size])
	a.write(at, size)
	return nil
}

// write notes that bytes were written by the host.
func (a *allocation) write(at, size int64) {
	if a.known == nil {
		return
	}
	if size == a.size {
		a.known = nil
		return
	}
	run := a.known[at : at+size]
	for i := range run {
		run[i] = 1
	}
}

// ones is what the shadow of written bytes looks like.
var ones = bytes.Repeat([]byte{1}, 32*16)

// isKnown reports whether size bytes at offset at were written.
func (a *allocation) isKnown(at, size uint64) bool {
	return a.known == nil || bytes.Equal(a.known[at:at+size], ones[:size])
}
