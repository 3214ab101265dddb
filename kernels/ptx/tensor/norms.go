package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// normWarps is the number of warps that share the rows of 32 units.
const normWarps = 8

// mostKept is up to how many uses a sum's flow is added up from what each use keeps;
// beyond, it is its ratio times its value, or what a marked row has for a ratio.
const mostKept = 2

var normArgs = []string{ArgControl, ArgVal, ArgExp, ArgRatio, ArgKept, ArgBad, ArgSums, ArgUses, ArgOwners, ArgOwnerSums, ArgList}

// norms writes the flow through each unit of owning sums, rounded to the grid.
func (v Variant) norms() *ptx.Kernel {
	return v.normsTo(KernelNorms, ArgNorms, true, func(k *kernel, at, norm ptx.Value) {
		k.Store(ptx.F32, k.At(k.arg(ArgNorms), at, 4), 0, norm)
	})
}

// normsCount adds the same, counted in units of the grid, to flows.
func (v Variant) normsCount() *ptx.Kernel {
	return v.normsTo(KernelNormsCount, ArgFlowNorms, true, func(k *kernel, at, norm ptx.Value) {
		flow := k.At(k.arg(ArgFlowNorms), at, 8)
		grid := k.Cvt(ptx.F64, k.control(ptx.F32, ControlGrid))
		count := k.Cvt(ptx.S64, k.Div(k.Cvt(ptx.F64, norm), grid), "rni")
		k.Store(ptx.S64, flow, 0, k.Add(k.Load(ptx.S64, flow, 0), count))
	})
}

// visits writes the flow through each unit of owning sums as it is.
func (v Variant) visits() *ptx.Kernel {
	return v.normsTo(KernelVisits, ArgVisits, false, func(k *kernel, at, norm ptx.Value) {
		k.Store(ptx.F32, k.At(k.arg(ArgVisits), at, 4), 0, norm)
	})
}

// normsTo adds up the flow through 32 units of an owner over the sums that share its
// weights and hands the total to put, with the unit's place in node space. Each warp
// adds up every eighth row of a use; the sums of a member's uses are added in order,
// those of the warps, and then those of the members; the total is rounded if asked.
func (v Variant) normsTo(name, dst string, rounded bool, put func(k *kernel, at, norm ptx.Value)) *ptx.Kernel {
	k := v.begin(name, 32*normWarps, 0, append([]string{dst}, normArgs...)...)
	parts := k.Shared("parts", 16, 4*32*normWarps)
	tid := k.Special("%tid.x")
	lane, warp := k.And(tid, 31), k.Shr(tid, 5)
	part := k.At(parts, tid, 4)
	owner, unit := k.unitOf(k.Special("%ctaid.x"), lane)
	exists := k.Lt(unit, k.Load(ptx.U32, owner, OwnerWidth))
	total := k.Mov(ptx.F32, 0)
	member := k.Load(ptx.U32, owner, OwnerMember)
	members := k.Load(ptx.U32, owner, OwnerMembers)
	k.For(ptx.U32, member, k.Add(member, members), 1, func(m ptx.Value) {
		sum := k.record(ArgSums, k.Load(ptx.U32, k.At(k.arg(ArgOwnerSums), m, 4), 0), SumSize)
		flow := k.Mov(ptx.F32, 0)
		k.If(exists, func() { k.memberFlow(sum, unit, warp, flow) })
		k.Store(ptx.F32, part, 0, flow)
		k.Sync()
		k.If(k.Eq(warp, 0), func() {
			one := k.Mov(ptx.F32, 0)
			for w := range normWarps {
				k.Into(one).Add(one, k.Load(ptx.F32, part, 4*32*w))
			}
			k.Into(total).Add(total, one)
		})
		k.Sync()
	})
	k.If(k.And(exists, k.Eq(warp, 0)), func() {
		if rounded {
			total = k.round(total, k.control(ptx.F32, ControlFine))
		}
		put(k, k.Add(k.Load(ptx.U32, owner, OwnerUnit), unit), total)
	})
	return k.Kernel()
}

// unitOf reads entry i of a list of pairs, an owner and a run of 32 units, and
// returns the owner's record and the unit of a lane.
func (k *kernel) unitOf(i, lane ptx.Value) (owner, unit ptx.Value) {
	pair := k.LoadN(ptx.U32, 2, k.At(k.arg(ArgList), i, 8), 0)
	return k.record(ArgOwners, pair[0], OwnerSize), k.Mad(pair[1], 32, lane)
}

