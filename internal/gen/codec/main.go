// Command codec writes the assembly of codec/lanes: one file for each routine and one
// with the Go declarations.
//
// Run it as "go generate ./codec/lanes" in the root of the repository; it first deletes
// what it wrote before.
package main

import (
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/pce-engine/pce/internal/gen/routines"
)

// rows is how many rows of the weights a routine takes.
const rows = 4

const laneBytes = 64

const matrix = "(out *Lane, w *float32, stride int, in *Lane, cols int)"

var all = []routines.Routine{
	{Name: "up256", Doc: "adds the products of four rows of weights with v to four lanes of out: the loop of Up.", Signature: matrix, Emit: up},
	{Name: "down256", Doc: "adds the products of four rows of weights, transposed, with four lanes of d to out: the loop of Down.", Signature: matrix, Emit: down},
	{Name: "dot256", Doc: "adds the products of two vectors of so many lanes, 1 or more, in eight sums.", Signature: "(sums, x, y *Lane, lanes int)", Emit: dot},
	{Name: "times256", Doc: "multiplies so many lanes, 1 or more, and takes the largest product of each row: the loop of Times.", Signature: "(tops, out, x, y *Lane, lanes int)", Emit: times},
	{Name: "rows256", Doc: "writes four units of so many blocks of four, 1 or more, to eight rows, which begin stride numbers apart, times factors of the rows: the loop of Split.", Signature: "(out *float64, stride int, x, factors *Lane, blocks int)", Emit: split},
	{Name: "fetch64", Doc: "asks for so many bytes from x on, 1 or more, to be brought near: the loop of Fetch.", Signature: "(x *float64, bytes int)", Emit: fetch},
	{Name: "tops256", Doc: "takes the largest number of each row of so many lanes, 1 or more.", Signature: "(tops, x *Lane, lanes int)", Emit: tops},
}

func main() {
	p := routines.Package{Name: "lanes", Generator: "codec", Routines: all, Known: map[string]string{"*Lane": "*float64"}}
	p.Main()
}

// arguments are the registers of a routine's arguments.
type arguments struct {
	out, w, stride, stride3, in, cols reg.GPVirtual
}

func load(c *build.Context) arguments {
	a := arguments{out: c.GP64(), w: c.GP64(), stride: c.GP64(), stride3: c.GP64(), in: c.GP64(), cols: c.GP64()}
	c.Load(c.Param("out"), a.out)
	c.Load(c.Param("w"), a.w)
	c.Load(c.Param("stride"), a.stride)
	c.Load(c.Param("in"), a.in)
	c.Load(c.Param("cols"), a.cols)
	c.SHLQ(Imm(2), a.stride) // bytes
	c.LEAQ(Mem{Base: a.stride, Index: a.stride, Scale: 2}, a.stride3)
	return a
}

// weight returns the weight of a row in the column at hand, four times.
func (a *arguments) weight(c *build.Context, row int) reg.VecVirtual {
	m := Mem{Base: a.w}
	switch row {
	case 1, 2:
		m.Index, m.Scale = a.stride, uint8(row)
	case 3:
		m.Index, m.Scale = a.stride3, 1
	}
	narrow, wide := c.XMM(), c.YMM()
	c.VBROADCASTSS(m, narrow)
	c.VCVTPS2PD(narrow, wide)
	return wide
}

// multiplyAdd rounds the product before it adds it: a fused operation would give other
// bits than other processors.
func multiplyAdd(c *build.Context, x, y, sum reg.VecVirtual) {
	product := c.YMM()
	c.VMULPD(x, y, product)
	c.VADDPD(product, sum, sum)
}

// halves loads or names the two halves of lanes.
func halves(c *build.Context, base reg.GPVirtual, n int) (v []reg.VecVirtual) {
	for i := range 2 * n {
		x := c.YMM()
		c.VMOVUPD(Mem{Base: base, Disp: laneBytes / 2 * i}, x)
		v = append(v, x)
	}
	return v
}

func store(c *build.Context, v []reg.VecVirtual, base reg.GPVirtual) {
	for i, x := range v {
		c.VMOVUPD(x, Mem{Base: base, Disp: laneBytes / 2 * i})
	}
}

// loop repeats body for every column, of which there is one or more.
func (a *arguments) loop(c *build.Context, body func()) {
	c.Label("column")
	body()
	c.ADDQ(Imm(4), a.w)
	c.DECQ(a.cols)
	c.JNZ(LabelRef("column"))
}

func up(c *build.Context) {
	a := load(c)
	sums := halves(c, a.out, rows)
	a.loop(c, func() {
		in := halves(c, a.in, 1)
		for row := range rows {
			w := a.weight(c, row)
			multiplyAdd(c, w, in[0], sums[2*row])
			multiplyAdd(c, w, in[1], sums[2*row+1])
		}
		c.ADDQ(Imm(laneBytes), a.in)
	})
	store(c, sums, a.out)
	c.VZEROUPPER()
	c.RET()
}

func down(c *build.Context) {
	a := load(c)
	in := halves(c, a.in, rows)
	a.loop(c, func() {
		sums := halves(c, a.out, 1)
		for row := range rows {
			w := a.weight(c, row)
			multiplyAdd(c, w, in[2*row], sums[0])
			multiplyAdd(c, w, in[2*row+1], sums[1])
		}
		store(c, sums, a.out)
		c.ADDQ(Imm(laneBytes), a.out)
	})
	c.VZEROUPPER()
	c.RET()
}

