package tune

import (
	"math"
	"strings"

	"github.com/pce-engine/pce/compile/forest/schedule"
)

// Machine is what the cost model knows of a set of instructions: nanoseconds for a vector of rows.
type Machine struct {
	Name  string
	Lanes int // rows of a vector
	// Latency is from an index to what was looked up for all lanes, Gather what each further look-up takes while
	// others are under way, Compute what the rest of a step takes.
	Latency, Gather, Compute float64
	Walk                     float64 // to begin a walk and add its leaf
	Call                     float64 // to call a kernel
	Spill                    float64 // share of a step for each walk beyond four, whose values leave the registers
	Rank, Mask               float64 // sliced: to rank a cell, and for a node, of 512 rows
}

// machines are the sets of instructions whose constants are known, fitted to the times of an Intel Sapphire Rapids. What
// another machine does otherwise the timed candidates show.
var machines = []Machine{
	{Name: "avx512", Lanes: 16, Latency: 6, Gather: 2.4, Compute: 1.8, Walk: 16, Call: 300, Spill: 0.05, Rank: 1050, Mask: 0.12},
	{Name: "avx2", Lanes: 4, Latency: 3, Gather: 1, Compute: 0.6, Walk: 6, Call: 300, Spill: 0.05, Rank: 2000, Mask: 1.2},
	{Name: "generic", Lanes: 256, Latency: 0, Gather: 600, Compute: 1500, Walk: 4000, Call: 2000, Rank: 3000, Mask: 60},
}

// MachineOf returns the constants for kernels of a path; those of the portable kernels where it is not known.
func MachineOf(path string) *Machine {
	for i := range machines {
		if strings.HasPrefix(path, machines[i].Name) {
			return &machines[i]
		}
	}
	return &machines[len(machines)-1]
}

// Bytes of caches, as they are today give or take a factor of two, and how much longer a look-up beyond each takes.
var caches = []struct {
	bytes  float64
	slower float64
}{{32 << 10, 1}, {1 << 20, 1.3}, {16 << 20, 2}, {math.Inf(1), 4}}

// Cost returns how long a row takes under the template's schedule, in nanoseconds, by the model. threads is how many
// share the rows of a batch.
func (m *Machine) Cost(s *Shape, p *Params, batch, threads int) float64 {
	if p.Represent == schedule.Sliced {
		const block = 512
		blocks := (batch + block - 1) / block
		row := (m.Rank*float64(s.Features) + m.Mask*float64(s.Nodes)) / block * float64(blocks*block) / float64(batch)
		return row / float64(min(threads, blocks)) * widened(s)
	}
	levels := math.Log2(float64(p.TileNodes + 1)) // of nodes in a step
	together := float64(p.Interleave)
	tiles := float64(p.TileNodes)
	chain, gathers := 2.0, 3*tiles // cells behind features; thresholds
	if p.TileNodes > 1 {
		chain, gathers = 3, gathers+2 // the exit of a shape
	}
	if p.Represent == schedule.Sparse {
		gathers++ // children
	}
	compute := m.Compute * (tiles + 1)
	if p.Represent == schedule.Reorg {
		compute += m.Compute
	}
	if s.Flags {
		compute += m.Compute * tiles
	}
	even := p.Unroll && (s.Even && p.TileNodes == 1 || p.ByDepth)
	if !even {
		gathers++ // is it a leaf
		compute += m.Compute
	}
	slower := slowdown(s.table(p))
	if p.TreeTile > 0 && p.RowTile > 64 { // its trees stay while the rows go by
		slower = min(slower, slowdown(s.table(p)*float64(p.TreeTile)/float64(s.Trees)))
	}
	step := max(m.Latency*chain*slower/together, 0) + m.Gather*gathers*slower + compute
	step *= 1 + m.Spill*max(0, together-4)
	steps := s.steps(p.Interleave, p.Unroll)
	if even && p.ByDepth {
		steps = s.steps(1, true)
	}
	vector := steps/levels*step + float64(s.Trees)*m.Walk*slower*float64(1+s.Outputs/4)
	row := vector / float64(m.Lanes)
	if p.ByDepth && !s.Even {
		row += float64(s.Trees) * (m.Gather + m.Compute) * 2 / float64(m.Lanes) // leaves are kept, then added
	}
	calls := 1.0
	if p.TreeTile > 0 {
		calls = float64((s.Trees + p.TreeTile - 1) / p.TreeTile)
	}
	row += calls * (m.Call/float64(min(p.RowTile, batch)) + 1)
	if p.CacheRows {
		row += float64(s.Features) / 16
	}
	return row * widened(s) * spread(batch, p.RowTile, threads)
}

// spread is the share of the work that the thread with most of it does.
func spread(batch, tile, threads int) float64 {
	parts := (batch + tile - 1) / tile
	turns := (parts + threads - 1) / threads
	return float64(min(turns*tile, batch)) / float64(batch)
}

// widened is how much more float64 cells take, of which a vector has half as many.
func widened(s *Shape) float64 {
	if s.Wide {
		return 1.6
	}
	return 1
}

// table is how many bytes the trees take.
func (s *Shape) table(p *Params) float64 {
	slots, word := float64(s.Nodes), 8.0
	switch {
	case p.Represent == schedule.Sparse:
		word = 12
		if p.Unroll {
			slots *= 2
		}
	default:
		slots = 0
		for _, d := range s.Depths {
			slots += math.Exp2(float64(min(d, 60) + 1))
		}
	}
	return slots * word
}

// slowdown is how much longer look-ups in so many bytes take.
func slowdown(bytes float64) float64 {
	for _, c := range caches {
		if bytes <= c.bytes {
			return c.slower
		}
	}
	return caches[len(caches)-1].slower
}
