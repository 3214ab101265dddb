package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// flowWarps is the number of warps that share the rows of a tile's flows. Each adds
// up the rows of its own stages; their sums are added in order.
const flowWarps = tileThreads / 32

// stageRows is the number of rows that a warp takes at once.
func (v Variant) stageRows() int {
	if v.Block >= 8 {
		return 16
	}
	return 32
}

// rowLanes is the number of lanes that share a row of operands.
func (v Variant) rowLanes() int { return v.Block / v.vector() }

// stageBytes is the shared memory of a warp's stage: ratios, then operands.
func (v Variant) stageBytes() int { return 4 * v.stageRows() * (outTile + v.Block) }

// partFloats is the size of a warp's sums.
func (v Variant) partFloats() int { return outTile * v.Block }

// putFlows takes flows of adjacent weights of a unit: the place of the first in params,
// and the unit's in node space.
type putFlows func(k *kernel, index, unit ptx.Value, flows []ptx.Value)

// tileFlows adds up the parameter flows of a tile, less the weight, without matrix
// instructions: for each member over the rows, and over the members in order.
type tileFlows struct {
	*kernel
	tile    ptx.Value     // U64, address of the record
	outputs ptx.Value     // U32, units of the tile
	rows    ptx.Value     // U32, of the launch
	lane    ptx.Value     // U32
	warp    ptx.Value     // U32
	shared  ptx.Value     // U32, address
	acc     [][]ptx.Value // F32, of this warp for the member: see product
	totals  ptx.Value     // U32, address of the sums over members: each thread has its own groups
}

// flows makes a kernel that adds up the flows of tiles and hands each thread's to
// put, a vector of adjacent weights at a time.
func (v Variant) flows(name string, args []string, put putFlows) *ptx.Kernel {
	args = append(args, ArgRatio, ArgBad, ArgBadRows, ArgTiles, ArgMembers, ArgList)
	k := v.begin(name, tileThreads, 3, append(args, operandArgs...)...)
	f := &tileFlows{kernel: k, rows: k.control(ptx.U32, ControlRows)}
	stages := max(flowWarps*v.stageBytes(), 4*flowWarps*v.partFloats())
	f.shared = k.Shared("stages", 16, stages+4*v.partFloats())
	f.totals = k.Add(f.shared, stages)
	f.tile = k.record(ArgTiles, k.entry(k.Special("%ctaid.x")), TileSize)
	f.outputs = k.Mul(k.Load(ptx.U32, f.tile, TileBlocks), v.Block)
	f.lane, f.warp = k.And(k.Special("%tid.x"), 31), k.Shr(k.Special("%tid.x"), 5)
	f.acc = k.zeros(f.accumulators())
	zero := k.zeros(1, v.vector())[0]
	f.eachGroup(func(group, _, _ ptx.Value) { k.putFloats(f.total(group), 0, zero) })
	member := k.Load(ptx.U32, f.tile, TileMember)
	k.For(ptx.U32, member, k.Add(member, k.Load(ptx.U32, f.tile, TileMembers)), 1, func(m ptx.Value) {
		f.addMember(k.LoadN(ptx.U32, 4, k.record(ArgMembers, m, MemberSize), 0))
	})
	node := k.Load(ptx.U32, f.tile, TileUnit)
	f.eachGroup(func(group, unit, _ ptx.Value) {
		put(k, f.index(group), k.Add(node, unit), k.floats(v.vector(), f.total(group), 0))
	})
	return k.Kernel()
}

// zeros returns n lists of m new F32 that are 0.
func (k *kernel) zeros(n, m int) [][]ptx.Value {
	xs := make([][]ptx.Value, n)
	for i := range xs {
		xs[i] = k.Vars(ptx.F32, m)
	}
	clearAll(k, xs)
	return xs
}

func clearAll(k *kernel, xs [][]ptx.Value) {
	for _, x := range xs {
		for _, f := range x {
			k.Set(f, 0.0)
		}
	}
}

// total returns the address of the totals of a group.
func (f *tileFlows) total(group ptx.Value) ptx.Value { return f.At(f.totals, group, 4) }

// eachGroup emits what do emits for each vector of adjacent weights that this thread
// ends up with: group is its place in the tile, in floats; its weights are those of
// a unit, less the tile's first, and of the columns from column on.
func (f *tileFlows) eachGroup(do func(group, unit, column ptx.Value)) {
	n := f.vector()
	end := f.Mul(f.outputs, f.Block)
	for i := range max(f.partFloats()/n/tileThreads, 1) {
		group := f.Mul(f.Add(f.Special("%tid.x"), i*tileThreads), n)
		f.If(f.Lt(group, end), func() { do(group, f.Div(group, f.Block), f.Rem(group, f.Block)) })
	}
}

