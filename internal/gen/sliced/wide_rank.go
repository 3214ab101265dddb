package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quadsWide is quads for sixteen rows at a time: loads place rows so that one exchange
// less transposes them.
var quadsWide = routine{
	"quads512", quadsSig, quadsDoc,
	func(a *asm) {
		row, stride, n, keys, three := a.param("cells"), a.param("stride"), a.param("n"), a.param("keys"), a.GP64()
		a.LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
		top, ones, zero, sign, missing := a.all(1<<31), a.all(1<<32-1), a.ZMM(), a.ZMM(), a.K()
		a.VXORPS(zero, zero, zero)
		v, t := [4]reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3}, [4]reg.VecPhysical{reg.Z4, reg.Z5, reg.Z6, reg.Z7}
		a.Label("rows")
		for i, x := range v {
			a.VMOVUPS(rowAt(row, stride, three, i), x.AsX())
		}
		for part := range 3 {
			a.LEAQ(Mem{Base: row, Index: stride, Scale: 4}, row)
			for i, x := range v {
				a.VINSERTF32X4(Imm(uint64(part+1)), rowAt(row, stride, three, i), x, x)
			}
		}
		a.LEAQ(Mem{Base: row, Index: stride, Scale: 4}, row)
		a.square(v, t)
		for i, x := range v {
			a.VADDPS(x, zero, x)
			a.VPSRAD(Imm(31), x, sign)
			a.VCMPPS(Imm(3), x, x, missing)
			a.VPTERNLOGD(Imm(0x1e), top, sign, x) // x ^ (sign | top)
			a.VMOVDQA32(ones, missing, x)
			a.VMOVDQU64(x, Mem{Base: keys, Disp: 4 * quadRows * i})
		}
		a.ADDQ(Imm(64), keys)
		a.SUBQ(Imm(16), n)
		a.JNZ(LabelRef("rows"))
		a.ret()
	},
}

// searchWide goes down the tree of a table that lies in registers: a permutation fetches
// the cuts of a level for sixteen keys, as long as it has at most 32, and two or four
// permutations more.
var searchWide = routine{
	"search512", searchSig, "writes the ranks of n keys, 1 or more, by the table of searchTable; steps are 4 to 8. It reads and writes whole multiples of 64 rows. See searchGeneric.",
	func(a *asm) {
		keys, table, steps, codes, n := a.param("keys"), a.param("table"), a.param("steps"), a.param("codes"), a.param("n")
		one, two, order, root := a.all(1), a.all(2), a.ZMM(), a.ZMM()
		var lanes []uint32
		for i := range uint32(16) {
			lanes = append(lanes, i%4*4+i/4)
		}
		a.VMOVDQU64(a.constant("lanes", lanes...), order)
		a.VPBROADCASTD(Mem{Base: table, Disp: 4}, root)
		for s := 4; s <= 8; s++ {
			next, loop := fmt.Sprint("over", s), fmt.Sprint("rows", s)
			a.CMPQ(steps, Imm(uint64(s)))
			a.JNE(LabelRef(next))
			cuts := a.wides(1 << (s - 4))
			for i, c := range cuts {
				a.VMOVDQU64(Mem{Base: table, Disp: 64 * i}, c)
			}
			turn := a.all(2<<s - 1)
			a.Label(loop)
			var ranks [4]wide
			for i := range ranks {
				ranks[i] = a.descend(Mem{Base: keys, Disp: 64 * i}, s, cuts, root, one, two)
				a.VPXORD(turn, ranks[i], ranks[i])
			}
			for i := range 2 {
				a.VPACKUSDW(ranks[2*i+1], ranks[2*i], ranks[2*i])
			}
			a.VPACKUSWB(ranks[2], ranks[0], ranks[0])
			a.VPERMD(ranks[0], order, ranks[0])
			a.VMOVDQU64(ranks[0], Mem{Base: codes})
			a.ADDQ(U32(256), keys)
			a.ADDQ(Imm(64), codes)
			a.SUBQ(Imm(64), n)
			a.JG(LabelRef(loop))
			a.ret()
			a.Label(next)
		}
		a.ret()
	},
}

// descend returns where sixteen keys arrive in a tree of that many steps, whose cuts are
// those from 16 on of the table in each next vector.
func (a *asm) descend(keys Mem, steps int, cuts []wide, root, one, two wide) wide {
	key := a.ZMM()
	a.VMOVDQU64(keys, key)
	at := a.copied(two)
	below := []reg.Register{a.K(), a.K(), a.K()} // the first decision, the second, and the one at hand
	a.VPCMPUD(Imm(1), root, key, below[0])
	a.VPADDD(one, at, below[0], at)
	for level := 1; level < steps; level++ {
		var cut wide
		if level <= 4 {
			cut = a.ZMM()
			a.VPERMD(cuts[level/4], at, cut)
		} else {
			n := 1 << (level - 4) // vectors of this level
			cut = a.choose(cuts[n:2*n], at, below)
		}
		k := below[min(level, 2)]
		a.VPCMPUD(Imm(1), cut, key, k)
		a.VPADDD(at, at, at)
		a.VPADDD(one, at, k, at)
	}
	return at
}

// choose fetches numbers of two, four or eight vectors: of pairs of vectors by the low
// bits of an index, and one of these by the bits above, which are decisions.
func (a *asm) choose(from []wide, at wide, decisions []reg.Register) wide {
	if len(from) == 2 {
		cut := a.copied(at)
		a.VPERMI2D(from[1], from[0], cut)
		return cut
	}
	half := len(from) / 2
	low, high := a.choose(from[:half], at, decisions[1:]), a.choose(from[half:], at, decisions[1:])
	a.VMOVDQA32(high, decisions[0], low)
	return low
}
