package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/compile/forest/schedule"
)

// CardParams are the eight parameters of the paper's template for cards, and how the threads of a row add their trees.
// Their schedules are legal and have all forms up to the LIR; a CPU refuses to run them.
type CardParams struct {
	RowsPerBlock  int    // rows of a block of threads
	RowsPerThread int    // of these, rows that a thread takes one after the other
	TreeThreads   int    // threads that share the trees of a row
	Interleave    int    // trees that a thread walks together
	CacheRows     bool   // a block's rows are brought into shared memory
	CacheTrees    bool   // so are the trees of its threads
	Unroll        bool   // trees are padded, and a walk has no loop
	Represent     string // array, sparse or reorg
	SharedReduce  bool   // the threads of a row add in shared memory, else by atomic additions
}

// Threads returns how many threads a block has.
func (p CardParams) Threads() int { return p.RowsPerBlock / p.RowsPerThread * p.TreeThreads }

// Schedule returns the schedule of the parameters for trees of up to a depth.
func (p CardParams) Schedule(trees, depth int) *schedule.Schedule {
	s := schedule.New().Represent(p.Represent)
	if p.Unroll {
		s.Pad()
	}
	s.Tile(schedule.Batch, "b0", "b1", p.RowsPerBlock)
	rows := []string{"b0", "b1"}
	if p.RowsPerThread > 1 {
		s.Tile("b1", "b2", "b3", p.RowsPerThread)
		rows = []string{"b0", "b2", "b3"}
	}
	walks := schedule.Tree
	each := (trees + p.TreeThreads - 1) / p.TreeThreads
	threads := schedule.Tree
	if each > 1 {
		threads, walks = "t0", "t1"
		s.Tile(schedule.Tree, threads, walks, each)
		s.Reorder(append(slices.Clone(rows), threads, walks)...)
	}
	s.GPUDimension("b0", "grid.x").GPUDimension(rows[1], "block.x")
	if p.TreeThreads > 1 {
		s.GPUDimension(threads, "block.y")
		if p.SharedReduce {
			s.SharedReduce(threads)
		} else {
			s.AtomicReduce(threads)
		}
	}
	if p.CacheRows {
		s.Cache("b0")
	}
	if p.CacheTrees && each > 1 {
		s.Cache(threads)
	}
	if p.Interleave > 1 {
		s.Interleave(walks, p.Interleave)
	}
	if p.Unroll && depth > 1 {
		s.UnrollWalk(walks, min(depth, maxUnroll))
	}
	return s
}

// Bounds of Algorithm 1.
const (
	fewRows      = 2048 // calls of at most as many rows do not fill a card by rows alone
	manyFeatures = 100  // rows of more do not fit shared memory many at a time
	mostCached   = 1500 // features of a row that is cached
	leastThreads = 32
	mostThreads  = 1024
	best         = 3
)

