package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// outTile is the most units that a block of threads computes.
const outTile = 64

// matrix reports whether products are done by matrix instructions.
func (v Variant) matrix() bool { return v.Block >= 16 && !v.most }

// A slab is a tile in shared memory: up to 64 lines of a chunk of floats, as 8
// vectors. With matrix instructions vector j of line l stands at j xor key(l), with
// key(l) = 4·(l mod 2) + (l/2 mod 4): eight lanes that read one vector of eight
// lines, or four of two, meet no bank twice. Otherwise lines are a vector longer.

// linePitch is the bytes from line to line of a slab.
func (v Variant) linePitch() int {
	if v.matrix() {
		return 4 * v.chunk()
	}
	return 4 * (v.chunk() + v.vector())
}

// slabBytes is the size of a slab of 64 lines.
func (v Variant) slabBytes() int { return outTile * v.linePitch() }

// slabPlace is the byte in a slab of vector j of a line, both U32. Lines 8 apart
// stand 8 pitches apart.
func (k *kernel) slabPlace(line, j ptx.Value) ptx.Value {
	if k.matrix() {
		j = k.Xor(j, k.slabKey(line))
	}
	return k.Mad(line, k.linePitch(), k.Mul(j, 4*k.vector()))
}

func (k *kernel) slabKey(line ptx.Value) ptx.Value {
	return k.Or(k.Shl(k.And(line, 1), 2), k.And(k.Shr(line, 1), 3))
}

// panelPitch is the number of floats from row to row of a panel: a tile in shared
// memory whose rows are what a product sums over, each of up to 64 units.
const panelPitch = outTile + 8

// panelBytes is the size of a panel of a chunk's rows.
func (v Variant) panelBytes() int { return 4 * panelPitch * v.chunk() }

// panelRow is the place of a row of a panel. With matrix instructions lane t of four
// reads rows 4t.. of 16; they stand 4 rows apart, so that no bank is met twice.
func (k *kernel) panelRow(row ptx.Value) ptx.Value {
	if !k.matrix() {
		return row
	}
	turned := k.Or(k.Shl(k.And(row, 3), 2), k.Bfe(row, 2, 2))
	return k.Or(k.And(row, 16), turned)
}

// tf32 returns floats with the precision of TF32, and unless that is all the
// precision that the variant wants, what they lost by it.
func (k *kernel) tf32(xs []ptx.Value) (high, low []ptx.Value) {
	for _, x := range xs {
		h := k.TF32(x)
		high = append(high, h)
		if !k.Mixed {
			low = append(low, k.TF32(k.Sub(x, h.As(ptx.F32))))
		}
	}
	return high, low
}

// mmas adds the products of one fragment with several to an accumulator each.
func (k *kernel) mmas(acc [][]ptx.Value, left []ptx.Value, right [][]ptx.Value) {
	for i := range acc {
		k.MMA(ptx.TF32, acc[i], left, right[i])
	}
}

// rowProduct multiplies 64 rows by up to 64 outputs.
//
// With matrix instructions a warp has 16 rows and all outputs: lane 4g+t has rows
// g and g+8, and of the outputs 8i.. those at 2t and 2t+1. Otherwise a thread has
// rows t/8 + 16·i and outputs (t mod 8) + 8·i.
type rowProduct struct {
	k       *kernel
	outputs ptx.Value // U32, of the block: a multiple of S
	acc     [][]ptx.Value
	left    []ptx.Value // U32, offsets of what this thread reads of the rows' slab
	right   []ptx.Value // U32, and of the outputs'
}

// rowProduct returns a product whose sums are 0.
func (k *kernel) rowProduct(outputs ptx.Value) *rowProduct {
	p := &rowProduct{k: k, outputs: outputs}
	tid := k.worker()
	if k.matrix() {
		warp, g, t := k.Shr(tid, 5), k.Bfe(tid, 2, 3), k.And(tid, 3)
		row, far := k.Mad(warp, 16, g), k.Add(t, 4)
		p.left = []ptx.Value{k.slabPlace(row, t), k.slabPlace(row, far)}
		p.right = []ptx.Value{k.slabPlace(g, t), k.slabPlace(g, far)}
	} else {
		p.left = []ptx.Value{k.Mul(k.Shr(tid, 3), k.linePitch())}
		p.right = []ptx.Value{k.Mul(k.And(tid, 7), k.linePitch())}
	}
	for range outTile / 8 {
		acc := k.Vars(ptx.F32, 4)
		for _, a := range acc {
			k.Set(a, 0.0)
		}
		p.acc = append(p.acc, acc)
	}
	return p
}

// add adds the products of the first vectors of two slabs, 1 to 8. With matrix
// instructions the rest of the slabs must be 0.
func (p *rowProduct) add(left, right, vectors ptx.Value) {
	if p.k.matrix() {
		p.addMatrix(left, right)
		return
	}
	p.eachSize(func(n int) { p.addScalar(n, left, right, vectors) })
}

