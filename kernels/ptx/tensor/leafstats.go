package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// leafStats is the most statistics of a function leaf, with the normaliser.
const leafStats = 3

// leafTile is the number of rows that a block reads at a time, leafShare each warp; a
// block that does a part reads partedTiles as many.
const (
	leafTile    = 32
	leafShare   = leafTile / leafWarps
	partedTiles = 4
)

// leafTiles is the shared memory of two tiles of flows, [2, leafTile, 32 units].
const leafTiles = "tiles"

// gatherBlock starts a kernel that gathers statistics.
func (v Variant) gatherBlock(name string, args ...string) *leafBlock {
	l := v.leafBlock(name, append(args, ArgCodes, ArgValues, ArgKept, ArgUses, ArgConstants, ArgCounts, ArgTotals)...)
	l.tiles(1)
	l.ReturnIf(l.is(FamilyIndicator))
	return l
}

// leafGather gathers the counts of a part of the codes of large tables, and their sum.
func (v Variant) leafGather() *ptx.Kernel {
	l := v.leafBlock(KernelLeafGather, ArgCodes, ArgKept, ArgUses, ArgCounts, ArgTotals)
	l.tiles(partedTiles)
	total := l.addRows(tally{l.column(ArgCounts, 4, InputCounts)}, partedTiles)
	l.put(ptx.F32, l.And(l.exists, l.Eq(l.warp, 0)), l.total(l.part), total)
	return l.Kernel()
}

// total is the address of the sum of a part's counts.
func (l *leafBlock) total(part ptx.Value) ptx.Value {
	return l.At(l.arg(ArgTotals), l.Mad(part, l.control(ptx.U32, ControlUnits), l.place), 4)
}

// norm returns the unit's normaliser on the grid: the sum of its counts, without missing
// cells. It is not that of the flows, of which a large count loses small ones. Counts
// of parts are there already.
func (l *leafBlock) norm(t tally) ptx.Value {
	total := l.Mov(ptx.F32, 0)
	l.IfElse(l.Ne(l.shift, 0), func() {
		one := l.Mov(ptx.U32, 1)
		l.Set(total, l.addAll(l.Mov(ptx.U32, 0), l.Shl(one, l.shift), one, func(part, ok ptx.Value) ptx.Value {
			return l.existing(ptx.F32, ok, l.total(part))
		}))
	}, func() { l.Set(total, l.addRows(t, 1)) })
	return l.round(total, l.fine)
}

// leafMove gathers statistics of owning inputs and moves their parameters.
func (v Variant) leafMove() *ptx.Kernel {
	l := v.gatherBlock(KernelLeafMove, ArgParams, ArgFans)
	l.IfElse(l.Eq(l.codes, 0), func() {
		stats := l.functionStats()
		l.ReturnIf(l.Ne(l.warp, 0))
		for i, q := range stats {
			stats[i] = l.Mul(l.Cvt(ptx.F64, q, "rn"), l.wideGrid())
			if i < leafStats-1 {
				stats[i] = l.Mul(stats[i], l.statScale(i))
			}
		}
		l.moveFunction(stats)
	}, func() {
		l.tallied(func(t tally) {
			norm := l.norm(t)
			read := func(c, ok ptx.Value) []ptx.Value { return []ptx.Value{t.get(c, ok)} }
			take := func(_, _ ptx.Value, read []ptx.Value) ptx.Value { return read[0] }
			l.IfElse(l.is(FamilyHistogram), func() { l.moveBins(t, norm) }, func() {
				l.moveTable(leafCounts{read, take}, norm)
			})
		})
	})
	return l.Kernel()
}

