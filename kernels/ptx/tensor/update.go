package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// leastWeight is the least a positive weight can become: it keeps flow over weight
// finite in float32.
const leastWeight = 0x1p-100

// leastAverage is what an average of flows becomes 0 below, far under the grid:
// those of weights that no flow reaches any more end there.
const leastAverage = 0x1p-64

// update moves the weights of tiles by flows, and clears these.
func (v Variant) update() *ptx.Kernel { return v.updateBy(KernelUpdate, false) }

// updateAverages moves the averages of tiles by flows, which it clears, and the
// weights by the averages.
func (v Variant) updateAverages() *ptx.Kernel { return v.updateBy(KernelUpdateAverages, true) }

// updateBy makes the kernels on the flows of a tile, whose weights and flows follow
// each other: each thread does a few that lie side by side in one row of a block.
func (v Variant) updateBy(name string, averaged bool) *ptx.Kernel {
	const threads = 256
	s, n := v.Block, min(v.Block, 4)
	args := []string{ArgControl, ArgParams, ArgFlows, ArgKeep, ArgGain, ArgPrior, ArgTiles, ArgList}
	if averaged {
		args = append(args, ArgAverages)
	}
	k := v.begin(name, threads, 0, args...)
	tile := k.record(ArgTiles, k.entry(k.Special("%ctaid.x")), TileSize)
	first := k.MulWide(k.Load(ptx.U32, tile, TileParam), s*s)
	weights, flows := k.element(ArgParams, first), k.At(k.arg(ArgFlows), first, 8)
	grid := k.control(ptx.F32, ControlGrid)
	var old, fine ptx.Value
	var av averages
	if averaged {
		old, fine, av = k.element(ArgAverages, first), k.control(ptx.F32, ControlFine), k.averages()
	}
	unit := k.Load(ptx.U32, tile, TileUnit)
	runs := k.Mul(k.Load(ptx.U32, tile, TileBlocks), s*s/n)
	k.For(ptx.U32, k.Special("%tid.x"), runs, threads, func(i ptx.Value) {
		u := k.Add(unit, i)
		if s > n {
			u = k.Add(unit, k.Div(i, s/n))
		}
		keep := k.Load(ptx.F32, k.At(k.arg(ArgKeep), u, 4), 0)
		gain := k.Load(ptx.F32, k.At(k.arg(ArgGain), u, 4), 0)
		prior := k.Load(ptx.F32, k.At(k.arg(ArgPrior), u, 4), 0)
		at := k.At(weights, i, 4*n)
		theta, flow := k.floats(n, at, 0), k.At(flows, i, 8*n)
		counts := k.takeFlows(flow, n, grid)
		if averaged {
			a := k.At(old, i, 4*n)
			for j, x := range k.floats(n, a, 0) {
				counts[j] = av.next(x, counts[j])
			}
			k.putFloats(a, 0, counts)
			for j := range counts {
				counts[j] = k.round(counts[j], fine)
			}
		}
		for j := range theta {
			theta[j] = k.moved(theta[j], counts[j], keep, gain, prior)
		}
		k.putFloats(at, 0, theta)
	})
	return k.Kernel()
}

// moved returns θ·keep + count·gain + prior, and at least leastWeight; a weight of 0
// stays. Products and sums are rounded one by one, in this order.
func (k *kernel) moved(theta, count, keep, gain, prior ptx.Value) ptx.Value {
	x := k.Add(k.Add(k.Mul(theta, keep), k.Mul(count, gain)), prior)
	return k.Select(k.Eq(theta, 0), 0, k.Select(k.Lt(x, leastWeight), leastWeight, x))
}

// averages is what moves averages of flows on.
type averages struct {
	k          *kernel
	keep, take ptx.Value // F32
}

// averages reads the shares in averages.
func (k *kernel) averages() averages {
	return averages{k, k.control(ptx.F32, ControlAverage), k.control(ptx.F32, ControlTake)}
}

// next moves an average on by a count.
func (a averages) next(old, count ptx.Value) ptx.Value {
	k := a.k
	x := k.Add(k.Mul(old, a.keep), k.Mul(count, a.take))
	return k.Select(k.Lt(x, leastAverage), 0, x)
}

// takeFlows reads n flows as counts, and clears them.
func (k *kernel) takeFlows(addr ptx.Value, n int, grid ptx.Value) []ptx.Value {
	zero := k.Mov(ptx.S64, 0)
	counts := make([]ptx.Value, 0, n)
	for len(counts) < n {
		at, pair := 8*len(counts), min(n, 2)
		var flows []ptx.Value
		if pair == 2 {
			flows = k.LoadN(ptx.S64, 2, addr, at)
			k.StoreN(ptx.S64, addr, at, []ptx.Value{zero, zero})
		} else {
			flows = []ptx.Value{k.Load(ptx.S64, addr, at)}
			k.Store(ptx.S64, addr, at, zero)
		}
		for _, f := range flows {
			counts = append(counts, k.Mul(k.Cvt(ptx.F32, f, "rn"), grid))
		}
	}
	return counts
}
