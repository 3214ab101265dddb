package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Heights of complete trees.
const (
	maxHeight = 8
	// inRegisters is the height up to which planes stay in registers. Taller trees are
	// loops over such subtrees: the code stays small enough for the cache of decoded
	// instructions.
	inRegisters = 5
)

// slotBytes is the memory of the planes of a subtree.
const slotBytes = maxHeight * setBytes

// mux evaluates a complete tree on all rows of a block: the bits of the leaf's index in
// a node's subtree are those in one of its children, chosen by the node's mask, and the
// mask itself. It needs no branch, and every load is of memory that the tree names.
func mux(height int) routine {
	return routine{
		fmt.Sprintf("mux%d_256", height), "(masks *rowSet, offsets *uint32, planes *rowSet, halves int)",
		fmt.Sprintf("writes the planes of the leaves that rows reach in a complete tree of height %d; see muxGeneric.", height),
		func(a *asm) {
			m := &muxer{asm: a, masks: a.param("masks"), offsets: a.param("offsets"), planes: a.param("planes")}
			m.low(min(height, inRegisters), 1<<max(0, height-inRegisters))
			for h := inRegisters + 1; h <= height; h++ {
				m.high(h, 1<<(height-h))
			}
			if height < maxHeight {
				m.each(func() {
					a.VPXOR(a.v(0), a.v(0), a.v(0))
					for i := height; i < maxHeight; i++ {
						a.VMOVDQU(a.v(0), Mem{Base: m.planes, Disp: setBytes * i})
					}
				})
			}
			a.ret()
		},
	}
}

// muxer emits a tree.
type muxer struct {
	*asm
	masks, offsets, planes gp
	free                   []vec
	next                   int // offset at hand
	labels                 int
}

// each repeats body for the vectors of a set of rows.
func (m *muxer) each(body func()) {
	m.labels++
	half, n, back := fmt.Sprint("half", m.labels), m.param("halves"), m.GP64()
	m.MOVQ(n, back)
	m.SHLQ(Imm(5), back)
	m.Label(half)
	body()
	m.ADDQ(Imm(32), m.masks)
	m.ADDQ(Imm(32), m.planes)
	m.DECQ(n)
	m.JNZ(LabelRef(half))
	m.SUBQ(back, m.masks)
	m.SUBQ(back, m.planes)
}

// repeat emits a loop of n turns, which moves offsets and planes on and planes back at
// the end.
func (m *muxer) repeat(n, offsets int, body func()) {
	if n > 1 {
		m.labels++
		turn, left := fmt.Sprint("turn", m.labels), m.GP64()
		m.MOVQ(U32(uint32(n)), left)
		m.Label(turn)
		defer func() {
			m.ADDQ(U32(slotBytes), m.planes)
			m.ADDQ(U32(uint32(4*offsets)), m.offsets)
			m.DECQ(left)
			m.JNZ(LabelRef(turn))
			m.SUBQ(U32(uint32(n*slotBytes)), m.planes)
		}()
		body()
		return
	}
	body()
	m.ADDQ(U32(uint32(4*offsets)), m.offsets)
}

// low emits n trees in registers. Both halves of a block go through one before the next:
// its masks are near then.
func (m *muxer) low(height, n int) {
	m.repeat(n, 1<<height-1, func() {
		m.each(func() {
			m.free = nil
			for i := range 16 {
				m.free = append(m.free, m.v(15-i))
			}
			m.next = 0
			for i, v := range m.sub(height) {
				m.VMOVDQU(v, Mem{Base: m.planes, Disp: setBytes * i})
			}
		})
	})
}

// high joins 2n subtrees to n of a height: each slot of planes gets what was in two.
func (m *muxer) high(height, n int) {
	from := m.GP64()
	m.MOVQ(m.planes, from)
	m.repeat(n, 1, func() {
		m.each(func() {
			m.next = 0
			test, r := m.v(0), m.v(1)
			m.VMOVDQU(m.mask(), test)
			for i := range height - 1 {
				left, right := Mem{Base: from, Disp: setBytes * i}, Mem{Base: from, Disp: slotBytes + setBytes*i}
				m.VMOVDQU(right, r)
				m.choose(left, test, r)
				m.VMOVDQU(r, Mem{Base: m.planes, Disp: setBytes * i})
			}
			m.VMOVDQU(test, Mem{Base: m.planes, Disp: setBytes * (height - 1)})
			m.ADDQ(Imm(32), from)
		})
		back := m.param("halves")
		m.SHLQ(Imm(5), back)
		m.SUBQ(back, from)
		m.ADDQ(U32(2*slotBytes), from)
	})
}

// choose takes right where a mask is set, and left elsewhere.
func (m *muxer) choose(left Op, mask, right vec) {
	m.VPXOR(left, right, right)
	m.VPAND(mask, right, right)
	m.VPXOR(left, right, right)
}

func (m *muxer) take() vec {
	v := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	return v
}

func (m *muxer) give(list ...vec) { m.free = append(m.free, list...) }

// mask returns the next mask.
func (m *muxer) mask() Mem {
	at := [...]reg.GPPhysical{reg.RAX, reg.RCX, reg.RDX, reg.R8}[m.next%4]
	m.MOVL(Mem{Base: m.offsets, Disp: 4 * m.next}, at.As32())
	m.next++
	return Mem{Base: m.masks, Index: at, Scale: 1}
}

// sub emits a tree of a height and returns the planes of its index, lowest bit first.
func (m *muxer) sub(height int) []vec {
	if height == 1 {
		v := m.take()
		m.VMOVDQU(m.mask(), v)
		return []vec{v}
	}
	left, right := m.sub(height-1), m.sub(height-1)
	test := m.take()
	m.VMOVDQU(m.mask(), test)
	for i, r := range right {
		m.choose(left[i], test, r)
	}
	m.give(left...)
	return append(right, test)
}
