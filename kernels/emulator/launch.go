package emulator

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/kernels/cuda"
)

// Bounds on loops that may never end.
const (
	maxJumps = 1 << 24 // branches back that a warp takes in a launch
	maxIdle  = 1 << 12 // rounds in which no thread writes, ends or passes a barrier
)

// maxKept is how many bytes of places are kept for later launches.
const maxKept = 256 << 20

// launch is a grid that runs.
type launch struct {
	em       *Emulator
	kernel   *kernel
	grid     [3]int
	threads  int
	shared   int // bytes, static and dynamic
	args     []uint64
	seed     uint64 // 0: warps and blocks in order
	number   uint32 // of this launch, from 1
	maxJumps int
	blocks   int
	tickets  atomic.Int64 // blocks handed out
	stop     atomic.Bool
	sync     map[uint64]clock // what a release at an address made visible

	mu      sync.Mutex // guards those below
	fault   *Fault
	faulty  int // block of the fault
	loaded  uint64
	stored  uint64
	count   []executed
	touched []uint8 // as a block's
}

// check makes a launch of what the driver was asked for.
func (e *Emulator) check(f *function, l *cuda.Launch) (*launch, error) {
	k := f.kernel
	run := &launch{
		em: e, kernel: k, grid: l.Grid, threads: l.Block, args: l.Args,
		shared: k.static + l.Shared, maxJumps: e.o.Jumps,
	}
	whole := func(format string, args ...any) (*launch, error) {
		return nil, &Fault{Kernel: k.name, What: "launch refused: " + fmt.Sprintf(format, args...)}
	}
	for axis, n := range l.Grid {
		if n < 1 || axis > 0 && n > math.MaxUint16 || n > math.MaxInt32 {
			return whole("a grid of %v blocks", l.Grid)
		}
	}
	switch {
	case l.Block < 1 || l.Block > 1024:
		return whole("a block of %d threads; 1 to 1024 are allowed", l.Block)
	case k.threads > 0 && l.Block > k.threads:
		return whole("a block of %d threads, .maxntid says %d", l.Block, k.threads)
	case len(l.Args) != len(k.params):
		return whole("%d arguments, the kernel has %d parameters", len(l.Args), len(k.params))
	case l.Shared < 0 || l.Shared > f.shared:
		return whole("%d bytes of dynamic shared memory, Function allowed %d", l.Shared, f.shared)
	case l.Shared > 0 && !k.dynamic:
		return whole("%d bytes of dynamic shared memory, the module declares none", l.Shared)
	}
	run.blocks = l.Grid[0] * l.Grid[1] * l.Grid[2]
	run.count, run.touched = make([]executed, len(k.ops)), make([]uint8, e.memory.count)
	return run, nil
}

// run runs all blocks of a launch.
func (e *Emulator) run(run *launch) error {
	e.launches++
	run.number = e.launches
	if e.o.Seed != 0 {
		run.seed = e.o.Seed + uint64(run.number)<<32
	}
	workers := min(e.o.Threads, run.blocks)
	switch {
	case run.kernel.talks:
		run.together()
	case workers == 1 || e.memory.races || run.blocks*run.threads*len(run.kernel.ops) < 1<<15:
		run.apart()
	default:
		var wait sync.WaitGroup
		for range workers {
			wait.Go(run.apart)
		}
		wait.Wait()
	}
	e.tally(run)
	if run.fault != nil {
		return run.fault
	}
	var last *allocation
	for _, a := range e.memory.slots {
		if a == last || run.touched[a.index] == 0 {
			continue
		}
		last = a
		if err := e.touch(a, run.touched[a.index], "kernel "+run.kernel.name); err != nil {
			return err
		}
	}
	return nil
}

