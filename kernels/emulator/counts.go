package emulator

// executed is how often an operation ran.
type executed struct {
	lanes uint64
	warps uint64 // that issued it, whether or not its guard held for some lane
}

// kind is a class of instructions that Counts tells apart.
type kind uint8

const (
	kindNone kind = iota
	kindInteger
	kindFMA
	kindFloat
	kindSpecial
	kindConvert
	kindMatrix
	kindLoadMatrix
	kindLoadGlobal
	kindStoreGlobal
	kindLoadShared
	kindStoreShared
	kindAtomic
	kindAsync
	kindShuffle
	kindBarrier
	kindControl
	kinds
)

// Counts are the instructions that the launches of a kernel ran. But for Issued, a warp
// instruction counts once for each lane that ran it.
type Counts struct {
	Launches     int
	Issued       uint64 // instructions of warps, by whatever lanes: those whose guard holds for none too
	Integer      uint64 // with moves, selections and predicates
	FMA          uint64
	Float        uint64 // other arithmetic on floats
	Special      uint64 // approximations: ex2, lg2, rcp
	Convert      uint64
	Matrix       uint64 // mma
	LoadMatrix   uint64 // ldmatrix
	LoadGlobal   uint64
	StoreGlobal  uint64
	LoadShared   uint64
	StoreShared  uint64
	Atomic       uint64
	Async        uint64 // cp.async, its groups and waits
	Shuffle      uint64 // shuffles, votes and reductions of a warp
	Barrier      uint64 // with fences
	Control      uint64 // comparisons, branches and exits
	MultiplyAdds uint64 // of matrix instructions, whole warps
	BytesLoaded  uint64 // from global memory, by loads, copies and atomics
	BytesStored  uint64 // to global memory
}

// Record is a launch.
type Record struct {
	Kernel string
	Grid   [3]int
	Block  int
	Shared int  // bytes of dynamic shared memory
	Graph  bool // as part of a graph
}

// tally adds a launch to the counts of its kernel.
func (e *Emulator) tally(run *launch) {
	c := e.counts[run.kernel.name]
	if c == nil {
		c = &Counts{}
		e.counts[run.kernel.name] = c
	}
	run.kernel.spread(run.count)
	var by [kinds]uint64
	for i := range run.kernel.ops {
		o := &run.kernel.ops[i]
		by[o.kind] += run.count[i].lanes
		if o.kind != kindNone { // the emulator's own: where lanes meet, and the end
			c.Issued += run.count[i].warps
		}
		if o.kind == kindMatrix {
			c.MultiplyAdds += run.count[i].lanes / 32 * o.off
		}
	}
	c.Launches++
	for k, p := range map[kind]*uint64{
		kindInteger: &c.Integer, kindFMA: &c.FMA, kindFloat: &c.Float, kindSpecial: &c.Special,
		kindConvert: &c.Convert, kindMatrix: &c.Matrix, kindLoadMatrix: &c.LoadMatrix,
		kindLoadGlobal: &c.LoadGlobal, kindStoreGlobal: &c.StoreGlobal,
		kindLoadShared: &c.LoadShared, kindStoreShared: &c.StoreShared,
		kindAtomic: &c.Atomic, kindAsync: &c.Async, kindShuffle: &c.Shuffle,
		kindBarrier: &c.Barrier, kindControl: &c.Control,
	} {
		*p += by[k]
	}
	c.BytesLoaded += run.loaded
	c.BytesStored += run.stored
}

// Counts returns what each kernel has run since the start or ResetCounts.
func (e *Emulator) Counts() map[string]Counts {
	m := make(map[string]Counts, len(e.counts))
	for name, c := range e.counts {
		m[name] = *c
	}
	return m
}

// mostLog is how many launches the log has at least, where there were that many, and half of how many it has at most.
const mostLog = 1 << 16

// note adds a launch to the log. Long runs have more of them than memory should hold.
func (e *Emulator) note(r Record) {
	if len(e.log) == 2*mostLog {
		e.log = append(e.log[:0], e.log[mostLog:]...)
	}
	e.log = append(e.log, r)
}

// Log returns the launches since the start or ResetCounts, in the order in which
// they ran; of more than 65,536 it may leave out earlier ones.
func (e *Emulator) Log() []Record { return append([]Record(nil), e.log...) }

// ResetCounts forgets counts and log.
func (e *Emulator) ResetCounts() { e.counts, e.log = map[string]*Counts{}, nil }
