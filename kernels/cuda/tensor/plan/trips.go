package plan

import (
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// trips are how often the parts of a kernel run, over all blocks of threads of a launch.
// What a part is differs by kernel; those of one kernel take about the same instructions
// each time, which weights has.
type trips struct {
	blocks   float64
	opened   float64 // factors that a block turns to: their records, and the places of its rows
	formed   float64 // chunks of a block's rows, of one factor of a product with few
	wide     float64 // of one with an exponent for each product
	stages   float64 // of what a product adds up, or chunks of rows, columns or codes of other kernels
	products float64 // parts of a stage's outputs: 16 columns, or 32 of wide tiles, patches' warps
	results  float64 // of them, once for a block, or units of other kernels
}

func (n *trips) add(o trips) {
	n.blocks += o.blocks
	n.opened += o.opened
	n.formed += o.formed
	n.wide += o.wide
	n.stages += o.stages
	n.products += o.products
	n.results += o.results
}

// times is n repeated.
func (n trips) times(k float64) trips {
	return trips{k * n.blocks, k * n.opened, k * n.formed, k * n.wide, k * n.stages, k * n.products, k * n.results}
}

func ceil(n, d int) float64 { return float64((n + d - 1) / d) }

// lanesOfRow is how many threads share a row in the kernels on tiles of rows.
const lanesOfRow = 8

// chunk is the units of a row that they read at once.
func (t *Tables) chunk() int { return lanesOfRow * min(t.Size, 4) }

// parts is how many parts the outputs of a product are multiplied in.
func (t *Tables) parts(outputs int) float64 {
	if t.Size >= 16 {
		return ceil(outputs, 16)
	}
	for n := 1; ; n *= 2 { // the kernel has loops for these
		if outputs <= 8*n || n == 8 {
			return float64(n)
		}
	}
}

// factorTrips adds what it takes to turn to an element once and to form columns of its
// columns, chunk at a time.
func (n *trips) factorTrips(e *tensor.Element, columns, chunk int, opens float64) {
	factors, chunks := float64(e.Count), ceil(columns, chunk)
	n.opened += opens * factors
	if e.Wide == 0 && e.Count <= tensor.BareFactors {
		n.formed += chunks * factors
		return
	}
	n.wide += chunks * factors
}

// sumTrips is what it takes to go once through the elements of a sum.
func (t *Tables) sumTrips(s *tensor.Sum, chunk int) (n trips) {
	for i := range t.Elements[s.Element : s.Element+s.Elements] {
		e := &t.Elements[int(s.Element)+i]
		n.factorTrips(e, int(e.Width), chunk, 1)
	}
	return n
}

// downTrips is what it takes to form the columns of a column again, where they are not
// kept, and to send the flows on.
func (t *Tables) downTrips(c *tensor.Column) (n trips) {
	e := t.Elements[c.Element]
	columns := int(c.Blocks) * t.Size
	if e.Formed != tensor.NotKept {
		e.Count, e.Wide = 1, 0
	}
	n.factorTrips(&e, columns, t.chunk(), 1)
	down := 0.0
	for _, f := range t.Factors[t.Elements[c.Element].Factor:][:t.Elements[c.Element].Count] {
		if f.Down == tensor.DownRatio {
			down++
		}
	}
	n.results = ceil(columns, t.chunk()) * (1 + down)
	return n
}

// trips counts what the kernel of a launch does on rows rows, and what the largest of
// its blocks of threads does.
func (t *Tables) trips(w Work, lists []uint32, rows int) (all, most trips) {
	each := 1.0 // blocks along y
	if w.Rows > 0 {
		each = ceil(rows, w.Rows)
	}
	if w.Blocks == 0 {
		return trips{blocks: each}, trips{blocks: 1}
	}
	entry := func(i int) uint32 { return lists[w.List+i] }
	size := t.Size
	for i := range w.Blocks {
		one := trips{blocks: 1}
		switch w.Kernel {
		case tensor.KernelForward:
			g := &t.Groups[entry(i)]
			outputs, columns := int(g.Blocks)*size, int(g.Steps)*size
			one.add(t.sumTrips(&t.Sums[g.Sum], t.chunk()))
			one.groupTrips(t, g)
			one.stages = ceil(columns, t.chunk())
			one.products, one.results = one.stages*t.parts(outputs), t.parts(outputs)
		case tensor.KernelForwardResident:
			first, n := entry(2*i), entry(2*i+1)
			s := &t.Sums[t.Groups[first].Sum]
			one.add(t.sumTrips(s, t.chunk()))
			one.stages = ceil(int(n), tensor.ResidentGroups) * ceil(int(s.Cols), t.chunk())
			for _, g := range t.Groups[first : first+n] {
				parts := t.parts(int(g.Blocks) * size)
				one.products += ceil(int(s.Cols), t.chunk()) * parts
				one.results += parts
			}
		case tensor.KernelFit:
			one.add(t.sumTrips(&t.Sums[entry(2*i)], 32*4).times(2))
		case tensor.KernelForwardWide:
			g := &t.Groups[entry(2*i)]
			parts := ceil(int(g.Blocks)*size, 32)
			one.stages = ceil(int(g.Steps)*size, 16)
			one.products, one.results = one.stages*parts, parts
		case tensor.KernelStored:
			s := &t.Sums[entry(i)]
			one.add(t.sumTrips(s, t.chunk()).times(2))
		case tensor.KernelBackward:
			c := &t.Columns[entry(i)]
			one.add(t.downTrips(c))
			one.stages = ceil(int(c.Steps)*size, t.chunk())
			one.products = one.stages * t.parts(int(c.Blocks)*size)
		case tensor.KernelBackwardWide:
			c := &t.Columns[entry(i)]
			one.add(t.downTrips(c))
			one.stages = ceil(int(c.Steps)*size, 16)
			one.products = one.stages * ceil(int(c.Blocks)*size, 32)
		case tensor.KernelGather:
			s := &t.Sums[entry(i)]
			one.stages = ceil(int(s.Width), t.chunk())
			one.products = one.stages * float64(s.Users)
		case tensor.KernelMove, tensor.KernelMoveWide:
			if len(t.Patches) == 0 {
				one.tileTrips(t, &t.Tiles[entry(i)], rows)
				break
			}
			edge := tensor.NarrowPatch
			if w.Kernel == tensor.KernelMoveWide {
				edge = tensor.WidePatch
			}
			one.patchTrips(t, &t.Patches[entry(i)], edge, rows)
		case tensor.KernelNormalise:
			g := &t.Groups[entry(i)]
			one.results = ceil(int(g.Blocks)*size*size, 32)
			one.stages = one.results * ceil(int(g.Steps), tensor.NormaliseSteps)
		case tensor.KernelNorms:
			o := &t.Owners[entry(2*i)]
			for _, member := range t.OwnerSums[o.Member : o.Member+o.Members] {
				one.opened++
				one.stages += ceil(rows, 8) * float64(min(2, t.Sums[member].Users))
			}
		case tensor.KernelLeaf:
			in := &t.Inputs[entry(i)]
			one.stages = ceil(int(in.Width), 32)
		case tensor.KernelLeafGather, tensor.KernelLeafMove:
			one.leafTrips(t, w.Kernel, entry(2*i), rows)
		}
		all.add(one.times(each))
		if one.work() > most.work() {
			most = one
		}
	}
	return all, most
}

// work orders blocks of one kernel by how much they have to do.
func (n *trips) work() float64 {
	return n.blocks + n.opened + n.formed + n.wide + n.stages + n.products + n.results
}

// groupTrips adds what it takes to form the operands of a group.
func (n *trips) groupTrips(t *Tables, g *tensor.Group) {
	steps := t.Steps[g.Step : g.Step+g.Steps]
	for len(steps) > 0 {
		same := 1
		for same < len(steps) && steps[same].Element == steps[0].Element {
			same++
		}
		n.factorTrips(&t.Elements[steps[0].Element], same*t.Size, t.chunk(), 1)
		steps = steps[same:]
	}
}

// patchTrips adds what the flows of a patch take: a stage has sixteen rows.
func (n *trips) patchTrips(t *Tables, p *tensor.Patch, edge, rows int) {
	warps := ceil(int(p.Steps)*t.Size, edge/2) * ceil(int(p.Columns)*t.Size, 32)
	for _, m := range t.Members[p.Member : p.Member+p.Members] {
		e := t.Elements[m.Element]
		if e.Formed != tensor.NotKept {
			e.Count, e.Wide = 1, 0
		}
		stages := ceil(rows, 16)
		n.factorTrips(&e, rows, 16, ceil(rows, 256))
		n.stages += stages
		n.products += stages * warps
	}
	n.results = warps
}

// tileTrips adds what the flows of a tile take, without matrix instructions: a stage has
// 32 rows.
func (n *trips) tileTrips(t *Tables, tile *tensor.Tile, rows int) {
	for _, m := range t.Members[tile.Member : tile.Member+tile.Members] {
		stages := ceil(rows, 32)
		n.factorTrips(&t.Elements[m.Element], rows, 32, stages)
		n.stages += stages
	}
	n.results = ceil(int(tile.Blocks)*t.Size*t.Size, 128)
}

// leafTrips adds what the counts of a run of units of an input take, or those of a part.
func (n *trips) leafTrips(t *Tables, kernel string, input uint32, rows int) {
	in := &t.Inputs[input]
	shift := t.partShift()
	parted := shift > 0 && t.parted(int(input))
	if kernel == tensor.KernelLeafGather || !parted {
		n.stages = float64(rows) * float64(in.Uses)
	}
	codes := int(in.Codes)
	if parted {
		codes = (codes + 1<<shift - 1) >> shift
	}
	n.results = ceil(codes, 16)
}
