package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// leafUpdate moves the parameters of owning inputs by flows, and clears these.
func (v Variant) leafUpdate() *ptx.Kernel { return v.leafUpdateBy(KernelLeafUpdate, false) }

// leafUpdateAverages moves the averages of owning inputs by flows, which it clears,
// and the parameters by the averages, as far as the visits of units say.
func (v Variant) leafUpdateAverages() *ptx.Kernel {
	return v.leafUpdateBy(KernelLeafUpdateAverages, true)
}

// leafUpdateBy makes the kernels on the flows of leaves.
func (v Variant) leafUpdateBy(name string, averages bool) *ptx.Kernel {
	args := []string{ArgParams, ArgFans, ArgFlows, ArgFlowNorms, ArgConstants, ArgCounts}
	if averages {
		args = append(args, ArgAverages, ArgAverNorms, ArgResidues, ArgVisits)
	}
	l := v.leafBlock(name, args...)
	l.ReturnIf(l.is(FamilyIndicator))
	l.IfElse(l.Eq(l.codes, 0), func() {
		l.ReturnIf(l.Ne(l.warp, 0))
		l.moveFunction(l.takeStats(averages))
	}, func() {
		norm := l.takeNorm(averages)
		counts := l.flowCounts(averages)
		l.IfElse(l.is(FamilyHistogram), func() {
			l.tallied(func(t tally) {
				l.eachCode(counts.read, func(c, ok ptx.Value, read []ptx.Value) {
					t.set(c, ok, counts.take(c, ok, read))
				})
				l.Sync()
				l.moveBins(t, norm)
			})
		}, func() { l.moveTable(counts, norm) })
	})
	return l.Kernel()
}

// flowCounts are the counts in flows, or the averages that they move on; flows
// become 0.
func (l *leafBlock) flowCounts(averages bool) leafCounts {
	flows, old := l.column(ArgFlows, 8, InputTable), column{}
	var next func(old, count ptx.Value) ptx.Value
	if averages {
		old, next = l.column(ArgAverages, 4, InputTable), l.averages().next
	}
	return leafCounts{func(c, ok ptx.Value) []ptx.Value {
		at := flows.at(c)
		read := []ptx.Value{at, l.existing(ptx.S64, ok, at)}
		if averages {
			at := old.at(c)
			read = append(read, at, l.existing(ptx.F32, ok, at))
		}
		return read
	}, func(_, ok ptx.Value, read []ptx.Value) ptx.Value {
		l.put(ptx.S64, ok, read[0], l.Mov(ptx.S64, 0))
		count := l.Mul(l.Cvt(ptx.F32, read[1], "rn"), l.grid)
		if averages {
			count = next(read[3], count)
			l.put(ptx.F32, ok, read[2], count)
		}
		return count
	}}
}

// takeNorm returns the unit's normaliser in flows, or the average that it moves on,
// for all warps; the flow becomes 0. It waits for all threads.
func (l *leafBlock) takeNorm(averages bool) ptx.Value {
	at := l.At(l.arg(ArgFlowNorms), l.place, 8)
	norm := l.Mul(l.Cvt(ptx.F32, l.existing(ptx.S64, l.exists, at), "rn"), l.grid)
	old := ptx.Value{}
	if averages {
		old = l.At(l.arg(ArgAverNorms), l.place, 4)
		norm = l.averages().next(l.existing(ptx.F32, l.exists, old), norm)
	}
	l.Sync()
	first := l.And(l.exists, l.Eq(l.warp, 0))
	l.put(ptx.S64, first, at, l.Mov(ptx.S64, 0))
	if averages {
		l.put(ptx.F32, first, old, norm)
	}
	return norm
}

// takeStats returns the statistics of a function in flows, or the averages that
// they move on, as float64 with their scales, the normaliser last; flows become 0.
// An average is a pair of float32: statistics are differences of large numbers.
func (l *leafBlock) takeStats(averages bool) []ptx.Value {
	grid := l.wideGrid()
	stats := make([]ptx.Value, leafStats)
	l.functionFlows(func(i int, ok, at ptx.Value) {
		flow := l.existing(ptx.S64, ok, at)
		l.put(ptx.S64, ok, at, l.Mov(ptx.S64, 0))
		stats[i] = l.Mul(l.Cvt(ptx.F64, flow, "rn"), grid)
		if averages {
			stats[i] = l.averagedPair(i, ok, stats[i])
		}
		if i < leafStats-1 {
			stats[i] = l.Mul(stats[i], l.statScale(i))
		}
	})
	return stats
}

// averagedPair moves the average of statistic i on by a count.
func (l *leafBlock) averagedPair(i int, ok, count ptx.Value) ptx.Value {
	shares := l.averages()
	keep, take := l.Cvt(ptx.F64, shares.keep), l.Cvt(ptx.F64, shares.take)
	row := l.Mov(ptx.U32, i)
	high := l.At(l.arg(ArgAverNorms), l.place, 4)
	if i < leafStats-1 {
		high = l.column(ArgAverages, 4, InputParams).at(row)
	} else {
		row = l.field(InputStats)
	}
	low := l.At(l.arg(ArgResidues), l.Add(l.field(InputResidue), l.Mad(row, l.width, l.unit)), 4)
	read := func(at ptx.Value) ptx.Value { return l.Cvt(ptx.F64, l.existing(ptx.F32, ok, at)) }
	a := l.Add(l.Mul(l.Add(read(high), read(low)), keep), l.Mul(count, take))
	first := l.Cvt(ptx.F32, a, "rn")
	rest := l.Cvt(ptx.F32, l.Sub(a, l.Cvt(ptx.F64, first)), "rn")
	l.put(ptx.F32, ok, high, first)
	l.put(ptx.F32, ok, low, rest)
	return l.Add(l.Cvt(ptx.F64, first), l.Cvt(ptx.F64, rest))
}