// leafCount gathers statistics of owning inputs and adds them to flows.
func (v Variant) leafCount() *ptx.Kernel {
	l := v.gatherBlock(KernelLeafCount, ArgFlows, ArgFlowNorms)
	add := func(ok, addr, q ptx.Value) { l.put(ptx.S64, ok, addr, l.Add(l.existing(ptx.S64, ok, addr), q)) }
	l.IfElse(l.Eq(l.codes, 0), func() {
		stats := l.functionStats()
		l.ReturnIf(l.Ne(l.warp, 0))
		l.functionFlows(func(i int, ok, at ptx.Value) { add(ok, at, stats[i]) })
	}, func() {
		l.tallied(func(t tally) {
			norm := l.norm(t)
			grid := l.wideGrid()
			quantised := func(x ptx.Value) ptx.Value {
				return l.Cvt(ptx.S64, l.Div(l.Cvt(ptx.F64, x), grid), "rni")
			}
			flows := l.column(ArgFlows, 8, InputTable)
			l.eachCode(func(c, ok ptx.Value) []ptx.Value {
				at := flows.at(c)
				return []ptx.Value{t.get(c, ok), at, l.existing(ptx.S64, ok, at)}
			}, func(_, ok ptx.Value, read []ptx.Value) {
				l.put(ptx.S64, ok, read[1], l.Add(read[2], quantised(read[0])))
			})
			l.ReturnIf(l.Ne(l.first, 0))
			add(l.exists, l.At(l.arg(ArgFlowNorms), l.place, 8), quantised(norm))
		})
	})
	return l.Kernel()
}

// wideGrid is the grid as a float64.
func (l *leafBlock) wideGrid() ptx.Value { return l.Cvt(ptx.F64, l.grid) }

// has reports whether statistic i of the unit exists.
func (l *leafBlock) has(i int) ptx.Value { return l.And(l.exists, l.Gt(l.field(InputStats), i)) }

// statScale is the power of two that statistic i of a function is divided by before
// it is rounded to the grid. Of statistics that do not exist it is 1.
func (l *leafBlock) statScale(i int) ptx.Value {
	scale := l.Mov(ptx.F64, 1)
	l.Guard(l.Gt(l.field(InputStats), i), func() {
		at := l.At(l.arg(ArgConstants), l.Add(l.field(InputScales), i), 8)
		l.Into(scale).Load(ptx.F64, at, 0)
	})
	return scale
}

// eachUse goes through the uses of the input and of those that share with it. kept
// is where the unit's flows start, of lanes without a unit those of the last one,
// pitch the bytes from row to row.
func (l *leafBlock) eachUse(do func(use, kept, pitch ptx.Value)) {
	first := l.field(InputUse)
	last := l.Min(l.unit, l.Sub(l.field(InputUnits), 1))
	l.For(ptx.U32, first, l.Add(first, l.field(InputUses)), 1, func(i ptx.Value) {
		use := l.record(ArgUses, i, UseSize)
		kept := l.element(ArgKept, l.Add(l.Load(ptx.U64, use, UseKept), l.Cvt(ptx.U64, last)))
		do(use, kept, l.Mul(l.Load(ptx.U32, use, UseWidth), 4))
	})
}

// leafOwn is the shared memory of what each warp has to add, [warps, rows of the tiles]:
// pairs of a row and its code.
const leafOwn = "own"

// tiles declares the shared memory of addRows with that many tiles at a time.
func (l *leafBlock) tiles(deep int) {
	l.Shared(leafTiles, 16, 2*deep*leafTile*32*4)
	l.Shared(leafOwn, 8, leafWarps*deep*leafTile*8)
}

