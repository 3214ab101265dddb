package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// The kernels on patches add up parameter flows by matrix instructions. Variants
// with blocks of 16 and 32 have them in place of those on tiles.
const (
	// KernelMoveWide is KernelMove for patches of up to WidePatch units and columns.
	KernelMoveWide = "move_wide"
	// KernelCountWide is KernelCount for them.
	KernelCountWide = "count_wide"
)

// The most units, and columns, of patches.
const (
	NarrowPatch = 64
	WidePatch   = 128
)

// PatchTotals is the dynamic shared memory that launches on patches with several
// members take.
func PatchTotals(edge int) int { return 4 * edge * edge }

// PatchShared is the shared memory of a kernel on patches in addition to that.
func PatchShared(edge int) int {
	return (ratioStages+operandStages)*patch(edge).stageBytes() + headSize*patchHeads
}

// Patches reports whether the variant adds up flows in patches.
func (v Variant) Patches() bool { return v.matrix() }

const (
	patchRows     = 16  // of a stage
	patchHeads    = 256 // rows whose heads are in shared memory
	ratioStages   = 3   // of which two are on their way
	operandStages = 2

	// A head is where the factors of an element have their values in a row: the row or
	// the code of the first three, and the scale. With more factors it is the row, and the
	// shift in place of the scale. A row that counts for nothing has nowhere in the first.
	headSize  = 16
	headScale = 12
	nowhere   = ^uint32(0)

	// patchColumns is the columns of a warp.
	patchColumns = 32
)

// patch is the most units and columns that a block of threads adds up the flows of.
// Two rows of warps share the units, others the columns: a warp has half of the units
// and 32 columns, 1/4 or 1/8 of the patch.
//
// Lane 4g+t of a warp has units 32q+4g+e, e < 4, and columns 8t+4h+j, j < 4: fragment
// 2q+i of the left side has units 32q+4g+2i and the next one as its rows g and g+8,
// fragment j of the right side column 4g+j as its column g. So what a lane reads of a
// row of a stage, and what it has in the end, are vectors of four.
type patch int

func (p patch) threads() int   { return 2 * int(p) }
func (p patch) warpUnits() int { return int(p) / 2 }

// pitch is the floats from row to row of a stage: eight lanes that read vectors of
// four rows meet no bank twice.
func (p patch) pitch() int      { return int(p) + 8 }
func (p patch) stageBytes() int { return 4 * patchRows * p.pitch() }

// patchBlocks is how many blocks of threads a multiprocessor should hold: with
// products in parts, more would spill registers.
func (v Variant) patchBlocks(p patch) int {
	switch {
	case p == WidePatch:
		return 1
	case !v.Mixed:
		return 2
	}
	return 3
}

// across is the number of threads that share a row of a stage, a vector each; so
// patchLines rows are done at once.
func (p patch) across() int { return int(p) / 4 }

const patchLines = 8

// patchFlows adds up the parameter flows of a patch, less the weight.
//
// For each member, in order: a sum of every sixteen rows starts at 0, takes the small
// products of float32 in parts first, and is added to a sum of float32 over the rows.
// The sums of the members are added in order. No other weight or patch has a say in that.
type patchFlows struct {
	*kernel
	patch
	record                    ptx.Value // U64
	steps                     ptx.Value // U32: row steps
	step                      ptx.Value // U32, the first
	columns                   ptx.Value // U32: columns that exist
	rows                      ptx.Value // U32, of the launch
	ratios, operandsAt, heads ptx.Value // U32, shared memory
	line, vec                 ptx.Value // U32: of what the thread brings to stages, its first row and its first unit or column
	left, right               ptx.Value // U32: what the lane reads first of a stage's ratios and operands, in bytes
	active                    ptx.Value // Pred: the warp has units and columns
	acc                       [][][]ptx.Value
}