// apart runs blocks one after the other until none is left. Several goroutines may
// do so at once.
func (run *launch) apart() {
	b := run.place()
	defer run.collect(b)
	order := run.order()
	for !run.stop.Load() {
		i := int(run.tickets.Add(1)) - 1
		if i >= run.blocks {
			return
		}
		if order != nil {
			i = order[i]
		}
		b.start(i)
		for quiet := 0; ; quiet++ {
			before := b.moves
			ended, fault := b.round()
			if fault == nil && quiet > maxIdle {
				fault = b.stuck(1)
			}
			if fault != nil {
				run.blame(b, fault)
				return
			}
			if ended {
				break
			}
			if b.moves != before {
				quiet = 0
			}
		}
	}
}

// order is a random order of blocks that cannot talk to each other, or nil.
func (run *launch) order() []int {
	if run.seed == 0 || run.blocks > 1<<20 {
		return nil
	}
	return rand.New(rand.NewPCG(run.seed, math.MaxUint64)).Perm(run.blocks)
}

// together runs blocks that may wait for each other: as many as the card holds at
// once, started in the order of their numbers, each in its turn.
func (run *launch) together() {
	var resident, idle []*block
	defer func() {
		for _, b := range append(resident, idle...) {
			run.collect(b)
		}
	}()
	var random *rand.Rand
	if run.seed != 0 {
		random = rand.New(rand.NewPCG(run.seed, math.MaxUint64-1))
	}
	most := run.em.resident((run.threads+31)/32*32, run.shared)
	started, quiet := 0, 0
	for {
		for started < run.blocks && len(resident) < most {
			var b *block
			if n := len(idle); n > 0 {
				b, idle = idle[n-1], idle[:n-1]
			} else {
				b = run.place()
			}
			b.start(started)
			started++
			resident = append(resident, b)
		}
		if len(resident) == 0 {
			return
		}
		if random != nil {
			random.Shuffle(len(resident), func(i, j int) { resident[i], resident[j] = resident[j], resident[i] })
		}
		kept := resident[:0]
		quiet++
		for i, b := range resident {
			before := b.moves
			ended, fault := b.round()
			if fault != nil {
				run.blame(b, fault)
				resident = append(kept, resident[i:]...)
				return
			}
			if b.moves != before {
				quiet = 0
			}
			if ended {
				idle = append(idle, b)
			} else {
				kept = append(kept, b)
			}
		}
		resident = kept
		if quiet > maxIdle {
			run.blame(resident[0], resident[0].stuck(len(resident)))
			return
		}
	}
}

// stuck is the fault of blocks that wait for what never comes.
func (b *block) stuck(resident int) *Fault {
	for _, w := range b.warps {
		if w.state == next {
			return b.faultAt(w.pc-1, w.index*32+bits.TrailingZeros32(w.active), fmt.Sprintf(
				"endless wait? in %d rounds no warp of %d blocks wrote, passed a barrier or ended", maxIdle, resident))
		}
	}
	return b.faultAt(b.warps[0].pc-1, -1, "endless wait")
}

// blame keeps the fault of the lowest block.
func (run *launch) blame(b *block, fault *Fault) {
	run.stop.Store(true)
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.fault == nil || b.index < run.faulty {
		run.fault, run.faulty = fault, b.index
	}
}

// collect adds what a place counted to the launch and keeps it for the next one.
func (run *launch) collect(b *block) {
	run.mu.Lock()
	defer run.mu.Unlock()
	for i, n := range b.count {
		run.count[i].lanes += n.lanes
		run.count[i].warps += n.warps
	}
	for i, how := range b.touched {
		run.touched[i] |= how
	}
	run.loaded += b.loaded
	run.stored += b.stored
	if size := b.bytes(); run.em.idle+size <= maxKept {
		run.em.idle += size
		b.run = nil
		run.kernel.idle = append(run.kernel.idle, b)
	}
}

// resident is how many blocks the card holds at once.
func (e *Emulator) resident(threads, shared int) int {
	if e.o.Resident > 0 {
		return e.o.Resident
	}
	return max(e.each(threads, shared), 1) * e.o.Multiprocessors
}

// each is how many blocks of threads a multiprocessor holds at once.
func (e *Emulator) each(threads, shared int) int {
	const reserved = 1024 // bytes of shared memory that a block takes besides
	return min(2048/max(threads, 64), 32, (e.o.SharedMemory+reserved)/(shared+reserved))
}