func dot(c *build.Context) {
	sums, x, y, n := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("sums"), sums)
	c.Load(c.Param("x"), x)
	c.Load(c.Param("y"), y)
	c.Load(c.Param("lanes"), n)
	all := []reg.VecVirtual{c.YMM(), c.YMM()}
	for _, s := range all {
		c.VXORPD(s, s, s)
	}
	c.Label("lane")
	for i, v := range halves(c, x, 1) {
		product := c.YMM()
		c.VMULPD(Mem{Base: y, Disp: laneBytes / 2 * i}, v, product)
		c.VADDPD(product, all[i], all[i])
	}
	c.ADDQ(Imm(laneBytes), x)
	c.ADDQ(Imm(laneBytes), y)
	c.DECQ(n)
	c.JNZ(LabelRef("lane"))
	store(c, all, sums)
	c.VZEROUPPER()
	c.RET()
}

func times(c *build.Context) {
	top, out, x, y, n := c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("tops"), top)
	c.Load(c.Param("out"), out)
	c.Load(c.Param("x"), x)
	c.Load(c.Param("y"), y)
	c.Load(c.Param("lanes"), n)
	largest(c, top, n, func() []reg.VecVirtual {
		v := halves(c, x, 1)
		for i := range v {
			c.VMULPD(Mem{Base: y, Disp: laneBytes / 2 * i}, v[i], v[i])
		}
		store(c, v, out)
		c.ADDQ(Imm(laneBytes), out)
		c.ADDQ(Imm(laneBytes), x)
		c.ADDQ(Imm(laneBytes), y)
		return v
	})
}

func tops(c *build.Context) {
	top, x, n := c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("tops"), top)
	c.Load(c.Param("x"), x)
	c.Load(c.Param("lanes"), n)
	largest(c, top, n, func() []reg.VecVirtual {
		v := halves(c, x, 1)
		c.ADDQ(Imm(laneBytes), x)
		return v
	})
}

// largest writes the largest number of each row of n lanes, which next takes turn by turn, to
// top.
func largest(c *build.Context, top, n reg.GPVirtual, next func() []reg.VecVirtual) {
	all := []reg.VecVirtual{c.YMM(), c.YMM()}
	for _, s := range all {
		c.VXORPD(s, s, s)
	}
	c.Label("lane")
	for i, v := range next() {
		c.VMAXPD(v, all[i], all[i])
	}
	c.DECQ(n)
	c.JNZ(LabelRef("lane"))
	store(c, all, top)
	c.VZEROUPPER()
	c.RET()
}

func fetch(c *build.Context) {
	x, n := c.GP64(), c.GP64()
	c.Load(c.Param("x"), x)
	c.Load(c.Param("bytes"), n)
	c.Label("line")
	c.PREFETCHT0(Mem{Base: x})
	c.ADDQ(Imm(64), x)
	c.SUBQ(Imm(64), n)
	c.JHI(LabelRef("line"))
	c.RET()
}

// split transposes squares of four units and four rows.
func split(c *build.Context) {
	out, stride, x, factors, n := c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("out"), out)
	c.Load(c.Param("stride"), stride)
	c.Load(c.Param("x"), x)
	c.Load(c.Param("factors"), factors)
	c.Load(c.Param("blocks"), n)
	c.SHLQ(Imm(3), stride) // bytes
	stride3, upper := c.GP64(), c.GP64()
	c.LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	c.LEAQ(Mem{Base: out, Index: stride, Scale: 4}, upper)
	by := halves(c, factors, 1)
	c.Label("block")
	for half, base := range []reg.GPVirtual{out, upper} {
		var v [4]reg.VecVirtual
		for u := range v {
			v[u] = c.YMM()
			c.VMULPD(Mem{Base: x, Disp: laneBytes*u + laneBytes/2*half}, by[half], v[u])
		}
		pairs := [4]reg.VecVirtual{c.YMM(), c.YMM(), c.YMM(), c.YMM()}
		c.VUNPCKLPD(v[1], v[0], pairs[0]) // rows 0 and 2 of units 0 and 1
		c.VUNPCKHPD(v[1], v[0], pairs[1])
		c.VUNPCKLPD(v[3], v[2], pairs[2])
		c.VUNPCKHPD(v[3], v[2], pairs[3])
		for row := range 4 {
			whole, part := c.YMM(), Imm(0x20)
			if row >= 2 {
				part = Imm(0x31)
			}
			c.VPERM2F128(part, pairs[row%2+2], pairs[row%2], whole)
			m := Mem{Base: base}
			switch row {
			case 1, 2:
				m.Index, m.Scale = stride, uint8(row)
			case 3:
				m.Index, m.Scale = stride3, 1
			}
			c.VMOVUPD(whole, m)
		}
	}
	c.ADDQ(U32(4*laneBytes), x)
	c.ADDQ(Imm(32), out)
	c.ADDQ(Imm(32), upper)
	c.DECQ(n)
	c.JNZ(LabelRef("block"))
	c.VZEROUPPER()
	c.RET()
}