// addRows adds the flows of all rows to the counts of their codes, deep tiles of
// rows at a time, and returns the sum of the block's counts. All warps read rows for all.
// Each then lists those whose codes it owns and adds them, several at a time, so that
// counts are added in the order of rows. Afterwards every warp may read the block's counts.
func (l *leafBlock) addRows(t tally, deep int) ptx.Value {
	tiles := l.Symbol(leafTiles)
	own := l.Mad(l.warp, deep*leafTile*8, l.Symbol(leafOwn))
	rows := l.control(ptx.U32, ControlRows)
	last := l.Sub(rows, 1)
	share, size := deep*leafShare, deep*leafTile*32*4
	zero := l.Mov(ptx.F32, 0)
	l.eachCode(func(_, _ ptx.Value) []ptx.Value { return nil }, func(c, ok ptx.Value, _ []ptx.Value) { t.set(c, ok, zero) })
	side := l.Mov(ptx.U32, 0)
	ahead, codesAhead := l.Vars(ptx.F32, share), l.Vars(ptx.U32, deep)
	mine := l.Mad(l.warp, share*32*4, l.At(tiles, l.lane, 4))
	others := l.Sub(l.stride, 1)
	below := l.Sub(l.Shl(l.Mov(ptx.U32, 1), l.lane), 1) // the lanes before this one
	l.eachUse(func(use, kept, pitch ptx.Value) {
		codes := l.codeAt(l.Load(ptx.U32, use, UseAt))
		read := func(base ptx.Value) {
			first := l.Mad(l.warp, share, base)
			for i, a := range ahead {
				l.Into(a).Load(ptx.F32, l.MadWide(l.Min(l.Add(first, i), last), pitch, kept), 0)
			}
			row := l.Add(base, l.lane)
			for i, c := range codesAhead {
				l.Set(c, l.code(codes, l.Min(l.Add(row, i*leafTile), last)))
			}
		}
		read(l.Mov(ptx.U32, 0))
		l.For(ptx.U32, 0, rows, deep*leafTile, func(base ptx.Value) {
			out := l.Add(mine, side)
			for i, a := range ahead {
				l.Store(ptx.F32, out, i*32*4, a)
			}
			n := l.Mov(ptx.U32, 0)
			l.SyncWarp() // all lanes have read the list
			for i, c := range codesAhead {
				row := l.Add(l.lane, i*leafTile)
				owns := l.And(l.Eq(l.And(c, others), l.first), l.And(l.Lt(c, l.codes), l.Lt(l.Add(base, row), rows)))
				owners := l.Ballot(owns)
				at := l.At(own, l.Add(n, l.Popc(l.And(owners, below))), 8)
				l.Guard(owns, func() { l.StoreN(ptx.U32, at, 0, []ptx.Value{row, c}) })
				l.Into(n).Add(n, l.Popc(owners))
			}
			l.Sync()
			next := l.Add(base, deep*leafTile)
			l.If(l.Lt(next, rows), func() { read(next) })
			l.addOwn(t, own, n, l.Add(l.At(tiles, l.lane, 4), side))
			l.Into(side).Xor(side, size)
		})
	})
	return l.sum(l.addAll(l.first, l.codes, l.stride, t.get))[0]
}

// addOwn adds the flows of the n rows that a warp's list has to the counts of their codes.
// Several are in flight at a time: each starts from the memory's count, or from the last
// one before it that has the same code.
func (l *leafBlock) addOwn(t tally, own, n, tile ptx.Value) {
	last := l.Sub(n, 1)
	l.For(ptx.U32, 0, n, leafAhead, func(base ptx.Value) {
		var rows, codes, oks, flows, counts [leafAhead]ptx.Value
		for i := range codes {
			at := l.Add(base, i)
			oks[i] = l.And(l.exists, l.Le(at, last))
			pair := l.LoadN(ptx.U32, 2, l.At(own, l.Min(at, last), 8), 0)
			rows[i], codes[i] = pair[0], pair[1]
		}
		for i, c := range codes {
			counts[i] = t.get(c, oks[i])
		}
		for i, row := range rows {
			flows[i] = l.Load(ptx.F32, l.At(tile, row, 32*4), 0)
		}
		for i := range codes {
			for before := range i {
				counts[i] = l.Select(l.Eq(codes[before], codes[i]), counts[before], counts[i])
			}
			counts[i] = l.Add(counts[i], flows[i])
		}
		for i, c := range codes {
			t.set(c, oks[i], counts[i])
		}
	})
}

