package plan

import "github.com/pce-engine/pce/kernels/ptx/tensor"

// utilisation is the share of its clocks in which a scheduler issues an instruction, by
// the warps that it has: they run in order and wait for results, shared memory and
// barriers. They are what the kernels of three circuits came to on an H200 (docs/gpu-model.md), but
// that for one warp, which none of their longer launches have.
var utilisation = [...]float64{1: 0.20, 2: 0.36, 3: 0.45, 4: 0.50}

// drag is what the launches of a kernel took to issue on that card over what utilisation
// says: their chains of results are longer or shorter than those of others.
var drag = map[string]float64{
	tensor.KernelForward:         1.1,
	tensor.KernelForwardResident: 1.3,
	tensor.KernelForwardWide:     0.85,
	tensor.KernelMove:            1.7,
	tensor.KernelMoveWide:        0.71,
	tensor.KernelLeafGather:      2.7,
}

// dragOf is 1 for other kernels.
func dragOf(kernel string) float64 {
	if d, ok := drag[kernel]; ok {
		return d
	}
	return 1
}

// issueShare is the utilisation for warps warps on a scheduler, in between on a line, and
// for more than there are guesses for as for the last.
func issueShare(warps float64) float64 {
	last := len(utilisation) - 1
	if warps >= float64(last) {
		return utilisation[last]
	}
	i := int(warps)
	return utilisation[i] + (warps-float64(i))*(utilisation[i+1]-utilisation[i])
}

// issueSeconds is the time to issue the instructions of a launch, of which longest are
// those of the block with most. It is that of the multiprocessor with most blocks, which has
// the warps of as many as it holds at once, or that of the longest block, which may continue
// alone.
func issueSeconds(g grid, instructions, longest float64, r Rates) float64 {
	perBlock := instructions / float64(g.blocks)
	rate := func(blocks int) float64 {
		return schedulers * r.Clock * issueShare(float64(blocks*g.warps)/schedulers)
	}
	return max(float64(g.busiest())*perBlock/rate(g.together()), longest/rate(1))
}

// Instructions of the machine that an assembler makes of one of a kernel's text: of the
// loops of kernels with matrix products, in which fragments are formed and rounded, and
// of the rest. Divisions take more, where a result or an operand is subnormal, which is rare.
const (
	sassOfProducts = 1.4
	sassOfOthers   = 1.2
)

// weights are the instructions of a block's warps in the text of a kernel, for each of
// its trips.
type weights struct {
	block, open, form, wide, stage, product, result float64

	exact float64 // what a product takes more in float32
}

// of is the instructions of trips: those of stages and products, and the others.
func (w weights) of(n trips) (products, others float64) {
	return w.stage*n.stages + w.product*n.products, w.block*n.blocks + w.open*n.opened + w.form*n.formed + w.wide*n.wide + w.result*n.results
}

// sass is how many instructions of the machine there are for those of stages and products,
// which matrix instructions do or not, and the others.
func sass(matrix bool, products, others float64) float64 {
	if !matrix {
		return sassOfOthers * (products + others)
	}
	return sassOfProducts*products + sassOfOthers*others
}

// weightsOf returns the weights of a kernel of a variant.
func weightsOf(kernel string, size int, mixed bool) weights {
	if size < 16 {
		if w, ok := scalarWeights[kernel]; ok {
			return w
		}
	}
	w := textWeights[kernel]
	if !mixed {
		w.product += w.exact
	}
	return w
}

// textWeights are what comes nearest to the instructions that the emulator counts, over
// some circuits: TestInstructions counts them again, and proposes others where they no longer fit.
var textWeights = map[string]weights{
	tensor.KernelLeaf:            {stage: 5330},
	tensor.KernelStored:          {block: 520, open: 180, form: 90, wide: 940},
	tensor.KernelForward:         {block: 1500, open: 257, form: 87, wide: 940, stage: 397, product: 285, result: 155, exact: 248},
	tensor.KernelForwardResident: {block: 1850, open: 948, form: 90, wide: 1740, stage: 913, product: 284, result: 210, exact: 221},
	tensor.KernelFit:             {block: 535, open: 123, form: 49, wide: 230},
	tensor.KernelForwardWide:     {stage: 370, product: 440, result: 1181, exact: 320},
	tensor.KernelBadRows:         {block: 665},
	tensor.KernelLogForward:      {block: 432},
	tensor.KernelLogBackward:     {block: 312},
	tensor.KernelRoot:            {block: 360},
	tensor.KernelGather:          {block: 516, stage: 560, product: 94},
	tensor.KernelBackward:        {block: 1990, wide: 1046, stage: 636, product: 280, result: 367, exact: 233},
	tensor.KernelBackwardWide:    {block: 4650, stage: 400, product: 430, result: 710, exact: 316},
	tensor.KernelNorms:           {block: 466, open: 435, stage: 41},
	tensor.KernelCoefficients:    {block: 340},
	tensor.KernelMove:            {block: 676, open: 499, form: 47, wide: 479, stage: 436, product: 115, result: 463, exact: 99},
	tensor.KernelMoveWide:        {block: 1357, open: 1165, form: 90, wide: 960, stage: 875, product: 236, result: 921, exact: 170},
	tensor.KernelNormalise:       {block: 117, stage: 79, result: 24.2},
	tensor.KernelLeafGather:      {block: 311, stage: 9.2, result: 240},
	tensor.KernelLeafMove:        {block: 1000, stage: 26, result: 410},
}

// scalarWeights are those of variants without matrix instructions, where they differ.
var scalarWeights = map[string]weights{
	tensor.KernelForward:  {block: 1726, form: 529, wide: 1078, product: 388, result: 87},
	tensor.KernelBackward: {open: 308, form: 368, wide: 954, stage: 1233, product: 416},
	tensor.KernelMove:     {wide: 81, stage: 906, result: 433},
	tensor.KernelGather:   {block: 1009, product: 118},
}
