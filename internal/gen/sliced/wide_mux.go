package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// muxWide evaluates a complete tree as mux does, with the planes of all heights in
// registers and one instruction for each choice.
func muxWide(height int) routine {
	return routine{
		fmt.Sprintf("mux%d_512", height), "(masks *rowSet, offsets *uint32, planes *rowSet, halves int)",
		fmt.Sprintf("writes the planes of the leaves that rows reach in a complete tree of height %d; see muxGeneric.", height),
		func(a *asm) {
			m := &wideMuxer{asm: a, masks: a.param("masks"), offsets: a.param("offsets"), height: height}
			planes := a.param("planes")
			for i, v := range m.sub(height, 0) {
				a.VMOVDQU64(v, Mem{Base: planes, Disp: setBytes * i})
			}
			if height < maxHeight {
				zero := a.ZMM()
				a.VXORPS(zero, zero, zero)
				for i := height; i < maxHeight; i++ {
					a.VMOVDQU64(zero, Mem{Base: planes, Disp: setBytes * i})
				}
			}
			a.ret()
		},
	}
}

// wideMuxer emits a tree.
type wideMuxer struct {
	*asm
	masks, offsets gp
	height, loads  int
}

// mask returns the mask of the j-th node that has a subtree of a height.
func (m *wideMuxer) mask(height, j int) Mem {
	at := [...]reg.GPPhysical{reg.RAX, reg.RCX, reg.RDX, reg.R8}[m.loads%4]
	m.loads++
	m.MOVL(Mem{Base: m.offsets, Disp: 4 * place(m.height, height, j)}, at.As32())
	return Mem{Base: m.masks, Index: at, Scale: 1}
}

// sub emits the j-th subtree of a height and returns the planes of its index, lowest bit
// first.
func (m *wideMuxer) sub(height, j int) []wide {
	test := m.ZMM()
	switch height {
	case 1:
		m.VMOVDQU64(m.mask(1, j), test)
		return []wide{test}
	case 2:
		right := m.ZMM()
		m.VMOVDQU64(m.mask(1, 2*j+1), right)
		m.VMOVDQU64(m.mask(2, j), test)
		m.VPTERNLOGD(Imm(0xe2), m.mask(1, 2*j), test, right) // test ? right : left
		return []wide{right, test}
	}
	left, right := m.sub(height-1, 2*j), m.sub(height-1, 2*j+1)
	m.VMOVDQU64(m.mask(height, j), test)
	for i, r := range right {
		m.VPTERNLOGD(Imm(0xe2), left[i], test, r)
	}
	return append(right, test)
}

// place is where a tree of a height has its j-th node with a subtree of height h: the
// subtrees of inRegisters come first, each node after the nodes of its own subtrees,
// then the nodes above, the lowest level first.
func place(height, h, j int) int {
	if h > inRegisters {
		at := 1<<height - 1<<(height-inRegisters)
		for k := inRegisters + 1; k < h; k++ {
			at += 1 << (height - k)
		}
		return at + j
	}
	low := min(height, inRegisters)
	each := 1 << (low - h) // of these nodes in a subtree
	return j/each*(1<<low-1) + last(low, h, j%each)
}

// last is place where all nodes come after those of their subtrees.
func last(height, h, j int) int {
	if height == h {
		return 1<<height - 2
	}
	half := 1 << (height - 1 - h) // of these nodes in each subtree
	if j < half {
		return last(height-1, h, j)
	}
	return 1<<(height-1) - 1 + last(height-1, h, j-half)
}
