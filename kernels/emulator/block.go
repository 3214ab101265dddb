package emulator

import (
	"fmt"
	"math/rand/v2"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
)

// block is a block of threads that runs, or its place.
type block struct {
	run     *launch
	index   int
	ctaid   [3]int
	warps   []*warp
	shared  []byte
	shadow  []uint64 // of each 4 bytes of shared memory, see shared.go
	epoch   uint64   // barriers passed, from 1
	random  *rand.Rand
	count   []executed // of each operation
	loaded  uint64     // bytes of global memory
	stored  uint64
	touched []uint8       // how each allocation was touched, by its number
	product lanes.Product // of the matrix instruction that runs
	moves   uint64        // global words written, words changed atomically, reds, barriers passed, warps ended
	time    uint32        // for races between blocks: releases of this block, from 1
	seen    clock         // what this block may read of others
	behind  clock         // what its last fence releases
}

// place finds or makes a place for blocks of the launch.
func (run *launch) place() *block {
	run.mu.Lock()
	defer run.mu.Unlock()
	k, warps := run.kernel, (run.threads+31)/32
	b := &block{}
	if n := len(k.idle); n > 0 {
		b = k.idle[n-1]
		k.idle = k.idle[:n-1]
		run.em.idle -= b.bytes()
		b.loaded, b.stored = 0, 0
		clear(b.count)
	} else {
		b.count = make([]executed, len(k.ops))
	}
	b.run = run
	if n := run.em.memory.count; len(b.touched) < n {
		b.touched = make([]uint8, n)
	} else {
		clear(b.touched)
	}
	if len(b.shared) != run.shared {
		b.shared, b.shadow = make([]byte, run.shared), make([]uint64, (run.shared+3)/4)
	}
	for len(b.warps) < warps {
		w := k.newWarp(b, len(b.warps))
		b.warps = append(b.warps, w)
		for _, c := range k.consts {
			if c.from == nil {
				c.fill(w)
			}
		}
	}
	b.warps = b.warps[:warps]
	for _, w := range b.warps {
		for _, c := range k.consts {
			if c.from != nil {
				c.fill(w)
			}
		}
	}
	return b
}

// bytes is about what a place takes.
func (b *block) bytes() int {
	w := b.warps[0]
	return len(b.warps)*(128*len(w.r)+256*len(w.d)) + len(b.shared) + 8*len(b.shadow)
}

// start makes the place ready for block i of the grid.
func (b *block) start(i int) {
	grid := b.run.grid
	b.index = i
	b.ctaid = [3]int{i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]}
	clear(b.shadow)
	b.epoch = 1
	b.random = nil
	if b.run.seed != 0 {
		b.random = rand.New(rand.NewPCG(b.run.seed, uint64(i)))
	}
	b.time, b.seen, b.behind = 1, nil, nil
	for _, w := range b.warps {
		w.start(b.run.threads)
		for _, slot := range b.run.kernel.places {
			for lane := range w.r[slot.slot] {
				w.r[slot.slot][lane] = uint32(b.ctaid[slot.axis])
			}
		}
	}
}

// round lets each warp run until it waits. It reports whether the block has ended.
func (b *block) round() (bool, *Fault) {
	n := len(b.warps)
	first := 0
	if b.random != nil {
		first = b.random.IntN(n)
	}
	for i := range n {
		w := b.warps[(first+i)%n]
		if b.random != nil && w.state == next && i+1 < n && b.random.IntN(4) == 0 {
			continue // another round will do
		}
		if w.state != next {
			continue
		}
		switch w.run() {
		case yielded:
			w.state = next
		case failed:
			return false, w.fault
		case done:
			b.moves++
		}
	}
	waits, runs := 0, 0
	for _, w := range b.warps {
		switch w.state {
		case waiting:
			waits++
		case next:
			runs++
		}
	}
	switch {
	case runs > 0:
		return false, nil
	case waits == 0:
		return true, nil
	}
	if fault := b.mismatch(); fault != nil {
		return false, fault
	}
	for _, w := range b.warps {
		w.state = next
	}
	b.epoch++
	b.moves++
	return false, nil
}

// mismatch is the fault of warps that do not all wait at one barrier, or nil.
func (b *block) mismatch() *Fault {
	var here *warp
	for _, w := range b.warps {
		if w.state == waiting {
			here = w
			break
		}
	}
	for _, w := range b.warps {
		switch {
		case w.state == done:
			return b.faultAt(here.pc-1, here.index*32, fmt.Sprintf("barrier mismatch: warp %d waits here, warp %d has ended", here.index, w.index))
		case w.pc != here.pc:
			return b.faultAt(here.pc-1, here.index*32, fmt.Sprintf("barrier mismatch: warp %d waits here, warp %d at line %d",
				here.index, w.index, b.run.kernel.ops[w.pc-1].line))
		}
	}
	return nil
}