// eachPair emits what do emits for each pair of runs of 8 outputs that exists.
func (p *rowProduct) eachPair(do func(first int)) {
	do(0)
	for i := 2; i < outTile/8; i += 2 {
		p.k.If(p.k.Gt(p.outputs, 8*i), func() { do(i) })
	}
}

// eachSize emits what do emits for n runs of 8 outputs, with n at least what there is.
func (p *rowProduct) eachSize(do func(n int)) {
	k := p.k
	k.IfElse(k.Le(p.outputs, 8), func() { do(1) }, func() {
		k.IfElse(k.Le(p.outputs, 16), func() { do(2) }, func() {
			k.IfElse(k.Le(p.outputs, 32), func() { do(4) }, func() { do(8) })
		})
	})
}

// addMatrix multiplies in steps of eight columns: lane t of four takes two adjacent
// ones of its vector for columns t and t+4 of the fragments, on both sides.
func (p *rowProduct) addMatrix(left, right ptx.Value) {
	k := p.k
	pitch := 8 * k.linePitch()
	for half := range p.left {
		b := k.Add(right, p.right[half])
		p.addHalf(left, half, func(run int) []ptx.Value { return k.LoadN(ptx.F32, 4, b, run*pitch) })
	}
}

// addHalf adds half of the columns of a slab; other returns what meets this
// thread's vector of them, for a run of 8 outputs. Matrix instructions cut what they
// add; so the small products come first, and sums over half a slab, not all sums so
// far, take that loss. Mixed precision does without the small products.
func (p *rowProduct) addHalf(left ptx.Value, half int, other func(run int) []ptx.Value) {
	k := p.k
	a := k.Add(left, p.left[half])
	near, far := k.LoadN(ptx.F32, 4, a, 0), k.LoadN(ptx.F32, 4, a, 8*k.linePitch())
	var high, low [2][]ptx.Value // by step
	for s := range 2 {
		high[s], low[s] = k.tf32([]ptx.Value{near[2*s], far[2*s], near[2*s+1], far[2*s+1]})
	}
	p.eachPair(func(first int) {
		w := [][]ptx.Value{other(first), other(first + 1)}
		sums := k.zeros(2, 4)
		var rightHigh [2][][]ptx.Value // by step and run
		for s := range 2 {
			h0, l0 := k.tf32(w[0][2*s : 2*s+2])
			h1, l1 := k.tf32(w[1][2*s : 2*s+2])
			rightHigh[s] = [][]ptx.Value{h0, h1}
			if !k.Mixed {
				k.mmas(sums, low[s], rightHigh[s])
				k.mmas(sums, high[s], [][]ptx.Value{l0, l1})
			}
		}
		for s := range 2 {
			k.mmas(sums, high[s], rightHigh[s])
		}
		for i, sum := range sums {
			for j, x := range sum {
				acc := p.acc[first+i][j]
				k.Into(acc).Add(acc, x)
			}
		}
	})
}

// addScalar multiplies for n runs of 8 outputs. A kernel of maxima keeps the largest
// product in place of the sum.
func (p *rowProduct) addScalar(n int, left, right, vectors ptx.Value) {
	k := p.k
	b := k.Add(right, p.right[0])
	p.eachVector(left, vectors, func(rows [][]ptx.Value) {
		for o := range n {
			for e, w := range k.floats(k.vector(), b, 8*o*k.linePitch()) {
				for i := range rows {
					if acc := p.acc[o][i]; k.most {
						k.Into(acc).Max(acc, k.Mul(rows[i][e], w))
					} else {
						k.Into(acc).FMA(rows[i][e], w, acc)
					}
				}
			}
		}
		k.Into(b).Add(b, 4*k.vector())
	})
}

// eachVector goes through the first vectors of a slab, those of this thread's rows.
func (p *rowProduct) eachVector(left, vectors ptx.Value, do func(rows [][]ptx.Value)) {
	k := p.k
	size := 4 * k.vector()
	a := k.Add(left, p.left[0])
	end := k.Mad(vectors, size, a)
	k.While(func() ptx.Value { return k.Lt(a, end) }, func() {
		var rows [][]ptx.Value
		for i := range 4 {
			rows = append(rows, k.floats(k.vector(), a, 16*i*k.linePitch()))
		}
		do(rows)
		k.Into(a).Add(a, size)
	})
}

// addDown is add where the other side is a panel. Without matrix instructions this
// thread's sums are then of outputs 4·(t mod 8).. and those 32 further.
func (p *rowProduct) addDown(left, panel, vectors ptx.Value) {
	k := p.k
	tid := k.Special("%tid.x")
	if k.matrix() {
		b := k.At(panel, k.Mad(k.And(tid, 3), panelPitch, k.Bfe(tid, 2, 3)), 4)
		for half := range p.left {
			p.addHalf(left, half, func(run int) (column []ptx.Value) {
				for e := range 4 {
					column = append(column, k.Load(ptx.F32, b, 4*((16*half+4*e)*panelPitch+8*run)))
				}
				return column
			})
		}
		return
	}
	k.IfElse(k.Le(p.outputs, outTile/2), func() { p.addRows(1, left, panel, vectors) }, func() { p.addRows(2, left, panel, vectors) })
}

