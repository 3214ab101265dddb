package plan

import (
	"maps"
	"math"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// Rates are what a card can do at most, a second.
type Rates struct {
	Name   string
	Memory float64 // bytes from and to memory
	Cache  float64 // bytes from the second-level cache to the multiprocessors
	Shared float64 // bytes from and to shared memory
	TF32   float64 // operations of mma.sync on TF32
	F16    float64 // on float16
	Host   float64 // bytes from the memory of the host
	Launch float64 // seconds from the end of a kernel to the start of the next one in a graph
}

// rates are the cards that predictions know, by the names that they are asked for.
// Memory is what copies reached on one of each, float16 six tenths of what a product of
// matrices reached; shared memory is 128 bytes a
// clock of 1.755 GHz in each of 132 multiprocessors; the others are from data sheets,
// scaled by the share that mma.sync reaches of wgmma, and by that which packets leave of
// PCI Express 5.0.
var rates = map[string]Rates{
	"h100": {Name: "NVIDIA H100 80GB HBM3", Memory: 3.0e12, Cache: 5.6e12, Shared: 29.6e12, TF32: 237e12, F16: 474e12, Host: 55e9, Launch: 2.5e-6},
	"h200": {Name: "NVIDIA H200", Memory: 4.3e12, Cache: 5.6e12, Shared: 29.6e12, TF32: 237e12, F16: 474e12, Host: 55e9, Launch: 2.5e-6},
}

// RatesOf returns the rates of a card, by the name that predictions use or by that
// of its driver.
func RatesOf(card string) (Rates, bool) {
	for name, r := range rates {
		if card == name || card == r.Name {
			return r, true
		}
	}
	return Rates{}, false
}

// Cards are the names by which predictions know cards.
func Cards() []string { return slices.Sorted(maps.Keys(rates)) }

// Cost is what the launches of one kernel take in a training step.
type Cost struct {
	Kernel   string  `json:"kernel"`
	Launches int     `json:"launches"`
	Flop     float64 `json:"flop"`         // of sums: multiplications and additions that a step cannot do without
	Work     float64 `json:"tensor_flop"`  // as the kernel does them on tensor cores
	Bytes    float64 `json:"bytes"`        // from and to memory, each array once
	Cache    float64 `json:"cache_bytes"`  // from the second-level cache, as its blocks read
	Shared   float64 `json:"shared_bytes"` // from and to shared memory, of products by matrix instructions
	Floor    float64 `json:"floor_seconds"`
	Expected float64 `json:"expected_seconds"` // with the cache, shared memory and the launches
	Bound    string  `json:"bound"`            // memory, tensor, cache, shared or launch: the largest of the expected time's parts

	again                float64 // of Bytes: read before in the step
	work, shared, cached float64 // Work, Shared and Cache over the shares of their rates that launches can reach
}

// cachePorts is the rate at which all multiprocessors together could read from the cache,
// 64 bytes a clock each, over the cache's.
const cachePorts = 2.6

// reach is the share of a rate that a kernel is expected to get.
const reach = 0.85

// Predict estimates a training step of one shard of rows rows, kernel by kernel in
// the order of their first launch, and the sum of all.
func Predict(m layers.Module, rows int, r Rates) (costs []Cost, step Cost, err error) {
	t, err := NewTables(m)
	if err != nil {
		return nil, Cost{}, err
	}
	s := NewSchedule(t, true)
	place := map[string]int{}
	read := reads{}
	for _, part := range [][]Work{s.Forward, s.Backward, s.Move} {
		for _, w := range part {
			i, ok := place[w.Kernel]
			if !ok {
				i = len(costs)
				place[w.Kernel] = i
				costs = append(costs, Cost{Kernel: w.Kernel})
			}
			costs[i].add(s.Tables.cost(w, s.Lists, float64(rows), read))
		}
	}
	step.Kernel = "step"
	for i := range costs {
		c := &costs[i]
		c.judge(r)
		step.add(*c)
		step.Floor += c.Floor
		step.Expected += c.Expected
	}
	all := step
	all.judge(r)
	step.Bound = all.Bound
	return costs, step, nil
}

func (c *Cost) add(o Cost) {
	c.Launches += o.Launches
	c.Flop += o.Flop
	c.Work += o.Work
	c.Bytes += o.Bytes
	c.Cache += o.Cache
	c.Shared += o.Shared
	c.again += o.again
	c.work += o.work
	c.shared += o.shared
	c.cached += o.cached
}

// judge computes the times.
func (c *Cost) judge(r Rates) {
	memory, tensorTime, cache, shared := c.Bytes/r.Memory, c.work/r.TF32, c.cached/r.Cache, c.shared/r.Shared
	launch := float64(c.Launches) * r.Launch
	c.Floor = max((c.Bytes-c.again)/r.Memory, c.Flop/r.F16)
	c.Expected = max(memory, tensorTime, cache, shared)/reach + launch
	c.Bound = "launch"
	most := launch
	for _, part := range []struct {
		name string
		time float64
	}{{"memory", memory}, {"tensor", tensorTime}, {"cache", cache}, {"shared", shared}} {
		if part.time > most {
			c.Bound, most = part.name, part.time
		}
	}
}

// products is how many TF32 products stand for one of a sum's.
func (t *Tables) products() float64 {
	if t.Mixed {
		return 1
	}
	return 3
}

// cost is what one launch takes.
func (t *Tables) cost(w Work, lists []uint32, rows float64, read reads) Cost {
	c := Cost{Launches: 1}
	entry := func(i int) uint32 { return lists[w.List+i] }
	size, tiles := float64(t.Size), math.Ceil(rows/tensor.RowTile)
	for i := range w.Blocks {
		switch w.Kernel {
		case tensor.KernelForward:
			g := &t.Groups[entry(i)]
			outputs, columns := float64(g.Blocks)*size, float64(g.Steps)*size
			c.product(t, outputs*columns, rows)
			c.through(t, columns, outputs, tensor.RowTile, rows)
			weights, reads := 4*outputs*columns, t.operandBytes(&t.Sums[g.Sum], rows)
			c.Bytes += weights + 4*outputs*rows
			c.Cache += weights*tiles + 2*reads // once for the exponents, once for the product
			if entry(i) == t.Sums[g.Sum].Group {
				c.Bytes += reads
			}
		case tensor.KernelForwardResident:
			first, n := entry(2*i), entry(2*i+1)
			s := &t.Sums[t.Groups[first].Sum]
			outputs, columns := 0.0, float64(s.Cols)
			for _, g := range t.Groups[first : first+n] {
				outputs += float64(g.Blocks) * size
			}
			c.product(t, outputs*columns, rows)
			c.through(t, columns, outputs, tensor.RowTile, rows)
			c.Shared += 4 * 2 * columns * rows // to scale operands
			weights, reads := 4*outputs*columns, t.operandBytes(s, rows)
			c.Bytes += weights + 4*outputs*rows
			c.Cache += weights*tiles + reads
			if kept := t.keptBytes(s, rows); first == s.Group {
				c.Bytes, c.Cache, c.again = c.Bytes+reads+kept, c.Cache+kept, c.again+kept
			}
		case tensor.KernelFit:
			sum := &t.Sums[entry(2*i)]
			reads, operands := t.operandBytes(sum, rows), 4*float64(sum.Cols)*rows
			written := operands + t.keptBytes(sum, rows)
			c.Bytes, c.again = c.Bytes+reads+written, c.again+written
			c.Cache += 2*reads + written
		case tensor.KernelForwardWide:
			g := &t.Groups[entry(2*i)]
			outputs, columns := float64(g.Blocks)*size, float64(g.Steps)*size
			tiles := math.Ceil(rows / tensor.WideRows)
			c.product(t, outputs*columns, rows)
			c.fill(t, columns, outputs, rows)
			c.through(t, columns, outputs, tensor.WideRows, rows)
			weights := 4 * outputs * columns
			c.Bytes += weights + 4*outputs*rows
			c.Cache += weights*tiles + 4*columns*rows
		case tensor.KernelStored:
			s := &t.Sums[entry(i)]
			reads := t.operandBytes(s, rows)
			c.Bytes += reads + 4*float64(s.Width)*rows
			c.Cache += 2 * reads
		case tensor.KernelBackward:
			t.backwardCost(&c, entry(i), tensor.RowTile, rows, read)
		case tensor.KernelBackwardWide:
			t.backwardCost(&c, entry(i), tensor.WideRows, rows, read)
		case tensor.KernelGather:
			s := &t.Sums[entry(i)]
			b := 4 * float64(s.Width) * rows * (2 + float64(s.Users))
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		case tensor.KernelMove, tensor.KernelMoveWide:
			if len(t.Patches) == 0 {
				t.tileCost(&c, &t.Tiles[entry(i)], rows, read)
				continue
			}
			edge := tensor.NarrowPatch
			if w.Kernel == tensor.KernelMoveWide {
				edge = tensor.WidePatch
			}
			t.patchCost(&c, &t.Patches[entry(i)], edge, rows, read)
		case tensor.KernelNormalise:
			g := &t.Groups[entry(i)]
			b := 8 * float64(g.Blocks*g.Steps) * size * size
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		case tensor.KernelNorms:
			o := &t.Owners[entry(2*i)]
			for _, member := range t.OwnerSums[o.Member : o.Member+o.Members] {
				b := 4 * 32 * rows * float64(min(2, t.Sums[member].Users))
				c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
			}
		case tensor.KernelLeafGather, tensor.KernelLeafMove:
			t.leafCost(&c, w.Kernel, entry(2*i), entry(2*i+1), rows)
		}
	}
	share := 1.0
	if c.Work > 0 {
		blocks := float64(w.Blocks)
		if w.Rows > 0 {
			blocks *= math.Ceil(rows / float64(w.Rows))
		}
		share = min(1, blocks/processors)
	}
	c.work, c.shared, c.cached = c.Work/share, c.Shared/share, c.Cache/min(1, share*cachePorts)
	return c
}

// product adds the multiplications of weights weights with rows rows.
func (c *Cost) product(t *Tables, weights, rows float64) {
	c.Flop += 2 * weights * rows
	c.Work += 2 * t.products() * weights * rows
}

// operandBytes is what the factors of a sum take.
func (t *Tables) operandBytes(s *tensor.Sum, rows float64) (b float64) {
	for e := s.Element; e < s.Element+s.Elements; e++ {
		b += t.elementBytes(e, rows)
	}
	return b
}

func (t *Tables) elementBytes(id uint32, rows float64) float64 {
	e := &t.Elements[id]
	return 4 * float64(e.Width) * rows * float64(e.Count)
}

// productBytes is what an element's products take to read: its factors, unless the
// forward pass has kept them.
func (t *Tables) productBytes(id uint32, rows float64) float64 {
	if e := &t.Elements[id]; e.Formed != tensor.NotKept {
		return 4 * float64(e.Width) * rows
	}
	return t.elementBytes(id, rows)
}

// keptBytes is what the forward pass keeps of a sum's products.
func (t *Tables) keptBytes(s *tensor.Sum, rows float64) (b float64) {
	for _, e := range t.Elements[s.Element : s.Element+s.Elements] {
		if e.Formed != tensor.NotKept {
			b += 4 * float64(e.Width) * rows
		}
	}
	return b
}

// downBytes is what the flows into an element's factors take.
func (t *Tables) downBytes(id uint32, rows float64) (b float64) {
	e := &t.Elements[id]
	if e.Kept != tensor.NotKept {
		b++
	}
	for _, f := range t.Factors[e.Factor : e.Factor+e.Count] {
		if f.Down == tensor.DownRatio {
			b++
		}
	}
	return b * 4 * float64(e.Width) * rows
}