// patchFlows makes a kernel that adds up the flows of patches and hands each thread's
// to put, eight adjacent weights at a time: the place of the first in params, the
// unit's in node space.
func (v Variant) patchFlows(name string, p patch, args []string, put putFlows) *ptx.Kernel {
	args = append(args, ArgRatio, ArgBad, ArgBadRows, ArgPatches, ArgRowSteps, ArgMembers, ArgList)
	k := v.begin(name, p.threads(), v.patchBlocks(p), append(args, operandArgs...)...)
	f := &patchFlows{kernel: k, patch: p, rows: k.control(ptx.U32, ControlRows)}
	f.ratios = k.Shared("ratios", 16, ratioStages*p.stageBytes())
	f.operandsAt = k.Shared("operands", 16, operandStages*p.stageBytes())
	f.heads = k.Shared("heads", 16, headSize*patchHeads)
	f.record = k.record(ArgPatches, k.entry(k.Special("%ctaid.x")), PatchSize)
	head := k.LoadN(ptx.U32, 4, f.record, PatchStep)
	f.step, f.steps = head[0], head[1]
	f.columns = k.Mul(head[2], v.Block)
	tid := k.Special("%tid.x")
	f.line, f.vec = k.Div(tid, p.across()), k.Mul(k.Rem(tid, p.across()), 4)
	unit, column := f.warpUnit(), f.warpColumn()
	own := k.Mad(k.And(tid, 3), p.pitch(), k.Mul(k.Bfe(tid, 2, 3), 4))
	f.left, f.right = k.Mul(k.Add(own, unit), 4), k.Mul(k.Add(own, column), 4)
	f.active = k.And(k.Lt(unit, k.Mul(f.steps, v.Block)), k.Lt(column, f.columns))
	for range p.warpUnits() / 16 {
		f.acc = append(f.acc, k.zeros(patchColumns/8, 4))
	}
	member := k.LoadN(ptx.U32, 2, f.record, PatchMember)
	last := k.Add(member[0], k.Sub(member[1], 1))
	k.For(ptx.U32, member[0], k.Add(last, 1), 1, func(m ptx.Value) {
		for _, list := range f.acc {
			clearAll(k, list)
		}
		place := k.LoadN(ptx.U32, 4, k.record(ArgMembers, m, MemberSize), MemberSum)
		sum := k.record(ArgSums, place[0], SumSize)
		f.addRows(sum, place[1], place[2])
		k.If(k.Ne(m, member[0]), func() {
			f.eachTotal(func(at ptx.Value, offset int, list []ptx.Value) {
				for i, x := range k.LoadN(ptx.F32, 4, at, offset) {
					k.Into(list[i]).Add(x, list[i])
				}
			})
		})
		f.addMarked(sum, place[1], place[2])
		k.If(k.Ne(m, last), func() {
			f.eachTotal(func(at ptx.Value, offset int, list []ptx.Value) { k.StoreN(ptx.F32, at, offset, list) })
		})
	})
	node := k.Load(ptx.U32, f.record, PatchUnit)
	f.eachUnit(func(u patchUnit) {
		put(k, u.index, k.Add(node, u.unit), append(f.flows(u, 0), f.flows(u, 1)...))
	})
	return k.Kernel()
}

// warpUnit and warpColumn are the first of the warp.
func (f *patchFlows) warpUnit() ptx.Value {
	return f.Mul(f.Bfe(f.Special("%tid.x"), 5, 1), f.warpUnits())
}

func (f *patchFlows) warpColumn() ptx.Value {
	return f.Mul(f.Shr(f.Special("%tid.x"), 6), patchColumns)
}

// eachTotal goes through the thread's sums, four at a time, and the places where those
// of a patch with several members wait: no others.
func (f *patchFlows) eachTotal(do func(at ptx.Value, offset int, list []ptx.Value)) {
	at := f.At(f.Symbol(room), f.Special("%tid.x"), 16)
	n := 0
	for _, lists := range f.acc {
		for _, list := range lists {
			do(at, 16*f.threads()*n, list)
			n++
		}
	}
}