// addRows adds up rows of a panel for one half of the outputs, or both.
func (p *rowProduct) addRows(halves int, left, panel, vectors ptx.Value) {
	k := p.k
	b := k.At(panel, k.And(k.Special("%tid.x"), 7), 16)
	p.eachVector(left, vectors, func(rows [][]ptx.Value) {
		for e := range k.vector() {
			for h := range halves {
				for l, w := range k.LoadN(ptx.F32, 4, b, 4*(e*panelPitch+h*outTile/2)) {
					acc := p.acc[4*h+l]
					for i := range rows {
						k.Into(acc[i]).FMA(rows[i][e], w, acc[i])
					}
				}
			}
		}
		k.Into(b).Add(b, 4*k.vector()*panelPitch)
	})
}

// unload writes the sums of addDown to 64 rows of a panel's pitch.
func (k *kernel) unload(p *rowProduct, to ptx.Value) {
	if k.matrix() {
		places := p.places()
		for j, row := range places.rows {
			at := k.At(to, k.Mad(row, panelPitch, places.outputs[0]), 4)
			p.eachRun(func(run int) { k.putFloats(at, 32*run, p.acc[run][2*j:2*j+2]) })
		}
		return
	}
	tid := k.Special("%tid.x")
	at := k.At(to, k.Mad(k.Shr(tid, 3), panelPitch, k.Mul(k.And(tid, 7), 4)), 4)
	for i := range 4 {
		for h := range 2 {
			k.putFloats(at, 4*(16*i*panelPitch+h*outTile/2),
				[]ptx.Value{p.acc[4*h][i], p.acc[4*h+1][i], p.acc[4*h+2][i], p.acc[4*h+3][i]})
		}
	}
}

// result is where the sums of a thread stand.
type result struct {
	rows    []ptx.Value // U32, numbers of the thread's rows in the block
	outputs []ptx.Value // U32, a run's outputs of the thread, less the run's first
}

// places says where the sums of a thread stand: acc[i][j·m+l] is that of row j and
// output 8i + outputs[l], with m outputs.
func (p *rowProduct) places() result {
	k := p.k
	tid := k.worker()
	if k.matrix() {
		row := k.Mad(k.Shr(tid, 5), 16, k.Bfe(tid, 2, 3))
		even := k.Mul(k.And(tid, 3), 2)
		return result{[]ptx.Value{row, k.Add(row, 8)}, []ptx.Value{even, k.Add(even, 1)}}
	}
	row := k.Shr(tid, 3)
	return result{[]ptx.Value{row, k.Add(row, 16), k.Add(row, 32), k.Add(row, 48)}, []ptx.Value{k.And(tid, 7)}}
}

// eachRun emits what do emits for every run of 8 outputs of which some exist.
func (p *rowProduct) eachRun(do func(run int)) {
	k := p.k
	if k.matrix() {
		p.eachPair(func(first int) {
			do(first)
			do(first + 1)
		})
		return
	}
	for i := range p.acc {
		do(i)
	}
}

// accumulators says how many sums a lane keeps, in lists of how many: list i is one
// output of the lane's: lane l has the outputs from l/g·n on, with g = ⌈S/4⌉ lanes for
// the columns of one and n = 2·g outputs, and the columns from 4·(l mod g) on.
func (v Variant) accumulators() (lists, each int) { return 2 * v.rowLanes(), v.vector() }

// product adds the products of the ratios and operands of a warp's stage.
func (f *tileFlows) product(stage ptx.Value) {
	k := f.kernel
	n, c := f.accumulators()
	ratios := k.At(stage, k.Div(f.lane, f.rowLanes()), 4*n)
	operands := k.At(k.Add(stage, 4*f.stageRows()*outTile), k.Rem(f.lane, f.rowLanes()), 4*c)
	const unroll = 8
	k.For(ptx.U32, 0, f.stageRows(), unroll, func(ptx.Value) {
		for i := range unroll {
			es := k.floats(c, operands, 4*i*f.Block)
			for o, r := range k.floats(n, ratios, 4*i*outTile) {
				for j, e := range es {
					k.Into(f.acc[o][j]).FMA(r, e, f.acc[o][j])
				}
			}
		}
		k.Into(ratios).Add(ratios, 4*unroll*outTile)
		k.Into(operands).Add(operands, 4*unroll*f.Block)
	})
}

// putParts writes the warp's sums to its part of shared memory, in the order of the
// tile's weights.
func (f *tileFlows) putParts() {
	k := f.kernel
	to := k.Mad(f.warp, 4*f.partFloats(), f.shared)
	n, c := f.accumulators()
	first := k.Mul(k.Div(f.lane, f.rowLanes()), n)
	at := k.At(to, k.Mad(first, f.Block, k.Mul(k.Rem(f.lane, f.rowLanes()), c)), 4)
	for i, acc := range f.acc {
		k.putFloats(at, 4*i*f.Block, acc)
	}
}