// addMember adds the flows of a member, given by its record.
func (f *tileFlows) addMember(member []ptx.Value) {
	sum := f.record(ArgSums, member[0], SumSize)
	clearAll(f.kernel, f.acc)
	f.addRows(sum, member[1], member[2])
	f.Sync()
	f.putParts()
	f.Sync()
	f.eachGroup(func(group, _, _ ptx.Value) {
		at := f.At(f.shared, group, 4)
		part := f.floats(f.vector(), at, 0)
		for w := 1; w < flowWarps; w++ {
			for j, x := range f.floats(f.vector(), at, 4*w*f.partFloats()) {
				part[j] = f.Add(part[j], x)
			}
		}
		f.add(group, part)
	})
	f.Sync()
	f.addMarked(sum, member[1], member[2])
}

// add adds to the totals of a group.
func (f *tileFlows) add(group ptx.Value, xs []ptx.Value) {
	sums := f.floats(len(xs), f.total(group), 0)
	for i, x := range xs {
		sums[i] = f.Add(sums[i], x)
	}
	f.putFloats(f.total(group), 0, sums)
}

// addRows adds the flows of the rows that are not marked to the warp's sums.
func (f *tileFlows) addRows(sum, element, column ptx.Value) {
	var (
		n      = f.stageRows()
		lanes  = f.rowLanes()
		apart  = 32 / lanes // rows that the lanes of a warp form at once
		last   = f.Sub(f.rows, 1)
		line   = f.Div(f.lane, lanes)
		unit   = f.Mul(f.Rem(f.lane, lanes), f.vector())
		stage  = f.Mad(f.warp, f.stageBytes(), f.shared)
		places = f.Mad(f.Mad(line, f.Block, unit), 4, f.Add(stage, 4*n*outTile))
		exps   = f.At(f.arg(ArgExp), f.Load(ptx.U32, sum, SumExp), 4)
		first  = f.Add(column, unit)
	)
	o := f.operands(f.Vars(ptx.U32, n/apart))
	o.turn(element)
	ratios := f.ratioRows(sum, stage)
	f.For(ptx.U32, f.Mul(f.warp, n), f.rows, flowWarps*n, func(base ptx.Value) {
		own := f.Add(base, f.lane)
		mark := f.Load(ptx.U32, f.At(f.arg(ArgBad), f.Min(own, last), 4), 0)
		clear := f.And(f.And(f.Lt(own, f.rows), f.Lt(f.lane, n)), f.Eq(mark, 0))
		mask := f.Ballot(clear)
		f.If(f.Ne(mask, 0), func() {
			ratios(base, mask)
			var exp, here []ptx.Value
			for i, r := range o.rows {
				row := f.Add(line, i*apart)
				own := f.Add(base, row)
				f.Into(r).Min(own, last)
				here = append(here, f.Ne(f.And(f.Shr(mask, row), 1), 0))
				exp = append(exp, f.Load(ptx.S32, f.At(exps, r, 4), 0))
			}
			o.reach()
			o.align(exp)
			for i, row := range o.form(first) {
				for j, x := range row {
					row[j] = f.Select(here[i], x, 0.0)
				}
				f.putFloats(places, 4*i*apart*f.Block, row)
			}
			f.WaitGroup(0)
			f.SyncWarp()
			f.product(stage)
			f.SyncWarp()
		})
	})
}

// ratioRows prepares to copy the ratios of a stage's rows, 0 where the mask has none,
// and returns what does it.
func (f *tileFlows) ratioRows(sum, stage ptx.Value) func(base, mask ptx.Value) {
	var (
		n      = f.vector()
		across = outTile / n
		deep   = max(32/across, 1) // rows that a warp copies at once
		last   = f.Sub(f.rows, 1)
		start  = f.element(ArgRatio, f.Load(ptx.U64, sum, SumVal))
		pitch  = f.Mul(f.Load(ptx.U32, sum, SumWidth), 4)
		line   = f.Div(f.lane, across)
		unit   = f.Mul(f.Rem(f.lane, across), n)
		to     = f.Mad(f.Mad(line, outTile, unit), 4, stage)
	)
	start = f.At(start, f.Add(f.Load(ptx.U32, f.tile, TileRow), unit), 4)
	return func(base, mask ptx.Value) {
		f.For(ptx.U32, 0, f.stageRows(), 8*deep, func(some ptx.Value) {
			at := f.Mad(some, 4*outTile, to)
			for i := range 8 {
				row := f.Add(f.Add(some, line), i*deep)
				from := f.MadWide(f.Min(f.Add(base, row), last), pitch, start)
				here := f.Ne(f.And(f.Shr(mask, row), 1), 0)
				for u := 0; u < outTile; u += 32 * n {
					have := f.Select(f.And(here, f.Lt(f.Add(unit, u), f.outputs)), f.Mov(ptx.U32, 4*n), 0)
					f.CopyAsync(at, 4*(i*deep*outTile+u), from, 4*u, 4*n, have)
				}
			}
		})
		f.Commit()
	}
}