// patchUnit is a unit of the patch of which the thread has eight columns.
type patchUnit struct {
	q, e  int       // it is 32q+4g+e of the warp
	index ptx.Value // U64: the place of its first weight in params
	unit  ptx.Value // U32, of the sum
}

// eachUnit emits what do emits for every unit of the thread that exists, and of whose
// columns some exist; then all eight do.
func (f *patchFlows) eachUnit(do func(u patchUnit)) {
	k := f.kernel
	s := f.Block
	column := f.column()
	f.If(f.Lt(column, f.columns), func() {
		block := f.Mad(f.Div(column, s), k.Load(ptx.U32, f.record, PatchStride), k.Load(ptx.U32, f.record, PatchShift))
		for q := range f.warpUnits() / 32 {
			first := f.Add(f.warpUnit(), f.Mad(f.Bfe(f.Special("%tid.x"), 2, 3), 4, f.Mov(ptx.U32, 32*q)))
			step := f.Div(first, s)
			f.If(f.Lt(step, f.steps), func() {
				record := k.LoadN(ptx.U32, 2, k.record(ArgRowSteps, f.Add(f.step, step), RowStepSize), 0)
				param := f.MulWide(f.Add(record[1], block), s*s)
				within := f.Rem(first, s)
				index := f.MadWide(f.Mad(within, s, f.Rem(column, s)), 1, param)
				for e := range 4 {
					u := patchUnit{q, e, index, f.Add(f.Add(record[0], within), e)}
					if e > 0 {
						u.index = f.Add(index, e*s)
					}
					do(u)
				}
			})
		}
	})
}

// column is the first of the thread's columns in the patch.
func (f *patchFlows) column() ptx.Value {
	return f.Mad(f.And(f.Special("%tid.x"), 3), 8, f.warpColumn())
}

// flows are four of a unit's: of the first or the second half of its columns.
func (f *patchFlows) flows(u patchUnit, half int) (list []ptx.Value) {
	for _, acc := range f.acc[2*u.q+u.e/2] {
		list = append(list, acc[2*(u.e%2)+half])
	}
	return list
}

// addRows adds the flows of the rows that are not marked.
func (f *patchFlows) addRows(sum, element, column ptx.Value) {
	k := f.kernel
	b := f.bring(sum, element, column)
	k.For(ptx.U32, 0, f.rows, patchHeads, func(first ptx.Value) {
		b.writeHeads(first)
		k.Sync()
		stages := k.Shr(k.Add(k.Min(k.Sub(f.rows, first), patchHeads), patchRows-1), 4)
		slot, side := k.Mov(ptx.U32, 0), k.Mov(ptx.U32, 0) // of ratios and operands, in bytes
		b.ratios(first, k.Mov(ptx.U32, 0), slot)
		k.Commit()
		k.If(k.Gt(stages, 1), func() { b.ratios(first, k.Mov(ptx.U32, 1), k.Mov(ptx.U32, f.stageBytes())) })
		k.Commit()
		b.load(k.Mov(ptx.U32, 0))
		k.For(ptx.U32, 0, stages, 1, func(stage ptx.Value) {
			b.store(stage, side)
			k.WaitGroup(1)
			k.Sync()
			k.If(k.Lt(k.Add(stage, 2), stages), func() {
				back := k.Sub(slot, f.stageBytes())
				free := k.Select(k.Ge(slot, f.stageBytes()), back, k.Add(slot, 2*f.stageBytes()))
				b.ratios(first, k.Add(stage, 2), free)
			})
			k.Commit()
			k.If(k.Lt(k.Add(stage, 1), stages), func() { b.load(k.Add(stage, 1)) })
			k.If(f.active, func() { f.product(k.Add(f.ratios, slot), k.Add(f.operandsAt, side)) })
			k.Into(side).Sub(k.Mov(ptx.U32, f.stageBytes()), side)
			next := k.Add(slot, f.stageBytes())
			k.Into(slot).Select(k.Lt(next, ratioStages*f.stageBytes()), next, 0)
		})
	})
}

