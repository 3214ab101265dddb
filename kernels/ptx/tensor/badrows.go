package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// badRows lists the marked rows in order.
func (v Variant) badRows() *ptx.Kernel {
	const threads, warps = 256, 256 / 32
	k := v.begin(KernelBadRows, threads, 0, ArgControl, ArgBad, ArgBadRows)
	totals := k.Shared("totals", 16, warps*4)
	tid := k.Special("%tid.x")
	lane, warp := k.And(tid, 31), k.Shr(tid, 5)
	below := k.Sub(k.Shl(k.Mov(ptx.U32, 1), lane), 1) // the lanes before this one
	total := k.At(totals, warp, 4)
	rows := k.control(ptx.U32, ControlRows)
	list := k.arg(ArgBadRows)
	count := k.Mov(ptx.U32, 0)
	k.For(ptx.U32, 0, rows, threads, func(first ptx.Value) {
		row := k.Add(first, tid)
		mark := k.Mov(ptx.U32, 0)
		at := k.At(k.arg(ArgBad), row, 4)
		k.Guard(k.Lt(row, rows), func() { k.Into(mark).Load(ptx.U32, at, 0) })
		marked := k.Ne(mark, 0)
		lanes := k.Ballot(marked)
		k.Guard(k.Eq(lane, 0), func() { k.Store(ptx.U32, total, 0, k.Popc(lanes)) })
		k.Sync()
		place := k.Add(count, k.Popc(k.And(lanes, below)))
		for w := range warps {
			n := k.Load(ptx.U32, totals, 4*w)
			k.Into(count).Add(count, n)
			k.Into(place).Add(place, k.Select(k.Gt(warp, w), n, 0))
		}
		k.Sync()
		k.Guard(marked, func() { k.Store(ptx.U32, k.At(list, place, 4), 4, row) })
	})
	k.Guard(k.Eq(tid, 0), func() { k.Store(ptx.U32, list, 0, count) })
	return k.Kernel()
}
