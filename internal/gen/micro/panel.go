package main

import (
	"fmt"
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// panelArgs mirrors micro.PanelArgs.
type panelArgs struct {
	Rows, K, W int
	A          uintptr
	ARow, ACol int
	B          uintptr
	BRow       int
	C          uintptr
	CRow       int
	E          uintptr
	ERow       int
	Min        uintptr
	Add        bool
	Stream     bool
}

// panel is the shape of one micro-kernel: groups of up to rows rows, cols
// vectors wide.
type panel struct {
	rows, cols int
	masked     bool // columns under a mask of W lanes
	pairs      bool // bfloat16 pairs instead of floats
	most       bool // the largest product instead of the sum
}

func panelRoutines(wide bool) []routine {
	shapes := map[string]panel{
		"panel32x512":     {rows: 12, cols: 2},
		"panel16x512":     {rows: 20, cols: 1, masked: true},
		"maxPanel32x512":  {rows: 12, cols: 2, most: true},
		"maxPanel16x512":  {rows: 20, cols: 1, masked: true, most: true},
		"bf16Panel32x512": {rows: 12, cols: 2, pairs: true},
		"bf16Panel16x512": {rows: 20, cols: 1, masked: true, pairs: true},
	}
	names := []string{"panel32x512", "panel16x512", "maxPanel32x512", "maxPanel16x512", "bf16Panel32x512", "bf16Panel16x512"}
	if !wide {
		shapes = map[string]panel{
			"panel16x256": {rows: 6, cols: 2}, "panel8x256": {rows: 12, cols: 1},
			"maxPanel16x256": {rows: 6, cols: 2, most: true}, "maxPanel8x256": {rows: 12, cols: 1, most: true},
		}
		names = []string{"panel16x256", "panel8x256", "maxPanel16x256", "maxPanel8x256"}
	}
	var list []routine
	for _, name := range names {
		p := shapes[name]
		doc := fmt.Sprintf("is Panel on %d columns, in groups of %d rows.", p.cols*map[bool]int{true: 16, false: 8}[wide], p.rows)
		if p.masked {
			doc = fmt.Sprintf("is Panel on at most 16 columns, in groups of %d rows.", p.rows)
		}
		switch {
		case p.pairs:
			doc = "is BF16Set." + doc[3:]
		case p.most:
			doc = "is Max" + doc[3:]
		}
		list = append(list, routine{name: name, sig: "(a *PanelArgs)", doc: doc, emit: p.emit})
	}
	return list
}

// emit writes the routine: a loop over groups of rows, and for each number of
// rows its own loop over k and end.
func (p panel) emit(a *asm) {
	var f panelArgs
	args := a.param("a")
	old := a.control(flushResults | denormalsZero)
	var mask reg.Register
	if p.masked {
		n, bits := a.GP64(), a.GP64()
		a.MOVQ(Mem{Base: args, Disp: int(unsafe.Offsetof(f.W))}, n)
		a.MOVQ(I32(-1), bits)
		a.BZHIQ(n, bits, bits)
		mask = a.K()
		a.KMOVW(bits.As32(), mask)
	}
	// The group's place lives in memory, so that the loop over k has all registers.
	place := a.AllocLocal(32)
	slot := func(i int) Mem { m := place; m.Disp += 8 * i; return m }
	left, aAt, cAt, eAt := slot(0), slot(1), slot(2), slot(3)
	for i, off := range []uintptr{unsafe.Offsetof(f.Rows), unsafe.Offsetof(f.A), unsafe.Offsetof(f.C), unsafe.Offsetof(f.E)} {
		a.MOVQ(a.field(args, off), slot(i))
	}
	ars, aks, bks := a.stride(args, unsafe.Offsetof(f.ARow)), a.stride(args, unsafe.Offsetof(f.ACol)), a.stride(args, unsafe.Offsetof(f.BRow))
	ars3, ars5 := a.GP64(), a.GP64()
	a.LEAQ(Mem{Base: ars, Index: ars, Scale: 2}, ars3)
	a.LEAQ(Mem{Base: ars, Index: ars, Scale: 4}, ars5)

	// A group takes all rows while there are two groups or more; between one
	// and two groups it takes half, so that no group is tiny.
	a.Label("group")
	n := a.GP64()
	a.MOVQ(left, n)
	a.CMPQ(n, Imm(uint64(2*p.rows)))
	a.JGE(LabelRef(fmt.Sprintf("rows%d", p.rows)))
	a.CMPQ(n, Imm(uint64(p.rows)))
	a.JLE(LabelRef("dispatch"))
	a.INCQ(n)
	a.SHRQ(Imm(1), n)
	a.Label("dispatch")
	a.TESTQ(n, n)
	a.JLE(LabelRef("end"))
	a.dispatch(n, 1, p.rows)
	for m := 1; m <= p.rows; m++ {
		a.Label(fmt.Sprintf("rows%d", m))
		p.group(a, m, args, mask, left, aAt, cAt, eAt, [5]gp{ars, aks, bks, ars3, ars5})
		a.JMP(LabelRef("group"))
	}
	a.Label("end")
	p.unlessStream(a, args, nil, func() { a.SFENCE() }) // before this thread says that C is there
	a.end(old)
}

// dispatch jumps to label rows<n> for n in lo..hi.
func (a *asm) dispatch(n gp, lo, hi int) {
	if lo == hi {
		a.JMP(LabelRef(fmt.Sprintf("rows%d", lo)))
		return
	}
	mid := (lo + hi) / 2
	right := a.label("above")
	a.CMPQ(n, Imm(uint64(mid)))
	a.JGT(LabelRef(right))
	a.dispatch(n, lo, mid)
	a.Label(right)
	a.dispatch(n, mid+1, hi)
}

// rowOfSix is the address of one of six rows from base on, whose distance is in
// one, its multiples in three and five.
func rowOfSix(base gp, r int, one, three, five gp) Mem {
	x := Mem{Base: base}
	switch r {
	case 1, 2, 4:
		x.Index, x.Scale = one, uint8(r)
	case 3:
		x.Index, x.Scale = three, 1
	case 5:
		x.Index, x.Scale = five, 1
	}
	return x
}

// unlessStream writes code for near results and, in routines that obey Stream, code for those
// that go past the caches. These are sums of whole lines, which conditionals of columns are.
func (p panel) unlessStream(a *asm, args gp, near, far func()) {
	if p.cols == 1 || p.pairs || p.most {
		if near != nil {
			near()
		}
		return
	}
	streams, end := a.label("streams"), a.label("kept")
	a.CMPB(Mem{Base: args, Disp: int(unsafe.Offsetof(panelArgs{}.Stream))}, Imm(0))
	if far == nil {
		a.JNE(LabelRef(end))
		near()
		a.Label(end)
		return
	}
	a.JNE(LabelRef(streams))
	if near != nil {
		near()
	}
	a.JMP(LabelRef(end))
	a.Label(streams)
	far()
	a.Label(end)
}

// group writes the code of m rows.
func (p panel) group(a *asm, m int, args gp, mask reg.Register, left, aAt, cAt, eAt Mem, s [5]gp) {
	var f panelArgs
	ars, aks, bks, ars3, ars5 := s[0], s[1], s[2], s[3], s[4]
	at := func(off uintptr) Mem { return Mem{Base: args, Disp: int(off)} }

	base := make([]gp, (m+5)/6)
	base[0] = a.GP64()
	a.MOVQ(aAt, base[0])
	for i := 1; i < len(base); i++ {
		base[i] = a.GP64()
		a.LEAQ(Mem{Base: base[i-1], Index: ars3, Scale: 2}, base[i])
	}
	elem := func(r int) Mem { return rowOfSix(base[r/6], r%6, ars, ars3, ars5) }
	c := make([][]vec, m)
	for r := range c {
		c[r] = a.vecs(p.cols)
		for _, v := range c[r] {
			a.zero(v)
		}
	}
	// rows emits body for each row of the matrix at place, stride in args.
	rows := func(place Mem, stride uintptr, body func(r int, m Mem)) gp {
		ptr, step := a.GP64(), a.stride(args, stride)
		a.MOVQ(place, ptr)
		for r := range c {
			body(r, Mem{Base: ptr})
			a.ADDQ(step, ptr)
		}
		return ptr
	}
	// What the end reads and writes comes closer while the sums run.
	fetch := func(r int, m Mem) {
		for i := 0; i < p.cols; i += 64 / (4 * a.lanes()) {
			a.PREFETCHT0(a.offset(m, i))
		}
	}
	p.unlessStream(a, args, func() { rows(cAt, unsafe.Offsetof(f.CRow), fetch) }, nil)
	skip := a.label("sums")
	a.CMPQ(at(unsafe.Offsetof(f.E)), Imm(0))
	a.JEQ(LabelRef(skip))
	rows(eAt, unsafe.Offsetof(f.ERow), fetch)
	a.Label(skip)

	b := a.field(args, unsafe.Offsetof(f.B))
	k := a.field(args, unsafe.Offsetof(f.K))
	a.times(k, func() {
		w := a.vecs(p.cols)
		for i, v := range w {
			a.load(a.offset(Mem{Base: b}, i), v, mask)
		}
		a.ADDQ(bks, b)
		for r := range c {
			if p.cols == 1 && a.wide && !p.pairs && !p.most {
				a.VFMADD231PS_BCST(elem(r), w[0], c[r][0])
				continue
			}
			x := a.vec()
			a.VBROADCASTSS(elem(r), x)
			for i, v := range w {
				switch {
				case p.pairs:
					a.dot(x, v, c[r][i])
				case p.most:
					y := x
					if i < p.cols-1 {
						y = a.vec()
					}
					a.VMULPS(x, v, y)
					a.VMAXPS(y, c[r][i], c[r][i])
				default:
					a.VFMADD231PS(x, v, c[r][i])
				}
			}
		}
		for _, r := range base {
			a.ADDQ(aks, r)
		}
	})

	skip = a.label("store")
	a.CMPB(at(unsafe.Offsetof(f.Add)), Imm(0))
	a.JEQ(LabelRef(skip))
	rows(cAt, unsafe.Offsetof(f.CRow), func(r int, m Mem) {
		for i, v := range c[r] {
			switch {
			case p.most && mask != nil:
				a.VMAXPS_Z(a.offset(m, i), v, mask, v)
			case p.most:
				a.VMAXPS(a.offset(m, i), v, v)
			case mask != nil:
				a.VADDPS_Z(a.offset(m, i), v, mask, v)
			default:
				a.VADDPS(a.offset(m, i), v, v)
			}
		}
	})
	a.Label(skip)
	skip = a.label("scaled")
	a.CMPQ(at(unsafe.Offsetof(f.E)), Imm(0))
	a.JEQ(LabelRef(skip))
	end := rows(eAt, unsafe.Offsetof(f.ERow), func(r int, m Mem) {
		for i, v := range c[r] {
			if mask != nil {
				a.VMULPS_Z(a.offset(m, i), v, mask, v)
			} else {
				a.VMULPS(a.offset(m, i), v, v)
			}
		}
	})
	a.MOVQ(end, eAt)
	a.Label(skip)
	skip = a.label("lowest")
	least := a.field(args, unsafe.Offsetof(f.Min))
	a.TESTQ(least, least)
	a.JZ(LabelRef(skip))
	for i := range p.cols {
		v := a.vec()
		a.load(a.offset(Mem{Base: least}, i), v, mask)
		for r := range c {
			a.VMINPS(c[r][i], v, v)
		}
		a.store(v, a.offset(Mem{Base: least}, i), mask)
	}
	a.Label(skip)
	write := func(store func(v vec, m Mem)) func() {
		return func() {
			end := rows(cAt, unsafe.Offsetof(f.CRow), func(r int, m Mem) {
				for i, v := range c[r] {
					store(v, a.offset(m, i))
				}
			})
			a.MOVQ(end, cAt)
		}
	}
	p.unlessStream(a, args, write(func(v vec, m Mem) { a.store(v, m, mask) }), write(func(v vec, m Mem) { a.VMOVNTPS(v, m) }))
	step := a.GP64()
	a.IMUL3Q(Imm(uint64(m)), ars, step)
	a.ADDQ(step, aAt)
	a.SUBQ(Imm(uint64(m)), left)
}
