package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// callTime is the time of a call: ten minutes, less what starts and ends it.
const callTime = 570 * time.Second

// secs makes budgets short to read.
func secs(n int) time.Duration { return time.Duration(n) * time.Second }

// calls lists the parts of each call in their order. The budgets of a call's parts fit
// into its time together, those of call 3 up to its spare parts.
var calls = map[int]func(*options) []part{1: firstCall, 2: secondCall, 3: thirdCall}

// firstCall finds out whether the kernels run and are right, and what the card can do.
func firstCall(o *options) []part {
	return []part{
		{name: "doctor", budget: secs(20), steps: []step{o.doctor()}},
		{name: "clocks", budget: secs(40), steps: []step{o.clocks("before"), o.probe("warmup"), o.clocks("after")}},
		o.besideCPU(secs(60)),
		o.probePart("ceilings", secs(50)),
		o.probePart("products", secs(25)),
		o.probePart("functions", secs(25)),
		o.probePart("variants", secs(110)),
		o.suitePart("brief", secs(220)),
	}
}

// secondCall times kernels and training steps.
func secondCall(o *options) []part {
	parts := []part{
		{name: "clocks of call 2", budget: secs(5), steps: []step{o.clocks("before")}},
		o.kernels(hclt, 512, secs(25)),
		o.kernels(hmm, 2048, secs(25)),
		o.kernels(pd, figure2Latents, secs(25)),
		o.counters(secs(75)),
	}
	parts = append(parts, table1(o)...)
	return append(parts, sparse(o)...)
}

// thirdCall has PyJuice beside pce, first with its Triton kernels. Without its folder these
// parts wait for a call that names it. What follows is for the time that is left: its CuTe
// kernels, and the whole suite.
func thirdCall(o *options) []part {
	parts := []part{{name: "clocks of call 3", budget: secs(5), steps: []step{o.clocks("before")}}}
	for _, p := range pairs {
		if o.pyjuice != "" {
			parts = append(parts, o.besidePyJuice(p, false))
		}
	}
	if o.cutlass != "" {
		for i, p := range pairs {
			if o.rehearse && i < len(pairs)-1 {
				continue
			}
			parts = append(parts, o.besidePyJuice(p, true))
		}
	}
	full := o.suitePart("full", secs(60))
	full.rest = true
	return append(parts, full)
}

// table1 is every circuit of Table 1 at a batch of 512, the cheapest first.
func table1(o *options) []part {
	type row struct {
		structure
		latents int
	}
	var rows []row
	for _, s := range structures {
		for i, m := range s.sizes {
			if o.rehearse && i > 0 { // where all sizes are the same
				break
			}
			rows = append(rows, row{s, m})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return edgesOf(a.structure, a.latents) - edgesOf(b.structure, b.latents) })
	var parts []part
	for _, r := range rows {
		name := fmt.Sprintf("%s-%d", r.name, r.latents)
		parts = append(parts, one(o.bench(name, r.structure, r.latents, 512), weighed(edgesOf(r.structure, r.latents))))
	}
	return parts
}

// sets are parts beyond the three calls.
var sets = map[string]func(*options) []part{
	"rat-batch":  ratBatches,
	"batch-2048": largeBatches,
	"block-size": blockSizes,
	"memory":     memory,
	"sparse":     sparse,
	"code":       codeParts,
}

func setNames() []string { return slices.Sorted(maps.Keys(sets)) }

// ratBatches is RAT-SPN 512 at many batch sizes.
func ratBatches(o *options) (parts []part) {
	for batch := 8; batch <= 512; batch *= 2 {
		parts = append(parts, one(o.bench(fmt.Sprintf("ratspn-512 batch %d", batch), ratspn, 512, batch), secs(10)))
	}
	return parts
}

// largeBatches is Table 1 at the most rows of a launch.
func largeBatches(o *options) (parts []part) {
	for _, s := range structures {
		for _, m := range s.sizes[:3] {
			parts = append(parts, one(o.bench(fmt.Sprintf("%s-%d batch 2048", s.name, m), s, m, 2048), weighed(edgesOf(s, m))))
		}
	}
	return parts
}

// blockSizes is one PD at every size of blocks.
func blockSizes(o *options) (parts []part) {
	for size := 1; size <= 32; size *= 2 {
		parts = append(parts, one(o.bench(fmt.Sprintf("pd-64 blocks of %d", size), pd, 64, 512, "--set", fmt.Sprintf("compile.block_size=%d", size)), secs(15)))
	}
	return parts
}

// memory is the peak memory of two circuits over the batch.
func memory(o *options) (parts []part) {
	for batch := 64; batch <= 2048; batch *= 2 {
		parts = append(parts,
			one(o.bench(fmt.Sprintf("hclt-512 memory, batch %d", batch), hclt, 512, batch, "--steps", "1"), secs(12)),
			one(o.bench(fmt.Sprintf("hmm-2048 memory, batch %d", batch), hmm, 2048, batch, "--steps", "1"), secs(12)))
	}
	return parts
}

// parts are those of the call and of the sets, each name once.
func (o *options) parts() ([]part, error) {
	var parts []part
	if list, ok := calls[o.call]; ok {
		parts = list(o)
	} else if o.call != 0 || len(o.sets) == 0 {
		return nil, fmt.Errorf("call %d; want -call 1, 2 or 3, or -sets", o.call)
	}
	for _, name := range o.sets {
		list, ok := sets[name]
		if !ok {
			return nil, fmt.Errorf("no set %q; want one of %v", name, setNames())
		}
		parts = append(parts, list(o)...)
	}
	seen := map[string]bool{}
	parts = slices.DeleteFunc(parts, func(p part) bool {
		again := seen[p.name]
		seen[p.name] = true
		return again || o.only != nil && !o.only.MatchString(p.name)
	})
	if len(parts) == 0 {
		return nil, fmt.Errorf("no part is named %v", o.only)
	}
	return parts, nil
}

func rank(p part) int {
	if isSuite(p.name) && !p.rest {
		return 0
	}
	return 1
}