// addMarked adds the flows of the marked rows, in which values are logs to the base 2.
func (f *tileFlows) addMarked(sum, element, column ptx.Value) {
	list := f.arg(ArgBadRows)
	count := f.Load(ptx.U32, list, 0)
	f.For(ptx.U32, 0, count, 1, func(i ptx.Value) {
		row := f.Load(ptx.U32, f.At(list, i, 4), 4)
		exp := f.Load(ptx.S32, f.At(f.At(f.arg(ArgExp), f.Load(ptx.U32, sum, SumExp), 4), row, 4), 0)
		o := f.operands([]ptx.Value{row})
		o.head(element)
		width, units := f.Load(ptx.U32, sum, SumWidth), f.Load(ptx.U32, sum, SumUnits)
		base := f.Load(ptx.U64, sum, SumVal)
		logs := f.MadWide(row, f.Mul(width, 4), f.element(ArgVal, base))
		flows := f.MadWide(row, f.Mul(width, 4), f.element(ArgRatio, base))
		f.eachGroup(func(group, unit, c ptx.Value) {
			unit = f.Add(unit, f.Load(ptx.U32, f.tile, TileRow))
			f.If(f.Lt(unit, units), func() {
				flow := f.Load(ptx.F32, f.At(flows, unit, 4), 0)
				f.If(f.Gt(flow, 0.0), func() {
					down := f.Load(ptx.F32, f.At(logs, unit, 4), 0)
					operand := o.logs(f.Add(column, c), exp)
					for j, theta := range f.floats(f.vector(), f.element(ArgParams, f.index(group)), 0) {
						x := f.Mul(flow, f.Ex2(f.Sub(operand[j], down)))
						operand[j] = f.Select(f.Eq(theta, 0.0), 0.0, x)
					}
					f.add(group, operand)
				})
			})
		})
	})
}

// index returns the place in params of the weight at a place of the tile.
func (f *tileFlows) index(group ptx.Value) ptx.Value {
	return f.MadWide(group, 1, f.MulWide(f.Load(ptx.U32, f.tile, TileParam), f.Block*f.Block))
}

// move adds up the flows of tiles, or patches, and moves the weights by them.
func (v Variant) move() *ptx.Kernel { return v.moveBy(KernelMove, NarrowPatch) }

// moveWide does so for wide patches.
func (v Variant) moveWide() *ptx.Kernel { return v.moveBy(KernelMoveWide, WidePatch) }

func (v Variant) moveBy(name string, p patch) *ptx.Kernel {
	args := []string{ArgKeep, ArgGain, ArgPrior}
	put := func(k *kernel, index, unit ptx.Value, flows []ptx.Value) {
		fine := k.control(ptx.F32, ControlFine)
		keep := k.Load(ptx.F32, k.At(k.arg(ArgKeep), unit, 4), 0)
		gain := k.Load(ptx.F32, k.At(k.arg(ArgGain), unit, 4), 0)
		prior := k.Load(ptx.F32, k.At(k.arg(ArgPrior), unit, 4), 0)
		at := k.element(ArgParams, index)
		n := v.vector()
		for first := 0; first < len(flows); first += n {
			thetas := k.floats(n, at, 4*first)
			for j, theta := range thetas {
				thetas[j] = k.moved(theta, k.round(k.Mul(theta, flows[first+j]), fine), keep, gain, prior)
			}
			k.putFloats(at, 4*first, thetas)
		}
	}
	if v.Patches() {
		return v.patchFlows(name, p, args, put)
	}
	return v.flows(name, args, put)
}

// count adds up the flows of tiles, or patches, and adds them to flows, in units of the grid.
func (v Variant) count() *ptx.Kernel { return v.countBy(KernelCount, NarrowPatch) }

// countWide does so for wide patches.
func (v Variant) countWide() *ptx.Kernel { return v.countBy(KernelCountWide, WidePatch) }

func (v Variant) countBy(name string, p patch) *ptx.Kernel {
	put := func(k *kernel, index, _ ptx.Value, flows []ptx.Value) {
		grid := k.Cvt(ptx.F64, k.control(ptx.F32, ControlGrid))
		weights, at := k.element(ArgParams, index), k.At(k.arg(ArgFlows), index, 8)
		n := v.vector()
		for first := 0; first < len(flows); first += n {
			for j, theta := range k.floats(n, weights, 4*first) {
				q := k.Cvt(ptx.S64, k.Div(k.Cvt(ptx.F64, k.Mul(theta, flows[first+j])), grid), "rni")
				k.Store(ptx.S64, at, 8*(first+j), k.Add(k.Load(ptx.S64, at, 8*(first+j)), q))
			}
		}
	}
	if v.Patches() {
		return v.patchFlows(name, p, []string{ArgFlows}, put)
	}
	return v.flows(name, []string{ArgFlows}, put)
}
