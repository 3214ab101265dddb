package plan

import (
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// grid is how the blocks of threads of a launch lie on a card: all multiprocessors begin
// with as many as they hold, and take another when one ends.
type grid struct {
	blocks     int
	warps      int // of a block
	resident   int // blocks that a multiprocessor holds at once
	processors int
}

// busiest is how many blocks the multiprocessor with most of them gets, one after another
// or side by side.
func (g grid) busiest() int { return (g.blocks + g.processors - 1) / g.processors }

// together is how many of these are there at the same time.
func (g grid) together() int { return min(g.busiest(), g.resident) }

// share is the part of the card that works until the last block ends: the mean of the
// blocks of a multiprocessor over most.
func (g grid) share() float64 {
	return float64(g.blocks) / float64(g.processors*g.busiest())
}

// Limits of a multiprocessor of capability 9.0. Registers are given out in units of
// registerUnit to a warp, and a block takes blockShared of shared memory and its own.
const (
	registersOfProcessor = 64 << 10
	registerUnit         = 256
	warpsOfProcessor     = 64
	blocksOfProcessor    = 32
	sharedOfProcessor    = 228 << 10
	blockShared          = 1 << 10
	schedulers           = 4 // of a multiprocessor; each warp belongs to one
)

// occupancy says what a block of each kernel takes.
type occupancy map[string]footprint

type footprint struct {
	threads, registers int
	shared             int // besides that of the launch
}

// newOccupancy returns the kernels of a variant.
func newOccupancy(v tensor.Variant) occupancy {
	o := occupancy{}
	heads, _ := v.Printed()
	for _, k := range heads {
		f := footprint{threads: k.Threads, registers: registersOf(k.Name, v)}
		for _, s := range k.Shared {
			f.shared += s.Bytes
		}
		o[k.Name] = f
	}
	return o
}

// grid lays a launch of that many blocks on a card.
func (o occupancy) grid(w Work, blocks, processors int) grid {
	f := o[w.Kernel]
	warps := (f.threads + 31) / 32
	return grid{blocks: blocks, warps: warps, resident: fit(warps, f.registers, f.shared+w.Shared), processors: processors}
}

// fit is how many blocks a multiprocessor holds at once, at least one.
func fit(warps, registers, shared int) int {
	up := func(x, unit int) int { return (x + unit - 1) / unit * unit }
	n := min(blocksOfProcessor, warpsOfProcessor/warps)
	if registers > 0 {
		n = min(n, registersOfProcessor/up(32*registers, registerUnit)/warps)
	}
	return max(1, min(n, sharedOfProcessor/up(shared+blockShared, 128)))
}

// registers of a thread, by kernel: of the variants with matrix instructions in mixed
// precision and in float32, and at most of the others. They are what ptxas of CUDA 12.4 says
// for sm_90, in kernels/ptx/tensor/testdata/report.txt.
var registers = map[string][3]int{
	tensor.KernelLeaf:            {64, 64, 64},
	tensor.KernelStored:          {112, 112, 112},
	tensor.KernelForward:         {162, 163, 152},
	tensor.KernelForwardResident: {120, 118, 0},
	tensor.KernelFit:             {48, 48, 0},
	tensor.KernelForwardWide:     {170, 206, 0},
	tensor.KernelBadRows:         {28, 28, 28},
	tensor.KernelLogForward:      {113, 113, 65},
	tensor.KernelLogBackward:     {48, 48, 48},
	tensor.KernelRoot:            {30, 30, 30},
	tensor.KernelGather:          {96, 96, 96},
	tensor.KernelBackward:        {144, 162, 138},
	tensor.KernelBackwardWide:    {186, 214, 0},
	tensor.KernelNorms:           {32, 32, 32},
	tensor.KernelCoefficients:    {31, 31, 31},
	tensor.KernelMove:            {168, 192, 111},
	tensor.KernelMoveWide:        {234, 254, 0},
	tensor.KernelNormalise:       {26, 26, 26},
	tensor.KernelLeafGather:      {128, 128, 128},
	tensor.KernelLeafMove:        {77, 77, 77},
}

// registersOf is the registers of a thread of a kernel.
func registersOf(kernel string, v tensor.Variant) int {
	r := registers[kernel]
	switch {
	case v.Block < 16:
		return r[2]
	case v.Mixed:
		return r[0]
	}
	return r[1]
}