// Cards is the first part of the paper's Algorithm 1: the points that are timed for a forest and a batch. Few rows are
// spread over many threads each, many rows over few.
func Cards(s *Shape, batch int) []CardParams {
	rows, threads := []int{8, 32}, []int{20, 50}
	represent := []string{schedule.Array, schedule.Sparse, schedule.Reorg}
	if batch > fewRows {
		represent = represent[:2]
		if s.Features <= manyFeatures {
			rows, threads = []int{32, 64}, []int{2, 10}
		}
	}
	var all []CardParams
	for _, r := range rows {
		for _, t := range threads {
			for _, how := range represent {
				for _, together := range []int{1, 2, 4} {
					p := CardParams{RowsPerBlock: r, RowsPerThread: 1, TreeThreads: min(t, max(s.Trees, 1)), Interleave: together,
						CacheRows: s.Features <= mostCached, Unroll: together > 1, Represent: how}
					if n := p.Threads(); n < leastThreads || n > mostThreads || p.Unroll && s.Depth > maxUnroll || slices.Contains(all, p) {
						continue
					}
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// CardsReduced is the second part of Algorithm 1: the three fastest points of the first, with sums in shared memory, and
// each with rows read from where they are as well.
func CardsReduced(fastest []CardParams) []CardParams {
	var all []CardParams
	for _, p := range fastest[:min(best, len(fastest))] {
		if p.TreeThreads > 1 {
			p.SharedReduce = true
			all = append(all, p)
		}
		if p.CacheRows {
			p.CacheRows = false
			all = append(all, p)
		}
	}
	return all
}

// Card is what the cost model knows of a card.
type Card struct {
	Processors int     // streaming multiprocessors
	Clock      float64 // GHz
	Threads    int     // that a processor holds at a time
	Shared     int     // bytes of shared memory of a processor
	Launch     float64 // microseconds to launch a kernel
}

// H200 has the figures of NVIDIA's data sheet; Launch is that of a graph that is replayed.
var H200 = Card{Processors: 132, Clock: 1.98, Threads: 2048, Shared: 227 << 10, Launch: 2.5}

// Cycles of a step of a walk.
const (
	sharedCycles = 30  // until a cell of shared memory is there
	memoryCycles = 250 // until a cell or node beyond it is there
	visitCycles  = 8   // that a processor takes to issue a step of 32 threads: divergent reads of a cell and a node
	atomicCycles = 20
)

// Cost returns how many microseconds a batch takes on a card, by the model: whole turns of all blocks that the card holds
// at a time, in which threads wait for memory or for their turn to read.
func (c *Card) Cost(s *Shape, p *CardParams, batch int) float64 {
	blocks := (batch + p.RowsPerBlock - 1) / p.RowsPerBlock
	resident := c.Threads / p.Threads()
	if p.CacheRows {
		resident = min(resident, c.Shared/(4*p.RowsPerBlock*s.Features))
	}
	if p.CacheTrees {
		resident = min(resident, int(float64(c.Shared)/s.table(&Params{Represent: p.Represent, TileNodes: 1, Unroll: p.Unroll})))
	}
	if resident < 1 {
		return math.Inf(1)
	}
	each := float64((s.Trees + p.TreeThreads - 1) / p.TreeThreads)
	steps := each * s.steps(p.Interleave, p.Unroll) / float64(max(s.Trees, 1)) * float64(p.RowsPerThread)
	cell, node := float64(memoryCycles), float64(memoryCycles)
	if p.CacheRows {
		cell = sharedCycles
	}
	if p.CacheTrees {
		node = sharedCycles
	}
	wait := steps * (cell + node) / float64(p.Interleave)
	warps := float64(min(resident, (blocks+c.Processors-1)/c.Processors)) * math.Ceil(float64(p.Threads())/32)
	visit := float64(visitCycles)
	if !p.Unroll {
		visit++
	}
	busy := steps * visit * warps
	sum := float64(p.TreeThreads * atomicCycles)
	if p.SharedReduce {
		sum = math.Log2(float64(p.TreeThreads)+1) * sharedCycles
	}
	turns := math.Ceil(float64(blocks) / float64(resident*c.Processors))
	return c.Launch + turns*(max(wait, busy)+sum)/(c.Clock*1000)
}

// GuessCard runs Algorithm 1 with the cost model in the place of times: what the model holds for the fastest.
func (c *Card) GuessCard(s *Shape, batch int) (CardParams, error) {
	list := Cards(s, batch)
	order := func(list []CardParams) {
		slices.SortStableFunc(list, func(a, b CardParams) int { return cmp.Compare(c.Cost(s, &a, batch), c.Cost(s, &b, batch)) })
	}
	order(list)
	list = append(list, CardsReduced(list)...)
	order(list)
	if len(list) == 0 || math.IsInf(c.Cost(s, &list[0], batch), 1) {
		return CardParams{}, fmt.Errorf("%w: no block of Algorithm 1 fits the card for %d trees of depth %d on %d features", ErrTune, s.Trees, s.Depth, s.Features)
	}
	return list[0], nil
}