// product adds the products of the ratios and operands of a stage.
func (f *patchFlows) product(ratios, operands ptx.Value) {
	k := f.kernel
	ratios, operands = k.Add(ratios, f.left), k.Add(operands, f.right)
	// vectors reads a vector of row t of every four, by step of eight rows and half of it.
	vectors := func(at ptx.Value, offset int) (v [2][2][]ptx.Value) {
		for s := range v {
			for h := range v[s] {
				v[s][h] = k.LoadN(ptx.F32, 4, at, 4*(offset+(8*s+4*h)*f.pitch()))
			}
		}
		return v
	}
	right := vectors(operands, 0)
	var high, low [2][][]ptx.Value // by step and run of 8 columns
	for s := range 2 {
		for j := range patchColumns / 8 {
			pair := []ptx.Value{right[s][0][j], right[s][1][j]}
			if k.Mixed { // rounded by store
				high[s] = append(high[s], []ptx.Value{pair[0].As(ptx.B32), pair[1].As(ptx.B32)})
				continue
			}
			h, l := k.tf32(pair)
			high[s], low[s] = append(high[s], h), append(low[s], l)
		}
	}
	for q := range f.warpUnits() / 32 {
		left := vectors(ratios, 32*q)
		for i := range 2 {
			sums := k.zeros(patchColumns/8, 4) // as in addHalf
			var as [2][]ptx.Value
			for s := range 2 {
				near, far := left[s][0], left[s][1]
				h, l := k.tf32([]ptx.Value{near[2*i], near[2*i+1], far[2*i], far[2*i+1]})
				if !k.Mixed {
					k.mmas(sums, l, high[s])
					k.mmas(sums, h, low[s])
				}
				as[s] = h
			}
			for s := range 2 {
				k.mmas(sums, as[s], high[s])
			}
			for j, sum := range sums {
				for e, x := range sum {
					acc := f.acc[2*q+i][j][e]
					k.Into(acc).Add(acc, x)
				}
			}
		}
	}
}

// addMarked adds the flows of the marked rows, in which values are logs to the base 2.
func (f *patchFlows) addMarked(sum, element, column ptx.Value) {
	k := f.kernel
	list := k.arg(ArgBadRows)
	count := k.Load(ptx.U32, list, 0)
	k.For(ptx.U32, 0, count, 1, func(i ptx.Value) {
		row := k.Load(ptx.U32, k.At(list, i, 4), 4)
		exp := k.Load(ptx.S32, k.At(k.At(k.arg(ArgExp), k.Load(ptx.U32, sum, SumExp), 4), row, 4), 0)
		o := k.operands([]ptx.Value{row})
		o.head(element)
		width, units := k.Load(ptx.U32, sum, SumWidth), k.Load(ptx.U32, sum, SumUnits)
		base := k.Load(ptx.U64, sum, SumVal)
		logs := k.MadWide(row, k.Mul(width, 4), k.element(ArgVal, base))
		flows := k.MadWide(row, k.Mul(width, 4), k.element(ArgRatio, base))
		own := f.column()
		terms := k.zeros(2, 4)
		k.If(k.Lt(own, f.columns), func() {
			for half, list := range terms {
				for j, x := range o.logs(k.Add(k.Add(column, own), 4*half), exp) {
					k.Set(list[j], x)
				}
			}
		})
		f.eachUnit(func(u patchUnit) {
			k.If(k.Lt(u.unit, units), func() {
				flow := k.Load(ptx.F32, k.At(flows, u.unit, 4), 0)
				k.If(k.Gt(flow, 0.0), func() {
					down := k.Load(ptx.F32, k.At(logs, u.unit, 4), 0)
					weights := k.element(ArgParams, u.index)
					for half := range 2 {
						accs := f.flows(u, half)
						for j, theta := range k.floats(4, weights, 16*half) {
							x := k.Mul(flow, k.Ex2(k.Sub(terms[half][j], down)))
							x = k.Select(k.Eq(theta, 0.0), 0.0, x)
							k.Into(accs[j]).Add(accs[j], x)
						}
					}
				})
			})
		})
	})
}