// functionStats returns the statistics of a function over all rows in units of the
// grid times their scales, the normaliser last: S64, for all warps.
func (l *leafBlock) functionStats() []ptx.Value {
	rows := l.control(ptx.U32, ControlRows)
	last := l.Sub(rows, 1)
	stats := l.Vars(ptx.F64, leafStats)
	for _, s := range stats {
		l.Set(s, 0)
	}
	logs := l.is(FamilyLogNormal)
	l.eachUse(func(use, kept, pitch ptx.Value) {
		values := l.At(l.arg(ArgValues), l.Load(ptx.U32, use, UseAt), 4)
		l.For(ptx.U32, l.Mul(l.warp, leafShare), rows, leafTile, func(base ptx.Value) {
			var flows, xs [leafShare]ptx.Value
			for i := range flows {
				row := l.Min(l.Add(base, i), last)
				flows[i] = l.Load(ptx.F32, l.MadWide(row, pitch, kept), 0)
				xs[i] = l.Load(ptx.F32, l.At(values, row, 4), 0)
			}
			for i := range flows {
				ok := l.Eq(xs[i], xs[i])
				if i > 0 {
					ok = l.And(ok, l.Lt(l.Add(base, i), rows))
				}
				flow := l.Cvt(ptx.F64, l.Select(ok, flows[i], 0))
				x := l.Var(ptx.F64)
				l.Into(x).Cvt(ptx.F64, l.Select(ok, xs[i], 0))
				l.If(logs, func() { // the statistics of a log-normal are those of ln x
					y, _ := l.logCell(x)
					l.Set(x, y)
				})
				l.Into(stats[0]).Add(stats[0], l.Mul(flow, x))
				l.Into(stats[1]).Add(stats[1], l.Mul(flow, l.Mul(x, x)))
				l.Into(stats[2]).Add(stats[2], flow)
			}
		})
	})
	sums := l.sum(stats...)
	for i, s := range sums {
		s = l.Div(s, l.wideGrid())
		if i < leafStats-1 {
			s = l.Div(s, l.statScale(i))
		}
		sums[i] = l.Cvt(ptx.S64, s, "rni")
	}
	return sums
}

// functionFlows emits do for the places in flows of a function's statistics and its
// normaliser, the last; ok says whether the place exists.
func (l *leafBlock) functionFlows(do func(i int, ok, at ptx.Value)) {
	flows := l.column(ArgFlows, 8, InputParams)
	for i := range leafStats - 1 {
		do(i, l.has(i), flows.at(l.Mov(ptx.U32, i)))
	}
	do(leafStats-1, l.exists, l.At(l.arg(ArgFlowNorms), l.place, 8))
}

// leafVisits writes the flow through each unit of owning inputs, missing cells
// included. Each warp adds up its share of the rows of a use in order.
func (v Variant) leafVisits() *ptx.Kernel {
	l := v.leafBlock(KernelLeafVisits, ArgKept, ArgUses, ArgVisits)
	rows := l.control(ptx.U32, ControlRows)
	last := l.Sub(rows, 1)
	total := l.Mov(ptx.F32, 0)
	l.eachUse(func(_, kept, pitch ptx.Value) {
		run := l.Mov(ptx.F32, 0)
		l.For(ptx.U32, l.Mul(l.warp, leafShare), rows, leafTile, func(base ptx.Value) {
			var flows [leafShare]ptx.Value
			for i := range flows {
				flows[i] = l.Load(ptx.F32, l.MadWide(l.Min(l.Add(base, i), last), pitch, kept), 0)
			}
			for i, f := range flows {
				l.Into(run).Add(run, l.Select(l.Lt(l.Add(base, i), rows), f, 0))
			}
		})
		l.Into(total).Add(total, run)
	})
	total = l.sum(total)[0]
	ok := l.And(l.exists, l.Eq(l.warp, 0))
	l.put(ptx.F32, ok, l.At(l.arg(ArgVisits), l.place, 4), total)
	return l.Kernel()
}
