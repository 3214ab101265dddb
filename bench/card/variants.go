package main

import (
	"fmt"
	"time"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// variantReading is a line of the output: what the driver's compiler made of the
// kernels of a variant.
type variantReading struct {
	Variant string         `json:"variant"`
	Seconds float64        `json:"load_seconds"`
	Kernels []kernelLimits `json:"kernels"`
}

// kernelLimits is a kernel on the card. Sizes are bytes.
type kernelLimits struct {
	Kernel    string `json:"kernel"`
	Registers int    `json:"registers"`
	Local     int    `json:"local_bytes"` // of a thread: spilled registers
	Shared    int    `json:"shared_bytes"`
	Dynamic   int    `json:"dynamic_shared_bytes"` // the most that a launch asks for
	Threads   int    `json:"threads"`
	Blocks    int    `json:"blocks"` // on a multiprocessor at once
}

// list is every variant for a card, those of Table 1 first.
func list(major, minor int) (variants []tensor.Variant) {
	for _, wide := range []bool{false, true} {
		for _, size := range []int{32, 16, 8, 4, 2, 1} {
			v := tensor.Variant{Block: size, WideCodes: wide, Queries: true, Major: major, Minor: minor}
			if size >= 16 {
				mixed := v
				mixed.Mixed, mixed.Queries = true, false
				variants = append(variants, mixed)
			}
			variants = append(variants, v)
		}
	}
	return variants
}

// variants loads every variant, one after the other, and prints what became of it.
func (p *probe) variants() error {
	all := list(p.card.Major, p.card.Minor)
	if p.tiny {
		all = all[:2]
	}
	var spilled, tight []string
	loaded := 0
	for _, v := range all {
		name := fmt.Sprintf("b%d", v.Block)
		if v.Mixed {
			name += "_mixed"
		}
		if v.WideCodes {
			name += "_codes32"
		}
		r := variantReading{Variant: name}
		module := v.Module()
		begin := time.Now()
		handle, err := p.drv.Load(module.Text())
		if err != nil {
			return fmt.Errorf("variant %s: %w", name, err)
		}
		r.Seconds = time.Since(begin).Seconds()
		for _, k := range module.Kernels {
			l := kernelLimits{Kernel: k.Name, Dynamic: v.DynamicShared(k.Name, p.card.SharedMemory), Threads: k.Threads}
			f, info, err := p.drv.Function(handle, k.Name, l.Dynamic)
			if err != nil {
				return fmt.Errorf("variant %s: %w", name, err)
			}
			l.Registers, l.Local, l.Shared = info.Registers, info.Local, info.Shared
			if l.Blocks, err = p.drv.Blocks(f, k.Threads, l.Dynamic); err != nil {
				return fmt.Errorf("variant %s: %w", name, err)
			}
			if l.Local > 0 {
				spilled = append(spilled, name+" "+k.Name)
			}
			if l.Blocks < max(1, k.Blocks) && l.Dynamic == 0 {
				tight = append(tight, name+" "+k.Name)
			}
			r.Kernels = append(r.Kernels, l)
		}
		loaded++
		if err := p.out.Encode(r); err != nil {
			return err
		}
		if err := p.drv.Unload(handle); err != nil {
			return err
		}
	}
	if err := p.read("kernels with local memory", float64(len(spilled)), "", "of %d variants: %v", loaded, spilled); err != nil {
		return err
	}
	return p.read("kernels without dynamic shared memory of which fewer blocks fit than they ask for", float64(len(tight)), "", "of %d variants: %v", loaded, tight)
}
