package plan

import "github.com/pce-engine/pce/kernels/ptx/tensor"

// chains are how many loads of a block wait for one another before and after its loop: its
// entry in the list, the record that this names, the sum's, the element's, the factors',
// the codes or exponents of its rows, and values, for one; and what it reads to send
// results on.
var chains = map[string]int{
	tensor.KernelLeaf:            5,
	tensor.KernelStored:          9,
	tensor.KernelForward:         9,
	tensor.KernelForwardResident: 12,
	tensor.KernelFit:             9,
	tensor.KernelForwardWide:     5,
	tensor.KernelBadRows:         2,
	tensor.KernelLogForward:      2,
	tensor.KernelLogBackward:     2,
	tensor.KernelRoot:            3,
	tensor.KernelGather:          6,
	tensor.KernelBackward:        10,
	tensor.KernelBackwardWide:    12,
	tensor.KernelNorms:           8,
	tensor.KernelCoefficients:    2,
	tensor.KernelMove:            10,
	tensor.KernelMoveWide:        12,
	tensor.KernelNormalise:       6,
	tensor.KernelLeafGather:      6,
	tensor.KernelLeafMove:        12,
}

// latencySeconds is the time in which a launch does nothing but wait for loads: the chain
// of its first blocks, and of those after them too where a multiprocessor holds one block
// at a time. Where it holds several, others work meanwhile.
func latencySeconds(g grid, kernel string, r Rates) float64 {
	waits := 1
	if g.resident == 1 {
		waits = g.busiest()
	}
	return float64(waits*chains[kernel]) * r.Load
}

// hostSeconds is the time of a step in which the card waits for the host. The rows of the next step
// are on the card by then.
func hostSeconds(r Rates) float64 { return r.Wait }