// memberFlow adds to flow what goes through a unit of a sum in every eighth row.
func (k *kernel) memberFlow(sum, unit, warp, flow ptx.Value) {
	rows := k.control(ptx.U32, ControlRows)
	users := k.Load(ptx.U32, sum, SumUsers)
	k.IfElse(k.Le(users, mostKept), func() { k.usesFlow(sum, users, unit, warp, rows, flow) }, func() {
		width := k.Load(ptx.U32, sum, SumWidth)
		first := k.MadWide(warp, width, k.Load(ptx.U64, sum, SumVal))
		value := k.At(k.element(ArgVal, first), unit, 4)
		ratio := k.At(k.element(ArgRatio, first), unit, 4)
		step := k.MulWide(width, 4*normWarps)
		k.For(ptx.U32, warp, rows, normWarps, func(row ptx.Value) {
			r := k.Load(ptx.F32, ratio, 0)
			mark := k.Load(ptx.U32, k.At(k.arg(ArgBad), row, 4), 0)
			k.Into(flow).Add(flow, k.Select(k.Eq(mark, 0), k.Mul(r, k.Load(ptx.F32, value, 0)), r))
			k.Into(value).Add(value, step)
			k.Into(ratio).Add(ratio, step)
		})
	})
	root := k.Ne(k.Load(ptx.U32, sum, SumRoot), 0)
	k.If(k.And(root, k.Eq(unit, 0)), func() {
		k.For(ptx.U32, warp, rows, normWarps, func(row ptx.Value) {
			one := k.Select(k.possible(sum, row), k.Mov(ptx.F32, 1), 0)
			k.Into(flow).Add(flow, one)
		})
	})
}

// usesFlow adds to flow what the uses of a sum keep.
func (k *kernel) usesFlow(sum, users, unit, warp, rows, flow ptx.Value) {
	user := k.Load(ptx.U32, sum, SumUser)
	k.For(ptx.U32, user, k.Add(user, users), 1, func(u ptx.Value) {
		use := k.record(ArgUses, u, UseSize)
		width := k.Load(ptx.U32, use, UseWidth)
		first := k.MadWide(warp, width, k.Load(ptx.U64, use, UseKept))
		at := k.At(k.element(ArgKept, first), unit, 4)
		step := k.MulWide(width, 4*normWarps)
		run, row := k.Mov(ptx.F32, 0), k.Mov(ptx.U32, warp)
		const unroll = 4
		k.While(func() ptx.Value { return k.Lt(k.Add(row, normWarps*(unroll-1)), rows) }, func() {
			var fs [unroll]ptx.Value
			for i := range fs {
				fs[i] = k.Load(ptx.F32, at, 0)
				k.Into(at).Add(at, step)
			}
			for _, f := range fs {
				k.Into(run).Add(run, f)
			}
			k.Into(row).Add(row, normWarps*unroll)
		})
		k.While(func() ptx.Value { return k.Lt(row, rows) }, func() {
			k.Into(run).Add(run, k.Load(ptx.F32, at, 0))
			k.Into(at).Add(at, step)
			k.Into(row).Add(row, normWarps)
		})
		k.Into(flow).Add(flow, run)
	})
}

// possible reports whether the root, a sum, has a value in a row.
func (k *kernel) possible(sum, row ptx.Value) ptx.Value {
	at := k.MadWide(row, k.Load(ptx.U32, sum, SumWidth), k.Load(ptx.U64, sum, SumVal))
	value := k.Load(ptx.F32, k.element(ArgVal, at), 0)
	marked := k.Ne(k.Load(ptx.U32, k.At(k.arg(ArgBad), row, 4), 0), 0)
	least := k.Select(marked, k.Mov(ptx.F32, math.Inf(-1)), 0)
	exp := k.Load(ptx.S32, k.At(k.sumExps(sum), row, 4), 0)
	return k.And(k.Gt(value, least), k.Gt(exp, Lost))
}

// round rounds a count to the grid: from fine on every float32 lies on it.
func (k *kernel) round(x, fine ptx.Value) ptx.Value {
	return k.Select(k.Lt(x, fine), k.Sub(k.Add(x, fine), fine), x)
}

// normsUpdate writes flows of units as counts to norms, and clears them.
func (v Variant) normsUpdate() *ptx.Kernel {
	k := v.begin(KernelNormsUpdate, 32, 0, ArgControl, ArgFlowNorms, ArgNorms, ArgOwners, ArgList)
	k.takeNorms(func(_, count ptx.Value) ptx.Value { return count })
	return k.Kernel()
}

// normsAverages is normsUpdate by averages, which it moves on by the flows.
func (v Variant) normsAverages() *ptx.Kernel {
	k := v.begin(KernelNormsAverages, 32, 0, ArgControl, ArgFlowNorms, ArgAverNorms, ArgNorms, ArgOwners, ArgList)
	av := k.averages()
	k.takeNorms(func(at, count ptx.Value) ptx.Value {
		place := k.At(k.arg(ArgAverNorms), at, 4)
		a := av.next(k.Load(ptx.F32, place, 0), count)
		k.Store(ptx.F32, place, 0, a)
		return a
	})
	return k.Kernel()
}

// takeNorms takes the flow of each unit and writes what norm makes of its count.
func (k *kernel) takeNorms(norm func(at, count ptx.Value) ptx.Value) {
	owner, unit := k.unitOf(k.Special("%ctaid.x"), k.Special("%tid.x"))
	k.ReturnIf(k.Ge(unit, k.Load(ptx.U32, owner, OwnerWidth)))
	at := k.Add(k.Load(ptx.U32, owner, OwnerUnit), unit)
	count := k.takeFlows(k.At(k.arg(ArgFlowNorms), at, 8), 1, k.control(ptx.F32, ControlGrid))[0]
	k.Store(ptx.F32, k.At(k.arg(ArgNorms), at, 4), 0, norm(at, count))
}
