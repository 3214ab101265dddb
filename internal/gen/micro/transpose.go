package main

import . "github.com/mmcloughlin/avo/operand"

func transposeRoutines(wide bool) []routine {
	if wide {
		return []routine{{"transpose512", "(dst *float32, dstRow int, src *float32, srcRow int)", "transposes a block of 16×16 floats.", transpose512}}
	}
	return []routine{{"transpose256", "(dst *float32, dstRow int, src *float32, srcRow int)", "transposes a block of 8×8 floats.", transpose256}}
}

// interleave emits the first two steps of a transpose, within 128-bit lanes:
// 4×4 blocks of floats are transposed in place.
func (a *asm) interleave(r []vec) []vec {
	n := len(r)
	t, u := a.vecs(n), a.vecs(n)
	for i := 0; i < n; i += 2 {
		a.VUNPCKLPS(r[i+1], r[i], t[i])
		a.VUNPCKHPS(r[i+1], r[i], t[i+1])
	}
	for i := 0; i < n; i += 4 {
		for j := range 2 {
			a.VUNPCKLPD(t[i+2+j], t[i+j], u[i+2*j])
			a.VUNPCKHPD(t[i+2+j], t[i+j], u[i+2*j+1])
		}
	}
	return u
}

// block loads the rows of a block and returns them with the place to store to.
func (a *asm) block() (rows []vec, dst, dstRow gp) {
	dst, dstRow = a.param("dst"), a.strideParam("dstRow")
	src, srcRow := a.param("src"), a.strideParam("srcRow")
	rows = a.vecs(a.lanes())
	for _, v := range rows {
		a.VMOVUPS(Mem{Base: src}, v)
		a.ADDQ(srcRow, src)
	}
	return rows, dst, dstRow
}

func transpose512(a *asm) {
	rows, dst, dstRow := a.block()
	r := a.interleave(rows)
	t, u := a.vecs(16), a.vecs(16)
	for i := range 4 {
		a.VSHUFF32X4(Imm(0x88), r[i+4], r[i], t[i])
		a.VSHUFF32X4(Imm(0xdd), r[i+4], r[i], t[i+4])
		a.VSHUFF32X4(Imm(0x88), r[i+12], r[i+8], t[i+8])
		a.VSHUFF32X4(Imm(0xdd), r[i+12], r[i+8], t[i+12])
	}
	for i := range 4 {
		a.VSHUFF32X4(Imm(0x88), t[i+8], t[i], u[i])
		a.VSHUFF32X4(Imm(0x88), t[i+12], t[i+4], u[i+4])
		a.VSHUFF32X4(Imm(0xdd), t[i+8], t[i], u[i+8])
		a.VSHUFF32X4(Imm(0xdd), t[i+12], t[i+4], u[i+12])
	}
	for _, v := range u {
		a.VMOVUPS(v, Mem{Base: dst})
		a.ADDQ(dstRow, dst)
	}
	a.end()
}

func transpose256(a *asm) {
	rows, dst, dstRow := a.block()
	r := a.interleave(rows)
	u := a.vecs(8)
	for i := range 4 {
		a.VPERM2F128(Imm(0x20), r[i+4], r[i], u[i])
		a.VPERM2F128(Imm(0x31), r[i+4], r[i], u[i+4])
	}
	for _, v := range u {
		a.VMOVUPS(v, Mem{Base: dst})
		a.ADDQ(dstRow, dst)
	}
	a.end()
}
