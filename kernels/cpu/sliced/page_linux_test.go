package sliced

import (
	"math"
	"testing"
	"unsafe"

	"github.com/pce-engine/pce/kernels/sliced"
	"golang.org/x/sys/unix"
)

// TestLastRows: no loop reads behind the cells of the last row, which end at a page that
// cannot be read.
func TestLastRows(t *testing.T) {
	const pages, page = 40, 1 << 16
	memory, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Mprotect(memory[(pages-1)*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	cells := unsafe.Slice((*float32)(unsafe.Pointer(&memory[0])), (pages-1)*page/4)
	for _, features := range []int{1, 3, 4, 5, 30} {
		m := &sliced.Module{Features: features, Outputs: 1, Single: true}
		last := int32(features - 1)
		m.Columns = []sliced.Column{{Feature: last, Cuts: []float64{1}}}
		m.Masks = []sliced.Mask{{Ends: []uint16{1}}}
		m.Trees = []sliced.Tree{{Nodes: []sliced.Node{{Yes: ^0, No: ^1}}, Leaves: []sliced.Leaf{{First: 0, Last: 1}, {First: 1, Last: 2}}, Values: []sliced.Value{{Value: 1}, {Value: 2}}}}
		for _, l := range All() {
			p, err := New(m, l)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 15, 16, 17, 127, 129, 300, 512, 1025} {
				rows := cells[len(cells)-n*features:]
				for r := range n {
					rows[r*features+features-1] = float32(math.Mod(float64(r), 3))
				}
				out := make([]float64, n)
				Sums(p, rows, []float64{0}, out)
				for r, x := range out {
					if want := 1 + float64(min(r%3, 1)); x != want {
						t.Fatalf("%s, %d rows of %d cells: row %d has %v, want %v", l.Name, n, features, r, x, want)
					}
				}
			}
		}
	}
}
