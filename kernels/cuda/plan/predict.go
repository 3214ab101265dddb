package plan

import (
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// Rates are what a card can do at most, a second.
type Rates struct {
	Name   string
	Memory float64 // bytes from and to memory
	Cache  float64 // bytes from the second-level cache to the multiprocessors
	TF32   float64 // operations of mma.sync on TF32
	F16    float64 // on float16
	Host   float64 // bytes from the memory of the host
	Launch float64 // seconds from the end of a kernel to the start of the next one in a graph
}

// rates are the cards that predictions know, by the names that they are asked for.
// The H200's memory and float16 rates were measured on one; the others are
// its data sheet's, scaled by the share that mma.sync reaches of wgmma, and by
// that which packets leave of PCI Express 5.0.
var rates = map[string]Rates{
	"h200": {Name: "NVIDIA H200", Memory: 4.3e12, Cache: 5.6e12, TF32: 237e12, F16: 474e12, Host: 55e9, Launch: 2.5e-6},
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

// Cost is what the launches of one kernel take in a training step.
type Cost struct {
	Kernel   string  `json:"kernel"`
	Launches int     `json:"launches"`
	Flop     float64 `json:"flop"`        // of sums: multiplications and additions that a step cannot do without
	Work     float64 `json:"tensor_flop"` // as the kernel does them on tensor cores
	Bytes    float64 `json:"bytes"`       // from and to memory, each array once
	Cache    float64 `json:"cache_bytes"` // from the second-level cache, as its blocks read
	Floor    float64 `json:"floor_seconds"`
	Expected float64 `json:"expected_seconds"` // with the cache and the launches
	Bound    string  `json:"bound"`            // memory, tensor, cache or launch: the largest of the expected time's parts
}

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
	for _, part := range [][]Work{s.Forward, s.Backward, s.Move} {
		for _, w := range part {
			i, ok := place[w.Kernel]
			if !ok {
				i = len(costs)
				place[w.Kernel] = i
				costs = append(costs, Cost{Kernel: w.Kernel})
			}
			costs[i].add(t.cost(w, s.Lists, float64(rows)))
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
}

// judge computes the times.
func (c *Cost) judge(r Rates) {
	memory, tensorTime, cache := c.Bytes/r.Memory, c.Work/r.TF32, c.Cache/r.Cache
	launch := float64(c.Launches) * r.Launch
	c.Floor = max(memory, c.Flop/r.F16)
	c.Expected = max(memory, tensorTime, cache)/reach + launch
	c.Bound = "launch"
	most := launch
	for _, part := range []struct {
		name string
		time float64
	}{{"memory", memory}, {"tensor", tensorTime}, {"cache", cache}} {
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
func (t *Tables) cost(w Work, lists []uint32, rows float64) Cost {
	c := Cost{Launches: 1}
	entry := func(i int) uint32 { return lists[w.List+i] }
	size, tiles := float64(t.Size), max(1, rows/tensor.RowTile)
	for i := range w.Blocks {
		switch w.Kernel {
		case tensor.KernelForward:
			g := &t.Groups[entry(i)]
			outputs, columns := float64(g.Blocks)*size, float64(g.Steps)*size
			c.product(t, outputs*columns, rows)
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
			weights, reads := 4*outputs*columns, t.operandBytes(s, rows)
			c.Bytes += weights + 4*outputs*rows
			c.Cache += weights*tiles + reads
			if first == s.Group {
				c.Bytes += reads
			}
		case tensor.KernelStored:
			s := &t.Sums[entry(i)]
			reads := t.operandBytes(s, rows)
			c.Bytes += reads + 4*float64(s.Width)*rows
			c.Cache += 2 * reads
		case tensor.KernelBackward:
			col := &t.Columns[entry(i)]
			outputs, columns := float64(col.Steps)*size, float64(col.Blocks)*size
			c.product(t, outputs*columns, rows)
			e := &t.Elements[col.Element]
			part := columns / float64(e.Width) * (t.elementBytes(col.Element, rows) + t.downBytes(col.Element, rows))
			weights, ratios := 4*outputs*columns, 4*outputs*rows
			c.Bytes += weights + part
			c.Cache += weights*tiles + ratios + part
			if entry(i) == t.Sums[col.Sum].Column {
				c.Bytes += ratios
			}
		case tensor.KernelGather:
			s := &t.Sums[entry(i)]
			b := 4 * float64(s.Width) * rows * (2 + float64(s.Users))
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		case tensor.KernelMove:
			tile := &t.Tiles[entry(i)]
			outputs := float64(tile.Blocks) * size
			members := float64(tile.Members)
			c.product(t, outputs*size, rows*members)
			weights := 8 * outputs * size
			reads := 0.0
			for _, m := range t.Members[tile.Member : tile.Member+tile.Members] {
				reads += 4*outputs*rows + size/float64(t.Elements[m.Element].Width)*t.elementBytes(m.Element, rows)
			}
			c.Bytes += weights
			c.Cache += weights + reads
			if tile.Row == 0 { // the operands of a column once
				c.Bytes += reads
			}
		case tensor.KernelNormalise:
			g := &t.Groups[entry(i)]
			b := 8 * float64(g.Blocks*g.Steps) * size * size
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		case tensor.KernelNorms:
			o := &t.Owners[entry(2*i)]
			b := 8 * 32 * rows * float64(o.Members)
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		case tensor.KernelLeafMove:
			in := &t.Inputs[entry(2*i)]
			units := float64(min(32, in.Width))
			b := 4*units*rows*float64(in.Uses) + 8*units*float64(in.Codes)
			c.Bytes, c.Cache = c.Bytes+b, c.Cache+b
		}
	}
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
